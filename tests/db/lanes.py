"""Each lane of work with rows to claim, so that every claim is held to the same rules. A new claim needs one here."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from psycopg import AsyncConnection

from reserve.db.claim import HOLD_EXPIRE_CLAIM, HOLD_PLACE_CLAIM, Claim
from reserve.db.query import Queries
from tests.db.filled import Filled, Id
from tests.db.job_lanes import JOB_LANES
from tests.steps import fetch


class Lane(Protocol):
    """A claim with what it takes to try it. `most` rows at once for each of `keys`."""

    claim: ClassVar[Claim]
    keys: ClassVar[Sequence[str]]
    most: ClassVar[int]

    async def fill(self, conn: AsyncConnection, namespace: str) -> Filled:
        """Five ready rows for each key, with rows that are not ready before, between and after them."""

    def parameters(self, keys: Sequence[str], count: int) -> Mapping[str, Any]:
        """What the claim is asked with, for `count` rows of each of `keys`."""

    def taken(self, rows: Sequence[tuple[Any, ...]]) -> list[Id]:
        """The ids that a claim says it has taken."""

    async def spoil(self, conn: AsyncConnection, namespace: str, row: Id) -> None:
        """Make a ready row one that is not ready."""

    async def touch(self, conn: AsyncConnection, namespace: str, row: Id) -> None:
        """Change a ready row by 3 and leave it ready."""

    async def amount(self, conn: AsyncConnection, namespace: str, row: Id) -> int:
        """What `touch` and the claim have added to the row; a claim adds `by_claim`."""

    by_claim: ClassVar[int]


class SlotLane:
    """Slots of three pools with 10 each, of which 5 are asked."""

    claim = HOLD_PLACE_CLAIM
    keys = ("tea", "milk", "sugar")
    most = 1
    by_claim = 5

    async def fill(self, conn, namespace):
        filled = Filled({}, [])
        for key in self.keys:
            ((pool_id,),) = await fetch(
                conn,
                f"insert into {namespace}.pool (key, kind, created_at) values (%s, 'stock', now()) returning id",
                key,
            )
            rows = await fetch(
                conn,
                f"insert into {namespace}.slot (pool_id, number, capacity, open, short) "
                "select %s, n, case when n %% 6 = 0 then 4 else 10 end, n %% 6 <> 2, n %% 6 = 4 "
                "from generate_series(0, 10) n where n > 0 union all select %s, 11, 4, true, false "
                "returning id, open and not short and capacity >= 5",
                pool_id,
                pool_id,
            )
            filled.ready[key] = [row for row, ready in rows if ready]
            filled.unready += [row for row, ready in rows if not ready]
        # A stored key makes the claim look at the clock before it looks at any slot.
        await conn.execute(
            f"insert into {namespace}.idempotency_key (key, fingerprint, status, body, created_at, expires_at) "
            "values ('stored', %s, 201, '', now(), now() + interval '1 day')",
            [b"x" * 32],
        )
        return filled

    def parameters(self, keys, count):
        assert count == 1
        return {
            "key_requests": [99],
            "principals": [0],
            "keys": ["stored"],
            "line_requests": list(range(len(keys))),
            "line_pools": list(keys),
            "line_quantities": [5] * len(keys),
        }

    def taken(self, rows):
        return [row[-2] for row in rows if row[-2] is not None]

    async def spoil(self, conn, namespace, row):
        await conn.execute(f"update {namespace}.slot set held = capacity where id = %s", [row])

    async def touch(self, conn, namespace, row):
        await conn.execute(f"update {namespace}.slot set held = held + 3 where id = %s", [row])

    async def amount(self, conn, namespace, row):
        return (await fetch(conn, f"select held from {namespace}.slot where id = %s", row))[0][0]


class HoldLane:
    """Lapsed holds, for the sweep."""

    claim = HOLD_EXPIRE_CLAIM
    keys = ("all pools",)
    most = 3
    by_claim = 1

    async def fill(self, conn, namespace):
        # Number n expires n minutes after the day before; those at the end of the list have not lapsed.
        rows = await fetch(
            conn,
            f"""
            insert into {namespace}.hold (id, state, created_at, expires_at, finalized_at, version)
            select md5(n::text)::uuid, case when n %% 3 = 0 then 'released' else 'held' end,
              now() - interval '2 days', at, case when n %% 3 = 0 then at - interval '1 s' end, 1
            from generate_series(1, 10) n,
              lateral (select now() + case when n < 8 then interval '-1 day' else interval '1 day' end
                + n * interval '1 minute' as at) lapse
            returning id, expires_at < now() and state = 'held'
            """,
        )
        return Filled({self.keys[0]: [row for row, ready in rows if ready]}, [row for row, ready in rows if not ready])

    def parameters(self, keys, count):
        return {"limit": count}

    def taken(self, rows):
        return [row[0] for row in rows]

    async def spoil(self, conn, namespace, row):
        await conn.execute(
            f"update {namespace}.hold set expires_at = now() + interval '1 hour', version = version + 1 where id = %s",
            [row],
        )

    async def touch(self, conn, namespace, row):
        await conn.execute(
            f"update {namespace}.hold set expires_at = expires_at + interval '1 s', version = version + 3 "
            "where id = %s",
            [row],
        )

    async def amount(self, conn, namespace, row):
        return (await fetch(conn, f"select version - 1 from {namespace}.hold where id = %s", row))[0][0]


LANES: tuple[Lane, ...] = (SlotLane(), HoldLane(), *JOB_LANES)


async def claim(conn: AsyncConnection, namespace: str, lane: Lane, count: int | None = None, *keys: str) -> list[Id]:
    """Claim in the transaction of `conn`, `count` rows for each of `keys` (all keys, as many as may be, by default)."""
    parameters = lane.parameters(keys or lane.keys, count or lane.most)
    cursor = await conn.execute(Queries(namespace)[lane.claim.name], parameters)
    return lane.taken(await cursor.fetchall())
