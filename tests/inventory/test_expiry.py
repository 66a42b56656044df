"""A lapsed hold is expired from the instant it lapses, swept or not, and whoever waited for a lock is told so."""

import asyncio

import pytest

from reserve.errors import Contended, HoldExpired, InsufficientStock
from reserve.inventory import importing
from reserve.inventory.importing import PoolImport
from reserve.inventory.rows import HoldState
from tests.inventory.shop import key
from tests.steps import until_waiting

HOUR = 3600


def confirm(shop, hold, its_key=None):
    return shop.confirm(hold, its_key)


def extend(shop, hold, its_key=None):
    return shop.extend(hold, HOUR, its_key)


verbs = pytest.mark.parametrize("verb", [confirm, extend], ids=["confirm", "extend"])


@verbs
async def test_waiting_for_the_hold_past_the_expiry_is_refused(shop, verb):
    """Fails where the clock is read only before the lock is had (`hold_read` before `hold_lock` in `_lock`, and
    `_require_alive` taken out)."""
    await shop.stock()
    hold = await shop.place()
    clock = await shop.clock()
    other = await shop.lock_hold(hold)
    late = asyncio.create_task(verb(shop, hold))
    await until_waiting(shop.conn)
    await clock.forward(HOUR)
    await other.rollback()
    with pytest.raises(HoldExpired):
        await late
    assert (await shop.now(hold)).version == 2
    assert await shop.movements(hold) == [("placed", 1)]


async def test_waiting_for_a_slot_past_the_expiry_is_refused(shop):
    """Fails where the clock is not read again once all locks are had (`_require_alive` taken out)."""
    await shop.stock()
    hold = await shop.place()
    clock = await shop.clock()
    other = await shop.lock_slots((await shop.slots())[0]["id"])
    late = asyncio.create_task(shop.confirm(hold))
    await until_waiting(shop.conn)
    await clock.forward(HOUR)
    await other.rollback()
    with pytest.raises(HoldExpired):
        await late
    assert await shop.figures() == {"on_hand": 1, "available": 1, "held": 0, "confirmed": 0}


@verbs
async def test_waiting_for_a_key_past_the_expiry_is_refused(shop, verb):
    """Fails where the clock is not read again once the keys are had (`stored_at` left out of `_require_alive`)."""
    await shop.stock()
    hold = await shop.place()
    clock = await shop.clock()
    other = await shop.hold_key(key("late"))
    late = asyncio.create_task(verb(shop, hold, key("late")))
    await until_waiting(shop.conn)
    await clock.forward(HOUR)
    await other.rollback()
    with pytest.raises(HoldExpired):
        await late


@pytest.mark.parametrize("swept", [True, False])
@verbs
async def test_lapsed_is_refused_swept_or_not(shop, verb, swept):
    await shop.stock()
    hold = await shop.place()
    await shop.lapse(hold)
    if swept:
        assert await shop.sweep() == 1
    with pytest.raises(HoldExpired):
        await verb(shop, hold)
    assert (await shop.now(hold)).state is HoldState.EXPIRED


@pytest.mark.parametrize("swept", [True, False])
async def test_release_of_a_lapsed_hold_answers_expired_and_gives_back_once(shop, swept):
    await shop.stock()
    hold = await shop.place()
    await shop.lapse(hold)
    if swept:
        await shop.sweep()
    seen = await shop.now(hold)
    for _ in range(2):
        done = await shop.release(hold)
        assert done.value == seen
    assert seen.state is HoldState.EXPIRED
    assert seen.finalized_at == seen.expires_at
    assert await shop.movements(hold) == [("placed", 1), ("expired", 1)]


@pytest.mark.parametrize("swept", [True, False])
async def test_reading_does_not_depend_on_the_sweep(shop, swept):
    await shop.stock("tea", 3)
    hold = await shop.place(("tea", 2))
    await shop.lapse(hold)
    before = await shop.now(hold)
    if swept:
        assert await shop.sweep() == 1
    assert await shop.now(hold) == before
    assert await shop.figures() == {"on_hand": 3, "available": 3, "held": 0, "confirmed": 0}


@pytest.mark.parametrize("swept", [True, False])
async def test_what_lapsed_is_sold_again_swept_or_not(shop, swept):
    """Fails where the claim's answer leaves out what has lapsed (`lapsed` in `hold_place_claim` set to 0)."""
    await shop.stock("tea", 3)
    lapsed = [await shop.place() for _ in range(3)]
    await shop.lapse(*lapsed)
    if swept:
        await shop.sweep()
    await shop.place(("tea", 3))
    assert {(await shop.now(hold)).state for hold in lapsed} == {HoldState.EXPIRED}


async def test_enough_has_lapsed_for_some_and_the_rest_is_refused_with_the_true_figure(shop):
    await shop.stock("tea", 3)
    lapsed, _kept = await shop.place(("tea", 2)), await shop.place()
    await shop.lapse(lapsed)
    with pytest.raises(InsufficientStock) as refused:
        await shop.place(("tea", 3))
    assert refused.value.shortfalls[0].available == 2
    await shop.place(("tea", 2))


async def test_a_lapsed_hold_that_somebody_has_locked_makes_contended_not_insufficient(open_shop):
    """Fails where what has lapsed but is locked counts as held (`lapsed` in `pool_read_for_hold` set to 0)."""
    shop = await open_shop(lock_wait_seconds=0.2)
    await shop.stock()
    hold = await shop.place()
    await shop.lapse(hold)
    other = await shop.lock_hold(hold)
    with pytest.raises(Contended):
        await shop.place()
    await other.rollback()
    await shop.place()


async def test_the_patient_path_holds_no_slot_while_it_waits_for_a_hold(shop):
    """Fails where lapsed holds are expired in the transaction that has the slots: holds come before slots."""
    await shop.stock()
    hold = await shop.place()
    await shop.lapse(hold)
    other = await shop.lock_hold(hold)
    buyer = asyncio.create_task(shop.place())
    await until_waiting(shop.conn)
    assert not await shop.is_locked("slot", (await shop.slots())[0]["id"])
    await other.rollback()
    assert (await buyer).state is HoldState.HELD


@pytest.mark.parametrize("change", ["loss", "buffer", "import"])
async def test_what_lapsed_can_be_taken_away_or_buffered_unswept(shop, change):
    """Fails where `refuse_below_promised` looks at no lapsed: the pool reads 2 available and refuses to give up 2."""
    await shop.stock("tea", 2)
    hold = await shop.place(("tea", 2))
    await shop.lapse(hold)
    match change:
        case "loss":
            await shop.adjust(-2)
        case "buffer":
            await shop.stock("tea", 2, buffer=2)
        case _:
            await importing.put_many(shop.database, [PoolImport("tea", 2, 2), PoolImport("milk", 1)])
    assert (await shop.figures())["available"] == 0
    assert await shop.movements(hold) == [("placed", 2), ("expired", 2)]
