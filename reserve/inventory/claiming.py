"""Gets stock into our hands for a batch of holds: by the claim, or by locking all slots in order.

Both answer the same `Stock`, so that deciding and writing need not know which way it came. Runs inside the
caller's transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from psycopg import AsyncConnection
from psycopg.rows import class_row

from reserve.db.connection import Database, RunAgain
from reserve.db.deadline import Deadline
from reserve.errors import IdempotencyKeyReused
from reserve.idempotency import IdempotencyKey, Replay, find_stored, judge_stored
from reserve.inventory.allocation import Claimed, Piece
from reserve.inventory.rows import Place, PoolState
from reserve.inventory.slots import Slot, read_slots

#: Stands where a batch names no pool that exists, so that no hold is made and no time is read.
_NO_TIME = datetime.min.replace(tzinfo=UTC)


class Request(Protocol):
    """What claiming needs of a request to place a hold."""

    @property
    def place(self) -> Place: ...

    @property
    def key(self) -> IdempotencyKey | None: ...


@dataclass(frozen=True, slots=True)
class PoolSeen:
    """A pool that a batch names, as one snapshot shows it."""

    id: int
    state: PoolState
    hold_ttl_seconds: int | None


@dataclass(frozen=True, slots=True)
class Stock:
    """What a batch can be decided with. `now` is the database's clock, read after the locks were had.

    `taken` is what the claim has already added to `held`, by slot; empty when the slots are only locked.
    """

    now: datetime
    pools: Mapping[str, PoolSeen]
    claimed: Mapping[str, Claimed]
    stored: Mapping[int, Replay | IdempotencyKeyReused]
    taken: Mapping[int, int] = field(default_factory=dict)

    def slot_changes(self, pieces: Sequence[Piece]) -> dict[int, int]:
        """By how much `held` of each slot must still change, sorted by slot, so that it grows by the pieces alone."""
        change = {slot: -quantity for slot, quantity in self.taken.items()}
        for piece in pieces:
            change[piece.slot_id] = change.get(piece.slot_id, 0) + piece.quantity
        return {slot: quantity for slot, quantity in sorted(change.items()) if quantity}


@dataclass(frozen=True, slots=True)
class _ClaimRow:
    """A stored answer (it has a `request`), a claimed slot (it has a `slot_id`), or a pool that was asked for."""

    request: int | None
    fingerprint: bytes | None
    status: int | None
    location: str | None
    etag: str | None
    body: bytes | None
    pool_id: int | None
    pool: str | None
    pool_state: str | None
    hold_ttl_seconds: int | None
    quantity: int | None
    free: int | None
    lapsed: int | None
    slot_id: int | None
    now: datetime


async def claim_slots(database: Database, conn: AsyncConnection, batch: Mapping[int, Request]) -> Stock:
    """One statement, one snapshot: replays, pools, and one unlocked slot for the summed need of each pool."""
    keyed = {number: request.key for number, request in batch.items() if request.key is not None}
    lines = [(number, line) for number, request in batch.items() for line in request.place.lines]
    async with conn.cursor(row_factory=class_row(_ClaimRow)) as cursor:
        await cursor.execute(
            database.queries["hold_place_claim"],
            {
                "key_requests": list(keyed),
                "principals": [key.principal_id for key in keyed.values()],
                "keys": [key.key for key in keyed.values()],
                "line_requests": [number for number, _ in lines],
                "line_pools": [line.pool for _, line in lines],
                "line_quantities": [line.quantity for _, line in lines],
            },
        )
        rows = await cursor.fetchall()
    return _read_claim(rows, keyed)


def _read_claim(rows: Sequence[_ClaimRow], keyed: Mapping[int, IdempotencyKey]) -> Stock:
    pools: dict[str, PoolSeen] = {}
    claimed: dict[str, Claimed] = {}
    stored: dict[int, Replay | IdempotencyKeyReused] = {}
    taken: dict[int, int] = {}
    slots = {row.pool_id: row.slot_id for row in rows if row.slot_id is not None}
    for row in rows:
        if row.request is not None:
            answer = (row.fingerprint, row.status, row.location, row.etag, row.body)
            stored[row.request] = judge_stored(keyed[row.request], answer)
        if row.pool is None:
            continue
        assert row.pool_id is not None
        assert row.quantity is not None
        pools[row.pool] = PoolSeen(row.pool_id, PoolState(str(row.pool_state)), row.hold_ttl_seconds)
        slot = slots.get(row.pool_id)
        if slot is None:
            claimed[row.pool] = Claimed((), row.free or 0, row.lapsed or 0)
        else:
            claimed[row.pool] = Claimed(((slot, row.quantity),))
            taken[slot] = row.quantity
    now = max((row.now for row in rows), default=_NO_TIME)
    return Stock(now, pools, claimed, stored, taken)


async def lock_slots(
    database: Database,
    conn: AsyncConnection,
    batch: Mapping[int, Request],
    deadline: Deadline,
) -> Stock:
    """Lock all slots of the batch's pools in order, then read everything anew.

    Raises `Contended` at the deadline, `RunAgain` when the pools have other slot rows after the wait.
    """
    keys = sorted({line.pool for request in batch.values() for line in request.place.lines})
    ids = [row.id for row in await _read_pools(database, conn, keys)]
    await deadline.limit(conn)
    cursor = await conn.execute(database.queries["slot_lock"], {"pool_ids": ids})
    locked = {row[0] for row in await cursor.fetchall()}
    slots = await read_slots(database, conn, ids)
    if {slot.id for slot in slots} != locked:
        raise RunAgain("slot rows were added while waiting")
    keyed = {number: request.key for number, request in batch.items() if request.key is not None}
    found = await find_stored(database, conn, list(keyed.values()))
    rows = await _read_pools(database, conn, keys)
    if [row.id for row in rows] != ids:
        raise RunAgain("a key has come to mean another pool while waiting")
    return Stock(
        now=max((row.now for row in rows), default=_NO_TIME),
        pools={row.key: PoolSeen(row.id, PoolState(row.state), row.hold_ttl_seconds) for row in rows},
        claimed={row.key: _as_claimed([slot for slot in slots if slot.pool_id == row.id], row.lapsed) for row in rows},
        stored={
            number: found[key.principal_id, key.key]
            for number, key in keyed.items()
            if (key.principal_id, key.key) in found
        },
    )


def _as_claimed(slots: Sequence[Slot], lapsed: int) -> Claimed:
    shares = tuple((slot.id, slot.free) for slot in slots if slot.free > 0 and slot.open and not slot.short)
    return Claimed(shares, sum(slot.free for slot in slots), lapsed)


@dataclass(frozen=True, slots=True)
class _PoolRow:
    id: int
    key: str
    state: str
    hold_ttl_seconds: int | None
    now: datetime
    lapsed: int


async def _read_pools(database: Database, conn: AsyncConnection, keys: Sequence[str]) -> list[_PoolRow]:
    async with conn.cursor(row_factory=class_row(_PoolRow)) as cursor:
        await cursor.execute(database.queries["pool_read_for_hold"], {"keys": list(keys)})
        return await cursor.fetchall()
