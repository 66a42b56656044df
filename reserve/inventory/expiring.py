"""Expiring lapsed holds: by the sweep, for all pools, and on the patient path, for the pools of a wish.

Correctness does not depend on either having run: a lapsed hold reads expired and cannot be confirmed.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn, TypeVar
from uuid import UUID

from psycopg import AsyncConnection

from reserve.db.connection import Database, RollBack
from reserve.db.deadline import Deadline
from reserve.errors import BelowPromised
from reserve.idempotency import Response
from reserve.inventory.rows import Hold
from reserve.inventory.seen import hold_row
from reserve.inventory.settling import Change, change_batch, write_line_effects
from reserve.inventory.transitions import Verb

T = TypeVar("T")


async def expire_lapsed(database: Database, *, limit: int) -> int:
    """Expire up to `limit` lapsed holds, oldest first; how many. One transaction.

    Those that somebody has locked are left to the next call. Fewer than `limit` means that there is no more to do now.
    """

    async def work(conn: AsyncConnection, *, whole_pools: bool = False) -> int | None:
        cursor = await conn.execute(database.queries["hold_expire_claim"], {"limit": limit})
        ids = [row[0] for row in await cursor.fetchall()]
        if not ids:
            return 0
        async with conn.cursor(row_factory=hold_row) as reading:
            await reading.execute(database.queries["hold_read"], {"ids": ids})
            after = await reading.fetchall()
        if await write_line_effects(database, conn, after, whole_pools=whole_pools) is None:
            raise RollBack[int | None](None)
        return len(after)

    expired = await database.transact(work)
    if expired is None:
        expired = await database.transact(lambda conn: work(conn, whole_pools=True))
    assert expired is not None, "with the locks of all slots a shortage can be paid"
    return expired


async def expire_lapsed_of_pools(database: Database, pools: Sequence[str], deadline: Deadline) -> int:
    """Expire what has lapsed in these pools, up to a batch of the oldest, waiting for locks; how many were found.

    Two transactions: find them; lock the holds in order, look again, expire. Raises `Contended` when the locks take
    longer than the deadline.
    """

    async def find(conn: AsyncConnection) -> list[UUID]:
        parameters = {"pools": list(pools), "limit": database.settings.sweep_batch_size}
        cursor = await conn.execute(database.queries["hold_find_lapsed"], parameters)
        return [row[0] for row in await cursor.fetchall()]

    ids = await database.transact(find)
    if ids:
        batch = {number: Change(hold_id, Verb.EXPIRE) for number, hold_id in enumerate(ids)}
        await change_batch(database, batch, _unanswered, deadline)
    return len(ids)


class LapsedInTheWay(Exception):
    """Raised, to roll back, by a change of a pool that is refused only while lapsed holds are not swept."""

    def __init__(self, pool: str) -> None:
        super().__init__()
        self.pool = pool


async def refuse_below_promised(
    database: Database, conn: AsyncConnection, pool: str, refusal: BelowPromised
) -> NoReturn:
    """Raise `refusal`, or `LapsedInTheWay`; under the locks of all slots of the pool, so no sweep comes between."""
    cursor = await conn.execute(database.queries["pool_read_for_hold"], {"keys": [pool]})
    row = await cursor.fetchone()
    assert row is not None, "the pool is there and locked"
    if row[-1]:
        raise LapsedInTheWay(pool)
    raise refusal


async def beside_lapsed(database: Database, deadline: Deadline | None, attempt: Callable[[], Awaitable[T]]) -> T:
    """`attempt` a change of pools; where lapsed holds are in its way, expire them and attempt it again.

    So a refusal never depends on the sweep: what has lapsed reads as available, and is. Without `deadline`, each look
    at lapsed holds has `lock_wait_seconds` of its own.
    """
    while True:
        try:
            return await attempt()
        except LapsedInTheWay as lapsed:
            # None may be left to expire: a sweep was faster, and the change has its way the next time.
            wait = deadline or Deadline(database.settings.lock_wait_seconds)
            await expire_lapsed_of_pools(database, [lapsed.pool], wait)


def _unanswered(_hold: Hold) -> Response:
    """Nobody asked for these, so their answer is neither stored nor sent."""
    return Response(200, b"")
