"""How an audit reads: short statements, each a transaction of its own, and pages that are sized by how long they take.

Owns limits and pace; judges nothing.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import AsyncRowFactory, class_row, dict_row

from reserve.db.connection import Database

T = TypeVar("T")

#: About how long a statement should take: its snapshot keeps dead versions of busy rows alive meanwhile.
_STATEMENT_SECONDS_AIM = 0.2


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an audit is: `done` pools, holds or jobs of about `total`, which is None when nobody knows."""

    what: str
    done: int
    total: int | None


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


class Reader:
    """Runs named statements of the audit. Every method raises `Contended` after `audit_statement_seconds`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def one(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The only row of a statement."""
        (row,) = await self.rows(name, parameters)
        return row

    async def rows(self, name: str, parameters: Mapping[str, Any], *, pace: Pace | None = None) -> list[dict[str, Any]]:
        """The rows of a statement; `pace` is told how long it took."""
        return await self._read(name, parameters, dict_row, pace)

    async def objects(self, cls: type[T], name: str, parameters: Mapping[str, Any], *, pace: Pace) -> list[T]:
        """As `rows`, each as a `cls`."""
        return await self._read(name, parameters, class_row(cls), pace)

    async def _read(
        self, name: str, parameters: Mapping[str, Any], row_factory: AsyncRowFactory[T], pace: Pace | None
    ) -> list[T]:
        async def work(conn: AsyncConnection) -> list[T]:
            await self._database.limit_statement(conn, self._database.settings.audit_statement_seconds)
            # A page of sixteen and one of ten thousand need plans of their own.
            await self._database.plan_anew(conn)
            async with conn.cursor(row_factory=row_factory) as cursor:
                await cursor.execute(self._database.queries[name], parameters, prepare=False)
                return await cursor.fetchall()

        clock = asyncio.get_running_loop()
        started = clock.time()
        answer = await self._database.transact(work)
        if pace is not None:
            pace.took(clock.time() - started)
        return answer


def likely(estimate: int, done: int) -> int | None:
    """The planner's row count, unless it has never counted or is already passed."""
    return estimate if estimate >= done else None
