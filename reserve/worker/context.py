"""What a handler is given: its job, and what it may do with it. Owns no loop; see `runner`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from psycopg import AsyncConnection

from reserve.db.connection import Database
from reserve.errors import JobFinished, JobNotFound, LeaseLost
from reserve.jobs import finishing
from reserve.jobs.checking import check_json
from reserve.jobs.rows import Claimed, Complete, Json
from reserve.worker.holding import CancelReason, Held
from reserve.worker.keeper import Keeper

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the jobs of one worker share. `transactions` bounds how many use a connection of the worker's pool."""

    database: Database
    keeper: Keeper
    transactions: asyncio.Semaphore
    loop: asyncio.AbstractEventLoop


class Job(Generic[P]):
    """A job as its handler sees it; `payload` is of the type that the handler is registered with.

    What the handler returns is stored as the job's output; with `transaction()`, what it sets as `output`.
    """

    __slots__ = ("_around", "_held", "output", "payload")

    def __init__(self, held: Held, payload: P, around: Surroundings) -> None:
        self.payload = payload
        #: For `transaction()`: what is stored as the job's output when it commits.
        self.output: Json = None
        self._held = held
        self._around = around

    @property
    def claimed(self) -> Claimed:
        """Everything that the claim said of this job."""
        return self._held.claimed

    @property
    def id(self) -> int:
        return self._held.id

    @property
    def lane(self) -> str:
        return self._held.claimed.lane

    @property
    def kind(self) -> str:
        return self._held.claimed.kind

    @property
    def attempt(self) -> int:
        """1 at first; only failures count it up."""
        return self._held.claimed.attempt

    @property
    def token(self) -> int:
        return self._held.token

    @property
    def idempotency_key(self) -> str:
        """The same at every attempt: give it to other systems, so that their effects happen once, too."""
        return self._held.claimed.idempotency_key

    @property
    def database(self) -> Database:
        """The worker's database, for instance to enqueue more jobs."""
        return self._around.database

    @property
    def cancel_reason(self) -> CancelReason | None:
        """Why this handler should stop; None while it should not."""
        return self._held.reason

    @property
    def cancel_requested(self) -> bool:
        """Whether this handler should stop. A coroutine is told by `CancelledError` as well; a thread has to ask."""
        return self._held.reason is not None

    def raise_if_cancelled(self) -> None:
        """Raise `asyncio.CancelledError` if this handler should stop; also in a thread."""
        if self._held.reason is not None:
            raise asyncio.CancelledError(self._held.reason.value)

    async def progress(self, value: Json) -> None:
        """Store how far the job is, and renew its lease; stored when this returns. Calls of all jobs go together.

        Raises `ValidationFailed` for what is no JSON or too large, `LeaseLost` if the job is somebody else's now.
        """
        check_json(value, "/progress", self._around.database.settings)
        self._require_unfinished()
        await self._around.keeper.report(self._held, value)

    def progress_from_thread(self, value: Json) -> None:
        """`progress` for handlers that are no coroutines."""
        asyncio.run_coroutine_threadsafe(self.progress(value), self._around.loop).result()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that completes the job: what is written in it is committed with the completion, or not at all.

        So it happens exactly once, however often the job runs. If the lease was lost, all of it is rolled back and
        `LeaseLost` is raised. The job is finished afterwards: what the handler returns or raises then changes nothing.
        The transaction may idle for `job_transaction_seconds_max` at most.
        """
        held, around = self._held, self._around
        self._require_unfinished()
        async with around.transactions:
            seconds = around.database.settings.job_transaction_seconds_max
            async with around.database.transaction(idle_seconds=seconds) as conn:
                yield conn
                await self._finish_in(conn)
        held.done = held.completed = True
        around.keeper.drop(held)

    async def _finish_in(self, conn: AsyncConnection) -> None:
        held = self._held
        try:
            await finishing.finish_in(self._around.database, conn, Complete(held.id, held.token, self.output))
        except (LeaseLost, JobFinished, JobNotFound):
            held.reason = CancelReason.LEASE_LOST
            raise

    def _require_unfinished(self) -> None:
        if self._held.completed:
            raise RuntimeError(f"Job {self._held.id} is finished: its transaction has committed.")
