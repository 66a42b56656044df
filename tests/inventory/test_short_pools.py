"""A pool that is short takes no new holds, and what comes back pays its shortage first, whoever brings it."""

import asyncio

import pytest

from reserve.errors import InsufficientStock
from reserve.inventory.rows import HoldState
from tests.inventory.shop import key
from tests.steps import until_waiting, until_waiting_for


async def test_what_comes_back_to_another_slot_pays_the_shortage_first(open_shop):
    """Fails where `spread` marks only the slots that have a shortage: the 5 given back are then sold as 5."""
    shop = await open_shop(slot_capacity_min=5)
    await shop.stock("tea", 10)
    first, second = [await shop.place(("tea", 5)) for _ in range(2)]
    await shop.adjust(-3, allow_shortage=True)
    assert [(slot["held"], slot["shortage"]) for slot in await shop.slots()] == [(5, 3), (5, 0)]
    ((slot_id,),) = await shop.fetch("select slot_id from {ns}.hold_line where hold_id = %s", second.id)
    assert slot_id == (await shop.slots())[1]["id"]

    await shop.release(second)
    assert await shop.figures() == {"on_hand": 7, "available": 2, "held": 5, "confirmed": 0}
    with pytest.raises(InsufficientStock) as refused:
        await shop.place(("tea", 3))
    assert refused.value.shortfalls[0].available == 2
    await shop.place(("tea", 2))
    assert (await shop.now(first)).state is HoldState.HELD


async def test_a_paid_shortage_opens_the_pool_again(open_shop):
    """Fails where a give-back does not pay (`_pay_shortages` taken out): the pool then stays short for good."""
    shop = await open_shop(slot_capacity_min=5)
    await shop.stock("tea", 10)
    hold = await shop.place(("tea", 10))
    await shop.adjust(-4, allow_shortage=True)
    await shop.release(hold)
    assert not any(slot["short"] or slot["shortage"] for slot in await shop.slots())
    await shop.place(("tea", 6))


@pytest.mark.parametrize("back", ["released", "expired by the sweep", "expired by who needs it"])
async def test_every_way_back_pays(open_shop, back):
    shop = await open_shop(slot_capacity_min=5)
    await shop.stock("tea", 10)
    gone, kept = await shop.place(("tea", 6)), await shop.place(("tea", 4))
    await shop.adjust(-7, allow_shortage=True)
    match back:
        case "released":
            await shop.release(gone)
        case "expired by the sweep":
            await shop.lapse(gone)
            assert await shop.sweep() == 1
        case _:
            await shop.lapse(gone)
            with pytest.raises(InsufficientStock):
                await shop.place(("tea", 1))
            await shop.adjust(1)
            await shop.lapse(kept)
            await shop.place(("tea", 4))
            return
    assert await shop.figures() == {"on_hand": 3, "available": 0, "held": 4, "confirmed": 0}
    assert sum(slot["shortage"] for slot in await shop.slots()) == 1
    with pytest.raises(InsufficientStock):
        await shop.place(("tea", 1))


async def test_a_short_pool_takes_no_hold_and_still_confirms_what_it_has(shop):
    await shop.stock("tea", 5)
    hold = await shop.place(("tea", 2))
    await shop.adjust(-4, allow_shortage=True)
    with pytest.raises(InsufficientStock):
        await shop.place(("tea", 1))
    await shop.confirm(hold)
    assert await shop.figures() == {"on_hand": 1, "available": 0, "held": 0, "confirmed": 2}
    assert [slot["shortage"] for slot in await shop.slots()] == [1]


async def test_new_stock_pays_before_it_is_sold(shop):
    await shop.stock("tea", 5)
    await shop.place(("tea", 5))
    await shop.adjust(-3, allow_shortage=True)
    await shop.adjust(2)
    with pytest.raises(InsufficientStock):
        await shop.place(("tea", 1))
    await shop.adjust(2)
    await shop.place(("tea", 1))


async def test_a_release_that_waited_for_the_loss_pays_it(open_shop):
    """The release reads `short` under the slot's lock: before the wait the pool was not short yet."""
    shop = await open_shop(slot_capacity_min=5)
    await shop.stock("tea", 10)
    first = await shop.place(("tea", 5))
    await shop.place(("tea", 5))
    slot_1, slot_2 = [slot["id"] for slot in await shop.slots()]
    other = await shop.lock_slots(slot_2)
    loss = asyncio.create_task(shop.adjust(-3, allow_shortage=True))
    await until_waiting(shop.conn)  # it has slot 1 and waits for slot 2
    assert await shop.is_locked("slot", slot_1)
    release = asyncio.create_task(shop.release(first))
    await until_waiting(shop.conn, 2)
    await other.rollback()
    await asyncio.gather(loss, release)
    assert await shop.figures() == {"on_hand": 7, "available": 2, "held": 5, "confirmed": 0}
    assert not any(slot["short"] for slot in await shop.slots())


async def test_paying_locks_again_where_slots_came_while_it_waited(open_shop):
    """Fails where `_pay_shortages` does not compare the slots that it reads with those that it has locked."""
    shop, shop_of_small_slots = await open_shop(slot_capacity_min=5), await open_shop(slot_capacity_min=1)
    await shop.stock("tea", 9)
    gone = await shop.place(("tea", 9))
    await shop.adjust(-5, allow_shortage=True)
    clock = await shop.clock()
    other = await shop.hold_key(key("found"))
    names = shop.asked_names()
    async with clock.stopped_for("hold_line_change"):
        release = asyncio.create_task(shop.release(gone))
        await until_waiting(shop.conn)  # it has the only slot, and will see that the pool is short
        growth = asyncio.create_task(shop_of_small_slots.adjust(1, key=key("found")))
        await until_waiting(shop.conn, 2)
    # The release starts over, with the locks of all slots, behind the one that adds some.
    await until_waiting_for(shop.conn, await until_waiting_for(shop.conn, other.info.backend_pid))
    await other.rollback()
    await asyncio.gather(growth, release)
    assert names.count("slot_lock_of_holds") == 2
    assert [(slot["capacity"], slot["short"]) for slot in await shop.slots()] == [(1, False)] * 5
