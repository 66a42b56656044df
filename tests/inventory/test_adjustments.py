"""Adjustments: what is on hand changes, with its reason, once for each key."""

import pytest

from reserve.errors import (
    BelowPromised,
    IdempotencyKeyReused,
    OnHandMismatch,
    PoolNotFound,
    ValidationFailed,
)
from reserve.idempotency import Replay
from reserve.inventory import adjustments
from tests.inventory.shop import key


async def test_on_hand_changes_and_the_movement_tells_why(shop):
    await shop.stock("tea", 5)
    done = await shop.adjust(3)
    assert (done.value.pool, done.value.delta, done.value.reason, done.value.on_hand) == ("tea", 3, "counted", 8)
    await shop.adjust(-8)
    assert await shop.figures() == {"on_hand": 0, "available": 0, "held": 0, "confirmed": 0}
    page = await adjustments.find(shop.database, "tea", after=None, limit=10)
    assert [(each.delta, each.on_hand) for each in page.items] == [(-8, 0), (3, 8), (5, 5)]
    assert page.items[1] == done.value
    assert (await shop.read()).version == 3


async def test_what_is_promised_stays_unless_a_shortage_is_allowed(shop):
    await shop.stock("tea", 9, buffer=1)
    hold = await shop.place(("tea", 3))
    await shop.confirm(hold)
    await shop.place(("tea", 2))
    with pytest.raises(BelowPromised) as refused:
        await shop.adjust(-4)
    assert (refused.value.on_hand, refused.value.available, refused.value.promised) == (9, 3, 6)
    await shop.adjust(-3)
    with pytest.raises(BelowPromised):
        await shop.adjust(-1)
    done = await shop.adjust(-6, allow_shortage=True)
    assert done.value.on_hand == 0
    assert await shop.figures() == {"on_hand": 0, "available": 0, "held": 2, "confirmed": 3}


async def test_expected_on_hand_makes_it_compare_and_set(shop):
    await shop.stock("tea", 5)
    with pytest.raises(OnHandMismatch) as refused:
        await shop.adjust(1, expected_on_hand=4)
    assert refused.value.on_hand == 5
    await shop.adjust(1, expected_on_hand=5)


@pytest.mark.parametrize("delta", [-6, 10**12 - 4])
async def test_on_hand_stays_within_its_bounds(shop, delta):
    await shop.stock("tea", 5)
    with pytest.raises(ValidationFailed) as refused:
        await shop.adjust(delta, allow_shortage=True)
    assert refused.value.faults[0].pointer == "/delta"


async def test_a_retry_is_replayed_and_another_request_told(shop):
    await shop.stock("tea", 5)
    done = await shop.adjust(-5, key=key("k"))
    assert await shop.adjust(-5, key=key("k")) == Replay(done.response)
    with pytest.raises(IdempotencyKeyReused):
        await shop.adjust(-5, key=key("k", "other body"))
    assert (await shop.read()).on_hand == 0


async def test_a_refusal_is_not_stored(shop):
    await shop.stock("tea", 5)
    with pytest.raises(OnHandMismatch):
        await shop.adjust(1, expected_on_hand=4, key=key("k"))
    await shop.adjust(1, expected_on_hand=5, key=key("k"))


async def test_an_unknown_pool_is_named(shop):
    with pytest.raises(PoolNotFound):
        await shop.adjust(1, "none")
    with pytest.raises(PoolNotFound):
        await adjustments.find(shop.database, "none", after=None, limit=1)


async def test_a_pool_grows_slots_and_keeps_them(open_shop):
    shop = await open_shop(slot_capacity_min=2)
    await shop.stock("tea", 2)
    await shop.place(("tea", 2))
    await shop.adjust(4)
    assert [(slot["number"], slot["capacity"], slot["held"]) for slot in await shop.slots()] == [
        (1, 4, 2),
        (2, 1, 0),
        (3, 1, 0),
    ]
    await shop.adjust(-4)
    assert [slot["capacity"] for slot in await shop.slots()] == [2, 0, 0]


async def test_pages_have_each_adjustment_once_newest_first(shop):
    await shop.stock("tea", 0)
    await shop.stock("milk", 7)
    for delta in range(1, 6):
        await shop.adjust(delta)
    seen, after, more = [], None, True
    while more:
        page = await adjustments.find(shop.database, "tea", after=after, limit=4)
        seen += [each.delta for each in page.items]
        after, more = page.items[-1].id, page.more
    assert seen == [5, 4, 3, 2, 1, 0]
