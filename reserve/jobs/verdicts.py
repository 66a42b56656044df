"""What a verdict makes of a job, decided on what was read under its lock; pure."""

from dataclasses import dataclass
from typing import assert_never

from reserve.errors import JobFinished, LeaseLost, ReserveError
from reserve.jobs.backoff import backoff_seconds
from reserve.jobs.rows import Backoff, Complete, Fail, JobState, Release, Verdict


@dataclass(frozen=True, slots=True)
class Held:
    """A job that is ready or running, as it was read under its lock."""

    id: int
    state: JobState
    rescued: bool
    token: int
    max_attempts: int
    failures: int
    cancel_requested: bool
    backoff: Backoff

    def is_held_with(self, token: int) -> bool:
        """Whether `token` is its holder's, also after its lease has lapsed, until somebody else claims it."""
        return token == self.token and (self.state is JobState.RUNNING or self.rescued)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the job becomes: `state`, with `delay_seconds` when that is scheduled."""

    state: JobState
    failures: int
    error: str | None = None
    delay_seconds: float = 0


def decide(verdict: Fail | Release, held: Held, *, jitter: float) -> Decision:
    """What becomes of a job that its holder fails or gives back."""
    match verdict:
        case Release():
            if held.cancel_requested:
                return Decision(JobState.CANCELLED, held.failures)
            return _again(verdict.delay_seconds, held.failures, None)
        case Fail():
            failures = held.failures + 1
            # Whoever cancelled it was told that it ends so unless it is completed.
            if held.cancel_requested:
                return Decision(JobState.CANCELLED, failures, verdict.error)
            if verdict.discard or failures >= held.max_attempts:
                return Decision(JobState.DISCARDED, failures, verdict.error)
            pause = verdict.retry_in_seconds
            if pause is None:
                pause = backoff_seconds(held.backoff, failures, jitter=jitter)
            return _again(pause, failures, verdict.error)
        case _:
            assert_never(verdict)


def _again(delay_seconds: float, failures: int, error: str | None) -> Decision:
    state = JobState.SCHEDULED if delay_seconds > 0 else JobState.READY
    return Decision(state, failures, error, delay_seconds)


def judge_repeat(verdict: Verdict, state: JobState, token: int) -> JobState | ReserveError:
    """The answer to a verdict on a job that is not held with its token, given what the job is now.

    The same verdict again has the same answer, until somebody has a newer token.
    """
    if verdict.token == token:
        match verdict:
            case Complete():
                same = {JobState.SUCCEEDED}
            case Fail():
                same = {JobState.READY, JobState.SCHEDULED, JobState.DISCARDED, JobState.CANCELLED}
            case Release():
                same = {JobState.READY, JobState.SCHEDULED, JobState.CANCELLED}
            case _:
                assert_never(verdict)
        if state in same:
            return state
        if state.finished:
            return JobFinished(f"The job {verdict.job_id} has finished: it is {state}.")
    return LeaseLost(f"The token {verdict.token} is not that of job {verdict.job_id}'s holder, or no longer.")
