"""A lane for tests of operations: one job of each fate, all of it true; and leases and times moved by data."""

from psycopg import AsyncConnection

from reserve.db.connection import Database
from reserve.jobs import claiming, enqueuing, finishing, managing
from reserve.jobs.rows import Claimed, Complete, Enqueue, Fail, Release

WORKER = "worker of the tests"


async def enqueue(database: Database, count: int, *, lane: str = "a", delay_seconds: float | None = None) -> list[int]:
    wishes = [Enqueue(lane, "greet", {"number": number}, delay_seconds=delay_seconds) for number in range(count)]
    return [job.id for job in await enqueuing.enqueue_many(database, wishes)]


async def claim(database: Database, count: int, *, lane: str = "a", lease_seconds: int | None = None) -> list[Claimed]:
    jobs = await claiming.claim(database, lane, WORKER, limit=count, lease_seconds=lease_seconds)
    assert len(jobs) == count
    return jobs


async def lapse_lease(database: Database, *ids: int) -> None:
    """End the leases of jobs by data: as long as their holders have had them, they have lapsed."""
    async with database._pool.connection() as conn:
        await conn.execute(
            f"update {database.namespace}.job set lease_expires_at = started_at where id = any (%s)", [list(ids)]
        )


async def fall_due(conn: AsyncConnection, namespace: str) -> None:
    """Move the time of all scheduled jobs into the past by data."""
    await conn.execute(f"update {namespace}.job_scheduled set run_at = run_at - interval '1 year'")


async def open_lane(database: Database) -> dict[str, int]:
    """Lane `a` with a job of each fate; their ids."""
    ids = await enqueue(database, 8)
    first, second, third, fourth, fifth, sixth, seventh = await claim(database, 7)
    await lapse_lease(database, sixth.id)
    assert (await claiming.rescue(database, limit=10)).ready == 1
    await finishing.finish_many(
        database,
        [
            Complete(first.id, first.token, {"greeted": True}),
            Fail(second.id, second.token, "nobody there"),
            Fail(third.id, third.token, "nobody there", discard=True),
            Release(fourth.id, fourth.token),
        ],
    )
    await managing.cancel(database, fifth.id)
    (cancelled,) = await enqueue(database, 1)
    await managing.cancel(database, cancelled)
    (scheduled,) = await enqueue(database, 1, delay_seconds=3600)
    return {
        "ready": ids[7],
        "running": seventh.id,
        "cancelling": fifth.id,
        "rescued": sixth.id,
        "released": fourth.id,
        "scheduled": scheduled,
        "failed": second.id,
        "succeeded": first.id,
        "discarded": third.id,
        "cancelled": cancelled,
    }
