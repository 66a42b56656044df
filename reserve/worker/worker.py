"""The worker: claims jobs of its lanes and runs a registry's handlers on them, until it is told to stop.

Owns the order in which its parts start and stop; each part is a room of its own. What was claimed is finished or given
back before `run` ends, whatever ends it.
"""

import asyncio
import os
import socket
from collections.abc import Sequence
from typing import Any

import structlog

from reserve.db.connection import Database
from reserve.errors import Fault, ValidationFailed
from reserve.events import Event
from reserve.jobs.checking import WORKER_LENGTH_MAX, check_name, check_whole
from reserve.worker.crew import Crew
from reserve.worker.registry import Registry
from reserve.worker.tally import Tally


class Worker:
    """Runs jobs of `lanes` with the handlers of `registry`, at most `concurrency` at once.

        worker = Worker(database, jobs, lanes=["mail"], concurrency=20)
        await worker.run()      # until stop() is called, or the task is cancelled
        await worker.drain()    # until the lanes are empty: for tests and scripts

    `name` is shown as the holder of its jobs. Raises `ValidationFailed`.
    """

    def __init__(
        self,
        database: Database,
        registry: Registry,
        *,
        lanes: Sequence[str] = ("default",),
        concurrency: int = 10,
        name: str | None = None,
    ) -> None:
        if isinstance(lanes, str) or not lanes:
            raise ValidationFailed([Fault("/lanes", "must be at least one name, in a list")])
        #: The lanes in order, each once.
        self.lanes = tuple(dict.fromkeys(check_name(lane, f"/lanes/{at}") for at, lane in enumerate(lanes)))
        self.concurrency = check_whole(concurrency, "/concurrency", 1, database.settings.work_concurrency_max)
        self.name = f"{socket.gethostname()}:{os.getpid()}"[-WORKER_LENGTH_MAX:] if name is None else name
        check_name(self.name, "/name")
        self._database = database
        self._registry = registry
        self._crew: Crew | None = None
        self._stop_asked = False
        self._log: Any = structlog.get_logger("reserve.worker")
        #: Whether handlers of the last run did not end although they were told to; their jobs were given back.
        self.stuck = False

    async def run(self) -> Tally:
        """Work until `stop` is called; what was done. Cancelling the task is as `stop_now`."""
        return await self._work(until_empty=False)

    async def drain(self) -> Tally:
        """Work until there is no ready job in the lanes and no handler runs; what was done.

        Scheduled jobs that are due by now are ready as well; later ones, and retries after a pause, are not waited for.
        """
        return await self._work(until_empty=True)

    def stop(self) -> None:
        """Stop in order: claim no more, give back what was not begun, let running handlers finish for a grace time.

        Then they are cancelled, and their jobs given back. Called before `run`, that ends at once.
        """
        self._stop_asked = True
        if self._crew is not None:
            self._crew.stop()

    def stop_now(self) -> None:
        """Cancel running handlers and give everything back at once."""
        self.stop()
        if self._crew is not None:
            self._crew.hurry()

    async def _work(self, *, until_empty: bool) -> Tally:
        assert self._crew is None, "a worker runs once at a time"
        crew = self._crew = Crew(self._database, self._registry.handlers, self.lanes, self.concurrency, self.name)
        if self._stop_asked:
            crew.stop()
        self._log.info(
            Event.WORK_STARTED,
            lanes=",".join(self.lanes),
            kinds=",".join(sorted(self._registry.handlers)),
            concurrency=self.concurrency,
            worker=self.name,
        )
        # In a task of its own, so that a cancel of ours is a wish to stop, and not the end of everything in any order.
        work = asyncio.create_task(crew.work(until_empty=until_empty), name="worker")
        try:
            tally = await asyncio.shield(work)
        except asyncio.CancelledError:
            self.stop_now()
            await _outlast(work)
            raise
        finally:
            self._crew = None
            self._stop_asked = False
            self.stuck = crew.stuck
            self._log.info(Event.WORK_STOPPED, **crew.tally.as_fields())
        return tally


async def _outlast(work: asyncio.Task[Tally]) -> None:
    """Wait until the stop is done; cancelled again, break it off."""
    try:
        await asyncio.wait({work})
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.wait({work})
        raise
