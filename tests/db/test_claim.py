"""The claim, for each lane of work: what it takes, what it leaves alone, and that nobody else gets the same."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from psycopg import AsyncConnection

from reserve.db.connection import session_options
from tests.db.lanes import LANES, claim
from tests.steps import MovableClock, fetch, until_waiting

pytestmark = pytest.mark.parametrize("lane", LANES, ids=[lane.claim.name for lane in LANES])


@pytest.fixture
async def connect(database_url, settings):
    """Opens sessions like the service's, each with a transaction that its first statement begins."""
    async with AsyncExitStack() as stack:

        async def open_one():
            conn = await AsyncConnection.connect(database_url, **session_options(settings))
            return await stack.enter_async_context(conn)

        yield open_one


@pytest.fixture
async def filled(lane, conn, namespace):
    return await lane.fill(conn, namespace)


def first(filled, count, start=0):
    return [row for rows in filled.ready.values() for row in rows[start : start + count]]


async def unlocked(conn, namespace, lane, rows):
    """Those of these rows that nobody has, by asking for the strongest lock."""
    found = await fetch(
        conn, f"select id from {namespace}.{lane.claim.table} where id = any (%s) for update skip locked", rows
    )
    return {row for (row,) in found}


async def test_takes_for_each_key_what_is_asked_in_the_order_of_the_lane(lane, filled, connect, namespace):
    for count in range(1, lane.most + 1):
        conn = await connect()
        assert sorted(await claim(conn, namespace, lane, count)) == sorted(first(filled, count))
        await conn.rollback()


async def test_takes_fewer_where_there_are_fewer(lane, filled, connect, namespace):
    conn = await connect()
    taken = [row for _ in range(10) for row in await claim(conn, namespace, lane)]
    # A slot is ready again as long as it has enough; what is claimed of holds is gone.
    assert set(taken) == set(first(filled, 5))
    assert await claim(conn, namespace, lane) == []


async def test_takes_for_one_of_several_keys_only_its_own(lane, filled, connect, namespace):
    conn = await connect()
    for key in lane.keys:
        assert await claim(conn, namespace, lane, 1, key) == filled.ready[key][:1]


async def test_passes_over_what_others_have_locked(lane, filled, connect, namespace):
    other, conn = await connect(), await connect()
    await other.execute(
        f"select id from {namespace}.{lane.claim.table} where id = any (%s) for no key update", [first(filled, 2)]
    )
    assert sorted(await claim(conn, namespace, lane)) == sorted(first(filled, lane.most, start=2))


async def test_two_at_once_never_get_the_same_row(lane, filled, connect, namespace):
    one, other = await connect(), await connect()
    mine, yours = await claim(one, namespace, lane), await claim(other, namespace, lane)
    assert sorted(mine) == sorted(first(filled, lane.most))
    assert sorted(yours) == sorted(first(filled, min(lane.most, 5 - lane.most), start=lane.most))
    await one.rollback()
    assert sorted(await claim(other, namespace, lane, 1)) == sorted(first(filled, 1))


async def test_eight_at_once_share_out_all_rows(lane, filled, connect, namespace):
    conns = [await connect() for _ in range(8)]
    taken = await asyncio.gather(*(claim(conn, namespace, lane, 1) for conn in conns))
    rows = [row for each in taken for row in each]
    assert sorted(rows) == sorted(first(filled, 5))


async def test_locks_what_it_takes_and_nothing_else(lane, filled, conn, connect, namespace):
    """Fails where what makes a row ready is looked at after the lock."""
    taken = await claim(await connect(), namespace, lane)
    everything = [*first(filled, 5), *filled.unready]
    assert await unlocked(conn, namespace, lane, everything) == set(everything) - set(taken)


async def test_a_row_that_a_foreign_key_check_looks_at_is_not_passed_over(lane, filled, connect, namespace):
    """Fails with `for update` in place of `for no key update`. To rows that a claim deletes there is no foreign key."""
    if lane.claim.changes is None:
        referring = "select conname from pg_constraint where confrelid = %s::regclass"
        assert await fetch(await connect(), referring, f"{namespace}.{lane.claim.table}") == []
        return
    other, conn = await connect(), await connect()
    await other.execute(
        f"select id from {namespace}.{lane.claim.table} where id = any (%s) for key share", [first(filled, 5)]
    )
    assert sorted(await claim(conn, namespace, lane)) == sorted(first(filled, lane.most))


async def test_a_row_spoiled_after_the_snapshot_is_passed_over_and_made_up_for(lane, filled, conn, connect, namespace):
    """Exactly the claimed number: the limit counts rows that are still ready under their lock."""
    clock = await MovableClock.install(conn, namespace)
    async with clock.stopped_for(lane.claim.name):
        claiming = asyncio.create_task(claim(await connect(), namespace, lane))
        await until_waiting(conn)
        for row in first(filled, 1):
            await lane.spoil(conn, namespace, row)
    assert sorted(await claiming) == sorted(first(filled, lane.most, start=1))


async def test_a_row_changed_after_the_snapshot_is_taken_as_it_is_now(lane, filled, conn, connect, namespace):
    """What another has added meanwhile is kept."""
    clock = await MovableClock.install(conn, namespace)
    claimer = await connect()
    async with clock.stopped_for(lane.claim.name):
        claiming = asyncio.create_task(claim(claimer, namespace, lane, 1))
        await until_waiting(conn)
        for row in first(filled, 1):
            await lane.touch(conn, namespace, row)
    taken = await claiming
    await claimer.commit()
    # A touched hold expires a second later, and is still the first.
    assert sorted(taken) == sorted(first(filled, 1))
    for row in taken:
        assert await lane.amount(conn, namespace, row) == 3 + lane.by_claim


async def test_changes_only_what_it_takes(lane, filled, conn, connect, namespace):
    claimer = await connect()
    taken = await claim(claimer, namespace, lane)
    await claimer.commit()
    for row in [*first(filled, 5), *filled.unready]:
        assert await lane.amount(conn, namespace, row) == (lane.by_claim if row in taken else 0)
