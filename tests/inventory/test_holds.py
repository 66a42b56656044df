"""Holds: what each verb answers when nobody else is about, and how holds are found."""

from datetime import timedelta
from uuid import UUID

import pytest

from reserve.errors import (
    HoldConfirmed,
    HoldLifetimeExceeded,
    HoldNotFound,
    HoldReleased,
    IdempotencyKeyReused,
    InsufficientStock,
    PoolDraining,
    PoolNotFound,
)
from reserve.idempotency import Replay
from reserve.inventory import holds
from reserve.inventory.rows import HoldFilter, HoldState, Line
from tests.inventory.shop import answer, key


async def found(shop, after=None, limit=100, **chosen):
    page = await holds.find(shop.database, HoldFilter(**chosen), after=after, limit=limit)
    return list(page.items)


async def test_a_hold_is_as_it_was_asked_for_and_reads_the_same(shop):
    await shop.stock("tea", 5)
    await shop.stock("milk", 5)
    hold = await shop.place(
        ("milk", 2), ("tea", 3), ttl_seconds=60, owner="شخص", reference="R 1", metadata={"a": [1, {"b": None}]}
    )
    assert hold.lines == (Line("milk", 2), Line("tea", 3))
    assert (hold.state, hold.version, hold.finalized_at) == (HoldState.HELD, 1, None)
    assert (hold.owner, hold.reference, hold.metadata) == ("شخص", "R 1", {"a": [1, {"b": None}]})
    assert hold.expires_at - hold.created_at == timedelta(seconds=60)
    assert hold.id.version == 7
    assert await shop.now(hold) == hold
    assert await shop.movements(hold) == [("placed", 3), ("placed", 2)]


@pytest.mark.parametrize(
    ("own", "asked", "ttl"),
    [({}, None, 900), ({"tea": 70}, None, 70), ({"tea": 70, "milk": 60}, None, 60), ({"tea": 70}, 80, 80)],
)
async def test_the_time_to_live_is_what_was_asked_else_the_shortest_of_its_pools_else_the_setting(
    shop, own, asked, ttl
):
    for pool in ("tea", "milk"):
        await shop.stock(pool, 5, hold_ttl_seconds=own.get(pool))
    hold = await shop.place(("tea", 1), ("milk", 1), ttl_seconds=asked)
    assert hold.expires_at - hold.created_at == timedelta(seconds=ttl)


async def test_no_hold_outlives_the_cap_whatever_its_pool_says(open_shop):
    shop = await open_shop(hold_lifetime_seconds_max=100, hold_ttl_seconds=50)
    await shop.stock("tea", 5, hold_ttl_seconds=1000)
    hold = await shop.place()
    assert hold.expires_at - hold.created_at == timedelta(seconds=100)


async def test_confirm_moves_held_to_confirmed_and_again_is_the_same_answer(shop):
    await shop.stock("tea", 5)
    hold = await shop.place(("tea", 2))
    done = await shop.confirm(hold)
    assert (done.value.state, done.value.version) == (HoldState.CONFIRMED, 2)
    assert hold.created_at <= done.value.finalized_at <= hold.expires_at
    assert await shop.confirm(hold) == done
    assert await shop.now(hold) == done.value
    assert await shop.figures() == {"on_hand": 5, "available": 3, "held": 0, "confirmed": 2}
    with pytest.raises(HoldConfirmed):
        await shop.release(hold)
    with pytest.raises(HoldConfirmed):
        await shop.extend(hold, 60)


async def test_release_gives_back_and_again_is_the_same_answer(shop):
    await shop.stock("tea", 5)
    hold = await shop.place(("tea", 2))
    done = await shop.release(hold)
    assert (done.value.state, done.value.version) == (HoldState.RELEASED, 2)
    assert await shop.release(hold) == done
    assert await shop.movements(hold) == [("placed", 2), ("released", 2)]
    with pytest.raises(HoldReleased):
        await shop.confirm(hold)
    with pytest.raises(HoldReleased):
        await shop.extend(hold, 60)


async def test_extend_moves_the_expiry_of_hold_and_lines_and_never_shortens(shop):
    await shop.stock("tea", 5)
    hold = await shop.place(("tea", 2))
    done = await shop.extend(hold, 3600)
    assert done.value.version == 2
    assert timedelta(seconds=3599) < done.value.expires_at - hold.created_at < timedelta(seconds=3660)
    assert (await shop.extend(hold, 60)).value == done.value
    assert await shop.fetch("select expires_at, state from {ns}.hold_line") == [(done.value.expires_at, "held")]
    assert await shop.movements(hold) == [("placed", 2)]
    with pytest.raises(HoldLifetimeExceeded):
        await shop.extend(hold, 86_401)


