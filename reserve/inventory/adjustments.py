"""Adjustments: changing what a pool has on hand, with the reason kept for good as a movement."""

from collections.abc import Callable

from psycopg import AsyncConnection
from psycopg.rows import class_row

from reserve.db.connection import Database
from reserve.db.deadline import Deadline
from reserve.errors import (
    BelowPromised,
    Fault,
    IdempotencyKeyReused,
    OnHandMismatch,
    PoolNotFound,
    ValidationFailed,
)
from reserve.idempotency import Done, IdempotencyKey, Replay, Response, find_stored, write_stored
from reserve.inventory.expiring import beside_lapsed, refuse_below_promised
from reserve.inventory.ledger import MovementKind
from reserve.inventory.pools import add_movement, get
from reserve.inventory.rows import Adjust, Adjustment
from reserve.inventory.slots import Slot, add_slots, lock_all_slots, slot_count, spread, write_slots
from reserve.lists import Page

#: Above every movement's id, for the first page.
_LAST_ID = 2**63 - 1


async def adjust(
    database: Database,
    pool: str,
    wish: Adjust,
    key: IdempotencyKey | None,
    render: Callable[[Adjustment], Response],
) -> Done[Adjustment] | Replay:
    """Change `on_hand` of the pool by `wish.delta`; `render` makes the answer that is stored under `key`.

    Locks the pool, then all its slots, then writes the key; in transactions of their own before that, expires lapsed
    holds that keep back what is to be taken away. Raises `PoolNotFound`, `OnHandMismatch`,
    `BelowPromised` unless a shortage is allowed, `ValidationFailed` where `on_hand` would leave 0 to
    `quantity_max`, `IdempotencyKeyReused`, `Contended`.
    """
    deadline = Deadline(database.settings.lock_wait_seconds)

    async def work(conn: AsyncConnection) -> Done[Adjustment] | Replay:
        await deadline.limit(conn)
        cursor = await conn.execute(database.queries["pool_lock"], {"key": pool})
        row = await cursor.fetchone()
        await deadline.limit_after_wait(conn)
        slots = [] if row is None else await lock_all_slots(database, conn, row[0])
        # Under the locks: whoever used this key on this pool before has committed, and a refusal would be a lie.
        stored = await find_stored(database, conn, [] if key is None else [key])
        for answer in stored.values():
            if isinstance(answer, IdempotencyKeyReused):
                raise answer
            return answer
        if row is None:
            raise PoolNotFound([pool])
        adjustment = await _adjust(database, conn, pool, row[0], slots, wish)
        done = Done(adjustment, render(adjustment))
        if key is not None:
            await deadline.limit_after_wait(conn)
            await write_stored(database, conn, {key: done.response})
        return done

    return await beside_lapsed(database, deadline, lambda: database.transact(work))


async def _adjust(
    database: Database, conn: AsyncConnection, pool: str, pool_id: int, slots: list[Slot], wish: Adjust
) -> Adjustment:
    settings = database.settings
    before = sum(slot.capacity for slot in slots)
    on_hand = before + wish.delta
    promised = sum(slot.promised for slot in slots)
    if wish.expected_on_hand is not None and wish.expected_on_hand != before:
        raise OnHandMismatch(before)
    if wish.delta < 0 and on_hand < promised and not wish.allow_shortage:
        free = max(0, before - promised)
        refusal = BelowPromised(
            f"The pool has {before} on hand, of which {promised} are promised: at most {free} can be taken away.",
            on_hand=before,
            available=free,
            promised=promised,
        )
        await refuse_below_promised(database, conn, pool, refusal)
    if not 0 <= on_hand <= settings.quantity_max:
        raise ValidationFailed(
            [
                Fault(
                    "/delta",
                    f"would make on_hand {on_hand}; it must stay between 0 and {settings.quantity_max}",
                )
            ]
        )
    count = slot_count(on_hand, capacity_min=settings.slot_capacity_min, slots_max=settings.slots_per_pool_max)
    if count > len(slots):
        await add_slots(database, conn, pool_id, first=len(slots) + 1, last=count)
        slots = await lock_all_slots(database, conn, pool_id)
    await write_slots(database, conn, spread(slots, on_hand=on_hand, buffer=sum(slot.buffer for slot in slots)))
    await conn.execute(database.queries["pool_raise_version"], {"id": pool_id})
    movement_id, at = await add_movement(
        database, conn, pool_id, MovementKind.ADJUSTED, wish.delta, reason=wish.reason, on_hand=on_hand
    )
    return Adjustment(movement_id, pool, wish.delta, wish.reason, on_hand, at)


async def find(database: Database, pool: str, *, after: int | None, limit: int) -> Page[Adjustment]:
    """The pool's adjustments, newest first, at most `limit`, those before the one with id `after`."""
    pool_id = (await get(database, pool)).id
    parameters = {"pool_id": pool_id, "before": _LAST_ID if after is None else after, "limit": limit + 1}

    async def work(conn: AsyncConnection) -> list[Adjustment]:
        async with conn.cursor(row_factory=class_row(Adjustment)) as cursor:
            await cursor.execute(database.queries["adjustment_find"], parameters)
            return await cursor.fetchall()

    found = await database.transact(work)
    return Page(tuple(found[:limit]), more=len(found) > limit)
