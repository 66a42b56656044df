"""Insufficient is a fact of one snapshot, never a guess; all else is waited for, and decided anew after the wait."""

import asyncio

import pytest

from reserve.errors import Contended, IdempotencyKeyReused, InsufficientStock
from reserve.idempotency import Done, Replay
from reserve.inventory import holds
from reserve.inventory.holds import PlaceRequest
from tests.inventory.shop import answer, key, wish
from tests.steps import until_waiting, until_waiting_for


async def first_buyer_at_its_key(shop, its_key):
    """A buyer who has the last unit and waits for its idempotency key: rolling `other` back lets it commit."""
    other = await shop.hold_key(its_key)
    first = asyncio.create_task(shop.asked(key=its_key))
    pid = await until_waiting_for(shop.conn, other.info.backend_pid)
    return other, first, pid


async def test_the_same_key_twice_at_once_on_the_last_unit_is_replayed(shop):
    """Fails where the keys are not read under the slots' locks (`find_stored` taken out of `lock_slots`)."""
    await shop.stock()
    other, first, pid = await first_buyer_at_its_key(shop, key("double click"))
    second = asyncio.create_task(shop.asked(key=key("double click")))
    await until_waiting_for(shop.conn, pid)
    await other.rollback()
    done, again = await asyncio.gather(first, second)
    assert isinstance(done, Done)
    assert again == Replay(done.response)


async def test_the_same_key_is_replayed_also_when_it_was_stored_after_the_claims_snapshot(shop):
    """Fails where what is free is read after the snapshot of the keys (`free` read by a volatile function)."""
    await shop.stock()
    await shop.stock("milk")
    seed = await shop.asked(("milk", 1), key=key("long ago"))
    other, first, _ = await first_buyer_at_its_key(shop, key("double click"))
    clock = await shop.clock()
    async with clock.stopped_for("hold_place_claim"):
        requests = [
            PlaceRequest(wish(("milk", 1)), key("long ago")),  # whose stored key makes the claim look at the clock
            PlaceRequest(wish(("tea", 1)), key("double click")),
        ]
        second = asyncio.create_task(holds.place_many(shop.database, requests, answer))
        await until_waiting(shop.conn, 2)
        await other.rollback()
        done = await first
    assert await second == [Replay(seed.response), Replay(done.response)]


async def test_a_retry_on_the_last_unit_is_replayed_and_not_refused(shop):
    """Fails where the claim's statement does not read the keys (`stored` made empty)."""
    await shop.stock()
    done = await shop.asked(key=key("retry"))
    for _ in range(2):
        assert await shop.asked(key=key("retry")) == Replay(done.response)
    assert await shop.figures() == {"on_hand": 1, "available": 0, "held": 1, "confirmed": 0}


async def test_the_same_key_with_another_body_at_once_is_told_so(shop):
    await shop.stock("tea", 1)
    other, first, pid = await first_buyer_at_its_key(shop, key("one key", "tea"))
    second = asyncio.create_task(shop.asked(key=key("one key", "milk")))
    await until_waiting_for(shop.conn, pid)
    await other.rollback()
    assert isinstance(await first, Done)
    with pytest.raises(IdempotencyKeyReused):
        await second


@pytest.mark.parametrize("body", ["one", "two"])
async def test_the_same_key_twice_at_once_with_stock_for_both_is_placed_once(wide_shop, body):
    """Each has a slot of its own; the second finds out when it writes its key, and takes its hold back."""
    await wide_shop.stock("tea", 2)
    other, first, pid = await first_buyer_at_its_key(wide_shop, key("double click"))
    second = asyncio.create_task(wide_shop.asked(key=key("double click", body)))
    await until_waiting(wide_shop.conn, 2)
    assert pid
    await other.rollback()
    answers = await asyncio.gather(first, second, return_exceptions=True)
    # Either may have been let in first; whoever came after it is replayed or told.
    (done,) = [each for each in answers if isinstance(each, Done)]
    (late,) = [each for each in answers if each is not done]
    assert late == Replay(done.response) if body == "one" else isinstance(late, IdempotencyKeyReused)
    assert (await wide_shop.read()).held == 1


