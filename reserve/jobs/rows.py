"""What the job lane stores and answers: jobs, leases, lanes, as frozen rows. Owns no statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from reserve.unset import UNSET, Unset

#: What JSON can say: None, booleans, numbers, texts, lists, mappings with text keys.
Json: TypeAlias = Sequence["Json"] | Mapping[str, "Json"] | bool | int | float | str | None

#: Priorities are whole numbers from `-PRIORITY_MAX` to `PRIORITY_MAX`; a higher one is claimed first.
PRIORITY_MAX = 32_767


class JobState(StrEnum):
    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"

    @property
    def finished(self) -> bool:
        return self in {JobState.SUCCEEDED, JobState.DISCARDED, JobState.CANCELLED}


@dataclass(frozen=True, slots=True)
class Enqueue:
    """A wish to have a job done. The lane comes to be by its first job.

    `run_at` (aware) or `delay_seconds` from now, or neither for at once; a `run_at` in the past is at once.
    `max_attempts` (1 to 100) is else the lane's.
    """

    lane: str
    kind: str
    payload: Json = field(default_factory=dict)
    priority: int = 0
    run_at: datetime | None = None
    delay_seconds: float | None = None
    max_attempts: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job as clients see it.

    `attempt` is the one that runs or ran last, 0 before the first. `failures` count towards `max_attempts`; releases
    and rescues do not. `token` and `lease_expires_at` are its holder's, and None unless it runs.
    """

    id: int
    lane: str
    kind: str
    payload: Json
    state: JobState
    priority: int
    attempt: int
    max_attempts: int
    failures: int
    rescues: int
    run_at: datetime
    unique_key: str | None
    order_key: str | None
    pool: str | None
    output: Json
    error: str | None
    progress: Json
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    token: int | None
    lease_expires_at: datetime | None
    worker: str | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job with its lease: whoever has `token` is its holder, until somebody has a higher one.

    `idempotency_key` is the same at every attempt, for the other systems that a handler calls.
    """

    id: int
    token: int
    lane: str
    kind: str
    payload: Json
    priority: int
    attempt: int
    max_attempts: int
    failures: int
    rescues: int
    run_at: datetime
    created_at: datetime
    started_at: datetime
    lease_expires_at: datetime
    idempotency_key: str


@dataclass(frozen=True, slots=True)
class Complete:
    """The holder's word that the job is done."""

    job_id: int
    token: int
    output: Json = None


@dataclass(frozen=True, slots=True)
class Fail:
    """The holder's word that this attempt failed: tried again after the lane's backoff, or `retry_in_seconds`.

    Discarded with `discard`, or when its failures reach `max_attempts`.
    """

    job_id: int
    token: int
    error: str
    retry_in_seconds: float | None = None
    discard: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """The holder gives the job back, without a failure: ready at once or after `delay_seconds`."""

    job_id: int
    token: int
    delay_seconds: float = 0


Verdict = Complete | Fail | Release


@dataclass(frozen=True, slots=True)
class Extend:
    """The holder's wish to have the job for `lease_seconds` (1 to 86,400) from now; `progress` replaces the last."""

    job_id: int
    token: int
    lease_seconds: int
    progress: Json | Unset = UNSET


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease after it was extended. `cancel_requested`: the holder should stop, and fail or release the job."""

    job_id: int
    token: int
    lease_expires_at: datetime
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts: `first_seconds`, doubled for each failure, at most `seconds_max`, with jitter."""

    first_seconds: float
    seconds_max: float


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane with its figures at one moment. None in a setting: as the service's.

    `ready`, `scheduled`, `running` and `discarded` are counted up to a bound (`COUNT_MAX`), which then is the figure.
    """

    name: str
    paused: bool
    lease_seconds: int | None
    max_attempts: int | None
    max_running: int | None
    backoff: Backoff | None
    retention_days: int | None
    ready: int
    scheduled: int
    running: int
    discarded: int
    oldest_ready_age_seconds: float | None
    created_at: datetime
    version: int


#: Up to how many jobs of a state a lane's figures count: more would make a look at a long backlog slow.
COUNT_MAX = 100_000


@dataclass(frozen=True, slots=True)
class LaneChange:
    """What a PUT says of a lane; what is unset keeps its value, None goes back to the service's setting."""

    paused: bool | Unset = UNSET
    lease_seconds: int | Unset | None = UNSET
    max_attempts: int | Unset | None = UNSET
    max_running: int | Unset | None = UNSET
    backoff: Backoff | Unset | None = UNSET
    retention_days: int | Unset | None = UNSET


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list; unset fields do not restrict."""

    lane: str | None = None
    state: JobState | None = None
    kind: str | None = None
