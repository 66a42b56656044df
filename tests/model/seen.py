"""What the database holds, read whole in one snapshot, past the service; and time moved by data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from reserve.inventory.rows import Hold, Pool
from reserve.inventory.seen import as_hold, as_pool

Row = dict[str, Any]

_TABLES = ("hold_line", "hold", "movement", "slot", "pool", "idempotency_key")

_READ = {
    "pools": "select * from {0}.pool_as_read order by key",
    "slots": "select * from {0}.slot order by id",
    "holds": "select * from {0}.hold_as_read order by id",
    "lines": "select * from {0}.hold_line order by hold_id, number, slot_id",
    "movements": "select * from {0}.movement order by id",
    "keys": "select * from {0}.idempotency_key where expires_at > {0}.clock() order by key",
}

_AGE = """
with hold as (
  update {0}.hold set created_at = created_at - %(by)s, expires_at = expires_at - %(by)s
  where id = any (%(ids)s)
)
update {0}.hold_line set expires_at = expires_at - %(by)s where hold_id = any (%(ids)s)
"""


@dataclass(frozen=True)
class Seen:
    pools: Sequence[Row]
    slots: Sequence[Row]
    holds: Sequence[Row]
    lines: Sequence[Row]
    movements: Sequence[Row]
    keys: Sequence[Row]

    def holds_as_read(self) -> dict[UUID, Hold]:
        return {row["id"]: as_hold(row) for row in self.holds}

    def pools_as_read(self) -> dict[str, Pool]:
        return {row["key"]: as_pool(row) for row in self.pools}

    def unswept(self) -> list[UUID]:
        """Holds that have lapsed and are not written so, in the order in which they are to be swept."""
        unswept = [row for row in self.holds if row["unswept"]]
        return [row["id"] for row in sorted(unswept, key=lambda row: (row["expires_at"], row["id"]))]


class Observer:
    """A connection beside the service's own, in autocommit, on one namespace."""

    def __init__(self, conn: AsyncConnection, namespace: str) -> None:
        self._conn = conn
        self._namespace = namespace

    async def see(self) -> Seen:
        # In a pipeline, since this is done after each step.
        async with self._conn.pipeline(), self._conn.transaction():
            await self._conn.execute("set transaction isolation level repeatable read")
            cursors = {name: self._conn.cursor(row_factory=dict_row) for name in _READ}
            for name, cursor in cursors.items():
                await cursor.execute(self._qualified(_READ[name]))
            return Seen(**{name: await cursor.fetchall() for name, cursor in cursors.items()})

    async def clock(self) -> datetime:
        row = await (await self._conn.execute(self._qualified("select {0}.clock()"))).fetchone()
        assert row is not None
        return row[0]

    async def clear(self) -> None:
        tables = ", ".join(f"{self._namespace}.{table}" for table in _TABLES)
        await self._conn.execute(f"truncate {tables}".encode())

    async def age_holds(self, hold_ids: Iterable[UUID], by: timedelta) -> None:
        await self._conn.execute(self._qualified(_AGE), {"ids": list(hold_ids), "by": by})

    async def age_keys(self, keys: Iterable[str]) -> None:
        """Let the retention of these idempotency keys be over."""
        over = "update {0}.idempotency_key set created_at = 'epoch', expires_at = '2000-01-01' where key = any (%s)"
        await self._conn.execute(self._qualified(over), [list(keys)])

    def _qualified(self, query: str) -> bytes:
        return query.format(self._namespace).encode()
