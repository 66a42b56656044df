"""Doing something once under an idempotency key, for effects that lock rows of their own. One transaction."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from psycopg import AsyncConnection

from reserve.db.connection import Database, RollBack
from reserve.errors import ReserveError
from reserve.idempotency.keys import Done, IdempotencyKey, Replay, Response
from reserve.idempotency.store import find_stored, write_stored

T = TypeVar("T")


async def once(
    database: Database,
    key: IdempotencyKey | None,
    work: Callable[[AsyncConnection], Awaitable[T]],
    render: Callable[[T], Response],
) -> Done[T] | Replay:
    """Run `work` and store its answer under `key`, or replay what is stored; without a key just run it.

    A refusal of `work` is raised only if the key is not stored in a statement after it: whoever held the locks that it
    waited for may have done just this. Raises `IdempotencyKeyReused`, and what `work` raises.
    """

    async def transaction(conn: AsyncConnection) -> Done[T] | Replay:
        if key is not None and (stored := await _stored(database, conn, key)):
            return stored
        try:
            value = await work(conn)
        except ReserveError:
            if key is not None and (stored := await _stored(database, conn, key)):
                # Whatever it wrote before it refused goes.
                raise RollBack(stored) from None
            raise
        done = Done(value, render(value))
        if key is not None:
            await write_stored(database, conn, {key: done.response})
        return done

    return await database.transact(transaction)


async def _stored(database: Database, conn: AsyncConnection, key: IdempotencyKey) -> Replay | None:
    """The stored answer, if any; raises `IdempotencyKeyReused`."""
    found = (await find_stored(database, conn, [key])).get((key.principal_id, key.key))
    if isinstance(found, ReserveError):
        raise found
    return found
