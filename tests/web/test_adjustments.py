"""Adjusting what a pool has on hand over HTTP."""

import pytest

from tests.web.conftest import TIMESTAMP, Api, refused


async def test_an_adjustment_answers_201_with_the_whole_shape(api: Api):
    await api.put_pool(on_hand=5)
    answer = await api.adjust(delta=-2, reason=" broken ", expected_on_hand=5)
    adjustment = answer.json()
    assert (answer.status_code, list(adjustment)) == (
        201,
        ["id", "pool", "delta", "reason", "on_hand", "created_at"],
    )
    assert TIMESTAMP.fullmatch(adjustment.pop("created_at"))
    assert adjustment.pop("id") > 0
    assert adjustment == {"pool": "mug", "delta": -2, "reason": "broken", "on_hand": 3}
    assert (await api.get_pool())["on_hand"] == 3


async def test_an_adjustment_into_what_is_promised_is_refused_unless_allowed(api: Api):
    await api.put_pool(on_hand=5)
    await api.placed(quantity=4)
    problem = refused(await api.adjust(delta=-2, reason="lost"), 409, "below-promised")
    assert (problem["on_hand"], problem["available"], problem["promised"]) == (5, 1, 4)
    assert (await api.adjust(delta=-2, reason="lost", allow_shortage=True)).json()["on_hand"] == 3
    assert (await api.get_pool())["available"] == 0


async def test_a_wrong_expected_on_hand_is_refused_with_the_real_one(api: Api):
    await api.put_pool(on_hand=5)
    problem = refused(await api.adjust(delta=1, reason="count", expected_on_hand=4), 409, "on-hand-mismatch")
    assert problem["on_hand"] == 5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("delta", 0),
        ("delta", True),
        ("delta", 10**12 + 1),
        ("delta", -(10**12) - 1),
        ("delta", 2**63),
        ("reason", ""),
        ("reason", "x" * 201),
        ("reason", "a\u0007"),
        ("reason", None),
        ("expected_on_hand", -1),
        ("expected_on_hand", 1.0),
        ("allow_shortage", 1),
        ("allow_shortage", "true"),
        ("quantity", 1),
    ],
)
async def test_a_wrong_field_of_an_adjustment_is_named(api: Api, field: str, value: object):
    await api.put_pool(on_hand=5)
    problem = refused(await api.adjust(**({"delta": 1, "reason": "count"} | {field: value})), 422, "validation-failed")
    assert [fault["pointer"] for fault in problem["errors"]] == [f"/{field}"]


async def test_an_adjustment_beyond_every_quantity_is_refused(api: Api):
    await api.put_pool(on_hand=10**12)
    refused(await api.adjust(delta=1, reason="count"), 422, "validation-failed")
    refused(await api.adjust(delta=-(10**12) + 1, reason="count", expected_on_hand=5), 409, "on-hand-mismatch")


async def test_adjustments_are_listed_newest_first_a_page_at_a_time(api: Api):
    await api.put_pool("mug")
    await api.put_pool("pot")
    for delta in (1, 2, 3):
        await api.adjust("mug", delta=delta, reason="count")
        await api.adjust("pot", delta=7, reason="count")
    first = (await api.client.get("/v1/pools/mug/adjustments?limit=2")).json()
    rest = (await api.client.get(f"/v1/pools/mug/adjustments?limit=2&cursor={first['next_cursor']}")).json()
    assert [item["delta"] for item in first["items"]] == [3, 2]
    assert [item["delta"] for item in rest["items"]][:1] == [1]
    assert rest["next_cursor"] is None


async def test_taking_away_more_than_there_is_reaches_into_what_is_promised(client):
    await client.put("/v1/pools/a", json={"on_hand": 100})
    answer = await client.post(
        "/v1/pools/a/adjustments", json={"delta": -10_000, "reason": "lost"}, headers={"Idempotency-Key": "k"}
    )
    assert answer.status_code == 409
    assert answer.json()["code"] == "below-promised"
