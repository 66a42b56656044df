"""A small shop for tests of operations: one pool with a hold of each fate, all of it true."""

from uuid import UUID

from reserve.db.connection import Database
from reserve.idempotency import Response
from reserve.inventory import holds, pools
from reserve.inventory.rows import Hold, Line, Place, PoolChange


def render(_hold: Hold) -> Response:
    return Response(201, b"{}")


async def place(database: Database, pool: str, quantity: int, ttl_seconds: int | None = None) -> Hold:
    return (await holds.place(database, Place([Line(pool, quantity)], ttl_seconds), None, render)).value


async def lapse(database: Database, *ids: UUID) -> None:
    """Move holds into the past by data, so that they have lapsed by an hour."""
    async with database._pool.connection() as conn:
        for table, columns in {"hold": ("created_at", "expires_at"), "hold_line": ("expires_at",)}.items():
            changes = ", ".join(f"{column} = {column} - interval '2 hours'" for column in columns)
            key = "id" if table == "hold" else "hold_id"
            await conn.execute(f"update {database.namespace}.{table} set {changes} where {key} = any (%s)", [list(ids)])


async def open_shop(database: Database) -> dict[str, Hold]:
    """Pool `a` of 10 with a buffer of 1, of which 2 are held and 3 confirmed, 4 free. Pool `b` of 5, untouched."""
    await pools.put(database, "a", PoolChange(on_hand=10, buffer=1))
    await pools.put(database, "b", PoolChange(on_hand=5))
    shop = {
        "held": await place(database, "a", 2),
        "confirmed": await place(database, "a", 3),
        "released": await place(database, "a", 1),
        "expired": await place(database, "a", 1, ttl_seconds=60),
    }
    await holds.confirm(database, shop["confirmed"].id, None, render)
    await holds.release(database, shop["released"].id, None, render)
    await lapse(database, shop["expired"].id)
    assert await holds.expire_lapsed(database, limit=10) == 1
    return shop
