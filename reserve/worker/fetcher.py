"""The fetcher: claims jobs for the hands, of one lane after the other. Owns when each lane is looked at.

A claim is never broken off: jobs that were claimed by a statement whose answer nobody reads would be nobody's until
their lease has lapsed.
"""

import asyncio
import random
from collections import deque
from collections.abc import Sequence

from reserve.db.connection import Database
from reserve.jobs import claiming
from reserve.worker.bell import Bell
from reserve.worker.hands import Hands
from reserve.worker.holding import hold_all
from reserve.worker.keeper import Keeper
from reserve.worker.outage import Outage, Patience
from reserve.worker.pace import Ahead, Pace

#: While verdicts wait for a slow database: who sends them does not ring, and the hands have rung before.
_FULL_PAUSE_SECONDS = 0.005


class _Lane:
    """`empty`: at the last look it had nothing, and nothing of this worker's was left to be done then.

    `woken`: since the last look began; what was enqueued while it ran, it may not have seen.
    """

    __slots__ = ("empty", "name", "pace", "scan", "woken")

    def __init__(self, name: str, pace: Pace) -> None:
        self.name = name
        self.pace = pace
        self.scan = claiming.Scan()
        self.empty = False
        self.woken = False


class Fetcher:
    """`bell` rings when the hands want more; `worker` is what the claims are made as."""

    def __init__(
        self, database: Database, lanes: Sequence[str], worker: str, hands: Hands, keeper: Keeper, outage: Outage
    ) -> None:
        settings = database.settings
        self._database = database
        self._worker = worker
        self._hands = hands
        self._keeper = keeper
        self._patience = Patience("fetch", outage)
        paces = settings.work_poll_seconds_min, max(settings.work_poll_seconds_min, settings.work_poll_seconds_max)
        self._lanes = deque(_Lane(name, Pace(*paces)) for name in lanes)
        self._ahead = Ahead(min(settings.work_prefetch_min, settings.work_prefetch_max), settings.work_prefetch_max)
        self._claim_max = settings.job_claim_limit_max
        # Verdicts that wait for the database count as well: more jobs would only wait with them.
        self._held_max = hands.count + 3 * settings.work_prefetch_max
        self._bell = Bell()
        self._quit = Bell()
        self._closing = False

    def ring(self) -> None:
        """The hands want more."""
        self._bell.ring()

    def wake(self, name: str | None = None) -> None:
        """There may be something new in this lane, or in all: look at once."""
        for lane in self._lanes:
            if name is None or lane.name == name:
                lane.pace.wake()
                lane.woken = True
        self._bell.ring()

    def close(self) -> None:
        """Claim nothing more; the claim that is under way ends first."""
        self._closing = True
        self._bell.ring()
        self._quit.ring()

    async def run(self, *, until_empty: bool = False) -> None:
        """Claim until closed; or until every lane is empty while nothing is left to be done."""
        while not self._closing:
            pause = await self.run_once()
            if until_empty and all(lane.empty for lane in self._lanes):
                return
            if pause is None or pause > 0:
                await self._bell.wait(pause)

    async def run_once(self) -> float | None:
        """Claim once, if there is room and a lane is due; seconds until then, None where the hands have to ring."""
        now = asyncio.get_running_loop().time()
        room = min(self._hands.room(self._ahead.wanted(now, self._hands.ended)), self._claim_max)
        spare = self._held_max - len(self._keeper)
        if room > 0 >= spare:
            return _FULL_PAUSE_SECONDS
        room = min(room, spare)
        if room <= 0:
            return None
        due = [lane for lane in self._lanes if lane.pace.next_at <= now]
        if not due:
            return min(lane.pace.next_at for lane in self._lanes) - now
        lane = due[0]
        # Whoever was asked comes last the next time; and no lane takes all the room while others have jobs, too.
        self._lanes.remove(lane)
        self._lanes.append(lane)
        await self._claim(lane, -(-room // len(due)))
        return 0

    async def _claim(self, lane: _Lane, limit: int) -> None:
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        idle = not self._keeper
        lane.woken = False
        try:
            jobs = await claiming.claim(self._database, lane.name, self._worker, limit=limit, scan=lane.scan)
        except Exception as error:  # noqa: BLE001 -- a worker outlives whatever one claim meets
            await self._quit.wait(self._patience.failed(error))
            return
        self._patience.succeeded()
        lane.pace.looked(loop.time(), found=len(jobs), wanted=limit, jitter=random.random())  # noqa: S311 -- jitter
        if lane.woken:
            lane.pace.wake()
        if jobs:
            for each in self._lanes:
                each.empty = False
            batch = hold_all(jobs, asked_at)
            self._keeper.hold(batch)
            self._hands.take(batch)
        else:
            lane.empty = idle
