"""Slots of a pool: how on-hand stock is spread over them. The arithmetic is pure; reads and writes are thin.

Every write here needs the locks of all slots of the pool, had by `slot_lock`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from psycopg import AsyncConnection
from psycopg.rows import class_row

from reserve.db.connection import Database, RunAgain


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot row. `held + confirmed + buffer + withheld <= capacity + shortage`, each at least 0."""

    id: int
    pool_id: int
    window_id: int
    number: int
    open: bool
    short: bool
    capacity: int
    held: int
    confirmed: int
    buffer: int
    withheld: int
    shortage: int

    @property
    def promised(self) -> int:
        return self.held + self.confirmed + self.buffer + self.withheld

    @property
    def free(self) -> int:
        """What this slot can still give; below 0 by its shortage."""
        return self.capacity - self.promised


def spread(slots: Sequence[Slot], *, on_hand: int, buffer: int) -> list[Slot]:
    """The slots of one pool and window with `on_hand` and `buffer` in all, free capacity in even shares.

    What is held, confirmed and withheld stays where it is. Where `on_hand` does not cover what is promised, the
    difference becomes shortage and every slot is marked short; where it does, all shortage is paid.
    """
    assert on_hand >= 0
    assert buffer >= 0
    buffers = _even(buffer, len(slots))
    shared = [replace(slot, buffer=part) for slot, part in zip(slots, buffers, strict=True)]
    free = on_hand - sum(slot.promised for slot in shared)
    if free >= 0:
        shares = _even(free, len(slots))
        return [
            replace(slot, capacity=slot.promised + share, shortage=0, short=False)
            for slot, share in zip(shared, shares, strict=True)
        ]
    lacking = -free
    short = []
    for slot in shared:
        part = min(lacking, slot.promised)
        lacking -= part
        short.append(replace(slot, capacity=slot.promised - part, shortage=part, short=True))
    assert lacking == 0, "what is lacking is part of what is promised"
    return short


def slot_count(on_hand: int, *, capacity_min: int, slots_max: int) -> int:
    """How many slots a pool of this size should have: 1 for a small one, one more for each `capacity_min`."""
    return max(1, min(slots_max, on_hand // capacity_min))


def _even(total: int, parts: int) -> list[int]:
    share, rest = divmod(total, parts)
    return [share + 1] * rest + [share] * (parts - rest)


async def lock_all_slots(database: Database, conn: AsyncConnection, pool_id: int) -> list[Slot]:
    """Lock and read all slots of a pool, waiting for their holders; `RunAgain` when rows came while waiting."""
    cursor = await conn.execute(database.queries["slot_lock"], {"pool_ids": [pool_id]})
    locked = {row[0] for row in await cursor.fetchall()}
    slots = await read_slots(database, conn, [pool_id])
    if {slot.id for slot in slots} != locked:
        raise RunAgain("slot rows were added while waiting")
    return slots


async def read_slots(database: Database, conn: AsyncConnection, pool_ids: Sequence[int]) -> list[Slot]:
    """The slots of these pools, by id. Final only under `slot_lock`."""
    async with conn.cursor(row_factory=class_row(Slot)) as cursor:
        await cursor.execute(database.queries["slot_read"], {"pool_ids": list(pool_ids)})
        return await cursor.fetchall()


async def add_slots(
    database: Database, conn: AsyncConnection, pool_id: int, *, window_id: int = 0, first: int, last: int
) -> None:
    """Add empty slots numbered `first` to `last`; none when `last < first`."""
    await conn.execute(
        database.queries["slot_add"],
        {"pool_id": pool_id, "window_id": window_id, "first": first, "last": last},
    )


async def write_slots(database: Database, conn: AsyncConnection, slots: Sequence[Slot]) -> None:
    """Write capacity, buffer, shortage and the short mark of slots whose locks are ours."""
    cursor = await conn.execute(
        database.queries["slot_write"],
        {
            "ids": [slot.id for slot in slots],
            "shorts": [slot.short for slot in slots],
            "capacities": [slot.capacity for slot in slots],
            "buffers": [slot.buffer for slot in slots],
            "shortages": [slot.shortage for slot in slots],
        },
    )
    assert cursor.rowcount == len(slots), "the slots are locked, so none can be gone"
