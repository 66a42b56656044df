"""The JSON of jobs, claims and lanes, from the rows of the job lane; pure. Its types are documented."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field

# pydantic reads the stdlib's TypedDict only from Python 3.12 on.
from typing_extensions import TypedDict

from reserve.jobs.rows import COUNT_MAX, Claimed, Job, JobState, Lane
from reserve.web.shapes import Count, Timestamp, timestamp

#: A figure that is counted up to a bound, so that looking at a long backlog stays cheap.
Counted = Annotated[int, Field(ge=0, le=COUNT_MAX, description=f"Counted up to {COUNT_MAX}, which stands for more.")]


class JobShape(TypedDict):
    """A job. `attempt` is the one that runs or ran last; only `failures` count towards `max_attempts`.

    `progress` and `error` are what a holder said last. `unique_key`, `order_key` and `pool` are not served yet: null.
    """

    id: int
    lane: str
    kind: str
    payload: object
    state: JobState
    priority: int
    attempt: Count
    max_attempts: int
    failures: Count
    rescues: Count
    run_at: Timestamp
    unique_key: str | None
    order_key: str | None
    pool: str | None
    output: object
    error: str | None
    progress: object
    cancel_requested: bool
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None


class HeldJobShape(JobShape):
    """A job as its holder sees it. With `cancel_requested`, stop, and fail or release it."""

    token: int | None
    lease_expires_at: Timestamp | None


class ClaimedJobShape(TypedDict):
    """A job with its lease. `idempotency_key` is the same at each attempt, for other systems that are called."""

    id: int
    token: int
    lane: str
    kind: str
    payload: object
    priority: int
    attempt: int
    max_attempts: int
    failures: Count
    rescues: Count
    created_at: Timestamp
    lease_expires_at: Timestamp
    idempotency_key: str


class ClaimShape(TypedDict):
    """What was claimed; empty when there was nothing in time."""

    jobs: list[ClaimedJobShape]


class JobListShape(TypedDict):
    items: list[JobShape]
    next_cursor: str | None


class ProblemMembersShape(TypedDict):
    """The problem document of an item, as its own call would answer it."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str
    errors: NotRequired[list[object]]


class JobBatchItemShape(TypedDict):
    """What became of an item: the job with its status, or the problem with its status."""

    status: Literal[201, 422]
    job: NotRequired[JobShape]
    problem: NotRequired[ProblemMembersShape]


class JobBatchShape(TypedDict):
    """An answer for each item, in the order of the items."""

    items: list[JobBatchItemShape]


class RetriedShape(TypedDict):
    """How many discarded jobs are ready again."""

    retried: Count


class BackoffShape(TypedDict):
    first_seconds: float
    seconds_max: float


class LaneShape(TypedDict):
    """A lane. A setting that is null is as the service's; the figures are of one moment."""

    name: str
    paused: bool
    lease_seconds: int | None
    max_attempts: int | None
    max_running: int | None
    backoff: BackoffShape | None
    retention_days: int | None
    ready: Counted
    scheduled: Counted
    running: Counted
    discarded: Counted
    oldest_ready_age_seconds: float | None


class LaneListShape(TypedDict):
    items: list[LaneShape]
    next_cursor: str | None


def job_shape(job: Job) -> JobShape:
    return {
        "id": job.id,
        "lane": job.lane,
        "kind": job.kind,
        "payload": job.payload,
        "state": job.state,
        "priority": job.priority,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "failures": job.failures,
        "rescues": job.rescues,
        "run_at": timestamp(job.run_at),
        "unique_key": job.unique_key,
        "order_key": job.order_key,
        "pool": job.pool,
        "output": job.output,
        "error": job.error,
        "progress": job.progress,
        "cancel_requested": job.cancel_requested,
        "created_at": timestamp(job.created_at),
        "started_at": None if job.started_at is None else timestamp(job.started_at),
        "finished_at": None if job.finished_at is None else timestamp(job.finished_at),
    }


def held_job_shape(job: Job) -> HeldJobShape:
    return {
        **job_shape(job),
        "token": job.token,
        "lease_expires_at": None if job.lease_expires_at is None else timestamp(job.lease_expires_at),
    }


def claimed_job_shape(job: Claimed) -> ClaimedJobShape:
    return {
        "id": job.id,
        "token": job.token,
        "lane": job.lane,
        "kind": job.kind,
        "payload": job.payload,
        "priority": job.priority,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "failures": job.failures,
        "rescues": job.rescues,
        "created_at": timestamp(job.created_at),
        "lease_expires_at": timestamp(job.lease_expires_at),
        "idempotency_key": job.idempotency_key,
    }


def claim_shape(jobs: list[Claimed]) -> ClaimShape:
    return {"jobs": [claimed_job_shape(job) for job in jobs]}


def retried_shape(retried: int) -> RetriedShape:
    return {"retried": retried}


def lane_shape(lane: Lane) -> LaneShape:
    backoff: BackoffShape | None = None
    if lane.backoff is not None:
        backoff = {"first_seconds": lane.backoff.first_seconds, "seconds_max": lane.backoff.seconds_max}
    return {
        "name": lane.name,
        "paused": lane.paused,
        "lease_seconds": lane.lease_seconds,
        "max_attempts": lane.max_attempts,
        "max_running": lane.max_running,
        "backoff": backoff,
        "retention_days": lane.retention_days,
        "ready": lane.ready,
        "scheduled": lane.scheduled,
        "running": lane.running,
        "discarded": lane.discarded,
        "oldest_ready_age_seconds": lane.oldest_ready_age_seconds,
    }
