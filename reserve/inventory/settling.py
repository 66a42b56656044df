"""What becomes of holds: confirm, release, extend, expire. Takes lists; one transaction for a batch.

Locks in the one order: holds, then slots, then idempotency keys. Each effect is decided under the hold's lock, by
the pure table in `transitions`, and raises the hold's version, so that it happens once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never
from uuid import UUID

from psycopg import AsyncConnection

from reserve.db.connection import Database, RollBack, RunAgain
from reserve.db.deadline import Deadline
from reserve.errors import HoldNotFound, IdempotencyKeyReused, ReserveError
from reserve.idempotency import Done, IdempotencyKey, Replay, Response, find_stored, write_stored
from reserve.inventory import transitions
from reserve.inventory.batches import answer_batch, in_rounds
from reserve.inventory.rows import Hold
from reserve.inventory.seen import HoldSeen, hold_seen_row
from reserve.inventory.slots import read_slots, spread, write_slots
from reserve.inventory.transitions import Transition, Verb

Answer = Done[Hold] | Replay | ReserveError
Render = Callable[[Hold], Response]


@dataclass(frozen=True, slots=True)
class Change:
    """A verb for one hold, with the idempotency key it came with, if any; `ttl_seconds` for an extension only."""

    hold_id: UUID
    verb: Verb
    key: IdempotencyKey | None = None
    ttl_seconds: int = 0


async def change_many(database: Database, changes: Sequence[Change], render: Render) -> list[Answer]:
    """Decide each change on its own, in order; one answer for each, expected errors among them.

    A hold or key that occurs twice is handled after the first, in a transaction of its own.
    """

    async def answer(batch: Mapping[int, Change]) -> dict[int, Answer]:
        async def attempt(some: Mapping[int, Change]) -> dict[int, Answer]:
            return await change_batch(database, some, render, Deadline(database.settings.lock_wait_seconds))

        return await answer_batch(batch, attempt)

    return await in_rounds(dict(enumerate(changes)), _names, answer)


def _names(change: Change) -> list[UUID | tuple[int, str]]:
    return [change.hold_id] if change.key is None else [change.hold_id, (change.key.principal_id, change.key.key)]


async def change_batch(
    database: Database, batch: Mapping[int, Change], render: Render, deadline: Deadline
) -> dict[int, Answer]:
    """Decide changes of different holds in one transaction; `Contended` when its locks take longer than the deadline.

    A second transaction where a pool is short.
    """

    async def work(conn: AsyncConnection, *, whole_pools: bool = False) -> dict[int, Answer] | None:
        await deadline.limit(conn)
        stored, seen = await _lock(database, conn, batch)
        answers, decided = _judge(database, batch, stored, seen)
        after = [each.hold for each in decided.values() if each.effect]
        written_at = None
        if after:
            await deadline.limit_after_wait(conn)
            written_at = await write_effects(database, conn, after, whole_pools=whole_pools)
            if written_at is None:
                raise RollBack[dict[int, Answer] | None](None)
        done = {number: Done(each.hold, render(each.hold)) for number, each in decided.items()}
        keys = {key: each.response for number, each in done.items() if (key := batch[number].key) is not None}
        if keys:
            await deadline.limit_after_wait(conn)
        stored_at = await write_stored(database, conn, keys)
        _require_alive([seen[each.hold.id] for each in decided.values() if each.effect], [written_at, stored_at])
        return answers | done

    answers = await database.transact(work)
    if answers is None:
        # A pool is short, and giving back to it takes the locks of all its slots, which must be had in order.
        answers = await database.transact(lambda conn: work(conn, whole_pools=True))
    assert answers is not None, "with the locks of all slots a shortage can be paid"
    return answers


def _require_alive(before: Sequence[HoldSeen], times: Sequence[datetime | None]) -> None:
    """`RunAgain` where a hold lapsed after it was judged, while slots or keys were waited for: it is to be refused."""
    now = max((time for time in times if time is not None), default=None)
    if now is not None and any(not seen.unswept and seen.hold.expires_at <= now for seen in before):
        raise RunAgain("a hold lapsed while locks were waited for")


Stored = Mapping[tuple[int, str], Replay | IdempotencyKeyReused]


async def _lock(
    database: Database, conn: AsyncConnection, batch: Mapping[int, Change]
) -> tuple[Stored, dict[UUID, HoldSeen]]:
    """Lock the batch's holds in order, then read keys and holds in statements that see all that went before."""
    ids = [change.hold_id for change in batch.values()]
    await conn.execute(database.queries["hold_lock"], {"ids": ids})
    stored = await find_stored(database, conn, [change.key for change in batch.values() if change.key is not None])
    async with conn.cursor(row_factory=hold_seen_row) as cursor:
        await cursor.execute(database.queries["hold_read"], {"ids": ids})
        return stored, {seen.hold.id: seen for seen in await cursor.fetchall()}


