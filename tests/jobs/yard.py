"""A yard to work in: the job lane on a namespace, with connections beside the service's to look and to step with."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from psycopg import AsyncConnection

from reserve.db.connection import Database, session_options
from reserve.jobs import claiming, enqueuing, finishing, leases, managing
from reserve.jobs.claiming import Rescued
from reserve.jobs.finishing import Finished
from reserve.jobs.rows import Claimed, Complete, Enqueue, Extend, Fail, Job, Lease, Release
from tests.steps import MovableClock, fetch, until_waiting_for

#: Where a job can be; it must be in one of them only.
TABLES = ("job", "job_scheduled", "job_finished")

Holder = Claimed | Job


class Yard:
    """The verbs of the job lane, short, on one lane; `conn` is a connection beside it, in autocommit."""

    def __init__(self, database: Database, conn: AsyncConnection, url: str, stack: AsyncExitStack) -> None:
        self.database = database
        self.namespace = database.namespace
        self.conn = conn
        self.url = url
        self._stack = stack

    async def begin(self, **options: Any) -> AsyncConnection:
        """Another session like the service's; its first statement begins a transaction."""
        conn = await AsyncConnection.connect(self.url, **session_options(self.database.settings) | options)
        return await self._stack.enter_async_context(conn)

    async def plain(self, **options: Any) -> AsyncConnection:
        """A caller's own connection: nothing of the service is set on it."""
        conn = await AsyncConnection.connect(self.url, **options)
        return await self._stack.enter_async_context(conn)

    async def enqueue(self, count: int = 1, *, lane: str = "mail", kind: str = "send", **rest: Any) -> list[Job]:
        return await enqueuing.enqueue_many(self.database, [Enqueue(lane, kind, **rest) for _ in range(count)])

    async def one(self, **rest: Any) -> Job:
        (job,) = await self.enqueue(**rest)
        return job

    async def claim(self, limit: int = 1, *, lane: str = "mail", worker: str = "anna", **rest: Any) -> list[Claimed]:
        return await claiming.claim(self.database, lane, worker, limit=limit, **rest)

    async def running(self, *, lane: str = "mail", worker: str = "anna", **rest: Any) -> Claimed:
        """A new job, and claimed; nothing else may be before it."""
        (job,) = await self.enqueue(lane=lane, **rest)
        (claimed,) = await self.claim(lane=lane, worker=worker)
        assert claimed.id == job.id
        return claimed

    async def finished(self, verb: str = "discarded", **rest: Any) -> Job:
        """A job that a holder has finished: `succeeded`, `discarded`, or `cancelled`."""
        held = await self.running(**rest)
        match verb:
            case "succeeded":
                await self.complete(held, {"done": True})
            case "discarded":
                await self.fail(held, discard=True)
            case _:
                await managing.cancel(self.database, held.id)
                await self.release(held)
        return await self.get(held.id)

    async def in_state(self, state: str) -> tuple[Job, int]:
        """A job in this state, with the token of its last holder (0 before the first)."""
        match state:
            case "scheduled":
                return await self.one(delay_seconds=1000), 0
            case "ready":
                return await self.one(), 0
            case "running":
                held = await self.running()
                return await self.get(held.id), held.token
            case _:
                job = await self.finished(state)
                return job, 1

    async def complete(self, held: Claimed, output: Any = None) -> Finished:
        return await finishing.finish(self.database, Complete(held.id, held.token, output))

    async def fail(self, held: Claimed, error: str = "it broke", **rest: Any) -> Finished:
        return await finishing.finish(self.database, Fail(held.id, held.token, error, **rest))

    async def release(self, held: Claimed, delay_seconds: float = 0) -> Finished:
        return await finishing.finish(self.database, Release(held.id, held.token, delay_seconds))

    async def extend(self, held: Claimed, lease_seconds: int = 60, **rest: Any) -> Lease:
        return await leases.extend(self.database, Extend(held.id, held.token, lease_seconds, **rest))

    async def fail_many(self, held: Sequence[Claimed], **rest: Any) -> list[Any]:
        verdicts = [Fail(each.id, each.token, "it broke", **rest) for each in held]
        return await finishing.finish_many(self.database, verdicts)

    async def extend_many(self, held: Sequence[Claimed]) -> list[Any]:
        return await leases.extend_many(self.database, [Extend(each.id, each.token, 60) for each in held])

    async def rescue(self, limit: int = 100, **rest: Any) -> Rescued:
        return await claiming.rescue(self.database, limit=limit, **rest)

    async def make_due_ready(self, limit: int = 100) -> int:
        return await claiming.make_due_ready(self.database, limit=limit)

    async def cancel(self, job: Holder) -> Job:
        return await managing.cancel(self.database, job.id)

    async def retry(self, job: Holder) -> Job:
        return await managing.retry(self.database, job.id)

    async def discard(self, job: Holder) -> Job:
        return await managing.discard(self.database, job.id)

    async def get(self, job_id: int) -> Job:
        return await managing.get(self.database, job_id)

    async def state(self, job: Holder) -> str:
        return (await self.get(job.id)).state

    async def fetch(self, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement beside the service; `{ns}` is the namespace."""
        return await fetch(self.conn, text.replace("{ns}", self.namespace), *parameters)

    async def execute(self, text: str) -> None:
        """Statements beside the service that answer nothing."""
        await self.conn.execute(text.replace("{ns}", self.namespace))

    async def lapse(self, *held: Holder) -> None:
        """Let the leases of these have lapsed a second ago, by their rows."""
        await self.fetch(
            "update {ns}.job set lease_expires_at = {ns}.clock() - interval '1 s' "
            "where state = 'running' and id = any (%s) returning id",
            [job.id for job in held],
        )

    async def fall_due(self, *jobs: Job) -> None:
        """Let the time of these scheduled jobs have come a second ago, by their rows."""
        await self.fetch(
            "update {ns}.job_scheduled set run_at = {ns}.clock() - interval '1 s' where id = any (%s) returning id",
            [job.id for job in jobs],
        )

    async def clock(self) -> MovableClock:
        conn = await self.begin()
        await conn.set_autocommit(True)
        return await MovableClock.install(conn, self.namespace)

    async def lock(self, table: str, *ids: int) -> AsyncConnection:
        """A transaction beside the service that has these rows until it ends."""
        conn = await self.begin()
        await conn.execute(
            f"select id from {self.namespace}.{table} where id = any (%s) order by id for no key update", [list(ids)]
        )
        return conn

    async def check(self) -> None:
        """No job is in two places, whatever a test did."""
        union = " union all ".join(f"select id from {{ns}}.{table}" for table in TABLES)
        assert await self.fetch(f"select id from ({union}) every group by id having count(*) > 1") == []


def ids(jobs: Sequence[Holder]) -> list[int]:
    return [job.id for job in jobs]


def kinds(answers: Sequence[Any]) -> list[Any]:
    """What each of some verdicts came to: the state, or the class of the error."""
    return [answer.state if isinstance(answer, Finished) else type(answer) for answer in answers]


async def in_this_order(yard: Yard, first: Callable[[AsyncConnection], Awaitable[Any]], second: Any) -> tuple[Any, Any]:
    """`first` in a transaction that commits once `second` waits for it; both answers, errors among them."""
    async with yard.database.transaction() as conn:
        answer = await first(conn)
        waiting = asyncio.create_task(second)
        await until_waiting_for(yard.conn, conn.info.backend_pid)
    (later,) = await asyncio.gather(waiting, return_exceptions=True)
    return answer, later


def mail(number: int = 0, lane: str = "mail", **rest: Any) -> Enqueue:
    return Enqueue(lane, "send", {"n": number}, **rest)
