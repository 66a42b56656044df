"""Placing, reading and settling holds over HTTP; how a hold behaves is tested where it lives, in the inventory."""

import asyncio
from uuid import UUID

import pytest

from tests.web.conftest import TIMESTAMP, Api, drain, lapse, refused

HOLD_FIELDS = [
    "id",
    "state",
    "lines",
    "owner",
    "reference",
    "metadata",
    "created_at",
    "expires_at",
    "finalized_at",
    "version",
]


async def test_a_new_hold_answers_201_with_the_whole_shape_its_address_and_its_version(api: Api):
    await api.put_pool("mug", on_hand=5)
    await api.put_pool("a%2Fb", on_hand=5)
    answer = await api.place(
        lines=[{"pool": "mug", "quantity": 2}, {"pool": " a/b ", "quantity": 1}, {"pool": "mug", "quantity": 1}],
        ttl_seconds=60,
        owner="zoë",
        reference="cart 1",
        mode="all_or_nothing",
        confirm=False,
        metadata={"n": 1.5, "deep": [{"x": None}]},
    )
    hold = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/holds/{hold['id']}"
    assert answer.headers["etag"] == '"1"'
    assert "idempotent-replayed" not in answer.headers
    assert list(hold) == HOLD_FIELDS
    assert UUID(hold.pop("id")).version == 7
    assert TIMESTAMP.fullmatch(hold.pop("created_at"))
    assert TIMESTAMP.fullmatch(hold.pop("expires_at"))
    assert hold == {
        "state": "held",
        "lines": [{"pool": "mug", "quantity": 3}, {"pool": "a/b", "quantity": 1}],
        "owner": "zoë",
        "reference": "cart 1",
        "metadata": {"n": 1.5, "deep": [{"x": None}]},
        "finalized_at": None,
        "version": 1,
    }


async def test_the_address_of_a_new_hold_leads_to_it(api: Api):
    await api.put_pool(on_hand=5)
    placed = await api.place()
    read = await api.client.get(placed.headers["location"])
    assert (read.status_code, read.json(), read.headers["etag"]) == (200, placed.json(), placed.headers["etag"])
    assert (await api.client.get(placed.headers["location"].upper().replace("/V1/HOLDS", "/v1/holds"))).is_success


async def test_what_may_be_null_is_as_good_as_absent(api: Api):
    await api.put_pool(on_hand=5)
    hold = await api.placed(owner=None, reference=None, ttl_seconds=None)
    assert (hold["owner"], hold["reference"], hold["metadata"]) == (None, None, {})


@pytest.mark.parametrize(
    ("verb", "body", "state", "final"),
    [
        ("confirm", {}, "confirmed", True),
        ("release", {}, "released", True),
        ("extend", {"ttl_seconds": 9}, "held", False),
    ],
)
async def test_each_verb_answers_200_with_the_hold_and_its_version(api: Api, verb, body, state, final):
    await api.put_pool(on_hand=5)
    placed = await api.placed()
    answer = await api.verb(placed, verb, **body)
    hold = answer.json()
    assert (answer.status_code, list(hold), hold["state"]) == (200, HOLD_FIELDS, state)
    assert answer.headers["etag"] == f'"{hold["version"]}"'
    assert (hold["finalized_at"] is not None) is final
    assert (await api.client.get(f"/v1/holds/{placed['id']}")).json() == hold


@pytest.mark.parametrize("verb", ["confirm", "release"])
@pytest.mark.parametrize("content", [b"", b"{}", b" {} "])
async def test_confirm_and_release_need_no_body(api: Api, verb: str, content: bytes):
    await api.put_pool(on_hand=5)
    hold = await api.placed()
    answer = await api.post_raw(content, path=f"/v1/holds/{hold['id']}/{verb}")
    assert answer.status_code == 200
    # As `curl -d ''` sends it.
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    again = await api.client.post(f"/v1/holds/{hold['id']}/{verb}", content=b"", headers=form)
    assert again.json() == answer.json()


