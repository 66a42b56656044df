"""Leases: a holder that is alive renews them, and is told then if its job is to be cancelled. Locks jobs, by id."""

from collections.abc import Sequence

from psycopg import AsyncConnection

from reserve.db.connection import Database
from reserve.errors import JobFinished, JobNotFound, LeaseLost, ReserveError, ValidationFailed
from reserve.jobs.checking import check_extend
from reserve.jobs.rows import Extend, JobState, Lease
from reserve.unset import Unset


async def extend_many(database: Database, extends: Sequence[Extend]) -> list[Lease | ReserveError]:
    """Renew each lease on its own, in order; one answer for each, `LeaseLost`, `JobFinished`, `JobNotFound` among them.

    One transaction. A lease that lapsed is renewed all the same, as long as nobody else has claimed the job.
    """
    return await database.transact(lambda conn: _extend(database, conn, extends))


async def extend(database: Database, extend: Extend) -> Lease:
    """Renew one lease. Raises `LeaseLost`, `JobFinished`, `JobNotFound`, `ValidationFailed`."""
    return await database.transact(lambda conn: extend_in(database, conn, extend))


async def extend_in(database: Database, conn: AsyncConnection, extend: Extend) -> Lease:
    """As `extend`, in the transaction that `conn` is in."""
    (answer,) = await _extend(database, conn, [extend])
    if isinstance(answer, ReserveError):
        raise answer
    return answer


async def _extend(database: Database, conn: AsyncConnection, extends: Sequence[Extend]) -> list[Lease | ReserveError]:
    faults: dict[int, ReserveError] = {}
    # Of a job that is named twice the last word counts for both.
    wanted: dict[tuple[int, int], tuple[Extend, str | None]] = {}
    for number, each in enumerate(extends):
        try:
            wanted[each.job_id, each.token] = (each, check_extend(each, database.settings))
        except ValidationFailed as error:
            faults[number] = error
    leases = await _write(database, conn, list(wanted.values())) if wanted else {}
    lost = [key for key in wanted if key not in leases]
    states = await _states(database, conn, sorted({job_id for job_id, _ in lost})) if lost else {}
    return [
        faults.get(number) or leases.get((each.job_id, each.token)) or _refusal(each, states)
        for number, each in enumerate(extends)
    ]


async def _write(
    database: Database, conn: AsyncConnection, wanted: Sequence[tuple[Extend, str | None]]
) -> dict[tuple[int, int], Lease]:
    cursor = await conn.execute(
        database.queries["job_extend"],
        {
            "ids": [each.job_id for each, _ in wanted],
            "tokens": [each.token for each, _ in wanted],
            "lease_seconds": [float(each.lease_seconds) for each, _ in wanted],
            "progresses": [progress for _, progress in wanted],
            "tells": [not isinstance(each.progress, Unset) for each, _ in wanted],
        },
    )
    return {(row[0], row[1]): Lease(*row) for row in await cursor.fetchall()}


async def _states(database: Database, conn: AsyncConnection, ids: Sequence[int]) -> dict[int, tuple[JobState, int]]:
    cursor = await conn.execute(database.queries["job_state"], {"ids": list(ids)})
    return {row[0]: (JobState(row[1]), row[2]) for row in await cursor.fetchall()}


def _refusal(extend: Extend, states: dict[int, tuple[JobState, int]]) -> ReserveError:
    if extend.job_id not in states:
        return JobNotFound(f"There is no job {extend.job_id}.")
    state, token = states[extend.job_id]
    if state.finished and token == extend.token:
        return JobFinished(f"The job {extend.job_id} has finished: it is {state}.")
    return LeaseLost(f"The token {extend.token} is not that of job {extend.job_id}'s holder, or no longer.")
