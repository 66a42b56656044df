"""Claims that wait for a first job without holding a connection: one look at the database for all that wait.

Owns who is woken: as many as may find something, in the order in which they came. The look is done by one task, which
is there only while somebody waits.
"""

import asyncio
from collections import deque
from typing import Any

from psycopg import AsyncConnection

from reserve.db.connection import Database
from reserve.errors import Contended, Overloaded, Unavailable
from reserve.jobs.checking import check_name
from reserve.jobs.claiming import RescueScan, Scan, claim, make_due_ready, rescue
from reserve.jobs.rows import Claimed

#: Of a lane that has jobs, so many of those that wait are woken at a look; who finds nothing waits on.
_WOKEN_MAX = 10

#: Lanes whose last claim is remembered. Their names come from clients; forgetting one costs a walk from the start.
_SCANS_MAX = 1000


class Waits:
    """The claims that wait in this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._count = 0
        self._looking: asyncio.Task[None] | None = None
        self._scans: dict[str, Scan] = {}
        self._rescues = RescueScan()

    async def claim(
        self,
        lane: str,
        worker: str,
        *,
        limit: int,
        lease_seconds: int | None = None,
        wait_seconds: float,
        gone: asyncio.Event | None = None,
    ) -> list[Claimed]:
        """Claim as `claiming.claim`, and when there is nothing, wait for up to `wait_seconds` for a first job.

        Empty when the time is up, or once `gone` is set, whose client then gets nothing claimed. Raises `Overloaded`
        when `job_claim_waits_max` claims wait already.
        """
        lane = check_name(lane, "/lane")
        clock = asyncio.get_running_loop()
        until = clock.time() + wait_seconds
        while True:
            if gone is not None and gone.is_set():
                return []
            scan = self._scan(lane)
            jobs = await claim(self._database, lane, worker, limit=limit, lease_seconds=lease_seconds, scan=scan)
            if jobs or clock.time() >= until:
                return jobs
            await self.wait(lane, until - clock.time(), gone)

    def _scan(self, lane: str) -> Scan:
        if lane not in self._scans and len(self._scans) >= _SCANS_MAX:
            self._scans.pop(next(iter(self._scans)))
        return self._scans.setdefault(lane, Scan())

    async def wait(self, lane: str, seconds: float, gone: asyncio.Event | None) -> None:
        """Wait until the lane may have a job, the time is up, or the client is gone; raises `Overloaded` as `claim`."""
        if self._count >= self._database.settings.job_claim_waits_max:
            raise Overloaded("Too many claims wait for jobs already; try again.")
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(lane, deque())
        queue.append(woken)
        self._count += 1
        left = None if gone is None else asyncio.ensure_future(gone.wait())
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on(), name="look for jobs")
        try:
            waits: set[asyncio.Future[Any]] = {woken} if left is None else {woken, left}
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._count -= 1
            if left is not None:
                left.cancel()
            if woken in queue:
                queue.remove(woken)
            if not queue:
                self._waiting.pop(lane, None)
            if self._count == 0 and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _look_on(self) -> None:
        """Look again and again, until cancelled; a database that is away is looked at again, too."""
        clock = asyncio.get_running_loop()
        settings = self._database.settings
        upkeep_at = clock.time()
        while True:
            await asyncio.sleep(settings.job_poll_seconds)
            try:
                if clock.time() >= upkeep_at:
                    upkeep_at = clock.time() + settings.job_due_interval_seconds
                    await self._keep_up(list(self._waiting))
                await self._look(list(self._waiting))
            except (Unavailable, Overloaded, Contended):
                # Those that wait find out by their own claims, which answer it.
                for lane in list(self._waiting):
                    self._wake(lane, 1)

    async def _keep_up(self, lanes: list[str]) -> None:
        """Without a worker of ours beside it, due and lapsed jobs of these lanes are made ready here."""
        limit = self._database.settings.sweep_batch_size
        await make_due_ready(self._database, limit=limit, lanes=lanes)
        await rescue(self._database, limit=limit, lanes=lanes, scan=self._rescues)

    async def _look(self, lanes: list[str]) -> None:
        async def work(conn: AsyncConnection) -> list[str]:
            cursor = await conn.execute(self._database.queries["job_look"], {"lanes": lanes})
            return [row[0] for row in await cursor.fetchall()]

        for lane in await self._database.transact_once(work):
            self._wake(lane, _WOKEN_MAX)

    def _wake(self, lane: str, count: int) -> None:
        queue = self._waiting.get(lane, deque())
        while queue and count > 0:
            woken = queue.popleft()
            if not woken.done():
                woken.set_result(None)
                count -= 1
