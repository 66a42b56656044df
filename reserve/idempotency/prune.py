"""Delete idempotency keys that are past their retention, in bounded batches."""

from psycopg import AsyncConnection

from reserve.db.connection import Database


async def prune_keys(database: Database, *, limit: int) -> int:
    """Delete up to `limit` keys that are past their `expires_at`; the number deleted. One transaction.

    Takes the keys' row locks only, in the order of keys, skips none: a key that is being taken over at this moment
    is waited for, and then no longer expired.
    """

    async def work(conn: AsyncConnection) -> int:
        cursor = await conn.execute(database.queries["idempotency_key_prune"], {"limit": limit})
        return cursor.rowcount

    return await database.transact(work)
