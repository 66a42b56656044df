"""What must come of each operation on the queue: a dict of jobs and the rules of the lane, without any SQL.

A time that the database's clock decides is a `Window` until it has been seen.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reserve.errors import JobFinished, JobNotFound, LaneNotFound, LeaseLost
from reserve.jobs.rows import Complete, Extend, Fail, Job, JobState, Release, Verdict
from reserve.settings import Settings
from reserve.unset import Unset

S = JobState

#: What an operation is answered: a state, a number, or the class of the error.
Answer = Any

_BY_HAND = "It was discarded by hand."


@dataclass(frozen=True)
class Window:
    """A time from `low` to `high`."""

    low: datetime
    high: datetime

    def later(self, least: float, most: float | None = None) -> "Window":
        return Window(
            self.low + timedelta(seconds=least), self.high + timedelta(seconds=least if most is None else most)
        )


@dataclass
class Expected:
    """A job as it must be, wherever it is."""

    id: int
    lane: str
    kind: str
    payload: Any
    priority: int
    max_attempts: int
    state: JobState
    run_at: Any
    created_at: Any
    token: int = 0
    attempt: int = 0
    failures: int = 0
    rescues: int = 0
    rescued: bool = False
    cancel_requested: bool = False
    worker: str | None = None
    error: str | None = None
    progress: Any = None
    output: Any = None
    started_at: Any = None
    lease_expires_at: Any = None
    finished_at: Any = None

    def place(self) -> tuple[int, datetime, int]:
        """Where it is in the line of its lane."""
        return -self.priority, self.run_at, self.id

    def is_held_with(self, token: int) -> bool:
        return token == self.token and (self.state is S.RUNNING or self.rescued)

    def becomes(self, state: JobState, **changes: Any) -> None:
        """Whatever it was to a holder ends, but for what is said."""
        self.state = state
        self.rescued = self.cancel_requested = False
        self.lease_expires_at = None
        for name, value in changes.items():
            assert hasattr(self, name)
            setattr(self, name, value)


class Model:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.jobs: dict[int, Expected] = {}
        self.paused: dict[str, bool] = {}
        self._ends: dict[tuple[str, str], tuple[int, datetime, int]] = {}

    def of(self, lane: str, *states: JobState) -> list[Expected]:
        return [job for job in self.jobs.values() if job.lane == lane and job.state in states]

    # --- enqueue and claim ----------------------------------------------------------------------------------

    def enqueue(self, job: Job, delay_seconds: float | None, max_attempts: int | None, now: Window) -> None:
        """A job that was answered, and must be what it was wished to be."""
        assert job.id > max(self.jobs, default=0)
        later = delay_seconds is not None and delay_seconds > 0
        self.paused.setdefault(job.lane, False)
        self.jobs[job.id] = Expected(
            job.id,
            job.lane,
            job.kind,
            job.payload,
            job.priority,
            max_attempts or self.settings.job_attempts_max,
            S.SCHEDULED if later else S.READY,
            now.later(delay_seconds or 0),
            now,
        )

    def claim(self, lane: str, worker: str, limit: int, now: Window, *, fresh: bool, lease_seconds: int) -> list[int]:
        """The first ready jobs; past the last that this worker was given, unless it looks `fresh`.

        From the start as well when there is a higher priority, and when there is nothing after.
        """
        ready = sorted(self.of(lane, S.READY), key=Expected.place)
        end = self._ends.pop((worker, lane), None)
        if self.paused.get(lane, True):
            return []
        if not fresh and end is not None and not any(job.place()[0] < end[0] for job in ready):
            ready = [job for job in ready if job.place() > end] or ready
        chosen = ready[:limit]
        for job in chosen:
            lease = now.later(lease_seconds)
            job.becomes(
                S.RUNNING,
                token=job.token + 1,
                attempt=job.failures + 1,
                worker=worker,
                started_at=now,
                lease_expires_at=lease,
            )
        if chosen:
            self._ends[worker, lane] = chosen[-1].place()
        return [job.id for job in chosen]

    # --- by the holder --------------------------------------------------------------------------------------

    def finish(self, verdict: Verdict, now: Window) -> Answer:
        job = self.jobs.get(verdict.job_id)
        if job is None:
            return JobNotFound
        if not job.is_held_with(verdict.token):
            return self._judge_again(verdict, job)
        match verdict:
            case Complete():
                job.becomes(S.SUCCEEDED, finished_at=now, output=verdict.output, error=None)
            case Fail():
                failures = job.failures + 1
                rest = {"failures": failures, "error": verdict.error}
                if job.cancel_requested:
                    job.becomes(S.CANCELLED, finished_at=now, **rest)
                elif verdict.discard or failures == job.max_attempts:
                    job.becomes(S.DISCARDED, finished_at=now, **rest)
                else:
                    self._again(job, verdict.retry_in_seconds, now, **rest)
            case Release():
                if job.cancel_requested:
                    job.becomes(S.CANCELLED, finished_at=now)
                else:
                    self._again(job, verdict.delay_seconds, now)
        return job.state

    def _again(self, job: Expected, seconds: float | None, now: Window, **rest: Any) -> None:
        """Ready in its old place, or scheduled for later; without `seconds`, after the pause for its failures."""
        if seconds == 0:
            job.becomes(S.READY, **rest)
        elif seconds is not None:
            job.becomes(S.SCHEDULED, run_at=now.later(seconds), **rest)
        else:
            first, most = self.settings.job_backoff_first_seconds, self.settings.job_backoff_seconds_max
            pause = min(most, first * 2 ** (rest["failures"] - 1))
            job.becomes(S.SCHEDULED, run_at=now.later(pause / 2, pause), **rest)

    def _judge_again(self, verdict: Verdict, job: Expected) -> Answer:
        if verdict.token != job.token:
            return LeaseLost
        again = {
            Complete: {S.SUCCEEDED},
            Fail: {S.READY, S.SCHEDULED, S.DISCARDED, S.CANCELLED},
            Release: {S.READY, S.SCHEDULED, S.CANCELLED},
        }[type(verdict)]
        if job.state in again:
            return job.state
        return JobFinished if job.state.finished else LeaseLost

    def extend(self, wish: Extend, now: Window) -> Answer:
        """Whether the holder is asked to stop, or the error."""
        job = self.jobs.get(wish.job_id)
        if job is None:
            return JobNotFound
        if not job.is_held_with(wish.token):
            return JobFinished if job.state.finished and job.token == wish.token else LeaseLost
        if job.rescued:
            job.state, job.rescued, job.started_at = S.RUNNING, False, now
        job.lease_expires_at = now.later(wish.lease_seconds)
        if not isinstance(wish.progress, Unset):
            job.progress = wish.progress
        return job.cancel_requested

    # --- time -----------------------------------------------------------------------------------------------

    def rescue(self, limit: int, now: Window) -> tuple[int, int, int]:
        counts = {S.READY: 0, S.DISCARDED: 0, S.CANCELLED: 0}
        for lane in self.paused:
            lapsed = [job for job in self.of(lane, S.RUNNING) if job.lease_expires_at <= now.low]
            lapsed.sort(key=lambda job: (job.started_at, job.id))
            for job in _first(limit, (job for job in lapsed if self._may_run_again(job))):
                job.becomes(S.READY, rescued=True, rescues=job.rescues + 1)
                counts[S.READY] += 1
            for job in _first(
                limit, (job for job in lapsed if job.state is S.RUNNING and not self._may_run_again(job))
            ):
                error = f"Its lease lapsed again after it was rescued {job.rescues} times."
                if job.cancel_requested:
                    job.becomes(S.CANCELLED, finished_at=now)
                else:
                    job.becomes(S.DISCARDED, finished_at=now, error=error)
                counts[job.state] += 1
        return counts[S.READY], counts[S.DISCARDED], counts[S.CANCELLED]

    def _may_run_again(self, job: Expected) -> bool:
        return not job.cancel_requested and job.rescues < self.settings.job_rescues_max

    def make_due_ready(self, limit: int, now: Window) -> int:
        """Each lane has its share, and those that have more what others leave of it."""
        done, lanes = 0, list(self.paused)
        while lanes and done < limit:
            share = max(1, (limit - done) // len(lanes))
            for lane in list(lanes):
                due = [job for job in self.of(lane, S.SCHEDULED) if job.run_at <= now.low]
                due.sort(key=lambda job: (job.run_at, job.id))
                for job in due[:share]:
                    job.becomes(S.READY)
                done += len(due[:share])
                if len(due) < share:
                    lanes.remove(lane)
        return done

    # --- by hand --------------------------------------------------------------------------------------------

    def cancel(self, job_id: int, now: Window) -> Answer:
        return self._end(job_id, S.CANCELLED, now)

    def discard(self, job_id: int, now: Window) -> Answer:
        return self._end(job_id, S.DISCARDED, now, error=_BY_HAND)

    def _end(self, job_id: int, state: JobState, now: Window, **rest: Any) -> Answer:
        job = self.jobs.get(job_id)
        if job is None:
            return JobNotFound
        if job.state.finished:
            return state if job.state is state else JobFinished
        if job.state is S.RUNNING and state is S.CANCELLED:
            job.cancel_requested = True
        else:
            # Whoever holds it has lost it.
            token = job.token if job.state is S.SCHEDULED else job.token + 1
            job.becomes(state, finished_at=now, token=token, **rest)
        return job.state

    def retry(self, job_id: int, now: Window) -> Answer:
        job = self.jobs.get(job_id)
        if job is None:
            return JobNotFound
        match job.state:
            case S.SUCCEEDED:
                return JobFinished
            case S.SCHEDULED:
                job.becomes(S.READY, run_at=now)
            case S.DISCARDED | S.CANCELLED:
                self._reopen(job, now)
        return job.state

    def retry_discarded(self, lane: str, kind: str | None, limit: int, now: Window) -> Answer:
        if lane not in self.paused:
            return LaneNotFound
        discarded = sorted(self.of(lane, S.DISCARDED), key=lambda job: job.id)
        chosen = _first(limit, (job for job in discarded if kind in {None, job.kind}))
        for job in chosen:
            self._reopen(job, now)
        return len(chosen)

    def _reopen(self, job: Expected, now: Window) -> None:
        nothing = dict.fromkeys(("progress", "started_at", "finished_at", "worker"))
        job.becomes(S.READY, token=job.token + 1, run_at=now, attempt=0, failures=0, rescues=0, **nothing)


def _first(count: int, jobs: Iterable[Expected]) -> list[Expected]:
    return list(jobs)[:count]