@pytest.mark.parametrize("ending", ["commits", "rolls back"])
async def test_the_last_unit_in_the_hands_of_another_is_waited_for(shop, ending):
    """Fails where a slot that is locked counts as one that is empty: the second is then refused too early."""
    await shop.stock()
    other = await shop.hold_key(key("first"))
    first = asyncio.create_task(shop.asked(key=key("first")))
    pid = await until_waiting_for(shop.conn, other.info.backend_pid)
    second = asyncio.create_task(shop.asked())
    await until_waiting_for(shop.conn, pid)
    if ending == "commits":
        await other.rollback()
        assert isinstance(await first, Done)
        with pytest.raises(InsufficientStock) as refused:
            await second
        assert refused.value.shortfalls[0].available == 0
    else:
        # The key turns out to be another request's, so the first is refused and takes its hold back.
        await shop_takes_key_for_another(other, shop, key("first", "other body"))
        with pytest.raises(IdempotencyKeyReused):
            await first
        assert isinstance(await second, Done)


async def shop_takes_key_for_another(conn, shop, taken):
    await conn.execute(
        f"update {shop.namespace}.idempotency_key set fingerprint = %s where key = %s", [taken.fingerprint, taken.key]
    )
    await conn.commit()


async def test_a_slot_locked_for_too_long_is_contended_not_insufficient(open_shop):
    shop = await open_shop(lock_wait_seconds=0.1)
    await shop.stock()
    await shop.lock_slots((await shop.slots())[0]["id"])
    with pytest.raises(Contended):
        await shop.place()
    # What no slot could give is refused at once, whoever has the locks.
    with pytest.raises(InsufficientStock):
        await shop.place(("tea", 2))


async def test_a_refusal_neither_writes_nor_locks(shop):
    await shop.stock()
    versions = "select xmin::text, xmax::text, ctid::text, held from {ns}.slot"
    before = await shop.fetch(versions)
    names = shop.asked_names()
    with pytest.raises(InsufficientStock):
        await shop.place(("tea", 2))
    assert names == ["hold_place_claim"]
    assert await shop.fetch(versions) == before


async def test_all_short_lines_of_a_cart_are_named_in_their_order(shop):
    for pool, on_hand in {"tea": 5, "milk": 1, "sugar": 0}.items():
        await shop.stock(pool, on_hand)
    with pytest.raises(InsufficientStock) as refused:
        await shop.place(("sugar", 1), ("tea", 5), ("milk", 2))
    assert [(each.pool, each.requested, each.available) for each in refused.value.shortfalls] == [
        ("sugar", 1, 0),
        ("milk", 2, 1),
    ]
    assert (await shop.read("tea")).held == 0


async def test_slots_that_come_while_a_placer_waits_are_locked_before_it_decides(open_shop):
    """Fails where `lock_slots` does not compare the slots that it reads with those that it has locked: it then gives
    out what another buyer takes from the new slot meanwhile, and the check of the slot ends it."""
    shop = await open_shop(slot_capacity_min=4)
    await shop.stock("tea", 5)
    clock = await shop.clock()
    other = await shop.hold_key(key("delivery"))
    growth = asyncio.create_task(shop.adjust(3, key=key("delivery")))
    growing = await until_waiting_for(shop.conn, other.info.backend_pid)
    placer = asyncio.create_task(shop.asked(("tea", 5)))
    await until_waiting_for(shop.conn, growing)
    async with clock.stopped_for("pool_read_for_hold"):
        await other.rollback()
        await growth
        await until_waiting(shop.conn)
        assert [slot["capacity"] for slot in await shop.slots()] == [4, 4]
        quick = await shop.begin()
        await quick.execute(
            f"update {shop.namespace}.slot set held = held + 4 where id = %s", [(await shop.slots())[1]["id"]]
        )
        await quick.commit()
    with pytest.raises(InsufficientStock) as refused:
        await placer
    assert refused.value.shortfalls[0].available == 4
    await quick.execute(f"update {shop.namespace}.slot set held = 0 where number = 2")
    await quick.commit()
