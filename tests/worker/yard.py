"""What the worker's tests do again and again: put jobs in, run a worker beside, read what jobs have become."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass

from psycopg.rows import dict_row

from reserve.jobs import claiming, enqueuing
from reserve.jobs.rows import Enqueue
from reserve.worker import Registry, Worker
from tests.steps import LOOKS_MAX

#: How long a test waits for what never comes before it fails.
GIVE_UP_SECONDS = 30


@dataclass
class Yard:
    database: object
    conn: object
    namespace: str
    jobs: Registry

    async def put(self, kind, payload=None, *, lane="default", **more):
        """Enqueue one job; its id."""
        job = await enqueuing.enqueue(self.database, Enqueue(lane, kind, payload, **more))
        return job.id

    async def put_many(self, kind, count, *, lane="default", **more):
        wishes = [Enqueue(lane, kind, {"n": number}, **more) for number in range(count)]
        return [job.id for job in await enqueuing.enqueue_many(self.database, wishes)]

    async def read(self, job_id):
        async with self.conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(f"select * from {self.namespace}.job_as_read where id = %s", [job_id])
            return await cursor.fetchone()

    async def states(self):
        """How many jobs are in each state."""
        cursor = await self.conn.execute(
            f"select state, count(*) from {self.namespace}.job_as_read group by state order by state"
        )
        return dict(await cursor.fetchall())

    async def until_state(self, job_id, *states):
        for _ in range(LOOKS_MAX):
            job = await self.read(job_id)
            if job["state"] in states:
                return job
            await asyncio.sleep(0)
        raise AssertionError(f"should have become {states}: {job}")

    async def drain(self, **more):
        return await Worker(self.database, self.jobs, **more).drain()

    @asynccontextmanager
    async def working(self, database=None, **more):
        """A worker that runs beside the test; stopped at once when the context ends, if it still runs."""
        worker = Worker(database or self.database, self.jobs, **more)
        task = asyncio.create_task(worker.run())
        worker.ended = task
        try:
            yield worker
        finally:
            worker.stop_now()
            await task

    async def lapse(self, job_id):
        """Let the lease of a running job have ended an hour ago."""
        changed = await self.conn.execute(
            f"update {self.namespace}.job set lease_expires_at = lease_expires_at - interval '1 hour'"
            " where id = %s and state = 'running'",
            [job_id],
        )
        assert changed.rowcount == 1

    async def steal(self, job_id, *, lane="default"):
        """Another worker has the job, as happens when a lease has lapsed; what it has claimed."""
        await self.lapse(job_id)
        while True:
            await claiming.rescue(self.database, limit=10)
            claimed = await claiming.claim(self.database, lane, "thief", limit=1)
            if claimed:
                assert claimed[0].id == job_id
                return claimed[0]

    async def claim_as(self, name, *, lane="default"):
        """Another worker claims a job."""
        (claimed,) = await claiming.claim(self.database, lane, name, limit=1)
        return claimed

    async def ask_to_cancel(self, job_id):
        changed = await self.conn.execute(
            f"update {self.namespace}.job set cancel_requested = true where id = %s and state = 'running'", [job_id]
        )
        assert changed.rowcount == 1


def renew_now(worker):
    """Let a third of every lease be over."""
    keeper = worker._crew._keeper
    for held in keeper._held.values():
        held.renew_at = 0
    keeper._next_at = 0
    keeper._bell.ring()


async def until(condition):
    """Wait until something in this process is so."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + GIVE_UP_SECONDS
    while loop.time() < give_up_at:
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("waited in vain")
