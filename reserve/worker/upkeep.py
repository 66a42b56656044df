"""Upkeep of the worker's own lanes: due jobs become ready, and jobs whose lease has lapsed are rescued.

Every worker does it, at any number at once, so that nothing has to be set up; `reserve.jobs.claiming` sees to it that
they do not hinder each other.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from reserve.db.connection import Database
from reserve.events import Event
from reserve.jobs import claiming
from reserve.worker.outage import Outage, Patience

#: By how much a pause may differ, so that workers that were started together do not stay in step.
_JITTER = 0.2


class Upkeep:
    """Calls `found` when jobs have become ready."""

    def __init__(self, database: Database, lanes: Sequence[str], outage: Outage, found: Callable[[], None]) -> None:
        self._database = database
        self._settings = database.settings
        self._lanes = list(lanes)
        self._outage = outage
        self._found = found
        self._scan = claiming.RescueScan()

    async def run_due(self) -> None:
        """Make due jobs ready until cancelled."""
        await self._run("due", self.make_due_ready, self._settings.job_due_interval_seconds)

    async def run_rescue(self) -> None:
        """Rescue jobs until cancelled."""
        await self._run("rescue", self.rescue, self._settings.job_rescue_interval_seconds)

    async def make_due_ready(self) -> bool:
        """One batch; whether there may be more."""
        limit = self._settings.work_upkeep_batch_size
        made = await claiming.make_due_ready(self._database, limit=limit, lanes=self._lanes)
        if made:
            self._found()
        return made >= limit

    async def rescue(self) -> bool:
        """One batch; whether there may be more."""
        limit = self._settings.work_upkeep_batch_size
        rescued = await claiming.rescue(self._database, limit=limit, lanes=self._lanes, scan=self._scan)
        if rescued.total:
            self._outage.log.info(
                Event.JOBS_RESCUED, ready=rescued.ready, discarded=rescued.discarded, cancelled=rescued.cancelled
            )
            self._found()
        return rescued.total >= limit

    async def _run(self, part: str, turn: Callable[[], Awaitable[bool]], interval_seconds: float) -> None:
        patience = Patience(part, self._outage)
        while True:
            try:
                more = await turn()
            except Exception as error:  # noqa: BLE001 -- a worker outlives whatever one turn meets
                await asyncio.sleep(patience.failed(error))
                continue
            patience.succeeded()
            if not more:
                await asyncio.sleep(interval_seconds * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311 -- jitter
