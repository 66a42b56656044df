"""Many requests in one call: each is answered for itself, in order, and one bad one never spoils the others."""

import asyncio

import pytest

from reserve.errors import (
    Contended,
    HoldNotFound,
    HoldReleased,
    IdempotencyKeyReused,
    InsufficientStock,
    InvalidRequest,
    PoolDraining,
    PoolNotFound,
    Unavailable,
)
from reserve.idempotency import Done, Replay
from reserve.inventory import holds
from reserve.inventory.holds import Change, PlaceRequest, Verb
from reserve.inventory.rows import HoldState
from tests.inventory.shop import answer, key, wish
from tests.steps import until_waiting

BAD = {
    "zero byte in metadata": {"metadata": {"note": "a\0b"}},
    "lone surrogate in metadata": {"metadata": {"note": "\ud800"}},
    "not a number in metadata": {"metadata": {"note": float("nan")}},
    "lone surrogate in owner": {"owner": "\udfff"},
    "zero byte in reference": {"reference": "a\0b"},
}


async def place_many(shop, *requests):
    return await holds.place_many(shop.database, requests, answer)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("patient", [False, True], ids=["fast path", "patient path"])
async def test_what_postgresql_cannot_store_spoils_no_other_request(wide_shop, bad, patient):
    """Fails where a batch that PostgreSQL refuses is not run again request by request, on either path."""
    await wide_shop.stock("tea", 3)
    await wide_shop.stock("milk", 1)
    pools = ("tea", "tea", "tea") if patient else ("tea", "milk", "tea")
    wishes = [wish((pool, 1)) for pool in pools]
    wishes[1] = wish((pools[1], 1), **bad)
    good, refused, also_good = await place_many(
        wide_shop, *(PlaceRequest(each, key(str(i))) for i, each in enumerate(wishes))
    )
    assert isinstance(refused, InvalidRequest)
    assert {type(good), type(also_good)} == {Done}
    assert (await wide_shop.read("tea")).held == 2


async def test_a_pool_key_or_quantity_that_postgresql_cannot_store_spoils_no_other_request(shop):
    await shop.stock("tea", 3)
    answers = await place_many(
        shop,
        PlaceRequest(wish(("tea", 1))),
        PlaceRequest(wish(("t\0a", 1))),
        PlaceRequest(wish(("\ud800", 1))),
        PlaceRequest(wish(("tea", 2**63))),
        PlaceRequest(wish(("tea", 1)), key("a\0b")),
        PlaceRequest(wish(("tea", 2))),
    )
    assert [type(each) for each in answers] == [
        Done,
        InvalidRequest,
        InvalidRequest,
        InvalidRequest,
        InvalidRequest,
        Done,
    ]


async def test_each_request_of_a_list_has_its_own_answer_in_order(shop):
    await shop.stock("tea", 4)
    await shop.stock("shut", 4)
    await shop.fetch("update {ns}.pool set state = 'draining' where key = 'shut' returning 1")
    await shop.fetch(
        "update {ns}.slot set open = false where pool_id = (select id from {ns}.pool where key = 'shut') returning 1"
    )
    stored = await shop.asked(("tea", 1), key=key("stored"))
    answers = await place_many(
        shop,
        PlaceRequest(wish(("tea", 1)), key("stored")),
        PlaceRequest(wish(("tea", 1)), key("stored", "other body")),
        PlaceRequest(wish(("tea", 2), ("none", 1), ("nor this", 1))),
        PlaceRequest(wish(("shut", 1), ("tea", 1))),
        PlaceRequest(wish(("tea", 2)), key("fresh")),
        PlaceRequest(wish(("tea", 2))),
        PlaceRequest(wish(("tea", 1))),
        PlaceRequest(wish(("tea", 2)), key("fresh")),
    )
    replay, reused, unknown, draining, placed, short, last, repeat = answers
    assert replay == Replay(stored.response)
    assert isinstance(reused, IdempotencyKeyReused)
    assert isinstance(unknown, PoolNotFound)
    assert unknown.pools == ("none", "nor this")
    assert isinstance(draining, PoolDraining)
    assert draining.pools == ("shut",)
    assert isinstance(placed, Done)
    assert isinstance(short, InsufficientStock)
    assert short.shortfalls[0].available == 1
    assert isinstance(last, Done)
    assert repeat == Replay(placed.response)
    assert await shop.figures() == {"on_hand": 4, "available": 0, "held": 4, "confirmed": 0}


