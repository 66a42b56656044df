"""One lock order everywhere: holds, then slots, then keys, each kind sorted. Whoever waits has all that comes before.

That a row is had shows in the middle of a wait for a later one. Each test fails where the `order by` of the statement
in its name is turned round; that of `slot_lock` where slots are locked in the order of the cart.
"""

import asyncio

import pytest
from psycopg.errors import UniqueViolation

from reserve.inventory import holds
from reserve.inventory.holds import Change, PlaceRequest, Verb
from tests.inventory.shop import answer, key, wish
from tests.steps import until_waiting, until_waiting_for


async def slot_id(shop, pool):
    return (await shop.slots(pool))[0]["id"]


async def test_slot_lock_two_carts_over_two_pools_in_opposite_order(shop):
    for pool in ("tea", "milk"):
        await shop.stock(pool, 5)
    has_tea, has_milk = [await shop.lock_slots(await slot_id(shop, pool)) for pool in ("tea", "milk")]
    carts = [[("tea", 1), ("milk", 1)], [("milk", 1), ("tea", 1)]]
    both = [asyncio.create_task(shop.place(*cart)) for cart in carts]
    pids = await until_waiting(shop.conn, 2)
    await has_tea.rollback()
    # Whatever their carts say, both want tea first: one has it and waits for milk, and the other waits for that one.
    first = await until_waiting_for(shop.conn, has_milk.info.backend_pid)
    second = await until_waiting_for(shop.conn, first)
    assert {first, second} == set(pids)
    await has_milk.rollback()
    await asyncio.gather(*both)
    assert (await shop.read("tea")).held == (await shop.read("milk")).held == 2


async def test_hold_line_change_a_release_of_lines_in_opposite_order(shop):
    for pool in ("tea", "milk"):
        await shop.stock(pool, 5)
    hold = await shop.place(("milk", 1), ("tea", 1))
    other = await shop.lock_slots(await slot_id(shop, "milk"))
    release = asyncio.create_task(shop.release(hold))
    await until_waiting(shop.conn)
    assert await shop.is_locked("slot", await slot_id(shop, "tea"))
    assert await shop.is_locked("hold", hold.id)
    await other.rollback()
    await release


async def test_slot_lock_of_holds_a_give_back_to_a_short_pool(open_shop):
    shop = await open_shop(slot_capacity_min=1)
    await shop.stock("tea", 3)
    hold = await shop.place(("tea", 3))
    await shop.adjust(-1, allow_shortage=True)
    first, second, third = [slot["id"] for slot in await shop.slots()]
    clock = await shop.clock()
    async with clock.stopped_for("hold_line_change"):
        release = asyncio.create_task(shop.release(hold))
        await until_waiting(shop.conn)
        other = await shop.begin()
        step = asyncio.create_task(
            other.execute(f"select from {shop.namespace}.slot where id = %s for no key update", [third])
        )
        (pid,) = await until_waiting(shop.conn)
        assert await until_waiting_for(shop.conn, pid)
    await step
    await until_waiting_for(shop.conn, other.info.backend_pid)
    assert [await shop.is_locked("slot", slot) for slot in (first, second)] == [True, True]
    await other.rollback()
    await release


async def test_hold_lock_a_batch_of_holds_in_opposite_order(shop):
    await shop.stock("tea", 2)
    older, newer = await shop.place(), await shop.place()
    other = await shop.lock_hold(newer)
    batch = asyncio.create_task(
        holds.change_many(shop.database, [Change(hold.id, Verb.RELEASE) for hold in (newer, older)], answer)
    )
    await until_waiting(shop.conn)
    assert await shop.is_locked("hold", older.id)
    await other.rollback()
    await batch


async def test_idempotency_key_write_a_batch_of_keys_in_opposite_order(shop):
    await shop.stock("tea", 2)
    other = await shop.hold_key(key("b"))
    requests = [PlaceRequest(wish(("tea", 1)), key(name)) for name in ("b", "a")]
    batch = asyncio.create_task(holds.place_many(shop.database, requests, answer))
    batching = await until_waiting_for(shop.conn, other.info.backend_pid)
    late = asyncio.create_task(shop.hold_key(key("a")))
    await until_waiting_for(shop.conn, batching)  # the batch has written "a" and waits for "b"
    await other.rollback()
    assert len(await batch) == 2
    with pytest.raises(UniqueViolation):
        await late


async def test_an_adjustment_has_its_slots_before_its_key(shop):
    await shop.stock()
    other = await shop.hold_key(key("count"))
    adjustment = asyncio.create_task(shop.adjust(1, key=key("count")))
    await until_waiting_for(shop.conn, other.info.backend_pid)
    assert await shop.is_locked("slot", await slot_id(shop, "tea"))
    await other.rollback()
    await adjustment
