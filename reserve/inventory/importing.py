"""Importing pools: many at once, all or none, and again without effect.

One transaction: new pools are written set by set, existing ones are compared and, where only their buffer differs,
changed under their locks. A refusal names every pool that is in the way, by its place in the list.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from psycopg import AsyncConnection

from reserve.db.connection import Database, RunAgain
from reserve.errors import BelowPromised, Fault, ValidationFailed
from reserve.inventory.expiring import beside_lapsed
from reserve.inventory.pools import put_on
from reserve.inventory.rows import Pool, PoolChange, PoolKind, PoolState
from reserve.inventory.seen import pool_row
from reserve.inventory.slots import Slot, slot_count, spread
from reserve.unset import UNSET

#: Pools of one round of statements: each then takes some milliseconds, far from every timeout of the session.
_SET = 1000


@dataclass(frozen=True, slots=True)
class PoolImport:
    """A pool of kind stock as it shall be. Without `buffer` an existing pool keeps its own, a new one has none."""

    key: str
    on_hand: int
    buffer: int | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """How many pools an import has created and changed, and how many were so already."""

    created: int
    changed: int
    unchanged: int


async def put_many(
    database: Database, imports: Sequence[PoolImport], progress: Callable[[int], None] = lambda _: None
) -> Imported:
    """Make all these pools as they shall be, or change nothing; each key once. `progress` gets how many are done.

    As with `put`, an existing pool keeps its `on_hand`: another one is refused. Raises `ValidationFailed` with
    pointers like `/12/on_hand` into `imports`, and `Contended` when somebody else is changing one of these pools.
    """
    assert len({each.key for each in imports}) == len(imports), "each key occurs once"
    # In the order of keys whatever the order of the list: two imports at once wait for each other, not in a circle.
    ordered = sorted(enumerate(imports), key=lambda pair: pair[1].key)

    async def work(conn: AsyncConnection) -> Imported:
        faults: list[Fault] = []
        rebuffered: list[tuple[int, PoolImport, Pool]] = []
        created = 0
        for start in range(0, len(ordered), _SET):
            part = ordered[start : start + _SET]
            existing = await _existing(database, conn, [wish.key for _, wish in part])
            for number, wish in part:
                if (pool := existing.get(wish.key)) is not None:
                    faults += _refuse(number, wish, pool)
                    if wish.buffer is not None and wish.buffer != pool.buffer:
                        rebuffered.append((number, wish, pool))
            fresh = [wish for _, wish in part if wish.key not in existing]
            # After a first fault there will be a rollback, so only what may be refused is still looked at.
            if fresh and not faults:
                await _create(database, conn, fresh)
            created += len(fresh)
            progress(min(start + _SET, len(ordered)))
        if not faults:
            faults += await _change_buffers(database, conn, rebuffered)
        if faults:
            raise ValidationFailed(sorted(faults, key=lambda fault: int(fault.pointer.split("/")[1])))
        return Imported(created, len(rebuffered), len(ordered) - created - len(rebuffered))

    return await beside_lapsed(database, None, lambda: database.transact(work))


async def _existing(database: Database, conn: AsyncConnection, keys: Sequence[str]) -> dict[str, Pool]:
    parameters = {
        "after_key": "",
        "after_id": 0,
        "prefix": None,
        "keys": list(keys),
        "kind": None,
        "states": [PoolState.OPEN, PoolState.DRAINING],
        "limit": len(keys),
    }
    await database.plan_anew(conn)
    async with conn.cursor(row_factory=pool_row) as cursor:
        await cursor.execute(database.queries["pool_find"], parameters, prepare=False)
        return {pool.key: pool for pool in await cursor.fetchall()}


def _refuse(number: int, wish: PoolImport, pool: Pool) -> list[Fault]:
    """What an import may not change of a pool that exists."""
    if pool.kind is not PoolKind.STOCK:
        return [Fault(f"/{number}/pool", f"{wish.key!r} exists and is of kind {pool.kind}")]
    if pool.on_hand != wish.on_hand:
        detail = f"{wish.key!r} exists with {pool.on_hand} on hand, not {wish.on_hand}; only an adjustment changes that"
        return [Fault(f"/{number}/on_hand", detail)]
    return []


async def _change_buffers(
    database: Database, conn: AsyncConnection, rebuffered: Sequence[tuple[int, PoolImport, Pool]]
) -> list[Fault]:
    """Set buffers of existing pools; what is refused of it. Locks the pools, then all their slots in one order."""
    by_id = sorted(rebuffered, key=lambda each: each[2].id)
    for _, wish, _ in by_id:
        await conn.execute(database.queries["pool_lock"], {"key": wish.key})
    await conn.execute(database.queries["slot_lock"], {"pool_ids": [pool.id for _, _, pool in by_id]})
    faults = []
    for number, wish, _ in by_id:
        change = PoolChange(on_hand=wish.on_hand, buffer=UNSET if wish.buffer is None else wish.buffer)
        try:
            await put_on(database, conn, wish.key, change)
        except BelowPromised as error:
            faults.append(Fault(f"/{number}/buffer", f"{wish.key!r}: {error}"))
        except ValidationFailed as error:
            # An adjustment came between the first look and the locks.
            faults += [Fault(f"/{number}{fault.pointer}", f"{wish.key!r} {fault.detail}") for fault in error.faults]
    return faults


async def _create(database: Database, conn: AsyncConnection, imports: Sequence[PoolImport]) -> None:
    cursor = await conn.execute(database.queries["pool_add_many"], {"keys": [each.key for each in imports]})
    ids: dict[str, int] = {key: pool_id for pool_id, key in await cursor.fetchall()}
    if len(ids) < len(imports):
        raise RunAgain("somebody else has just created one of the pools")
    slots = [slot for each in imports for slot in _slots_of(database, ids[each.key], each)]
    await conn.execute(
        database.queries["slot_add_many"],
        {
            "pool_ids": [slot.pool_id for slot in slots],
            "numbers": [slot.number for slot in slots],
            "capacities": [slot.capacity for slot in slots],
            "buffers": [slot.buffer for slot in slots],
        },
    )
    await conn.execute(
        database.queries["movement_add_created"],
        {
            "pool_ids": [ids[each.key] for each in imports],
            "on_hands": [each.on_hand for each in imports],
            "buffers": [each.buffer or 0 for each in imports],
        },
    )


def _slots_of(database: Database, pool_id: int, wish: PoolImport) -> list[Slot]:
    settings = database.settings
    count = slot_count(wish.on_hand, capacity_min=settings.slot_capacity_min, slots_max=settings.slots_per_pool_max)
    empty = [
        Slot(
            id=0,  # given by the database
            pool_id=pool_id,
            window_id=0,
            number=number,
            open=True,
            short=False,
            capacity=0,
            held=0,
            confirmed=0,
            buffer=0,
            withheld=0,
            shortage=0,
        )
        for number in range(1, count + 1)
    ]
    return spread(empty, on_hand=wish.on_hand, buffer=wish.buffer or 0)
