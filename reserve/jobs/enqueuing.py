"""Enqueueing: one job, many, or in the caller's own transaction. Owns the notification of what was enqueued.

Locks nothing that exists. A lane that does not exist is added first, by whoever comes first.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import TupleRow, tuple_row

from reserve.db.coalesce import Coalescer
from reserve.db.connection import Database
from reserve.db.query import Queries
from reserve.errors import Contended, InvalidRequest, ReserveError
from reserve.jobs.checking import Wish, check_enqueues
from reserve.jobs.notices import Notices, channel
from reserve.jobs.rows import Enqueue, Job, JobState
from reserve.settings import Settings

#: Jobs of one statement: large enough that the round trip does not count, small enough to be sent at once.
_CHUNK = 1000

#: Of single jobs that are enqueued at once: a batch, batches at a time, and jobs that may wait for theirs.
_BATCH_MAX, _BATCHES_MAX, _WAITING_MAX = 500, 2, 10_000

Asked = tuple[Enqueue, Wish]
Answer = Job | ReserveError


class _Desk:
    """What enqueueing keeps for one open database."""

    def __init__(self, database: Database) -> None:
        self.notices = Notices(database.settings.job_notify_interval_seconds)
        self.together: Coalescer[Asked, Job] = Coalescer(
            lambda asked: _enqueue_together(database, asked),
            batch_max=_BATCH_MAX,
            batches_max=_BATCHES_MAX,
            waiting_max=_WAITING_MAX,
        )


_desks: WeakKeyDictionary[Database, _Desk] = WeakKeyDictionary()


def _desk(database: Database) -> _Desk:
    desk = _desks.get(database)
    if desk is None:
        desk = _desks[database] = _Desk(database)
    return desk


async def enqueue(database: Database, job: Enqueue) -> Job:
    """Enqueue one job; it is committed when this returns. Calls at the same time share a transaction.

    Raises `ValidationFailed`, `Overloaded`, `Unavailable` (the job may be there then).
    """
    (wish,) = check_enqueues([job], database.settings)
    return await _desk(database).together.ask((job, wish))


async def enqueue_many(database: Database, jobs: Sequence[Enqueue]) -> list[Job]:
    """Enqueue all of `jobs` or none, in their order, in one transaction. Raises as `enqueue`."""
    asked = list(zip(jobs, check_enqueues(jobs, database.settings), strict=True))
    if not asked:
        return []

    async def work(conn: AsyncConnection) -> list[Job]:
        told = _desk(database).notices.due(wish.lane for _, wish in asked)
        return await _write(database.queries, conn, asked, database.settings, told)

    return await database.transact(work)


async def enqueue_in(
    conn: AsyncConnection, jobs: Sequence[Enqueue], *, namespace: str = "reserve", settings: Settings | None = None
) -> list[Job]:
    """Enqueue `jobs` in the transaction that `conn` is in: they exist if and when the caller commits.

    `conn` is any psycopg connection to the database; `namespace` and `settings` (for bounds and defaults) are those of
    the service there. The lanes are notified of at the commit, each once. Raises `ValidationFailed`.
    """
    settings = settings or _default_settings()
    asked = list(zip(jobs, check_enqueues(jobs, settings), strict=True))
    lanes = sorted({wish.lane for _, wish in asked})
    return await _write(_queries(namespace), conn, asked, settings, lanes) if asked else []


async def _enqueue_together(database: Database, asked: Sequence[Asked]) -> Sequence[Answer]:
    """A batch in one statement; where one job spoils it, each on its own."""
    told = _desk(database).notices.due(wish.lane for _, wish in asked)

    async def once(conn: AsyncConnection) -> list[Job]:
        return await _write_chunk(database.queries, conn, asked, database.settings, told)

    try:
        jobs = await database.transact_once(once)
    except (InvalidRequest, Contended) as error:
        if len(asked) == 1:
            return [error]
        return [each for one in asked for each in await _enqueue_together(database, [one])]
    if len(jobs) == len(asked):
        return jobs
    # Lanes are new. Nothing was written for their jobs, but the others' are there, and must not be written again.
    there = {job.lane for job in jobs}
    rest = [each for each in asked if each[1].lane not in there]
    done = iter(jobs), iter(await _enqueue_in_new_lanes(database, rest, told))
    return [next(done[wish.lane not in there]) for _, wish in asked]


async def _enqueue_in_new_lanes(database: Database, asked: Sequence[Asked], told: Sequence[str]) -> list[Answer]:
    """Add the lanes and enqueue; where one lane or job spoils it, each lane on its own, and then each job."""
    lanes = {wish.lane for _, wish in asked}

    async def work(conn: AsyncConnection) -> list[Job]:
        return await _write(database.queries, conn, asked, database.settings, [name for name in told if name in lanes])

    try:
        return [*await database.transact(work)]
    except (InvalidRequest, Contended) as error:
        if len(asked) == 1 or (len(lanes) == 1 and isinstance(error, Contended)):
            # Somebody else is just adding this lane, and would keep each of its jobs waiting as long.
            return [error] * len(asked)
    if len(lanes) == 1:
        return [each for one in asked for each in await _enqueue_in_new_lanes(database, [one], told)]
    answers = {
        lane: iter(await _enqueue_in_new_lanes(database, [each for each in asked if each[1].lane == lane], told))
        for lane in sorted(lanes)
    }
    return [next(answers[wish.lane]) for _, wish in asked]


async def _write(
    queries: Mapping[str, bytes], conn: AsyncConnection, asked: Sequence[Asked], settings: Settings, told: Sequence[str]
) -> list[Job]:
    """Enqueue in the transaction of `conn`, adding lanes that are missing."""
    written: list[Job] = []
    for start in range(0, len(asked), _CHUNK):
        chunk = asked[start : start + _CHUNK]
        jobs = await _write_chunk(queries, conn, chunk, settings, told if start == 0 else [], whole=True)
        if len(jobs) < len(chunk):
            await _execute(conn, queries["lane_add"], {"names": sorted({wish.lane for _, wish in chunk})})
            # Nothing was written before, and so nobody told.
            jobs = await _write_chunk(queries, conn, chunk, settings, told if start == 0 else [], whole=True)
        assert len(jobs) == len(chunk), "every lane is there now, and lanes are never deleted"
        written += jobs
    return written


async def _write_chunk(
    queries: Mapping[str, bytes],
    conn: AsyncConnection,
    asked: Sequence[Asked],
    settings: Settings,
    told: Sequence[str],
    *,
    whole: bool = False,
) -> list[Job]:
    """One statement; the jobs whose lane exists, in order. `whole`: nothing is written unless all of them exist."""
    cursor = await _execute(conn, queries["job_enqueue"], _parameters(queries, asked, settings, told, whole=whole))
    return [_as_job(asked[number - 1], *rest) for number, *rest, _ in await cursor.fetchall()]


async def _execute(conn: AsyncConnection, query: bytes, parameters: dict[str, Any]) -> AsyncCursor[TupleRow]:
    """Execute on a caller's connection, whatever rows and placeholders its own cursors have."""
    return await AsyncCursor(conn, row_factory=tuple_row).execute(query, parameters)


