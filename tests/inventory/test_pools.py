"""Pools: put, get, find."""

import pytest

from reserve.errors import BelowPromised, PoolKindFixed, PoolNotFound, ValidationFailed, VersionMismatch
from reserve.inventory import pools
from reserve.inventory.pools import PoolCursor
from reserve.inventory.rows import PoolChange, PoolFilter, PoolKind, PoolState


async def put(shop, key="tea", if_match=None, **change):
    return await pools.put(shop.database, key, PoolChange(**change), if_match=if_match)


async def find(shop, after=None, limit=100, **chosen):
    page = await pools.find(shop.database, PoolFilter(**chosen), after=after, limit=limit)
    return [pool.key for pool in page.items], page.more


async def test_a_new_pool_has_what_was_said_and_the_defaults(shop):
    pool, created = await put(shop, on_hand=7, buffer=2, hold_ttl_seconds=60, metadata={"note": "شاي"})
    assert created
    assert (pool.on_hand, pool.buffer, pool.available, pool.held, pool.confirmed) == (7, 2, 5, 0, 0)
    assert (pool.kind, pool.state, pool.version) == (PoolKind.STOCK, PoolState.OPEN, 1)
    assert (pool.hold_ttl_seconds, pool.metadata) == (60, {"note": "شاي"})
    empty, created = await put(shop, "empty")
    assert created
    assert empty.on_hand == empty.available == 0


async def test_what_is_absent_keeps_its_value_and_what_is_null_is_unset(shop):
    await put(shop, on_hand=7, buffer=2, hold_ttl_seconds=60, metadata={"a": 1})
    pool, created = await put(shop, metadata={})
    assert not created
    assert (pool.on_hand, pool.buffer, pool.hold_ttl_seconds, pool.metadata) == (7, 2, 60, {})
    pool, _ = await put(shop, hold_ttl_seconds=None)
    assert (pool.buffer, pool.hold_ttl_seconds) == (2, None)


async def test_only_a_change_raises_the_version(shop):
    first, _ = await put(shop, on_hand=7, buffer=1, hold_ttl_seconds=60, metadata={"a": [1]})
    same, _ = await put(shop, on_hand=7, buffer=1, hold_ttl_seconds=60, metadata={"a": [1]}, kind=PoolKind.STOCK)
    assert same.version == first.version == 1
    for version, change in enumerate(({"buffer": 2}, {"hold_ttl_seconds": 61}, {"metadata": {}}), start=2):
        assert (await put(shop, **change))[0].version == version


async def test_another_on_hand_or_kind_is_refused_and_nothing_changed(shop):
    before, _ = await put(shop, on_hand=7)
    with pytest.raises(ValidationFailed) as refused:
        await put(shop, on_hand=8, buffer=1)
    assert [fault.pointer for fault in refused.value.faults] == ["/on_hand"]
    assert "adjustments" in refused.value.faults[0].detail
    with pytest.raises(PoolKindFixed):
        await put(shop, kind=PoolKind.QUOTA, buffer=1)
    assert (await shop.read()).version == before.version


async def test_a_buffer_goes_up_to_what_is_free_and_not_further(shop):
    await put(shop, on_hand=7)
    hold = await shop.place(("tea", 3))
    await shop.confirm(hold)
    await shop.place(("tea", 1))
    with pytest.raises(BelowPromised) as refused:
        await put(shop, buffer=4)
    assert (refused.value.on_hand, refused.value.available, refused.value.promised) == (7, 3, 4)
    pool, _ = await put(shop, buffer=3)
    assert pool.available == 0
    pool, _ = await put(shop, buffer=1)
    assert pool.available == 2
    with pytest.raises(BelowPromised):
        await put(shop, "milk", on_hand=1, buffer=2)
    with pytest.raises(PoolNotFound):
        await shop.read("milk")


async def test_a_buffer_of_a_short_pool_can_be_given_up_but_not_raised(shop):
    await put(shop, on_hand=7, buffer=2)
    await shop.place(("tea", 5))
    await shop.adjust(-3, allow_shortage=True)
    with pytest.raises(BelowPromised):
        await put(shop, buffer=3)
    pool, _ = await put(shop, buffer=1)
    assert (pool.available, pool.buffer) == (0, 1)
    assert [slot["shortage"] for slot in await shop.slots()] == [2]


async def test_if_match_is_compared_with_the_version(shop):
    with pytest.raises(VersionMismatch):
        await put(shop, on_hand=1, if_match=1)
    await put(shop, on_hand=1)
    with pytest.raises(VersionMismatch):
        await put(shop, buffer=1, if_match=2)
    pool, _ = await put(shop, buffer=1, if_match=1)
    assert pool.version == 2


@pytest.mark.parametrize(("on_hand", "capacities"), [(3, [3]), (9, [5, 4]), (10**6, [62_500] * 16)])
async def test_a_pool_has_as_many_slots_as_its_size_asks_for(open_shop, on_hand, capacities):
    shop = await open_shop(slot_capacity_min=4)
    await put(shop, on_hand=on_hand)
    assert [slot["capacity"] for slot in await shop.slots()] == capacities


async def test_an_unknown_pool_is_named(shop):
    with pytest.raises(PoolNotFound) as refused:
        await shop.read("no such")
    assert refused.value.pools == ("no such",)


async def test_pools_are_found_by_key_prefix_kind_and_state_in_the_order_of_keys(shop):
    for key in ("b", "a/2", "a/1", "A", "é", "a%", "a_"):
        await put(shop, key)
    assert await find(shop) == (["A", "a%", "a/1", "a/2", "a_", "b", "é"], False)
    assert await find(shop, prefix="a/") == (["a/1", "a/2"], False)
    assert await find(shop, prefix="a%") == (["a%"], False)
    assert await find(shop, keys=["b", "A", "none"]) == (["A", "b"], False)
    assert await find(shop, keys=["b", "A"], prefix="A") == (["A"], False)
    assert await find(shop, kind=PoolKind.UNITS) == ([], False)
    assert await find(shop, state=PoolState.DRAINING) == ([], False)


async def test_pages_have_each_pool_once(shop):
    keys = [f"pool {number}" for number in range(5)]
    for key in keys:
        await put(shop, key)
    seen, after, more = [], None, True
    while more:
        page = await pools.find(shop.database, PoolFilter(), after=after, limit=2)
        seen += [pool.key for pool in page.items]
        after, more = PoolCursor(page.items[-1].key, page.items[-1].id), page.more
    assert seen == keys
