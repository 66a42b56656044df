"""The audit: recomputes every quantity from the movements and names each difference. Reads only, repairs nothing.

Walks pools, then holds, by id in pages. Each page is one short statement on one snapshot, so it is right beside any
load, and no statement grows with the namespace. Differences are judged in `audit_pools` and in the statements.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from reserve.db.connection import Database
from reserve.inventory.ledger import effect_parameters
from reserve.ops.audit_pools import PoolFigures, judge_pools
from reserve.ops.differences import DIFFERENCES_MAX, Difference, Findings, What

T = TypeVar("T")

#: About how long a statement should take: its snapshot keeps dead versions of busy slots alive meanwhile.
_STATEMENT_SECONDS_AIM = 0.2

_POOLS_FIRST, _POOLS_MAX = 16, 1000
_HOLDS_FIRST, _HOLDS_MAX = 256, 10_000


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an audit is: `done` pools or holds of about `total`, which is None when nobody knows."""

    what: str
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What was looked at and what was found: `count` differences, of which the first are in `differences`."""

    pools: int
    slots: int
    holds: int
    lines: int
    movements: int
    count: int
    differences: tuple[Difference, ...]

    @property
    def clean(self) -> bool:
        return self.count == 0


class Pace:
    """The size of the next page, so that a statement stays short whatever the pools and holds have behind them."""

    def __init__(self, first: int, most: int) -> None:
        self.size = first
        self._most = most

    def took(self, seconds: float) -> None:
        """Half as much after a long statement, twice as much after a short one."""
        if seconds > 2 * _STATEMENT_SECONDS_AIM:
            self.size = max(1, self.size // 2)
        elif seconds < _STATEMENT_SECONDS_AIM / 2:
            self.size = min(self._most, self.size * 2)


async def audit(database: Database, progress: Callable[[Progress], None] = lambda _: None) -> AuditReport:
    """Audit what is there at this moment. Transactions of a statement or two each, without locks.

    Raises `Contended` when a single pool's statement takes longer than `audit_statement_seconds`, `Unavailable`.
    """
    walk = _Walk(database, progress)
    bounds = await walk.read(partial(_fetch_one, database, "audit_bounds", {}))
    await walk.pools(bounds["pool_last"], bounds["pools"])
    await walk.movement_pools(bounds["pool_last"])
    if bounds["hold_last"] is not None:
        await walk.holds(bounds["hold_last"], bounds["holds"])
    return walk.report()


class _Walk:
    """One audit under way."""

    def __init__(self, database: Database, progress: Callable[[Progress], None]) -> None:
        self._database = database
        self._progress = progress
        self._findings = Findings()
        self._pools = self._slots = self._holds = self._lines = self._movements = 0

    def report(self) -> AuditReport:
        return AuditReport(
            pools=self._pools,
            slots=self._slots,
            holds=self._holds,
            lines=self._lines,
            movements=self._movements,
            count=self._findings.count,
            differences=tuple(self._findings.kept),
        )

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async def limited(conn: AsyncConnection) -> T:
            await self._database.limit_statement(conn, self._database.settings.audit_statement_seconds)
            # A page of sixteen and one of ten thousand need plans of their own.
            await self._database.plan_anew(conn)
            await self._database.plan_anew(conn)
            return await work(conn)

        return await self._database.transact(limited)

    async def pools(self, last: int, estimate: int) -> None:
        """Every pool up to id `last`, and its slots, against its movements and lines."""
        pace = Pace(_POOLS_FIRST, _POOLS_MAX)
        after = 0
        while after < last:
            parameters = {"after": after, "last": last, "limit": pace.size, **effect_parameters()}
            rows = await self._timed(pace, partial(_fetch_figures, self._database, parameters))
            if not rows:
                return
            self._findings.add(judge_pools(rows))
            self._pools += len({row.pool_id for row in rows})
            self._slots += sum(row.slot is not None for row in rows)
            self._movements += sum(row.quantity("movements") for row in rows)
            after = rows[-1].pool_id
            self._progress(Progress("pools", self._pools, _likely(estimate, self._pools)))

    async def movement_pools(self, last: int) -> None:
        """Every pool that a movement names must exist; their movements have no foreign key."""
        after = 0
        while True:
            parameters = {"after": after, "last": last, "limit": _POOLS_MAX}
            rows = await self.read(partial(_fetch, self._database, "audit_movement_pool", parameters))
            self._findings.add(
                Difference(f"#{row['pool_id']}", What.POOL_MISSING, "movements", "no such pool")
                for row in rows
                if not row["known"]
            )
            if len(rows) < _POOLS_MAX:
                return
            after = rows[-1]["pool_id"]

    async def holds(self, last: UUID, estimate: int) -> None:
        """Every hold up to `last` against its lines and movements, and those against their holds, slots and pools."""
        pace = Pace(_HOLDS_FIRST, _HOLDS_MAX)
        after = UUID(int=0)
        while after < last:
            size = pace.size
            parameters = {"after": after, "last": last, "limit": size}
            page = await self.read(partial(_fetch_one, self._database, "audit_hold_page", parameters))
            upto = page["last"] if page["holds"] == size else last
            parameters = {"after": after, "last": upto, "differences_max": DIFFERENCES_MAX, **effect_parameters()}
            self._lines += await self._compare(pace, "audit_hold_line", parameters)
            await self._compare(pace, "audit_hold_movement", parameters)
            self._holds += page["holds"]
            after = upto
            self._progress(Progress("holds", self._holds, _likely(estimate, self._holds)))

    async def _compare(self, pace: Pace, name: str, parameters: Mapping[str, Any]) -> int:
        """Run a statement that answers differences; the number of rows that it has read."""
        rows = await self._timed(pace, partial(_fetch, self._database, name, parameters))
        shown = [_as_difference(row) for row in rows if row["what"] is not None]
        self._findings.add(shown, unseen=rows[0]["found_count"] - len(shown))
        rows_read: int = rows[0]["rows_read"]
        return rows_read

    async def _timed(self, pace: Pace, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        clock = asyncio.get_running_loop()
        started = clock.time()
        answer = await self.read(work)
        pace.took(clock.time() - started)
        return answer


def _likely(estimate: int, done: int) -> int | None:
    """The planner's row count, unless it has never counted or is already passed."""
    return estimate if estimate >= done else None


def _as_difference(row: Mapping[str, Any]) -> Difference:
    pool = row["pool"]
    if pool is None and row["pool_id"] is not None:
        pool = f"#{row['pool_id']}"
    return Difference(pool, What(row["what"]), row["stored"], row["recomputed"], hold=row["hold_id"])


async def _fetch_figures(
    database: Database, parameters: Mapping[str, Any], conn: AsyncConnection
) -> Sequence[PoolFigures]:
    async with conn.cursor(row_factory=class_row(PoolFigures)) as cursor:
        await cursor.execute(database.queries["audit_pool"], parameters, prepare=False)
        return await cursor.fetchall()


async def _fetch(
    database: Database, name: str, parameters: Mapping[str, Any], conn: AsyncConnection
) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(database.queries[name], parameters, prepare=False)
        return await cursor.fetchall()


async def _fetch_one(
    database: Database, name: str, parameters: Mapping[str, Any], conn: AsyncConnection
) -> dict[str, Any]:
    (row,) = await _fetch(database, name, parameters, conn)
    return row