def _parameters(
    queries: Mapping[str, bytes], asked: Sequence[Asked], settings: Settings, told: Sequence[str], *, whole: bool
) -> dict[str, Any]:
    wishes = [wish for _, wish in asked]
    assert isinstance(queries, Queries), "made for one namespace"
    return {
        "lanes": [wish.lane for wish in wishes],
        "kinds": [wish.kind for wish in wishes],
        "payloads": [wish.payload for wish in wishes],
        "ranks": [wish.rank for wish in wishes],
        "run_ats": [wish.run_at for wish in wishes],
        "delays": [wish.delay_seconds for wish in wishes],
        "max_attempts": [wish.max_attempts for wish in wishes],
        "max_attempts_default": settings.job_attempts_max,
        "whole": whole,
        "channel": channel(queries.namespace),
        "told": list(told),
    }


def _as_job(asked: Asked, job_id: int, run_at: Any, ready: bool, max_attempts: int, at: Any) -> Job:
    job, wish = asked
    return Job(
        id=job_id,
        lane=wish.lane,
        kind=wish.kind,
        payload=job.payload,
        state=JobState.READY if ready else JobState.SCHEDULED,
        priority=job.priority,
        attempt=0,
        max_attempts=max_attempts,
        failures=0,
        rescues=0,
        run_at=run_at,
        unique_key=None,
        order_key=None,
        pool=None,
        output=None,
        error=None,
        progress=None,
        cancel_requested=False,
        created_at=at,
        started_at=None,
        finished_at=None,
        token=None,
        lease_expires_at=None,
        worker=None,
    )


@cache
def _queries(namespace: str) -> Queries:
    return Queries(namespace)


@cache
def _default_settings() -> Settings:
    """The defaults of this release: what the environment of a caller says is not for a library to read."""
    return Settings.model_construct()
