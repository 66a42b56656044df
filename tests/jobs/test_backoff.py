"""The pause after a failure, and what a verdict makes of a job: pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserve.errors import JobFinished, LeaseLost
from reserve.jobs.backoff import backoff_seconds
from reserve.jobs.rows import Backoff, Complete, Fail, JobState, Release
from reserve.jobs.verdicts import Held, decide, judge_repeat

seconds = st.just(0.0) | st.floats(0.001, 31 * 86_400)
backoffs = st.tuples(seconds, seconds).map(lambda pair: Backoff(*sorted(pair)))
jitters = st.floats(0, 1)


def test_the_pause_doubles_up_to_its_bound():
    backoff = Backoff(5, 60)
    assert [backoff_seconds(backoff, failures, jitter=1) for failures in range(1, 7)] == [5, 10, 20, 40, 60, 60]
    assert backoff_seconds(backoff, 1, jitter=0) == 2.5


@given(backoffs, st.integers(1, 100), jitters)
def test_the_pause_is_from_a_half_to_the_whole_and_never_beyond_the_bound(backoff, failures, jitter):
    whole = min(backoff.seconds_max, backoff.first_seconds * 2 ** (failures - 1))
    assert whole / 2 <= backoff_seconds(backoff, failures, jitter=jitter) <= whole <= backoff.seconds_max


@given(backoffs, st.integers(1, 99), jitters)
def test_the_pause_never_shrinks_with_failures(backoff, failures, jitter):
    assert backoff_seconds(backoff, failures, jitter=jitter) <= backoff_seconds(backoff, failures + 1, jitter=jitter)


def held(**changes):
    usual = {
        "id": 1,
        "state": JobState.RUNNING,
        "rescued": False,
        "token": 3,
        "max_attempts": 5,
        "failures": 1,
        "cancel_requested": False,
        "backoff": Backoff(10, 100),
    }
    return Held(**usual | changes)


@pytest.mark.parametrize(
    ("verdict", "changes", "state", "failures", "delay_seconds"),
    [
        (Release(1, 3), {}, "ready", 1, 0),
        (Release(1, 3, 7), {}, "scheduled", 1, 7),
        (Release(1, 3, 7), {"cancel_requested": True}, "cancelled", 1, 0),
        (Fail(1, 3, "e"), {}, "scheduled", 2, 20),
        (Fail(1, 3, "e", 0), {}, "ready", 2, 0),
        (Fail(1, 3, "e", 7), {}, "scheduled", 2, 7),
        (Fail(1, 3, "e"), {"backoff": Backoff(0, 0)}, "ready", 2, 0),
        (Fail(1, 3, "e"), {"failures": 4}, "discarded", 5, 0),
        (Fail(1, 3, "e", 7), {"failures": 4}, "discarded", 5, 0),
        (Fail(1, 3, "e", discard=True), {}, "discarded", 2, 0),
        (Fail(1, 3, "e"), {"cancel_requested": True}, "cancelled", 2, 0),
        # Whoever cancels a running job is told that it ends cancelled unless its holder completes it.
        (Fail(1, 3, "e", discard=True), {"cancel_requested": True}, "cancelled", 2, 0),
        (Fail(1, 3, "e"), {"cancel_requested": True, "failures": 4}, "cancelled", 5, 0),
    ],
)
def test_a_verdict_makes_of_a_job(verdict, changes, state, failures, delay_seconds):
    decision = decide(verdict, held(**changes), jitter=1)
    assert (decision.state, decision.failures, decision.delay_seconds) == (state, failures, delay_seconds)
    assert decision.error == ("e" if isinstance(verdict, Fail) else None)


@pytest.mark.parametrize(
    ("changes", "token", "holds"),
    [
        ({}, 3, True),
        ({}, 2, False),
        ({}, 4, False),
        ({"state": JobState.READY, "rescued": True}, 3, True),
        ({"state": JobState.READY, "rescued": True}, 2, False),
        ({"state": JobState.READY}, 3, False),
    ],
)
def test_a_job_is_held_with_its_token_while_it_runs_or_was_rescued(changes, token, holds):
    assert held(**changes).is_held_with(token) is holds


REPEATS = {
    Complete(1, 3): {"succeeded"},
    Fail(1, 3, "e"): {"ready", "scheduled", "discarded", "cancelled"},
    Release(1, 3): {"ready", "scheduled", "cancelled"},
}


@pytest.mark.parametrize("verdict", REPEATS)
def test_a_verdict_again_has_its_answer_with_the_same_token_only(verdict):
    for state in JobState:
        answer = judge_repeat(verdict, state, 3)
        if state in REPEATS[verdict]:
            assert answer is state
        else:
            assert isinstance(answer, JobFinished if state.finished else LeaseLost)
        for other in (0, 2, 4):
            assert isinstance(judge_repeat(verdict, state, other), LeaseLost)
