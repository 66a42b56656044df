"""The audit: recomputes every quantity from the movements and names each difference. Reads only, repairs nothing.

Walks pools, then holds, by id in pages; then the jobs (`audit_jobs`). Each page is one short statement on one snapshot,
so it is right beside any load, and no statement grows with the namespace. Differences are judged in `audit_pools` and
in the statements.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from reserve.db.connection import Database
from reserve.inventory.ledger import effect_parameters
from reserve.ops.audit_jobs import audit_jobs
from reserve.ops.audit_pools import PoolFigures, judge_pools
from reserve.ops.audit_reading import Pace, Progress, Reader, likely
from reserve.ops.differences import DIFFERENCES_MAX, Difference, Findings, What

_POOLS_FIRST, _POOLS_MAX = 16, 1000
_HOLDS_FIRST, _HOLDS_MAX = 256, 10_000


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What was looked at and what was found: `count` differences, of which the first are in `differences`."""

    pools: int
    slots: int
    holds: int
    lines: int
    movements: int
    jobs: int
    count: int
    differences: tuple[Difference, ...]

    @property
    def clean(self) -> bool:
        return self.count == 0


async def audit(database: Database, progress: Callable[[Progress], None] = lambda _: None) -> AuditReport:
    """Audit what is there at this moment. Transactions of a statement each, without locks.

    Raises `Contended` when a single pool's statement takes longer than `audit_statement_seconds`, `Unavailable`.
    """
    reader, findings = Reader(database), Findings()
    walk = _Walk(reader, findings, progress)
    bounds = await reader.one("audit_bounds", {})
    await walk.through_pools(bounds["pool_last"], bounds["pools"])
    await walk.through_movement_pools(bounds["pool_last"])
    if bounds["hold_last"] is not None:
        await walk.through_holds(bounds["hold_last"], bounds["holds"])
    jobs = await audit_jobs(reader, findings, progress)
    return AuditReport(
        pools=walk.pools,
        slots=walk.slots,
        holds=walk.holds,
        lines=walk.lines,
        movements=walk.movements,
        jobs=jobs,
        count=findings.count,
        differences=tuple(findings.kept),
    )


class _Walk:
    """One audit of the inventory under way, and what it has looked at."""

    def __init__(self, reader: Reader, findings: Findings, progress: Callable[[Progress], None]) -> None:
        self._reader = reader
        self._findings = findings
        self._progress = progress
        self.pools = self.slots = self.holds = self.lines = self.movements = 0

    async def through_pools(self, last: int, estimate: int) -> None:
        """Every pool up to id `last`, and its slots, against its movements and lines."""
        pace = Pace(_POOLS_FIRST, _POOLS_MAX)
        after = 0
        while after < last:
            parameters = {"after": after, "last": last, "limit": pace.size, **effect_parameters()}
            rows = await self._reader.objects(PoolFigures, "audit_pool", parameters, pace=pace)
            if not rows:
                return
            self._findings.add(judge_pools(rows))
            self.pools += len({row.pool_id for row in rows})
            self.slots += sum(row.slot is not None for row in rows)
            self.movements += sum(row.quantity("movements") for row in rows)
            after = rows[-1].pool_id
            self._progress(Progress("pools", self.pools, likely(estimate, self.pools)))

    async def through_movement_pools(self, last: int) -> None:
        """Every pool that a movement names must exist; their movements have no foreign key."""
        after = 0
        while True:
            parameters = {"after": after, "last": last, "limit": _POOLS_MAX}
            rows = await self._reader.rows("audit_movement_pool", parameters)
            self._findings.add(
                Difference(f"#{row['pool_id']}", What.POOL_MISSING, "movements", "no such pool")
                for row in rows
                if not row["known"]
            )
            if len(rows) < _POOLS_MAX:
                return
            after = rows[-1]["pool_id"]

    async def through_holds(self, last: UUID, estimate: int) -> None:
        """Every hold up to `last` against its lines and movements, and those against their holds, slots and pools."""
        pace = Pace(_HOLDS_FIRST, _HOLDS_MAX)
        after = UUID(int=0)
        while after < last:
            size = pace.size
            parameters = {"after": after, "last": last, "limit": size}
            page = await self._reader.one("audit_hold_page", parameters)
            upto = page["last"] if page["holds"] == size else last
            parameters = {"after": after, "last": upto, "differences_max": DIFFERENCES_MAX, **effect_parameters()}
            self.lines += await self._compare(pace, "audit_hold_line", parameters)
            await self._compare(pace, "audit_hold_movement", parameters)
            self.holds += page["holds"]
            after = upto
            self._progress(Progress("holds", self.holds, likely(estimate, self.holds)))

    async def _compare(self, pace: Pace, name: str, parameters: Mapping[str, Any]) -> int:
        """Run a statement that answers differences; the number of rows that it has read."""
        rows = await self._reader.rows(name, parameters, pace=pace)
        shown = [_as_difference(row) for row in rows if row["what"] is not None]
        self._findings.add(shown, unseen=rows[0]["found_count"] - len(shown))
        rows_read: int = rows[0]["rows_read"]
        return rows_read


def _as_difference(row: Mapping[str, Any]) -> Difference:
    pool = row["pool"]
    if pool is None and row["pool_id"] is not None:
        pool = f"#{row['pool_id']}"
    return Difference(pool, What(row["what"]), row["stored"], row["recomputed"], hold=row["hold_id"])
