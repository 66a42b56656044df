"""Reads and writes stored answers inside the caller's transaction, which holds all its other locks already."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from reserve.db.connection import Database, RunAgain
from reserve.errors import IdempotencyKeyReused
from reserve.idempotency.keys import IdempotencyKey, Replay, Response


async def find_stored(
    database: Database, conn: AsyncConnection, keys: Sequence[IdempotencyKey]
) -> dict[tuple[int, str], Replay | IdempotencyKeyReused]:
    """What is stored under `keys`, by (principal, key): the replay, or the refusal where the fingerprint differs."""
    if not keys:
        return {}
    asked = {(key.principal_id, key.key): key for key in keys}
    parameters = {
        "principals": [principal for principal, _ in asked],
        "keys": [key for _, key in asked],
    }
    cursor = await conn.execute(database.queries["idempotency_key_find"], parameters)
    return {(row[0], row[1]): judge_stored(asked[row[0], row[1]], row[2:]) for row in await cursor.fetchall()}


def judge_stored(key: IdempotencyKey, stored: TupleRow) -> Replay | IdempotencyKeyReused:
    """The answer for `key`, given its stored (fingerprint, status, location, etag, body)."""
    fingerprint, status, location, etag, body = stored
    if bytes(fingerprint) != key.fingerprint:
        return IdempotencyKeyReused(
            f"The idempotency key {key.key!r} was used for another request; use a new key for a new request."
        )
    return Replay(Response(status, bytes(body), location, etag))


async def write_stored(
    database: Database, conn: AsyncConnection, answers: Mapping[IdempotencyKey, Response]
) -> datetime | None:
    """Store each answer under its key; the database's time when all were had, None where there is none to store.

    Waits for a transaction that is just writing the same key; `RunAgain` when that has used it. The caller must take no
    lock after this.
    """
    if not answers:
        return None
    pairs = sorted(answers.items(), key=lambda pair: (pair[0].principal_id, pair[0].key))
    cursor = await conn.execute(
        database.queries["idempotency_key_write"],
        {
            "principals": [key.principal_id for key, _ in pairs],
            "keys": [key.key for key, _ in pairs],
            "fingerprints": [key.fingerprint for key, _ in pairs],
            "statuses": [response.status for _, response in pairs],
            "locations": [response.location for _, response in pairs],
            "etags": [response.etag for _, response in pairs],
            "bodies": [response.body for _, response in pairs],
            "retention_seconds": database.settings.idempotency_key_retention_seconds,
        },
    )
    if cursor.rowcount < len(pairs):
        raise RunAgain("an idempotency key was used by another transaction")
    at: datetime = max(row[0] for row in await cursor.fetchall())
    return at