@pytest.mark.parametrize("verb", ["confirm", "release", "extend"])
async def test_a_retry_is_replayed_byte_for_byte_whatever_has_become_of_the_hold(shop, verb):
    await shop.stock()
    hold = await shop.place()
    act = {
        "confirm": lambda its_key: shop.confirm(hold, its_key),
        "release": lambda its_key: shop.release(hold, its_key),
        "extend": lambda its_key: shop.extend(hold, 3600, its_key),
    }[verb]
    done = await act(key("k"))
    if verb == "extend":
        await shop.release(hold)
    assert await act(key("k")) == Replay(done.response)
    with pytest.raises(IdempotencyKeyReused):
        await act(key("k", "other body"))


async def test_a_refusal_is_judged_anew_on_retry(shop):
    with pytest.raises(PoolNotFound):
        await shop.place(key=key("k"))
    await shop.stock("tea", 0)
    with pytest.raises(InsufficientStock):
        await shop.place(key=key("k"))
    await shop.adjust(1)
    assert (await shop.place(key=key("k"))).state is HoldState.HELD


async def test_a_key_past_its_retention_places_again(shop):
    await shop.stock("tea", 2)
    first = await shop.place(key=key("k"))
    await shop.fetch(
        "update {ns}.idempotency_key set created_at = created_at - interval '2 days', "
        "expires_at = expires_at - interval '2 days' returning key"
    )
    second = await shop.place(key=key("k", "other body"))
    assert second.id != first.id
    assert await shop.fetch("select count(*) from {ns}.idempotency_key") == [(1,)]


async def test_a_draining_pool_takes_no_holds_and_lets_the_old_ones_run_out(shop):
    await shop.stock("tea", 2)
    hold = await shop.place()
    await shop.fetch("update {ns}.pool set state = 'draining' returning id")
    await shop.fetch("update {ns}.slot set open = false returning id")
    with pytest.raises(PoolDraining) as refused:
        await shop.place()
    assert refused.value.pools == ("tea",)
    await shop.adjust(600)
    with pytest.raises(PoolDraining):
        await shop.place()
    await shop.confirm(hold)


@pytest.mark.parametrize("verb", ["get", "confirm", "release", "extend"])
async def test_an_unknown_hold_is_not_found(shop, verb):
    unknown = UUID(int=7)
    call = {
        "get": lambda: holds.get(shop.database, unknown),
        "confirm": lambda: holds.confirm(shop.database, unknown, key("k"), answer),
        "release": lambda: holds.release(shop.database, unknown, None, answer),
        "extend": lambda: holds.extend(shop.database, unknown, 60, None, answer),
    }[verb]
    with pytest.raises(HoldNotFound, match=str(unknown)):
        await call()


async def test_holds_are_found_newest_first_by_owner_reference_pool_and_state(shop):
    for pool in ("tea", "milk"):
        await shop.stock(pool, 9)
    one = await shop.place(("tea", 1), owner="ann", reference="r")
    two = await shop.place(("tea", 1), ("milk", 1), owner="bob", reference="r")
    three = await shop.place(("milk", 1), owner="ann")
    await shop.confirm(two)
    await shop.lapse(three)
    one, two, three = [await shop.now(hold) for hold in (one, two, three)]
    assert await found(shop) == [three, two, one]
    assert await found(shop, owner="ann") == [three, one]
    assert await found(shop, reference="r") == [two, one]
    assert await found(shop, owner="ann", reference="r") == [one]
    assert await found(shop, pool="milk") == [three, two]
    assert await found(shop, pool="none") == []
    assert await found(shop, state=HoldState.HELD) == [one]
    assert await found(shop, state=HoldState.CONFIRMED) == [two]
    for _ in range(2):
        assert await found(shop, state=HoldState.EXPIRED) == [three]
        await shop.sweep()


async def test_pages_have_each_hold_once(shop):
    await shop.stock("tea", 9)
    placed = [(await shop.place()).id for _ in range(5)]
    seen, after, more = [], None, True
    while more:
        page = await holds.find(shop.database, HoldFilter(), after=after, limit=2)
        seen += [hold.id for hold in page.items]
        after, more = seen[-1], page.more
    assert seen == placed[::-1]


async def test_the_sweep_takes_the_oldest_first_up_to_its_limit(shop):
    await shop.stock("tea", 9)
    placed = [await shop.place() for _ in range(5)]
    for hold in placed[:3]:
        await shop.lapse(hold)
    assert [await shop.sweep(2), await shop.sweep(2), await shop.sweep(2)] == [2, 1, 0]
    states = await shop.fetch("select state, count(*)::int from {ns}.hold group by state order by state")
    assert states == [("expired", 3), ("held", 2)]
    assert await shop.figures() == {"on_hand": 9, "available": 7, "held": 2, "confirmed": 0}
