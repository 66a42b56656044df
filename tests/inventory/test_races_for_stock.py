"""Many after the same stock: never more is promised than there is, and what can be had is had."""

import asyncio

import pytest

from reserve.errors import BelowPromised, Contended, InsufficientStock, Unavailable
from reserve.idempotency import Done, Response
from reserve.inventory import holds
from reserve.inventory.pools import put
from reserve.inventory.rows import HoldState, PoolChange
from tests.inventory.shop import key, wish
from tests.steps import until_gone, until_waiting, until_waiting_for


@pytest.mark.parametrize("slots", [1, 10])
async def test_64_buyers_for_10_units_are_never_11(open_shop, slots):
    """Fails where the claim adds without looking, and the check of the slot is dropped."""
    shop = await open_shop(connections_max=32, slot_capacity_min=10 // slots, lock_wait_seconds=30)
    await shop.stock("tea", 10)
    assert len(await shop.slots()) == slots
    buyers = [shop.asked(key=key(str(number))) for number in range(64)]
    answers = await asyncio.gather(*buyers, return_exceptions=True)
    assert sorted(type(each).__name__ for each in answers) == ["Done"] * 10 + ["InsufficientStock"] * 54
    assert await shop.figures() == {"on_hand": 10, "available": 0, "held": 10, "confirmed": 0}


async def test_a_loss_in_progress_is_waited_for_and_then_counted(shop):
    await shop.stock("tea", 5)
    other = await shop.hold_key(key("loss"))
    loss = asyncio.create_task(shop.adjust(-3, key=key("loss")))
    losing = await until_waiting_for(shop.conn, other.info.backend_pid)
    buyers = [asyncio.create_task(shop.asked(("tea", quantity))) for quantity in (3, 2)]
    for count in (2, 3):
        await until_waiting(shop.conn, count)
    assert losing
    await other.rollback()
    await loss
    with pytest.raises(InsufficientStock) as refused:
        await buyers[0]
    assert refused.value.shortfalls[0].available <= 2
    assert isinstance(await buyers[1], Done)


async def test_a_placing_in_progress_is_waited_for_by_a_loss(shop):
    await shop.stock("tea", 5)
    other = await shop.hold_key(key("buy"))
    buyer = asyncio.create_task(shop.asked(("tea", 4), key=key("buy")))
    buying = await until_waiting_for(shop.conn, other.info.backend_pid)
    loss = asyncio.create_task(shop.adjust(-2))
    await until_waiting_for(shop.conn, buying)
    await other.rollback()
    await buyer
    with pytest.raises(BelowPromised) as refused:
        await loss
    assert (refused.value.on_hand, refused.value.available, refused.value.promised) == (5, 1, 4)


async def test_a_pool_created_twice_at_once_is_one_pool(shop):
    other = await shop.begin()
    await other.execute(
        f"insert into {shop.namespace}.pool (key, kind, created_at) values ('tea', 'stock', now()) returning id"
    )
    both = [asyncio.create_task(put(shop.database, "tea", PoolChange(on_hand=3))) for _ in range(2)]
    await until_waiting(shop.conn, 2)
    await other.rollback()
    (one, created), (same, created_too) = await asyncio.gather(*both)
    assert {created, created_too} == {True, False}
    assert one.id == same.id
    assert (await shop.read()).on_hand == 3


async def test_a_session_ended_in_the_middle_leaves_nothing_and_says_unavailable(shop):
    await shop.stock()
    other = await shop.hold_key(key("buy"))
    buyer = asyncio.create_task(shop.asked(key=key("buy")))
    buying = await until_waiting_for(shop.conn, other.info.backend_pid)
    await shop.fetch("select pg_terminate_backend(%s)", buying)
    with pytest.raises(Unavailable):
        await buyer
    await until_gone(shop.conn, buying)
    assert await shop.figures() == {"on_hand": 1, "available": 1, "held": 0, "confirmed": 0}
    assert await shop.fetch("select count(*) from {ns}.hold") == [(0,)]
    await other.rollback()
    await shop.place()


async def test_a_cancelled_statement_is_contended_and_leaves_nothing(shop):
    await shop.stock()
    other = await shop.hold_key(key("buy"))
    buyer = asyncio.create_task(shop.asked(key=key("buy")))
    buying = await until_waiting_for(shop.conn, other.info.backend_pid)
    await shop.fetch("select pg_cancel_backend(%s)", buying)
    with pytest.raises(Contended):
        await buyer
    assert await shop.fetch("select count(*) from {ns}.hold") == [(0,)]


async def test_a_caller_that_gave_up_leaves_nothing(shop):
    await shop.stock()
    other = await shop.hold_key(key("buy"))
    buyer = asyncio.create_task(shop.asked(key=key("buy")))
    await until_waiting_for(shop.conn, other.info.backend_pid)
    buyer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await buyer
    await other.rollback()
    assert (await shop.place(key=key("buy"))).state is HoldState.HELD
    assert await shop.fetch("select count(*) from {ns}.hold") == [(1,)]


async def test_a_process_that_stalls_in_a_transaction_loses_its_slot(open_shop):
    """Fails without `idle_in_transaction_session_timeout`: the next buyer is contended."""
    stalled_shop = await open_shop(idle_in_transaction_seconds=0.1)
    shop = await open_shop(lock_wait_seconds=30)
    await shop.stock()
    stalled, go_on = asyncio.Event(), asyncio.Event()

    async def stall(conn):
        await conn.execute(f"select from {shop.namespace}.slot for no key update")
        stalled.set()
        await go_on.wait()
        await conn.execute("select 1")

    process = asyncio.create_task(stalled_shop.database.transact(stall))
    await stalled.wait()
    assert (await shop.place()).state is HoldState.HELD
    go_on.set()
    with pytest.raises(Unavailable):
        await process


async def test_an_error_of_who_renders_the_answer_leaves_nothing(shop):
    await shop.stock()

    def fail(hold) -> Response:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await holds.place(shop.database, wish(("tea", 1)), None, fail)
    assert await shop.figures() == {"on_hand": 1, "available": 1, "held": 0, "confirmed": 0}
