"""Looking after jobs: read, list, cancel, retry, discard, one or many. Nobody here is a job's holder.

Locks the job, wherever it is, after one snapshot has shown where; a job that has moved meanwhile is looked for again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from psycopg import AsyncConnection

from reserve.db.connection import Database, RunAgain
from reserve.errors import JobFinished, JobNotFound, LaneNotFound
from reserve.jobs.checking import check_whole
from reserve.jobs.finishing import lock_jobs, write_decisions
from reserve.jobs.rows import Job, JobFilter, JobState
from reserve.jobs.verdicts import Decision
from reserve.lists import Page

#: Above every id, for the first page.
_LAST_ID = 2**63 - 1

#: What a retry makes ready again.
_REOPENED = [JobState.DISCARDED, JobState.CANCELLED]

_DISCARDED_BY_HAND = "It was discarded by hand."


async def get(database: Database, job_id: int) -> Job:
    """The job, wherever it is in its life; `JobNotFound`."""
    return await database.transact(lambda conn: get_in(database, conn, job_id))


async def get_in(database: Database, conn: AsyncConnection, job_id: int) -> Job:
    """As `get`, in the transaction that `conn` is in."""
    async with conn.cursor(row_factory=_job_row) as cursor:
        await cursor.execute(database.queries["job_get"], {"id": job_id})
        job = await cursor.fetchone()
    if job is None:
        raise _unknown(job_id)
    return job


async def find(database: Database, chosen: JobFilter, *, after: int | None, limit: int) -> Page[Job]:
    """Jobs that fit `chosen`, live and finished, newest first, at most `limit`, those older than `after`."""

    async def work(conn: AsyncConnection) -> list[Job]:
        lane_id = None
        if chosen.lane is not None:
            lane_id = await _find_lane(database, conn, chosen.lane)
            if lane_id is None:
                return []
        parameters = {
            "before": _LAST_ID if after is None else after,
            "lane_id": lane_id,
            "state": chosen.state,
            "kind": chosen.kind,
            "limit": limit + 1,
        }
        async with conn.cursor(row_factory=_job_row) as cursor:
            # Not prepared: a plan for all combinations of filters would suit none of them.
            await database.plan_anew(conn)
            await cursor.execute(database.queries["job_find"], parameters, prepare=False)
            return await cursor.fetchall()

    found = await database.transact(work)
    return Page(tuple(found[:limit]), more=len(found) > limit)


async def cancel(database: Database, job_id: int) -> Job:
    """Cancel a job that has not finished: at once, or by telling the holder of one that runs.

    One that runs stays `running` with `cancel_requested`, and ends `cancelled` unless its holder completes it. Again
    is the same answer. Raises `JobNotFound`, and `JobFinished` if it succeeded or was discarded.
    """
    return await database.transact(lambda conn: cancel_in(database, conn, job_id))


async def cancel_in(database: Database, conn: AsyncConnection, job_id: int) -> Job:
    """As `cancel`, in the transaction that `conn` is in."""

    async def live(state: JobState) -> None:
        if state is JobState.RUNNING:
            await conn.execute(database.queries["job_cancel"], {"id": job_id})
        else:
            await _close(database, conn, job_id, JobState.CANCELLED, None)

    return await _change(database, conn, job_id, live, same=JobState.CANCELLED)


async def discard(database: Database, job_id: int) -> Job:
    """Discard a job that has not finished; a holder that it has loses its lease. Again is the same answer.

    Raises `JobNotFound`, and `JobFinished` if it succeeded or was cancelled.
    """
    return await database.transact(lambda conn: discard_in(database, conn, job_id))


async def discard_in(database: Database, conn: AsyncConnection, job_id: int) -> Job:
    """As `discard`, in the transaction that `conn` is in."""

    async def live(_: JobState) -> None:
        await _close(database, conn, job_id, JobState.DISCARDED, _DISCARDED_BY_HAND)

    return await _change(database, conn, job_id, live, same=JobState.DISCARDED)


async def retry(database: Database, job_id: int) -> Job:
    """Make a discarded or cancelled job ready again, as if new; a scheduled one ready now; others are as they are.

    Raises `JobNotFound`, and `JobFinished` if it succeeded.
    """
    return await database.transact(lambda conn: retry_in(database, conn, job_id))


async def retry_in(database: Database, conn: AsyncConnection, job_id: int) -> Job:
    """As `retry`, in the transaction that `conn` is in."""
    state = await _lock(database, conn, job_id)
    if state is JobState.SUCCEEDED:
        raise JobFinished(f"The job {job_id} has finished: it is {state}.")
    if state is JobState.SCHEDULED:
        await _expect_one(conn, database.queries["job_scheduled_ready"], {"id": job_id})
    elif state.finished:
        await _expect_one(conn, database.queries["job_reopen"], {"ids": [job_id], "states": _REOPENED})
    return await get_in(database, conn, job_id)


async def retry_discarded(database: Database, lane: str, *, kind: str | None, limit: int) -> int:
    """Make up to `limit` discarded jobs of `lane` ready again, oldest first, of `kind` if given; their number.

    Raises `LaneNotFound`.
    """
    return await database.transact(lambda conn: retry_discarded_in(database, conn, lane, kind=kind, limit=limit))


async def retry_discarded_in(
    database: Database, conn: AsyncConnection, lane: str, *, kind: str | None, limit: int
) -> int:
    """As `retry_discarded`, in the transaction that `conn` is in."""
    check_whole(limit, "/limit", 1, database.settings.job_batch_max)
    lane_id = await _find_lane(database, conn, lane)
    if lane_id is None:
        raise LaneNotFound(f"There is no lane {lane!r}.")
    cursor = await conn.execute(
        database.queries["job_lock_discarded"], {"lane_id": lane_id, "kind": kind, "limit": limit}
    )
    ids = [row[0] for row in await cursor.fetchall()]
    if not ids:
        return 0
    cursor = await conn.execute(database.queries["job_reopen"], {"ids": ids, "states": _REOPENED})
    assert cursor.rowcount == len(ids), "jobs that are locked are still there"
    return len(ids)


async def _change(
    database: Database,
    conn: AsyncConnection,
    job_id: int,
    live: Callable[[JobState], Awaitable[None]],
    *,
    same: JobState,
) -> Job:
    """Do `live` to a job that has not finished, under its lock; nothing to one that is `same`, which is the wish."""
    state = await _lock(database, conn, job_id)
    if not state.finished:
        await live(state)
    elif state is not same:
        raise JobFinished(f"The job {job_id} has finished: it is {state}.")
    return await get_in(database, conn, job_id)


async def _lock(database: Database, conn: AsyncConnection, job_id: int) -> JobState:
    """The state of a job, under its lock unless it has finished; `JobNotFound`."""
    rows = await (await conn.execute(database.queries["job_state"], {"ids": [job_id]})).fetchall()
    if not rows:
        raise _unknown(job_id)
    state = JobState(rows[0][1])
    if state.finished:
        return state
    if state is JobState.SCHEDULED:
        locked = await (await conn.execute(database.queries["job_scheduled_lock"], {"id": job_id})).fetchone()
        if locked is None:
            raise RunAgain("the job became due while it was looked for")
        return state
    held = await lock_jobs(database, conn, [job_id])
    if job_id not in held:
        raise RunAgain("the job moved on while it was looked for")
    return held[job_id].state


async def _close(database: Database, conn: AsyncConnection, job_id: int, state: JobState, error: str | None) -> None:
    """Finish a job that `_lock` has locked."""
    held = await lock_jobs(database, conn, [job_id])
    if job_id in held:
        job = held[job_id]
        decision = Decision(state, job.failures, error)
        # With a newer token than its holder has, who has lost the job.
        await write_decisions(database, conn, {job_id: decision}, held, tokens={job_id: job.token + 1})
    else:
        parameters = {"id": job_id, "state": state, "error": error}
        await _expect_one(conn, database.queries["job_scheduled_close"], parameters)


async def _expect_one(conn: AsyncConnection, query: bytes, parameters: dict[str, object]) -> None:
    cursor = await conn.execute(query, parameters)
    if cursor.rowcount != 1:
        raise RunAgain("the job moved on while it was changed")


async def _find_lane(database: Database, conn: AsyncConnection, name: str) -> int | None:
    row = await (await conn.execute(database.queries["lane_id"], {"name": name})).fetchone()
    return None if row is None else int(row[0])


def _unknown(job_id: int) -> JobNotFound:
    return JobNotFound(f"There is no job {job_id}.")


def _job_row(cursor: Any) -> Callable[[Sequence[Any]], Job]:
    """Rows of `job_get` and `job_find`, whose columns are named as the fields of a job."""
    names = [column.name for column in cursor.description or ()]

    def make(values: Sequence[Any]) -> Job:
        fields = dict(zip(names, values, strict=True))
        return Job(**fields | {"state": JobState(fields["state"])})

    return make