def _judge(
    database: Database, batch: Mapping[int, Change], stored: Stored, seen: Mapping[UUID, HoldSeen]
) -> tuple[dict[int, Answer], dict[int, Transition]]:
    """What is answered at once, replays and refusals, and what each other hold becomes."""
    answers: dict[int, Answer] = {}
    decided: dict[int, Transition] = {}
    for number, change in batch.items():
        known = change.key and stored.get((change.key.principal_id, change.key.key))
        if known:
            answers[number] = known
        elif change.hold_id not in seen:
            answers[number] = HoldNotFound(f"There is no hold {change.hold_id}.")
        else:
            try:
                decided[number] = _decide(change, seen[change.hold_id], database.settings.hold_lifetime_seconds_max)
            except ReserveError as error:
                answers[number] = error
    return answers, decided


def _decide(change: Change, seen: HoldSeen, lifetime_seconds_max: int) -> Transition:
    hold = seen.hold
    match change.verb:
        case Verb.CONFIRM:
            return transitions.confirm(hold, seen.now)
        case Verb.RELEASE:
            return transitions.release(hold, seen.now, unswept=seen.unswept)
        case Verb.EXTEND:
            return transitions.extend(
                hold, seen.now, ttl_seconds=change.ttl_seconds, lifetime_seconds_max=lifetime_seconds_max
            )
        case Verb.EXPIRE:
            return transitions.expire(hold, unswept=seen.unswept)
        case _:
            assert_never(change.verb)


async def write_effects(
    database: Database, conn: AsyncConnection, after: Sequence[Hold], *, whole_pools: bool
) -> datetime | None:
    """Write what these locked holds have become, each one version up: hold, lines, slots, movements.

    The database's time once all locks were had; None, with nothing to be kept, when a pool is short and `whole_pools`
    is not set.
    """
    cursor = await conn.execute(
        database.queries["hold_change"],
        {
            "ids": [hold.id for hold in after],
            "versions": [hold.version for hold in after],
            "states": [hold.state for hold in after],
            "expires_ats": [hold.expires_at for hold in after],
            "finalized_ats": [hold.finalized_at for hold in after],
        },
    )
    assert cursor.rowcount == len(after), "a hold that is locked has the version that was read"
    return await write_line_effects(database, conn, after, whole_pools=whole_pools)


async def write_line_effects(
    database: Database, conn: AsyncConnection, after: Sequence[Hold], *, whole_pools: bool
) -> datetime | None:
    """Lines, slots and movements of holds that this transaction has changed; as `write_effects`."""
    ids = [hold.id for hold in after]
    locked: set[int] = set()
    if whole_pools:
        cursor = await conn.execute(database.queries["slot_lock_of_holds"], {"ids": ids})
        locked = {row[0] for row in await cursor.fetchall()}
    cursor = await conn.execute(
        database.queries["hold_line_change"],
        {
            "ids": ids,
            "versions": [hold.version for hold in after],
            "states": [hold.state for hold in after],
            "expires_ats": [hold.expires_at for hold in after],
        },
    )
    row = await cursor.fetchone()
    assert row is not None, "a select of counts answers one row"
    holds, slots_wanted, slots_changed, slots_short, _, now = row
    assert holds == len(after), "every hold has lines"
    assert slots_wanted == slots_changed, "every line has its slot"
    if slots_short and not whole_pools:
        return None
    if slots_short:
        await _pay_shortages(database, conn, ids, locked)
    at: datetime = now
    return at


async def _pay_shortages(database: Database, conn: AsyncConnection, ids: Sequence[UUID], locked: set[int]) -> None:
    """Let what was given back pay what its pools lack, under the locks of all their slots."""
    cursor = await conn.execute(database.queries["pool_ids_of_holds"], {"ids": list(ids)})
    pool_ids = [row[0] for row in await cursor.fetchall()]
    slots = await read_slots(database, conn, pool_ids)
    if {slot.id for slot in slots} != locked:
        raise RunAgain("slot rows were added while waiting")
    for pool_id, window_id in sorted({(slot.pool_id, slot.window_id) for slot in slots if slot.short}):
        own = [slot for slot in slots if (slot.pool_id, slot.window_id) == (pool_id, window_id)]
        on_hand = sum(slot.capacity for slot in own)
        await write_slots(database, conn, spread(own, on_hand=on_hand, buffer=sum(slot.buffer for slot in own)))