@pytest.mark.parametrize("field", [{"lines": []}, {"to": "stock"}, {"ttl_seconds": 5}])
async def test_confirm_and_release_refuse_fields_they_do_not_know(api: Api, field: dict):
    await api.put_pool(on_hand=5)
    hold = await api.placed()
    for verb in ("confirm", "release"):
        problem = refused(await api.verb(hold, verb, **field), 422, "validation-failed")
        assert problem["errors"] == [{"pointer": f"/{next(iter(field))}", "detail": "is not a known field"}]
    assert (await api.client.get(f"/v1/holds/{hold['id']}")).json()["state"] == "held"


@pytest.mark.parametrize("ttl", [0, -1, 86_401, 2**63, 1.0, "60", True, None])
async def test_a_bad_time_to_live_is_refused_with_its_bound(api: Api, ttl: object):
    await api.put_pool(on_hand=5)
    hold = await api.placed()
    answers = [await api.verb(hold, "extend", ttl_seconds=ttl)]
    if ttl is not None:
        answers.append(await api.place(ttl_seconds=ttl))
    for answer in answers:
        (fault,) = refused(answer, 422, "validation-failed")["errors"]
        assert fault == {"pointer": "/ttl_seconds", "detail": "must be a whole number from 1 to 86400"}


async def test_a_hold_that_would_outlive_the_cap_is_refused(api: Api, database):
    await api.put_pool(on_hand=5)
    hold = await api.placed(ttl_seconds=60)

    async def age(conn) -> None:
        await conn.execute(f"update {database.namespace}.hold set created_at = created_at - interval '1 hour'")

    await database.transact(age)
    refused(await api.verb(hold, "extend", ttl_seconds=86_400), 409, "hold-lifetime-exceeded")


async def test_a_lapsed_hold_reads_expired_and_its_stock_available_without_a_sweep(api: Api, database):
    await api.put_pool(on_hand=5)
    hold = await api.placed(quantity=5)
    await lapse(database, hold)
    read = (await api.client.get(f"/v1/holds/{hold['id']}")).json()
    assert (read["state"], read["finalized_at"]) == ("expired", read["expires_at"])
    assert [item["id"] for item in (await api.client.get("/v1/holds?state=expired")).json()["items"]] == [hold["id"]]
    assert (await api.client.get("/v1/holds?state=held")).json()["items"] == []
    assert (await api.get_pool())["available"] == 5
    assert (await api.place(quantity=5)).status_code == 201


async def test_each_verb_on_a_hold_in_another_final_state_says_which(api: Api, database):
    await api.put_pool(on_hand=9)
    confirmed, released, lapsed = [await api.placed() for _ in range(3)]
    await api.verb(confirmed, "confirm")
    await api.verb(released, "release")
    await lapse(database, lapsed)
    refused(await api.verb(confirmed, "release"), 409, "hold-confirmed")
    refused(await api.verb(confirmed, "extend", ttl_seconds=9), 409, "hold-confirmed")
    refused(await api.verb(released, "confirm"), 409, "hold-released")
    refused(await api.verb(released, "extend", ttl_seconds=9), 409, "hold-released")
    refused(await api.verb(lapsed, "confirm"), 409, "hold-expired")
    refused(await api.verb(lapsed, "extend", ttl_seconds=9), 409, "hold-expired")
    assert (await api.verb(lapsed, "release")).json()["state"] == "expired"
    assert (await api.verb(confirmed, "confirm")).json()["state"] == "confirmed"
    assert (await api.verb(released, "release")).json()["state"] == "released"


@pytest.mark.parametrize(
    "hold_id", ["x", "01997a3e-5a1c-7c42-9d0e-3b8f6f2f7a10", "01997a3e5a1c7c429d0e3b8f6f2f7a10", "%00"]
)
async def test_an_unknown_hold_is_not_found_whatever_its_id_looks_like(api: Api, hold_id: str):
    refused(await api.client.get(f"/v1/holds/{hold_id}"), 404, "hold-not-found")
    for verb, body in (("confirm", {}), ("release", {}), ("extend", {"ttl_seconds": 5})):
        refused(await api.post(f"/v1/holds/{hold_id}/{verb}", json=body), 404, "hold-not-found")


