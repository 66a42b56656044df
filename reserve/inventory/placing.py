"""Placing holds: the fast path (claim, allocate, write) and the patient path (expire, lock in order, decide).

Takes lists, so that concurrent requests can share a batch; a single request is a list of one. Refusals write
nothing. No answer leaves before its commit.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from psycopg import AsyncConnection
from uuid_utils.compat import uuid7

from reserve.db.connection import Database, RollBack
from reserve.db.deadline import Deadline
from reserve.errors import Contended, InsufficientStock, PoolDraining, PoolNotFound, ReserveError
from reserve.idempotency import Done, IdempotencyKey, Replay, Response, write_stored
from reserve.inventory.allocation import Piece, Wish, allocate
from reserve.inventory.batches import answer_batch, in_rounds, is_of_one
from reserve.inventory.claiming import Stock, claim_slots, lock_slots
from reserve.inventory.expiring import expire_lapsed_of_pools
from reserve.inventory.rows import Hold, HoldState, Place, PoolState

Answer = Done[Hold] | Replay | ReserveError
Render = Callable[[Hold], Response]


@dataclass(frozen=True, slots=True)
class PlaceRequest:
    """A wish to place a hold, with the idempotency key it came with, if any."""

    place: Place
    key: IdempotencyKey | None = None


async def place_many(database: Database, requests: Sequence[PlaceRequest], render: Render) -> list[Answer]:
    """Decide each request on its own, in order; one answer for each, expected errors among them.

    A key that occurs twice is placed once: the repeat is answered after it, as a replay. Several transactions:
    one on the fast path; for what that cannot decide, pairs of them until `lock_wait_seconds` are over.
    """

    async def answer(batch: Mapping[int, PlaceRequest]) -> dict[int, Answer]:
        return await _place_batch(database, batch, render)

    return await in_rounds(dict(enumerate(requests)), _names, answer)


def _names(request: PlaceRequest) -> list[tuple[int, str]]:
    return [] if request.key is None else [(request.key.principal_id, request.key.key)]


async def _place_batch(database: Database, batch: Mapping[int, PlaceRequest], render: Render) -> dict[int, Answer]:
    """One transaction on the fast path, which waits for keys at most; then the patient path for the undecided."""

    async def attempt(some: Mapping[int, PlaceRequest]) -> dict[int, Answer]:
        deadline = Deadline(database.settings.lock_wait_seconds)

        async def work(conn: AsyncConnection) -> dict[int, Answer]:
            stock = await claim_slots(database, conn, some)
            return await _decide(database, conn, some, stock, render, deadline)

        return await database.transact(work)

    answers = await answer_batch(batch, attempt)
    undecided = {number: request for number, request in batch.items() if number not in answers}
    if undecided:
        deadline = Deadline(database.settings.lock_wait_seconds)
        async with asyncio.TaskGroup() as tasks:
            patient = [
                tasks.create_task(_place_patiently(database, group, render, deadline))
                for group in _group_by_pools(undecided)
            ]
        for task in patient:
            answers |= task.result()
    return answers


async def _place_patiently(
    database: Database, batch: Mapping[int, PlaceRequest], render: Render, deadline: Deadline
) -> dict[int, Answer]:
    """Transactions in turn until all are decided or the deadline has passed: lock and place; expire what lapsed.

    The first locks all slots of the pools, in order; the second, when lapsed holds keep back what is missing, those
    holds and then their slots. What is still undecided at the end is contended.
    """
    answers: dict[int, Answer] = {}
    while deadline.left() > 0:
        undecided = {number: request for number, request in batch.items() if number not in answers}

        async def work(conn: AsyncConnection, undecided: Mapping[int, PlaceRequest] = undecided) -> dict[int, Answer]:
            stock = await lock_slots(database, conn, undecided, deadline)
            return await _decide(database, conn, undecided, stock, render, deadline)

        try:
            answers |= await database.transact(work)
            pools = {line.pool for number in batch if number not in answers for line in batch[number].place.lines}
            if not pools:
                return answers
            await expire_lapsed_of_pools(database, sorted(pools), deadline)
        except Contended:
            continue
        except ReserveError as error:
            if len(undecided) == 1 or not is_of_one(error):
                return {number: answers.get(number, error) for number in batch}
            for number, request in undecided.items():
                answers |= await _place_patiently(database, {number: request}, render, deadline)
            return answers
    return {number: answers.get(number, Contended()) for number in batch}


async def _decide(
    database: Database,
    conn: AsyncConnection,
    batch: Mapping[int, PlaceRequest],
    stock: Stock,
    render: Render,
    deadline: Deadline,
) -> dict[int, Answer]:
    """Judge the batch in the documented order, write what is granted; the undecided are left out of the answers."""
    answers: dict[int, Answer] = {}
    wishes = []
    for number, request in batch.items():
        if number in stock.stored:
            answers[number] = stock.stored[number]
        elif refusal := _refuse_pools(request.place, stock):
            answers[number] = refusal
        else:
            wishes.append(Wish(number, tuple((line.pool, line.quantity) for line in request.place.lines)))
    allocation = allocate(wishes, stock.claimed)
    for number, shortfalls in allocation.refused.items():
        answers[number] = InsufficientStock(shortfalls)
    holds = {number: _make_hold(database, batch[number].place, stock) for number in allocation.granted}
    pieces = [(holds[number].id, piece) for number in holds for piece in allocation.granted[number]]
    changes = stock.slot_changes([piece for _, piece in pieces])
    if not holds:
        # Refusals write nothing: what was claimed for them goes back by never having happened.
        raise RollBack(answers)
    await _write(database, conn, list(holds.values()), pieces, changes, stock)
    done = {number: Done(hold, render(hold)) for number, hold in holds.items()}
    keys = {key: each.response for number, each in done.items() if (key := batch[number].key) is not None}
    if len(keys) > 1:
        # Each may be waited for; of one alone the session's limit for a lock is the limit.
        await deadline.limit(conn)
    elif keys:
        await deadline.limit_after_wait(conn)
    await write_stored(database, conn, keys)
    return answers | done


def _refuse_pools(place: Place, stock: Stock) -> ReserveError | None:
    unknown = [line.pool for line in place.lines if line.pool not in stock.pools]
    if unknown:
        return PoolNotFound(unknown)
    draining = [line.pool for line in place.lines if stock.pools[line.pool].state is not PoolState.OPEN]
    return PoolDraining(draining) if draining else None


def _make_hold(database: Database, place: Place, stock: Stock) -> Hold:
    settings = database.settings
    own = [ttl for line in place.lines if (ttl := stock.pools[line.pool].hold_ttl_seconds) is not None]
    ttl_seconds = place.ttl_seconds or min(own, default=settings.hold_ttl_seconds)
    return Hold(
        id=uuid7(),
        state=HoldState.HELD,
        lines=tuple(place.lines),
        owner=place.owner,
        reference=place.reference,
        metadata=place.metadata,
        created_at=stock.now,
        expires_at=stock.now + timedelta(seconds=min(ttl_seconds, settings.hold_lifetime_seconds_max)),
        finalized_at=None,
        version=1,
    )


async def _write(
    database: Database,
    conn: AsyncConnection,
    holds: Sequence[Hold],
    pieces: Sequence[tuple[UUID, Piece]],
    changes: Mapping[int, int],
    stock: Stock,
) -> None:
    cursor = await conn.execute(
        database.queries["hold_place_write"],
        {
            "now": stock.now,
            "ids": [hold.id for hold in holds],
            "owners": [hold.owner for hold in holds],
            "references": [hold.reference for hold in holds],
            "metadatas": [json.dumps(hold.metadata) for hold in holds],
            "expires_ats": [hold.expires_at for hold in holds],
            "line_holds": [hold_id for hold_id, _ in pieces],
            "line_numbers": [piece.line for _, piece in pieces],
            "line_slots": [piece.slot_id for _, piece in pieces],
            "line_pools": [stock.pools[piece.pool].id for _, piece in pieces],
            "line_windows": [0 for _ in pieces],
            "line_quantities": [piece.quantity for _, piece in pieces],
            "slot_ids": list(changes),
            "slot_changes": list(changes.values()),
        },
    )
    written = await cursor.fetchone()
    movements = len({(hold_id, piece.pool) for hold_id, piece in pieces})
    assert written == (len(holds), len(pieces), len(changes), movements), f"rows written: {written}"


def _group_by_pools(batch: Mapping[int, PlaceRequest]) -> list[dict[int, PlaceRequest]]:
    """Requests that share no pool, directly or through others, need not wait for each other's locks."""
    groups: list[tuple[set[str], dict[int, PlaceRequest]]] = []
    for number, request in batch.items():
        pools = {line.pool for line in request.place.lines}
        members = {number: request}
        apart = []
        for group_pools, group_members in groups:
            if pools & group_pools:
                pools |= group_pools
                members |= group_members
            else:
                apart.append((group_pools, group_members))
        groups = [*apart, (pools, members)]
    return [dict(sorted(members.items())) for _, members in groups]
