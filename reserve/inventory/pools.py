"""Pools: create, change, read. Quantities come from slots; changing them takes the locks of pool and slots.

Lock order of a change: the pool row (which nobody else locks), then its slots.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from psycopg import AsyncConnection

from reserve.db.connection import Database, RunAgain
from reserve.db.deadline import Deadline
from reserve.errors import (
    BelowPromised,
    Fault,
    PoolKindFixed,
    PoolNotFound,
    ValidationFailed,
    VersionMismatch,
)
from reserve.inventory.expiring import beside_lapsed, refuse_below_promised
from reserve.inventory.ledger import MovementKind
from reserve.inventory.rows import Pool, PoolChange, PoolFilter, PoolKind, PoolState
from reserve.inventory.seen import pool_row
from reserve.inventory.slots import add_slots, lock_all_slots, slot_count, spread, write_slots
from reserve.lists import Page
from reserve.unset import Unset

T = TypeVar("T")


async def put(database: Database, key: str, change: PoolChange, *, if_match: int | None = None) -> tuple[Pool, bool]:
    """Create the pool `key`, or change it; what `change` leaves unset keeps its value. The pool, and whether it is new.

    Raises `ValidationFailed` for another `on_hand` than the pool has (adjustments do that), `PoolKindFixed`,
    `BelowPromised` for a buffer beyond what is free, `VersionMismatch` when `if_match` is not its version, `Contended`.
    """
    deadline = Deadline(database.settings.lock_wait_seconds)

    async def work(conn: AsyncConnection) -> tuple[Pool, bool]:
        await deadline.limit(conn)
        return await put_on(database, conn, key, change, if_match=if_match)

    return await beside_lapsed(database, deadline, lambda: database.transact(work))


async def put_on(
    database: Database, conn: AsyncConnection, key: str, change: PoolChange, *, if_match: int | None = None
) -> tuple[Pool, bool]:
    """As `put`, inside the caller's transaction.

    The caller runs it again on `RunAgain` (somebody else has just created the pool) and, once the lapsed are expired,
    on `LapsedInTheWay`.
    """
    await conn.execute(database.queries["pool_lock"], {"key": key})
    before = await _read(database, conn, key)
    if if_match is not None and (before is None or before.version != if_match):
        raise VersionMismatch(_mismatch(before))
    if before is None:
        await _create(database, conn, key, change)
    else:
        await _change(database, conn, before, change)
    after = await _read(database, conn, key)
    assert after is not None, "the pool is there and locked"
    return after, before is None


async def get(database: Database, key: str) -> Pool:
    """The pool with its quantities in one snapshot; `PoolNotFound` also when it is archived."""

    async def work(conn: AsyncConnection) -> Pool | None:
        return await _read(database, conn, key)

    pool = await database.transact(work)
    if pool is None:
        raise PoolNotFound([key])
    return pool


@dataclass(frozen=True, slots=True)
class PoolCursor:
    """Where a list of pools goes on: after this pool."""

    key: str
    id: int


async def find(database: Database, chosen: PoolFilter, *, after: PoolCursor | None, limit: int) -> Page[Pool]:
    """Pools that fit `chosen`, by key, at most `limit`, those that follow `after`."""
    states = [PoolState.OPEN, PoolState.DRAINING] if chosen.state is None else [chosen.state]
    parameters = {
        "after_key": "" if after is None else after.key,
        "after_id": 0 if after is None else after.id,
        "prefix": chosen.prefix,
        "keys": list(chosen.keys) or None,
        "kind": chosen.kind,
        "states": states,
        "limit": limit + 1,
    }

    async def work(conn: AsyncConnection) -> list[Pool]:
        async with conn.cursor(row_factory=pool_row) as cursor:
            # Not prepared: a plan for all combinations of filters would suit none of them.
            await database.plan_anew(conn)
            await cursor.execute(database.queries["pool_find"], parameters, prepare=False)
            return await cursor.fetchall()

    found = await database.transact(work)
    return Page(tuple(found[:limit]), more=len(found) > limit)


async def _read(database: Database, conn: AsyncConnection, key: str) -> Pool | None:
    async with conn.cursor(row_factory=pool_row) as cursor:
        await cursor.execute(database.queries["pool_get"], {"key": key})
        return await cursor.fetchone()


def _mismatch(before: Pool | None) -> str:
    return "There is no such pool yet." if before is None else f"The pool has version {before.version}."


async def _create(database: Database, conn: AsyncConnection, key: str, change: PoolChange) -> None:
    settings = database.settings
    on_hand = _or(change.on_hand, 0)
    buffer = _or(change.buffer, 0)
    if buffer > on_hand:
        raise BelowPromised(
            f"A buffer of {buffer} needs as much on hand; there is {on_hand}.",
            on_hand=on_hand,
            available=on_hand,
            promised=0,
        )
    cursor = await conn.execute(
        database.queries["pool_add"],
        {
            "key": key,
            "kind": _or(change.kind, PoolKind.STOCK),
            "hold_ttl_seconds": _or(change.hold_ttl_seconds, None),
            "metadata": json.dumps(_or(change.metadata, {})),
        },
    )
    row = await cursor.fetchone()
    if row is None:
        raise RunAgain("somebody else has just created the pool")
    pool_id: int = row[0]
    count = slot_count(on_hand, capacity_min=settings.slot_capacity_min, slots_max=settings.slots_per_pool_max)
    await add_slots(database, conn, pool_id, first=1, last=count)
    slots = await lock_all_slots(database, conn, pool_id)
    await write_slots(database, conn, spread(slots, on_hand=on_hand, buffer=buffer))
    await add_movement(database, conn, pool_id, MovementKind.ADJUSTED, on_hand, reason="created", on_hand=on_hand)
    if buffer:
        await add_movement(database, conn, pool_id, MovementKind.BUFFERED, buffer)


async def _change(database: Database, conn: AsyncConnection, before: Pool, change: PoolChange) -> None:
    if _or(change.kind, before.kind) is not before.kind:
        raise PoolKindFixed(f"The pool is of kind {before.kind} and stays so.")
    if _or(change.on_hand, before.on_hand) != before.on_hand:
        raise ValidationFailed(
            [
                Fault(
                    "/on_hand",
                    f"is {before.on_hand} and set only at creation; change it by POST to the pool's adjustments",
                )
            ]
        )
    after = {
        "hold_ttl_seconds": _or(change.hold_ttl_seconds, before.hold_ttl_seconds),
        "metadata": _or(change.metadata, before.metadata),
    }
    buffer = _or(change.buffer, before.buffer)
    same = after == {"hold_ttl_seconds": before.hold_ttl_seconds, "metadata": before.metadata}
    if buffer != before.buffer:
        await _change_buffer(database, conn, before, buffer)
    elif same:
        return
    parameters: Mapping[str, object] = after | {"id": before.id, "metadata": json.dumps(after["metadata"])}
    cursor = await conn.execute(database.queries["pool_change"], parameters)
    assert cursor.rowcount == 1, "the pool is locked"


async def _change_buffer(database: Database, conn: AsyncConnection, before: Pool, buffer: int) -> None:
    slots = await lock_all_slots(database, conn, before.id)
    on_hand = sum(slot.capacity for slot in slots)
    old = sum(slot.buffer for slot in slots)
    free = sum(slot.free for slot in slots)
    if buffer - old > max(0, free):
        refusal = BelowPromised(
            f"A buffer of {buffer} would reach into what is promised: {max(0, free)} are free beside the present "
            f"buffer of {old}.",
            on_hand=on_hand,
            available=max(0, free),
            promised=sum(slot.promised for slot in slots),
        )
        await refuse_below_promised(database, conn, before.key, refusal)
    await write_slots(database, conn, spread(slots, on_hand=on_hand, buffer=buffer))
    if buffer != old:
        await add_movement(database, conn, before.id, MovementKind.BUFFERED, buffer - old)


async def add_movement(
    database: Database,
    conn: AsyncConnection,
    pool_id: int,
    kind: MovementKind,
    quantity: int,
    *,
    reason: str | None = None,
    on_hand: int | None = None,
) -> tuple[int, datetime]:
    """Record a change of a pool's quantity; its id and time."""
    cursor = await conn.execute(
        database.queries["movement_add"],
        {"pool_id": pool_id, "kind": kind, "quantity": quantity, "reason": reason, "on_hand": on_hand},
    )
    row = await cursor.fetchone()
    assert row is not None, "an insert with returning answers its row"
    return row[0], row[1]


def _or(value: T | Unset, otherwise: T) -> T:
    return otherwise if isinstance(value, Unset) else value