async def test_all_unknown_pools_of_a_cart_are_named(api: Api):
    await api.put_pool(on_hand=1)
    lines = [{"pool": pool, "quantity": 5} for pool in ("z", "mug", "a", "z")]
    assert refused(await api.place(lines=lines), 404, "pool-not-found")["pools"] == ["z", "a"]


async def test_all_shortfalls_of_a_cart_are_named_in_line_order_and_nothing_is_held(api: Api):
    for key, on_hand in (("z", 1), ("mug", 9), ("a", 2)):
        await api.put_pool(key, on_hand=on_hand)
    lines = [{"pool": pool, "quantity": 2} for pool in ("z", "mug", "a", "a")]
    problem = refused(await api.place(lines=lines), 409, "insufficient-stock")
    assert problem["shortfalls"] == [
        {"pool": "z", "requested": 2, "available": 1},
        {"pool": "a", "requested": 4, "available": 2},
    ]
    assert (await api.get_pool("mug"))["available"] == 9


async def test_a_draining_pool_is_named(api: Api, database):
    await api.put_pool(on_hand=5)
    await drain(database, "mug")
    assert refused(await api.place(quantity=99), 409, "pool-draining")["pools"] == ["mug"]


async def test_stock_that_stays_locked_is_contended_and_says_when_to_try_again(api: Api, database, conn):
    await api.put_pool(on_hand=5)
    async with conn.transaction():
        await conn.execute(f"select 1 from {database.namespace}.slot for update")
        answer = await api.place()
    assert refused(answer, 409, "contended")
    assert answer.headers["retry-after"] == "1"
    assert (await api.place()).status_code == 201


async def test_a_client_that_gives_up_while_it_waits_leaves_nothing_behind(api: Api, database, conn):
    await api.put_pool(on_hand=5)
    async with conn.transaction():
        await conn.execute(f"select 1 from {database.namespace}.slot for update")
        waiting = asyncio.create_task(api.place(key="k"))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        waiting.cancel()
        await asyncio.wait([waiting])
    assert (await api.get_pool())["held"] == 0
    assert (await api.client.get("/v1/holds")).json()["items"] == []
    assert "idempotent-replayed" not in (await api.place(key="k")).headers


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [2, 1, 0]),
        ("?owner=ann", [2, 0]),
        ("?owner=%20ann%20&state=held", [2]),
        ("?reference=r1", [1]),
        ("?pool=pot", [2, 1]),
        ("?pool=none", []),
        ("?state=confirmed", [0]),
        ("?state=fulfilled", []),
        ("?owner=ann&reference=r1", []),
    ],
)
async def test_holds_are_found_newest_first_by_what_is_asked(api: Api, query: str, expected: list[int]):
    await api.put_pool("mug", on_hand=9)
    await api.put_pool("pot", on_hand=9)
    holds = [
        await api.placed(pool="mug", owner="ann", reference="r0"),
        await api.placed(pool="pot", owner="bob", reference="r1"),
        await api.placed(pool="pot", owner="ann"),
    ]
    await api.verb(holds[0], "confirm")
    found = (await api.client.get(f"/v1/holds{query}")).json()
    assert [item["id"] for item in found["items"]] == [holds[number]["id"] for number in expected]
    assert found["next_cursor"] is None


async def test_holds_are_listed_a_page_at_a_time_without_gap_or_repeat(api: Api):
    await api.put_pool("mug", on_hand=9)
    placed = [(await api.placed())["id"] for _ in range(5)]
    seen, cursor, pages = [], "", 0
    while cursor is not None:
        page = (await api.client.get("/v1/holds", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [hold["id"] for hold in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
        if pages == 1:
            await api.placed()
    assert (seen, pages) == (placed[::-1], 3)
