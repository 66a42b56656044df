"""The parts of one run of a worker, from their start to the orderly end. Owns no rule of any part."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from reserve.db.connection import Database
from reserve.events import Event
from reserve.worker.context import Surroundings
from reserve.worker.fetcher import Fetcher
from reserve.worker.flusher import Flusher
from reserve.worker.hands import Hands
from reserve.worker.holding import CancelReason
from reserve.worker.keeper import Keeper
from reserve.worker.listener import Listener
from reserve.worker.outage import Outage
from reserve.worker.registry import Handler
from reserve.worker.runner import Runner
from reserve.worker.tally import Tally
from reserve.worker.threads import Threads
from reserve.worker.upkeep import Upkeep

#: Connections of the pool that transactions of handlers leave alone: for claims, verdicts, leases and upkeep.
_OWN_CONNECTIONS = 4

#: After this, a part that has not ended is cancelled again: longer than breaking off a statement usually takes.
_CANCEL_AGAIN_SECONDS = 0.5

#: How long handlers that were abandoned may take to notice that they are cancelled, when nothing is waited for.
_HURRIED_SECONDS = 0.1


class Crew:
    def __init__(
        self, database: Database, handlers: Mapping[str, Handler], lanes: Sequence[str], concurrency: int, name: str
    ) -> None:
        settings = self._settings = database.settings
        self.tally = Tally()
        self.stuck = False
        outage = Outage(settings.work_reconnect_seconds_max)
        self._keeper = Keeper(database, outage, self._all_done)
        self._flusher = Flusher(database, self._keeper, outage, self.tally)
        self._threads = Threads(concurrency)
        transactions = asyncio.Semaphore(max(1, settings.connections_max - _OWN_CONNECTIONS))
        around = Surroundings(database, self._keeper, transactions, asyncio.get_running_loop())
        self._hands = Hands(
            concurrency,
            Runner(handlers, around, self._threads),
            self._keeper,
            self.tally,
            hungry=lambda: self._fetcher.ring(),  # noqa: PLW0108 -- it is made below
            give=self._flusher.give,
        )
        self._fetcher = Fetcher(database, lanes, name, self._hands, self._keeper, outage)
        self._upkeep = Upkeep(database, lanes, outage, self._fetcher.wake)
        self._listener = Listener(database, self._heard) if settings.work_listen else None
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()
        self._draining = False
        self._log: Any = structlog.get_logger("reserve.worker")

    def stop(self) -> None:
        self._stopping.set()

    def hurry(self) -> None:
        self._hurrying.set()
        self._stopping.set()

    async def work(self, *, until_empty: bool) -> Tally:
        """Work until told to stop, or until the lanes are empty; what was done."""
        self._draining = until_empty
        if until_empty:
            await self._make_ready()
        try:
            async with asyncio.TaskGroup() as group:
                start = partial(_start, group)
                flushing = start(self._flusher.run())
                self._hands.open()
                parts = [start(self._keeper.run()), start(self._hands.watch())]
                if self._listener is not None:
                    parts.append(start(self._listener.run()))
                parts += [start(self._upkeep.run_due()), start(self._upkeep.run_rescue())]
                fetching = start(self._fetcher.run(until_empty=until_empty))
                await self._until_stopped(fetching)
                await self._end(fetching, flushing)
                await _cancel(fetching, flushing, *parts)
        finally:
            self._threads.close()
            patience = _HURRIED_SECONDS if self._hurrying.is_set() else self._settings.work_cancel_seconds
            self.stuck = not await self._hands.end(patience)
        return self.tally

    async def _make_ready(self) -> None:
        """What is due or lapsed by now, before a drain begins."""
        while await self._upkeep.rescue():
            pass
        while await self._upkeep.make_due_ready():
            pass

    async def _until_stopped(self, fetching: asyncio.Task[None]) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({fetching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _end(self, fetching: asyncio.Task[None], flushing: asyncio.Task[None]) -> None:
        """Give back what was not begun, let the rest finish, give back what does not, and send every verdict."""
        settings = self._settings
        if self._stopping.is_set():
            self._log.info(
                Event.WORK_STOPPING, running=len(self._hands.busy), grace_seconds=settings.work_grace_seconds
            )
        self._hands.close()
        self._fetcher.close()
        self._flusher.give_back(self._hands.give_back())
        # The claim that is under way brings its jobs, which go back as well.
        if not (await asyncio.wait({fetching}, timeout=settings.stop_seconds_max))[0]:
            fetching.cancel()
        self._flusher.give_back(self._hands.give_back())
        if not await self._ended_within(settings.work_grace_seconds):
            for held in self._hands.busy:
                held.tell(CancelReason.STOPPING)
            if not await self._ended_within(settings.work_cancel_seconds):
                self._flusher.give_back(self._hands.busy)
        self._flusher.close()
        await asyncio.wait({flushing}, timeout=settings.stop_seconds_max)

    async def _ended_within(self, seconds: float) -> bool:
        """Whether all handlers end in this time, or before somebody is in a hurry."""
        ended = asyncio.create_task(self._hands.ended_within(seconds))
        hurrying = asyncio.create_task(self._hurrying.wait())
        try:
            await asyncio.wait({ended, hurrying}, return_when=asyncio.FIRST_COMPLETED)
            return ended.done() and ended.result()
        finally:
            ended.cancel()
            hurrying.cancel()

    def _all_done(self) -> None:
        if self._draining:
            # Handlers may have enqueued more, and only a look at a lane while nothing is left tells that it is empty.
            self._fetcher.wake()

    def _heard(self, lane: str | None) -> None:
        self._fetcher.wake(lane)


async def _cancel(*parts: asyncio.Task[None]) -> None:
    """Cancel until all have ended.

    Before Python 3.12, `asyncio.wait_for`, by which the connection pool waits, swallows a cancel that comes together
    with what it waits for.
    """
    pending = set(parts)
    while pending:
        for part in pending:
            part.cancel()
        _, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN_SECONDS)


def _start(group: asyncio.TaskGroup, part: Any) -> asyncio.Task[None]:
    return group.create_task(part, name=f"worker: {part.__qualname__}")
