"""Holds, as one name for callers: place, confirm, release, extend, read, and expire what has lapsed.

Each verb exists for one (raising its error) and for many (answering it). Every call opens its own transactions.
"""

from collections.abc import Callable
from uuid import UUID

from psycopg import AsyncConnection

from reserve.db.connection import Database
from reserve.errors import HoldNotFound, ReserveError
from reserve.idempotency import Done, IdempotencyKey, Replay, Response
from reserve.inventory.expiring import expire_lapsed
from reserve.inventory.placing import PlaceRequest, place_many
from reserve.inventory.rows import Hold, HoldFilter, HoldState, Place
from reserve.inventory.seen import hold_row
from reserve.inventory.settling import Change, change_many
from reserve.inventory.transitions import Verb
from reserve.lists import Page

__all__ = [
    "Change",
    "PlaceRequest",
    "Verb",
    "change_many",
    "confirm",
    "expire_lapsed",
    "extend",
    "find",
    "get",
    "place",
    "place_many",
    "release",
]

Render = Callable[[Hold], Response]

#: Above every UUID, for the first page.
_LAST_ID = UUID(int=2**128 - 1)


async def place(database: Database, place: Place, key: IdempotencyKey | None, render: Render) -> Done[Hold] | Replay:
    """Place a hold over all its lines or not at all; `render` makes the answer that is stored under `key`.

    Raises `PoolNotFound`, `PoolDraining`, `InsufficientStock`, `Contended` (after `lock_wait_seconds`) and
    `IdempotencyKeyReused`; after each of them nothing has changed.
    """
    return _unwrap((await place_many(database, [PlaceRequest(place, key)], render))[0])


async def confirm(database: Database, hold_id: UUID, key: IdempotencyKey | None, render: Render) -> Done[Hold] | Replay:
    """Confirm a hold that has not lapsed; again is the same answer.

    Raises `HoldNotFound`, `HoldExpired`, `HoldReleased`.
    """
    return await _change(database, Change(hold_id, Verb.CONFIRM, key), render)


async def release(database: Database, hold_id: UUID, key: IdempotencyKey | None, render: Render) -> Done[Hold] | Replay:
    """Give a hold's stock back; again, or after it expired, is an answer without effect. Raises `HoldConfirmed`."""
    return await _change(database, Change(hold_id, Verb.RELEASE, key), render)


async def extend(
    database: Database, hold_id: UUID, ttl_seconds: int, key: IdempotencyKey | None, render: Render
) -> Done[Hold] | Replay:
    """Move the expiry to at least `ttl_seconds` from now (1 to the lifetime cap); never earlier, never past the cap.

    Raises `HoldExpired` (never revived), `HoldLifetimeExceeded`, `HoldConfirmed`, `HoldReleased`.
    """
    return await _change(database, Change(hold_id, Verb.EXTEND, key, ttl_seconds), render)


async def get(database: Database, hold_id: UUID) -> Hold:
    """The hold, `HoldNotFound` if there is none."""

    async def work(conn: AsyncConnection) -> Hold | None:
        async with conn.cursor(row_factory=hold_row) as cursor:
            await cursor.execute(database.queries["hold_get"], {"id": hold_id})
            return await cursor.fetchone()

    hold = await database.transact(work)
    if hold is None:
        raise HoldNotFound(f"There is no hold {hold_id}.")
    return hold


async def find(database: Database, chosen: HoldFilter, *, after: UUID | None, limit: int) -> Page[Hold]:
    """Holds that fit `chosen`, newest first, at most `limit`, those older than `after`."""
    parameters = {
        "before": after or _LAST_ID,
        "owner": chosen.owner,
        "reference": chosen.reference,
        "state": chosen.state,
        "stored_states": _stored_states(chosen.state),
        "pool": chosen.pool,
        "limit": limit + 1,
    }

    async def work(conn: AsyncConnection) -> list[Hold]:
        async with conn.cursor(row_factory=hold_row) as cursor:
            # Not prepared: a plan for all combinations of filters would suit none of them.
            await database.plan_anew(conn)
            await cursor.execute(database.queries["hold_find"], parameters, prepare=False)
            return await cursor.fetchall()

    found = await database.transact(work)
    return Page(tuple(found[:limit]), more=len(found) > limit)


def _stored_states(state: HoldState | None) -> list[str] | None:
    if state is None:
        return None
    return [HoldState.HELD, HoldState.EXPIRED] if state is HoldState.EXPIRED else [state]


async def _change(database: Database, change: Change, render: Render) -> Done[Hold] | Replay:
    return _unwrap((await change_many(database, [change], render))[0])


def _unwrap(answer: Done[Hold] | Replay | ReserveError) -> Done[Hold] | Replay:
    if isinstance(answer, ReserveError):
        raise answer
    return answer
