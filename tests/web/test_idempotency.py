"""Idempotency keys over HTTP: what is replayed, byte for byte, and what is judged anew."""

import asyncio

import httpx2
import pytest

from reserve.web.app import create_app
from tests.web.conftest import Api, refused

KEPT = ("content-type", "content-length", "location", "etag")


def assert_replays(again: httpx2.Response, first: httpx2.Response) -> None:
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert [again.headers.get(name) for name in KEPT] == [first.headers.get(name) for name in KEPT]
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers


@pytest.mark.parametrize("call", ["place", "adjust", "confirm", "release", "extend"])
async def test_the_same_key_and_request_replays_the_first_answer_byte_for_byte(api: Api, call: str):
    await api.put_pool(on_hand=5)
    hold = await api.placed()

    async def ask() -> httpx2.Response:
        match call:
            case "place":
                return await api.place(key="k", metadata={"é": [1, 2.5]})
            case "adjust":
                return await api.adjust(key="k", delta=2, reason="count")
            case "extend":
                return await api.verb(hold, "extend", key="k", ttl_seconds=1000)
        return await api.verb(hold, call, key="k")

    first = await ask()
    assert first.is_success
    after_first = await api.get_pool()
    assert_replays(await ask(), first)
    assert (await api.get_pool()) | {"as_of": ""} == after_first | {"as_of": ""}


async def test_the_answer_is_replayed_as_it_was_though_the_hold_has_moved_on(api: Api):
    await api.put_pool(on_hand=5)
    first = await api.place(key="k")
    await api.verb(first.json(), "confirm")
    again = await api.place(key="k")
    assert_replays(again, first)
    assert again.json()["state"] == "held"


async def test_spacing_and_the_order_of_names_make_no_other_request(api: Api):
    await api.put_pool(on_hand=5)
    first = await api.post_raw(b'{"lines":[{"pool":"mug","quantity":1}],"owner":"a"}', Idempotency_Key="k")
    again = await api.post_raw(
        b' { "owner" : "\\u0061",\n"lines": [ {"quantity": 1, "pool": "mug"} ] } ', Idempotency_Key="k"
    )
    assert first.status_code == 201
    assert_replays(again, first)


async def test_no_body_and_an_empty_object_are_the_same_request(api: Api):
    await api.put_pool(on_hand=5)
    path = f"/v1/holds/{(await api.placed())['id']}/confirm"
    first = await api.post_raw(b"", path=path, Idempotency_Key="k")
    assert_replays(await api.post_raw(b"{}", path=path, Idempotency_Key="k"), first)


@pytest.mark.parametrize("other", [{"quantity": 2}, {"owner": "a"}, {"metadata": {"a": 1.0}}, {"ttl_seconds": 899}])
async def test_the_same_key_with_another_body_is_refused(api: Api, other: dict):
    await api.put_pool(on_hand=5)
    await api.placed(key="k", metadata={"a": 1})
    refused(await api.place(key="k", **({"metadata": {"a": 1}} | other)), 422, "idempotency-key-reused")
    assert (await api.get_pool())["held"] == 1


async def test_the_same_key_and_body_on_another_path_is_refused(api: Api):
    await api.put_pool(on_hand=5)
    one, two = await api.placed(), await api.placed()
    assert (await api.verb(one, "confirm", key="k")).is_success
    refused(await api.verb(two, "confirm", key="k"), 422, "idempotency-key-reused")
    refused(await api.verb(one, "release", key="k"), 422, "idempotency-key-reused")
    refused(await api.place(key="k"), 422, "idempotency-key-reused")
    refused(await api.adjust(key="k", delta=1, reason="count"), 422, "idempotency-key-reused")


async def test_another_spelling_of_the_path_is_the_same_request(api: Api):
    await api.put_pool("a%2Fb", on_hand=5)
    first = await api.adjust("a%2Fb", key="k", delta=1, reason="count")
    assert_replays(await api.adjust("%61%2fb", key="k", delta=1, reason="count"), first)


