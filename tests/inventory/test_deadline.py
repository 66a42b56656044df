"""One deadline over the whole wait, however many locks it is for; what has waited too long is contended.

No clock is asked: a wait that the deadline ends is ended by `statement_timeout` (57014), one that each lock had for
itself by `lock_timeout` (55P03). Each test fails where `Deadline.limit` is left out of the transaction it is about.
"""

import asyncio
import time
from types import SimpleNamespace

import pytest
from psycopg import errors as pg

from reserve.db import connection, deadline
from reserve.errors import Contended
from reserve.inventory import holds
from reserve.inventory.holds import Change, PlaceRequest, Verb
from tests.inventory.shop import answer, key, wish
from tests.steps import until_waiting, until_waiting_for

#: Long enough for a statement to get to its lock, short enough to be waited for.
WAIT = 0.5


@pytest.fixture
def ended_by(monkeypatch):
    """The errors of PostgreSQL that the service met."""
    met = []
    judge = connection.as_reserve_error

    def note(error):
        met.append(type(error))
        return judge(error)

    monkeypatch.setattr(connection, "as_reserve_error", note)
    return met


@pytest.fixture
async def shop(open_shop):
    return await open_shop(lock_wait_seconds=WAIT, slot_capacity_min=1)


async def lock_each(shop, pool="tea"):
    return [await shop.lock_slots(slot["id"]) for slot in await shop.slots(pool)]


async def contended(task):
    with pytest.raises(Contended):
        await task


async def test_of_a_placing_that_waits_for_several_slots_in_turn(shop, ended_by):
    await shop.stock("tea", 3)
    first, second, _third = await lock_each(shop)
    buyer = asyncio.create_task(shop.place(("tea", 3)))
    (pid,) = await until_waiting(shop.conn)
    await first.rollback()
    assert await until_waiting_for(shop.conn, second.info.backend_pid) == pid
    await contended(buyer)
    assert set(ended_by) == {pg.QueryCanceled}


async def test_of_a_release_that_waits_for_the_slots_of_its_lines_in_turn(shop, ended_by):
    await shop.stock("tea", 3)
    hold = await shop.place(("tea", 3))
    first, second, _third = await lock_each(shop)
    release = asyncio.create_task(shop.release(hold))
    (pid,) = await until_waiting(shop.conn)
    await first.rollback()
    assert await until_waiting_for(shop.conn, second.info.backend_pid) == pid
    await contended(release)
    assert set(ended_by) == {pg.QueryCanceled}


async def test_of_an_adjustment_that_waits_for_the_slots_of_its_pool_in_turn(shop, ended_by):
    await shop.stock("tea", 3)
    first, second, _third = await lock_each(shop)
    loss = asyncio.create_task(shop.adjust(-1))
    (pid,) = await until_waiting(shop.conn)
    await first.rollback()
    assert await until_waiting_for(shop.conn, second.info.backend_pid) == pid
    await contended(loss)
    assert set(ended_by) == {pg.QueryCanceled}


async def test_of_a_batch_that_waits_for_its_keys_in_turn(shop, ended_by):
    for pool in "ab":
        await shop.stock(pool)
    first, second = await shop.hold_key(key("a")), await shop.hold_key(key("b"))
    requests = [PlaceRequest(wish((name, 1)), key(name)) for name in "ab"]
    batch = asyncio.create_task(holds.place_many(shop.database, requests, answer))
    await until_waiting_for(shop.conn, first.info.backend_pid)
    await first.rollback()
    await until_waiting_for(shop.conn, second.info.backend_pid)
    # The batch is ended; whose key is free is then placed on its own, and only the other is contended.
    placed, late = await batch
    assert ended_by[0] is pg.QueryCanceled
    assert placed.value.lines
    assert isinstance(late, Contended)


async def test_of_the_lapsed_holds_that_a_placing_waits_for(shop, ended_by):
    await shop.stock("tea", 2)
    lapsed = [await shop.place(), await shop.place()]
    await shop.lapse(*lapsed)
    first, second = [await shop.lock_hold(hold) for hold in lapsed]
    buyer = asyncio.create_task(shop.place(("tea", 2)))
    await until_waiting_for(shop.conn, first.info.backend_pid)
    await first.rollback()
    await until_waiting_for(shop.conn, second.info.backend_pid)
    await contended(buyer)
    assert set(ended_by) == {pg.QueryCanceled}


async def test_what_a_first_wait_has_used_up_is_missing_to_the_second(shop, monkeypatch):
    """The local clock is moved while the placing waits for its slot; its key then has only what is left."""
    moved = {"by": 0.0}
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + moved["by"]))
    told = []

    async def limit(self, conn, original=deadline.Deadline.limit):
        await original(self, conn)
        told.append(float((await (await conn.execute("show statement_timeout")).fetchone())[0].removesuffix("ms")))

    monkeypatch.setattr(deadline.Deadline, "limit", limit)
    await shop.stock()
    (other,) = await lock_each(shop)
    told.clear()
    buyer = asyncio.create_task(shop.place(key=key("late")))
    await until_waiting(shop.conn)
    moved["by"] = WAIT / 2
    await other.rollback()
    await buyer
    first, second = told
    assert second <= first - 1000 * WAIT / 2


async def test_of_a_change_of_several_holds_that_waits_for_each_in_turn(shop, ended_by):
    await shop.stock("tea", 2)
    held = [await shop.place(), await shop.place()]
    first, second = [await shop.lock_hold(hold) for hold in held]
    batch = asyncio.create_task(
        holds.change_many(shop.database, [Change(hold.id, Verb.CONFIRM) for hold in held], answer)
    )
    await until_waiting_for(shop.conn, first.info.backend_pid)
    await first.rollback()
    await until_waiting_for(shop.conn, second.info.backend_pid)
    confirmed, late = await batch
    assert ended_by[0] is pg.QueryCanceled
    assert confirmed.value.version == 2
    assert isinstance(late, Contended)
