"""The sweep expires what has lapsed, pruning deletes keys past their retention, both batch by batch."""

import asyncio
from datetime import timedelta

from reserve.db.connection import Database
from reserve.idempotency import IdempotencyKey
from reserve.inventory import holds, pools
from reserve.inventory.rows import HoldState, Line, Place, PoolChange
from reserve.ops.prune import Prune
from reserve.ops.service import Outcome
from reserve.ops.sweep import Sweep
from tests.ops.shop import lapse, place, render


async def test_a_sweep_expires_a_batch_and_says_that_there_may_be_more(settings):
    async with Database.open(settings.model_copy(update={"sweep_batch_size": 2})) as database:
        await pools.put(database, "a", PoolChange(on_hand=10))
        placed = [await place(database, "a", 1) for _ in range(3)]
        living = await place(database, "a", 1)
        await lapse(database, *(hold.id for hold in placed))
        sweep = Sweep(database)
        assert await sweep.run_once() == Outcome(2, full=True)
        assert await sweep.run_once() == Outcome(1, full=False)
        assert await sweep.run_once() == Outcome(0, full=False)
        assert (await holds.get(database, living.id)).state is HoldState.HELD


async def test_a_sweep_leaves_a_lapsed_hold_that_somebody_has_locked_to_the_next(database, conn, namespace):
    await pools.put(database, "a", PoolChange(on_hand=10))
    locked, free = await place(database, "a", 1), await place(database, "a", 1)
    await lapse(database, locked.id, free.id)
    async with conn.transaction():
        await conn.execute(f"select from {namespace}.hold where id = %s for no key update", [locked.id])
        assert await Sweep(database).run_once() == Outcome(1, full=False)
    assert await Sweep(database).run_once() == Outcome(1, full=False)


async def test_pruning_deletes_a_batch_of_the_keys_that_are_past_their_retention(settings, conn, namespace):
    async with Database.open(settings.model_copy(update={"sweep_batch_size": 2})) as database:
        await pools.put(database, "a", PoolChange(on_hand=10))
        for name in ("old-1", "old-2", "old-3", "new"):
            key = IdempotencyKey(name, b"f" * 32)
            await holds.place(database, Place([Line("a", 1)]), key, render)
        await conn.execute(
            f"update {namespace}.idempotency_key set created_at = created_at - %(by)s, expires_at = expires_at - %(by)s"
            " where key like 'old-%%'",
            {"by": timedelta(days=2)},
        )
        prune = Prune(database)
        assert await prune.run_once() == Outcome(2, full=True)
        assert await prune.run_once() == Outcome(1, full=False)
        cursor = await conn.execute(f"select key from {namespace}.idempotency_key")
        assert await cursor.fetchall() == [("new",)]


async def test_two_sweeps_at_once_expire_each_hold_once(database):
    await pools.put(database, "a", PoolChange(on_hand=10))
    placed = [await place(database, "a", 1) for _ in range(5)]
    await lapse(database, *(hold.id for hold in placed))
    outcomes = await asyncio.gather(Sweep(database).run_once(), Sweep(database).run_once())
    assert sum(outcome.handled for outcome in outcomes) == 5
    assert (await pools.get(database, "a")).held == 0