async def test_a_batch_that_went_away_is_not_run_again_request_by_request(shop, monkeypatch):
    """Fails where every error makes `answer_batch` try singly: what may have been committed is then placed twice."""
    await shop.stock("tea", 4)
    original = shop.database.transact

    async def commit_and_go_away(work):
        await original(work)
        raise Unavailable("The database does not answer; try again.")

    monkeypatch.setattr(shop.database, "transact", commit_and_go_away)
    answers = await place_many(shop, PlaceRequest(wish(("tea", 1))), PlaceRequest(wish(("tea", 1))))
    assert [type(each) for each in answers] == [Unavailable, Unavailable]
    monkeypatch.undo()
    assert (await shop.read()).held == 2


async def test_a_batch_that_met_another_writer_of_one_of_its_keys_is_placed_beside_it(shop):
    await shop.stock("tea", 9)
    other = await shop.hold_key(key("b"))
    batch = asyncio.create_task(place_many(shop, *(PlaceRequest(wish(("tea", 1)), key(name)) for name in "abc")))
    await until_waiting(shop.conn)
    await other.commit()
    first, replayed, third = await batch
    assert {type(first), type(third)} == {Done}
    assert replayed.response.body == b"by another"
    assert (await shop.read()).held == 2


async def test_of_a_thousand_requests_for_one_pool_as_many_are_placed_as_there_is_stock(shop):
    await shop.stock("tea", 600)
    answers = await place_many(shop, *(PlaceRequest(wish(("tea", 1)), key(str(number))) for number in range(1000)))
    assert [isinstance(each, Done) for each in answers] == [True] * 600 + [False] * 400
    assert len({each.value.id for each in answers[:600]}) == 600
    assert await shop.figures() == {"on_hand": 600, "available": 0, "held": 600, "confirmed": 0}


async def test_a_batch_larger_than_every_slot_but_not_than_their_sum_is_placed(wide_shop):
    await wide_shop.stock("tea", 160)
    assert len(await wide_shop.slots()) == 16
    hold = await wide_shop.place(("tea", 151))
    assert hold.lines[0].quantity == 151
    assert await wide_shop.movements(hold) == [("placed", 151)]
    rows = await wide_shop.fetch("select number, sum(quantity)::int, count(*) from {ns}.hold_line group by number")
    assert rows == [(1, 151, 16)]
    await wide_shop.release(hold)
    assert await wide_shop.movements(hold) == [("placed", 151), ("released", 151)]
    answers = await place_many(wide_shop, *(PlaceRequest(wish(("tea", 20))) for _ in range(9)))
    assert [type(each) for each in answers] == [Done] * 8 + [InsufficientStock]


async def test_changes_of_many_holds_have_their_own_answers_in_order(shop):
    await shop.stock("tea", 9)
    first, second, third, lapsed = [await shop.place() for _ in range(4)]
    await shop.release(third)
    await shop.lapse(lapsed)
    changes = [
        Change(first.id, Verb.CONFIRM, key("a")),
        Change(second.id, Verb.EXTEND, ttl_seconds=2000),
        Change(third.id, Verb.CONFIRM),
        Change(lapsed.id, Verb.RELEASE, key("b")),
        Change(first.id, Verb.CONFIRM, key("a")),
        Change(second.id, Verb.RELEASE, key("a\0")),
        Change(type(first.id)(int=1), Verb.RELEASE),
        Change(second.id, Verb.RELEASE),
    ]
    confirmed, extended, gone, expired, again, bad, unknown, released = await holds.change_many(
        shop.database, changes, answer
    )
    assert confirmed.value.state is HoldState.CONFIRMED
    assert extended.value.expires_at > second.expires_at
    assert isinstance(gone, HoldReleased)
    assert expired.value.state is HoldState.EXPIRED
    assert again == Replay(confirmed.response)
    assert isinstance(bad, InvalidRequest)
    assert isinstance(unknown, HoldNotFound)
    assert released.value.state is HoldState.RELEASED
    assert released.value.version == 3
    assert await shop.figures() == {"on_hand": 9, "available": 8, "held": 0, "confirmed": 1}


async def test_a_pool_that_stays_locked_spoils_no_request_for_another(open_shop):
    shop = await open_shop(slot_capacity_min=1, lock_wait_seconds=0.5)
    await shop.stock("tea", 2)
    await shop.stock("milk", 2)
    await shop.lock_slots((await shop.slots("tea"))[0]["id"])
    stuck, placed = await place_many(shop, PlaceRequest(wish(("tea", 2))), PlaceRequest(wish(("milk", 2))))
    assert isinstance(stuck, Contended)
    assert isinstance(placed, Done)
