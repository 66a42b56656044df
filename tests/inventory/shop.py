"""A shop to race in: the service on a namespace, with a connection beside it to look and to step with."""

import json
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from reserve.db.connection import Database
from reserve.idempotency import Done, IdempotencyKey, Replay, Response, fingerprint
from reserve.inventory import adjustments, holds, pools
from reserve.inventory.rows import Adjust, Adjustment, Hold, Line, Place, Pool, PoolChange
from tests.steps import Asked, MovableClock, fetch


def answer(hold: Hold) -> Response:
    """What a caller is told of a hold; tells holds and their versions apart."""
    body = json.dumps({"id": str(hold.id), "state": hold.state, "version": hold.version}).encode()
    return Response(201, body, f"/v1/holds/{hold.id}", f'"{hold.version}"')


def answer_adjustment(adjustment: Adjustment) -> Response:
    return Response(201, str(adjustment.id).encode())


def key(name: str, body: object = "one") -> IdempotencyKey:
    """An idempotency key; another `body` makes it the same key of another request."""
    return IdempotencyKey(name, fingerprint("POST", "/v1/holds", body))


def wish(*lines: tuple[str, int], ttl_seconds: int | None = None, **rest: Any) -> Place:
    return Place([Line(pool, quantity) for pool, quantity in lines], ttl_seconds, **rest)


class Shop:
    """The verbs of the service, short; `conn` is a connection beside it, in autocommit."""

    def __init__(self, database: Database, conn: AsyncConnection, url: str, stack: AsyncExitStack) -> None:
        self.database = database
        self.namespace = database.namespace
        self.conn = conn
        self._url = url
        self._stack = stack

    async def begin(self) -> AsyncConnection:
        """Another connection beside the service; its first statement begins a transaction."""
        return await self._stack.enter_async_context(await AsyncConnection.connect(self._url))

    async def stock(self, pool: str = "tea", on_hand: int = 1, **change: Any) -> Pool:
        made, _ = await pools.put(self.database, pool, PoolChange(on_hand=on_hand, **change))
        return made

    async def place(self, *lines: tuple[str, int], key: IdempotencyKey | None = None, **rest: Any) -> Hold:
        """A hold placed now; a replay is a failure here."""
        done = await self.asked(*lines, key=key, **rest)
        assert isinstance(done, Done)
        return done.value

    async def asked(
        self, *lines: tuple[str, int], key: IdempotencyKey | None = None, **rest: Any
    ) -> Done[Hold] | Replay:
        return await holds.place(self.database, wish(*(lines or [("tea", 1)]), **rest), key, answer)

    async def confirm(self, hold: Hold, key: IdempotencyKey | None = None) -> Done[Hold] | Replay:
        return await holds.confirm(self.database, hold.id, key, answer)

    async def release(self, hold: Hold, key: IdempotencyKey | None = None) -> Done[Hold] | Replay:
        return await holds.release(self.database, hold.id, key, answer)

    async def extend(self, hold: Hold, ttl_seconds: int, key: IdempotencyKey | None = None) -> Done[Hold] | Replay:
        return await holds.extend(self.database, hold.id, ttl_seconds, key, answer)

    async def sweep(self, limit: int = 100) -> int:
        return await holds.expire_lapsed(self.database, limit=limit)

    async def adjust(self, delta: int, pool: str = "tea", *, key: IdempotencyKey | None = None, **rest: Any):
        return await adjustments.adjust(self.database, pool, Adjust(delta, "counted", **rest), key, answer_adjustment)

    async def now(self, hold: Hold) -> Hold:
        return await holds.get(self.database, hold.id)

    async def read(self, pool: str = "tea") -> Pool:
        return await pools.get(self.database, pool)

    async def figures(self, pool: str = "tea") -> dict[str, int]:
        seen = await self.read(pool)
        return {name: getattr(seen, name) for name in ("on_hand", "available", "held", "confirmed")}

    async def fetch(self, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement beside the service; `{ns}` is the namespace."""
        return await fetch(self.conn, text.replace("{ns}", self.namespace), *parameters)

    async def slots(self, pool: str = "tea") -> list[dict[str, Any]]:
        async with self.conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(
                f"select s.* from {self.namespace}.slot s join {self.namespace}.pool p on p.id = s.pool_id "
                "where p.key = %s order by s.number",
                [pool],
            )
            return await cursor.fetchall()

    async def lock_slots(self, *slot_ids: int) -> AsyncConnection:
        """A transaction beside the service that has these slots, by their ids, until it ends."""
        conn = await self.begin()
        await conn.execute(
            f"select id from {self.namespace}.slot where id = any (%s) order by id for no key update", [list(slot_ids)]
        )
        return conn

    async def lock_hold(self, hold: Hold) -> AsyncConnection:
        conn = await self.begin()
        await conn.execute(f"select id from {self.namespace}.hold where id = %s for no key update", [hold.id])
        return conn

    async def hold_key(self, taken: IdempotencyKey) -> AsyncConnection:
        """A transaction beside the service that has just written this key, until it ends."""
        conn = await self.begin()
        await conn.execute(
            f"""
            insert into {self.namespace}.idempotency_key
              (principal_id, key, fingerprint, status, body, created_at, expires_at)
            values (%s, %s, %s, 201, 'by another', now(), now() + interval '1 day')
            """,
            [taken.principal_id, taken.key, taken.fingerprint],
        )
        return conn

    def asked_names(self) -> list[str]:
        """The names of the statements that the service asks for from now on."""
        asked = Asked(self.database.queries)
        self.database.queries = asked
        return asked.names

    async def is_locked(self, table: str, row_id: int | UUID) -> bool:
        """Whether somebody has the row for an update of its own."""
        rows = await self.fetch(f"select from {{ns}}.{table} where id = %s for no key update skip locked", row_id)
        return not rows

    async def movements(self, hold: Hold) -> list[tuple[str, int]]:
        return await self.fetch("select kind, quantity from {ns}.movement where hold_id = %s order by id", hold.id)

    async def clock(self) -> MovableClock:
        conn = await self.begin()
        await conn.set_autocommit(True)
        return await MovableClock.install(conn, self.namespace)

    async def lapse(self, *lapsed: Hold) -> None:
        """Let these holds have lapsed a second ago, by their rows."""
        await self.fetch(
            """
            with moved as (
              update {ns}.hold
              set created_at = created_at - (expires_at - {ns}.clock()) - interval '1 s',
                expires_at = {ns}.clock() - interval '1 s'
              where id = any (%s) and state = 'held'
              returning id, expires_at
            )
            update {ns}.hold_line l set expires_at = moved.expires_at from moved where l.hold_id = moved.id
            returning l.hold_id
            """,
            [hold.id for hold in lapsed],
        )
