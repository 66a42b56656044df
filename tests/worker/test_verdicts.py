"""What becomes of a job for each way in which its handler may end; pure."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reserve.jobs import rows
from reserve.worker import Discard, Release, Retry
from reserve.worker.holding import CancelReason, hold_all
from reserve.worker.payloads import Misfit
from reserve.worker.verdicts import TimedOut, UnknownKind, describe, of_error, of_output, of_refusal, summarise

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
CLAIMED = rows.Claimed(
    id=7,
    token=3,
    lane="default",
    kind="a",
    payload=None,
    priority=0,
    attempt=1,
    max_attempts=20,
    failures=0,
    rescues=0,
    run_at=NOON,
    created_at=NOON,
    started_at=NOON,
    lease_expires_at=NOON + timedelta(seconds=60),
    idempotency_key="job-7",
)


@pytest.fixture
def held():
    return hold_all([CLAIMED], 100)[0]


def test_a_lease_counts_from_before_it_was_asked_for_and_is_renewed_at_a_third(held):
    assert (held.lease_seconds, held.renew_at, held.expires_at) == (60, 120, 160)
    short = replace(CLAIMED, lease_expires_at=NOON)
    assert hold_all([short], 100)[0].lease_seconds == 1, "no lease is shorter"


def test_what_is_returned_is_the_output(held, settings):
    assert of_output(held, None, settings) == rows.Complete(7, 3)
    assert of_output(held, {"sent": 1}, settings) == rows.Complete(7, 3, {"sent": 1})


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (object(), "/output: must be JSON"),
        (float("nan"), "/output: must not contain NaN"),
        ("\0", r"/output: must not contain the character U\+0000"),
        ("x" * 300_000, "/output: must have at most 262144 bytes"),
    ],
)
def test_an_output_that_cannot_be_stored_discards_the_job(held, settings, output, sentence):
    verdict = of_output(held, output, settings)
    assert isinstance(verdict, rows.Fail)
    assert verdict.discard
    assert verdict.error.startswith("The handler's answer cannot be stored: /output: must")


def test_the_exceptions_of_a_handler_are_its_words(held, settings):
    assert of_error(held, Discard("no such user"), settings) == rows.Fail(7, 3, "no such user", discard=True)
    assert of_error(held, Retry(5, "busy"), settings) == rows.Fail(7, 3, "busy", retry_in_seconds=5)
    assert of_error(held, Retry(), settings).retry_in_seconds is None
    assert of_error(held, Release(60), settings) == rows.Release(7, 3, 60)
    assert of_error(held, Misfit("The payload does not fit: /to: x."), settings).discard
    assert of_error(held, TimedOut(1.5), settings) == rows.Fail(7, 3, "Timed out after 1.5 s.")
    assert of_error(held, UnknownKind("a"), settings) == rows.Fail(
        7, 3, "This worker has no handler for jobs of kind 'a'."
    )


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_impossible_pauses_are_refused_where_they_are_asked_for(seconds):
    for wish in (Retry, Release):
        with pytest.raises(ValueError, match="must be a number of seconds"):
            wish(seconds)


def test_a_pause_beyond_the_bound_is_a_failure_that_says_so(held, settings):
    for wish in (Retry(10**10), Release(10**10)):
        verdict = of_error(held, wish, settings)
        assert isinstance(verdict, rows.Fail)
        assert "must be a number of seconds from 0 to" in verdict.error
        assert not verdict.discard


def test_being_cancelled_is_a_failure_only_where_nobody_asked_for_it(held, settings):
    assert of_error(held, asyncio.CancelledError(), settings).error.startswith("CancelledError\n")
    held.tell(CancelReason.STOPPING)
    assert of_error(held, asyncio.CancelledError(), settings) == rows.Release(7, 3)
    assert isinstance(of_error(held, KeyError("x"), settings), rows.Fail)


def test_a_lost_lease_outweighs_what_was_told_before(held):
    held.tell(CancelReason.STOPPING)
    held.tell(CancelReason.CANCELLED)
    assert held.reason is CancelReason.STOPPING
    held.tell(CancelReason.LEASE_LOST)
    assert held.reason is CancelReason.LEASE_LOST


def test_an_error_says_what_in_a_line_and_then_where(held, settings):
    try:
        int("x")
    except ValueError as error:
        text = of_error(held, error, settings).error
    first, _, rest = text.partition("\n\n")
    assert first == "ValueError: invalid literal for int() with base 10: 'x'"
    assert rest.startswith("Traceback")
    assert __file__ in rest


class Mute(Exception):
    def __str__(self):
        raise RuntimeError


def test_an_error_that_cannot_say_what_it_is_is_described_all_the_same():
    assert summarise(Mute()) == "Mute: (it cannot say what)"
    assert describe(Mute()).startswith("Mute: (it cannot say what)")
    assert summarise(SystemExit()) == "SystemExit"


def test_what_no_text_can_hold_is_replaced_in_an_error(held, settings):
    for text in ("\0", "\ud800", "x" * 100_000):
        assert len(of_error(held, Discard(text), settings).error.encode()) <= settings.job_error_length_max * 4


def test_a_refused_completion_becomes_a_discard_and_anything_else_a_failure(settings):
    error = ValueError("no")
    assert of_refusal(rows.Complete(7, 3), error, settings).discard
    assert not of_refusal(rows.Release(7, 3), error, settings).discard
