"""Two verbs on one hold at once, as named steps: the first to have its lock decides, the second sees what came of it.

What a verb waits for is a slot that a connection beside the service has, so the hold's lock is in its hands meanwhile.
"""

import asyncio

import pytest

from reserve.errors import HoldConfirmed, HoldExpired, HoldReleased
from reserve.inventory.rows import HoldState
from tests.inventory.shop import key
from tests.steps import until_waiting, until_waiting_for


@pytest.fixture
async def held(shop):
    """A pool of 2, a hold of 1, and what keeps the slot busy."""
    await shop.stock("tea", 2)
    hold = await shop.place()
    return hold, await shop.lock_slots((await shop.slots())[0]["id"])


async def in_this_order(shop, held, first, second):
    """Start `first`, which gets the hold and waits for the slot; then `second`, which waits for it; let both go on."""
    _, other = held
    one = asyncio.create_task(first)
    pid = await until_waiting_for(shop.conn, other.info.backend_pid)
    two = asyncio.create_task(second)
    await until_waiting_for(shop.conn, pid)
    await other.rollback()
    return await asyncio.gather(one, two, return_exceptions=True)


async def test_release_against_release_moves_once(shop, held):
    """Fails where the second decides on what it read before its wait (`hold_read` before `hold_lock`)."""
    hold, _ = held
    first, second = await in_this_order(shop, held, shop.release(hold), shop.release(hold))
    assert first == second
    assert await shop.movements(hold) == [("placed", 1), ("released", 1)]
    assert await shop.figures() == {"on_hand": 2, "available": 2, "held": 0, "confirmed": 0}


async def test_confirm_twice_at_once_confirms_once(shop, held):
    hold, _ = held
    first, second = await in_this_order(shop, held, shop.confirm(hold), shop.confirm(hold))
    assert first == second
    assert first.value.version == 2
    assert await shop.movements(hold) == [("placed", 1), ("confirmed", 1)]


async def test_confirm_twice_at_once_with_one_key_replays(shop, held):
    hold, _ = held
    first, second = await in_this_order(shop, held, shop.confirm(hold, key("pay")), shop.confirm(hold, key("pay")))
    assert second.response == first.response
    assert not hasattr(second, "value")


async def test_confirm_against_release_the_first_wins(shop, held):
    hold, _ = held
    first, second = await in_this_order(shop, held, shop.confirm(hold), shop.release(hold))
    assert first.value.state is HoldState.CONFIRMED
    assert isinstance(second, HoldConfirmed)


async def test_release_against_confirm_the_first_wins(shop, held):
    hold, _ = held
    first, second = await in_this_order(shop, held, shop.release(hold), shop.confirm(hold))
    assert first.value.state is HoldState.RELEASED
    assert isinstance(second, HoldReleased)


async def test_expire_against_confirm_the_sweep_has_it(shop, held):
    hold, _ = held
    await shop.lapse(hold)
    first, second = await in_this_order(shop, held, shop.sweep(), shop.confirm(hold))
    assert first == 1
    assert isinstance(second, HoldExpired)
    assert await shop.movements(hold) == [("placed", 1), ("expired", 1)]


async def test_confirm_against_expire_the_sweep_leaves_it_alone(shop, held):
    """The confirm was in time and has the lock; the hold lapses while it waits; the sweep must not wait for it."""
    hold, other = held
    clock = await shop.clock()
    confirm = asyncio.create_task(shop.confirm(hold))
    await until_waiting(shop.conn)
    await clock.forward(3600)
    assert await shop.sweep() == 0
    await other.rollback()
    # Once it has the slot it sees that it is too late, and the next sweep expires what it gave up.
    with pytest.raises(HoldExpired):
        await confirm
    assert await shop.sweep() == 1
    assert await shop.movements(hold) == [("placed", 1), ("expired", 1)]


async def test_release_against_the_sweep_gives_back_once(shop, held):
    hold, other = held
    await shop.lapse(hold)
    release = asyncio.create_task(shop.release(hold))
    await until_waiting(shop.conn)
    assert await shop.sweep() == 0
    await other.rollback()
    assert (await release).value.state is HoldState.EXPIRED
    assert await shop.sweep() == 0
    assert await shop.movements(hold) == [("placed", 1), ("expired", 1)]


async def test_the_sweep_against_release_gives_back_once(shop, held):
    hold, _ = held
    await shop.lapse(hold)
    first, second = await in_this_order(shop, held, shop.sweep(), shop.release(hold))
    assert first == 1
    assert second.value.state is HoldState.EXPIRED
    assert await shop.movements(hold) == [("placed", 1), ("expired", 1)]


async def test_extend_against_the_sweep_is_in_time(shop):
    """The sweep looks at the hold before the extension commits, and again when it has the lock."""
    await shop.stock()
    hold = await shop.place(ttl_seconds=60)
    clock = await shop.clock()
    async with clock.stopped_for("hold_expire_claim"):
        sweep = asyncio.create_task(shop.sweep())  # its snapshot shows the hold as it was
        await until_waiting(shop.conn)
        await shop.extend(hold, 7200)
        await clock.forward(3600)
    assert await sweep == 0
    assert (await shop.now(hold)).state is HoldState.HELD
    assert await shop.movements(hold) == [("placed", 1)]


async def test_the_sweep_against_extend_is_refused(shop, held):
    hold, _ = held
    await shop.lapse(hold)
    first, second = await in_this_order(shop, held, shop.sweep(), shop.extend(hold, 60))
    assert first == 1
    assert isinstance(second, HoldExpired)


async def test_two_sweeps_at_once_share_what_has_lapsed(open_shop):
    shop = await open_shop(slot_capacity_min=1)
    await shop.stock("tea", 2)
    older, newer = await shop.place(), await shop.place()
    await shop.lapse(older)
    await shop.lapse(newer)
    other = await shop.lock_slots((await shop.slots())[0]["id"])
    first = asyncio.create_task(shop.sweep(1))
    await until_waiting(shop.conn)  # it has the older hold, whose slot is busy
    assert await shop.sweep(1) == 1
    assert await shop.sweep(1) == 0
    await other.rollback()
    assert await first == 1
    for hold in (older, newer):
        assert await shop.movements(hold) == [("placed", 1), ("expired", 1)]