async def test_a_bare_key_and_its_quoted_string_are_the_same_key(api: Api):
    await api.put_pool(on_hand=5)
    first = await api.place(key='a "b" \\ c')
    assert_replays(await api.place(key='"a \\"b\\" \\\\ c"'), first)


async def test_a_refusal_is_not_stored_but_judged_anew(api: Api):
    await api.put_pool(on_hand=1)
    refused(await api.place(key="k", quantity=2), 409, "insufficient-stock")
    await api.adjust(delta=1, reason="count")
    answer = await api.place(key="k", quantity=2)
    assert answer.status_code == 201
    assert "idempotent-replayed" not in answer.headers


async def test_two_at_once_with_one_key_place_one_hold(api: Api):
    await api.put_pool(on_hand=5)
    answers = await asyncio.gather(*(api.place(key="k") for _ in range(6)))
    assert {(answer.status_code, answer.content) for answer in answers} == {(201, answers[0].content)}
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert (await api.get_pool())["held"] == 1


async def test_a_stored_answer_comes_before_everything_that_is_judged_in_the_database(api: Api):
    await api.put_pool(on_hand=1)
    first = await api.place(key="k")
    assert_replays(await api.place(key="k"), first)
    refused(await api.place(key="k", pool="none"), 422, "idempotency-key-reused")
    refused(await api.place(key="k", quantity=99), 422, "idempotency-key-reused")


@pytest.mark.parametrize("path", ["/v1/holds", "/v1/pools/mug/adjustments", "/v1/lanes/mail/jobs"])
async def test_placing_adjusting_and_enqueuing_need_a_key(api: Api, path: str):
    refused(await api.post(path, json={}), 400, "idempotency-key-missing")


@pytest.mark.parametrize("key", ["", '""', '"a', '"a"b', '"a\\b"', "x" * 256, f'"{"x" * 256}"', "é", "a\tb"])
@pytest.mark.parametrize("path", ["/v1/holds", "/v1/holds/none/confirm", "/v1/lanes/mail/claims", "/v1/jobs/1/cancel"])
async def test_a_malformed_key_is_a_bad_request_wherever_it_is_taken(api: Api, path: str, key: str):
    answer = await api.client.post(path, json={}, headers=[(b"Idempotency-Key", key.encode())])
    assert "Idempotency-Key" in refused(answer, 400, "invalid-request")["detail"]


@pytest.mark.parametrize("key", ["x" * 255, f'"{"x" * 255}"', "a b", "!~"])
async def test_a_key_may_have_255_printable_characters(api: Api, key: str):
    await api.put_pool(on_hand=5)
    assert (await api.place(key=key)).status_code == 201


async def test_two_keys_on_one_request_are_a_bad_request(api: Api):
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = await api.client.post("/v1/holds", json={}, headers=headers)
    assert "more than once" in refused(answer, 400, "invalid-request")["detail"]


async def test_a_setting_makes_the_key_optional(database, monkeypatch):
    monkeypatch.setattr(database, "settings", database.settings.model_copy(update={"idempotency_key_required": False}))
    transport = httpx2.ASGITransport(create_app(database))
    async with httpx2.AsyncClient(transport=transport, base_url="http://reserve.test") as client:
        await client.put("/v1/pools/mug", json={"on_hand": 5})
        lines = [{"pool": "mug", "quantity": 1}]
        answers = [await client.post("/v1/holds", json={"lines": lines}) for _ in range(2)]
        adjusted = await client.post("/v1/pools/mug/adjustments", json={"delta": 1, "reason": "count"})
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["id"] != answers[1].json()["id"]
    assert adjusted.status_code == 201


async def test_put_takes_no_notice_of_a_key(api: Api):
    for on_hand in (5, 5):
        answer = await api.put_pool(on_hand=on_hand, headers={"Idempotency-Key": "k"})
        assert "idempotent-replayed" not in answer.headers
