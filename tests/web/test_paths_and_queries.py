"""Addresses: keys with any character, one spelling for each, and query parameters that exist."""

from urllib.parse import quote

import pytest

from reserve.web.cursors import encode_cursor
from tests.web.conftest import Api, refused

KEYS = [
    "a/b",
    "a//b",
    "/",
    "%",
    "a%2Fb",
    "100% wool",
    "a b",
    "+",
    "?",
    "#",
    "a&b=c",
    "🫖🫖",
    "قهوة سوداء",
    "Ω",
    "a:b@c;d,e",
    '"quoted"',
    "a\\b",
    "{key}",
    "adjustments",
    "x" * 200,
    "é" * 200,
]


@pytest.mark.parametrize("key", KEYS)
async def test_any_key_works_in_a_path_in_a_body_and_in_a_query(api: Api, key: str):
    path = quote(key, safe="")
    made = await api.put_pool(path, on_hand=5)
    assert (made.status_code, made.json()["key"]) == (201, key)
    assert (await api.get_pool(path))["key"] == key
    assert (await api.adjust(path, delta=1, reason="count")).json()["pool"] == key
    assert (await api.placed(pool=key))["lines"] == [{"pool": key, "quantity": 1}]
    assert (await api.client.get("/v1/pools", params={"key": key, "prefix": key})).json()["items"][0]["key"] == key
    assert len((await api.client.get("/v1/holds", params={"pool": key})).json()["items"]) == 1
    assert [pool["key"] for pool in (await api.client.get("/v1/pools")).json()["items"]] == [key]


async def test_a_percent_encoded_percent_is_another_key_than_a_slash(api: Api):
    await api.put_pool("a%2Fb", on_hand=1)
    await api.put_pool("a%252Fb", on_hand=2)
    assert [pool["key"] for pool in (await api.client.get("/v1/pools")).json()["items"]] == ["a%2Fb", "a/b"]
    assert (await api.get_pool("a%2fb"))["on_hand"] == 1
    assert (await api.get_pool("%61%252Fb"))["on_hand"] == 2


@pytest.mark.parametrize("path", ["%20mug%20", "mug%0A", "%6Dug", "mu%67"])
async def test_other_spellings_of_a_key_lead_to_the_same_pool(api: Api, path: str):
    await api.put_pool("mug", on_hand=5)
    assert (await api.get_pool(path))["key"] == "mug"


async def test_composed_and_decomposed_letters_are_the_same_key(api: Api):
    assert (await api.put_pool("cafe%CC%81", on_hand=5)).json()["key"] == "café"
    assert (await api.get_pool("caf%C3%A9"))["on_hand"] == 5
    assert len((await api.client.get("/v1/pools?prefix=cafe%CC%81")).json()["items"]) == 1


@pytest.mark.parametrize("path", ["a%FF", "%C3", "%ED%A0%80", "%C0%AF", "a%", "a%2", "a%zz", "%%"])
async def test_a_path_that_is_not_percent_encoded_utf8_is_a_bad_request(reader: Api, path: str):
    for method in ("GET", "PUT"):
        answer = await reader.client.request(method, f"http://reserve.test/v1/pools/{path}")
        assert answer.status_code == 400
        assert answer.json()["code"] == "invalid-request"


@pytest.mark.parametrize("path", ["x" * 201, "a%00b", "a%1Fb", "%20", "%7F"])
async def test_a_key_that_no_pool_can_have_cannot_be_made_and_is_not_found(api: Api, path: str):
    (fault,) = refused(await api.put_pool(path), 422, "validation-failed")["errors"]
    assert fault["pointer"] == "/key"
    refused(await api.client.get(f"/v1/pools/{path}"), 404, "pool-not-found")
    refused(await api.adjust(path, delta=1, reason="count"), 404, "pool-not-found")


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/pools/",
        "/v1/holds/",
        "//v1/holds",
        "/v1//holds",
        "/v1/pools//adjustments",
        "/v1/pools/mug/",
        "/v1/pools/mug/adjustments/",
        "/v1/pools/mug/none",
        "/v1%2Fholds",
        "/V1/holds",
        "/v2/holds",
        "/none",
        "/problems/none",
        "/schema/none",
        "/health",
        "/health/live/",
    ],
)
async def test_an_address_that_nothing_has_is_not_found(reader: Api, path: str):
    assert refused(await reader.client.get(f"http://reserve.test{path}"), 404, "not-found")


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/v1/pools?limt=5", "limt"),
        ("/v1/pools?owner=a", "owner"),
        ("/v1/pools?prefix=a&prefix=a", "prefix"),
        ("/v1/pools?kind=cups", "kind"),
        ("/v1/pools?kind=", "kind"),
        ("/v1/pools?state=held", "state"),
        ("/v1/pools?prefix=", "prefix"),
        ("/v1/pools?prefix=a%00", "prefix"),
        ("/v1/pools?key=a&key=", "key"),
        ("/v1/holds?key=a", "key"),
        ("/v1/holds?owner=", "owner"),
        ("/v1/holds?owner=%00", "owner"),
        ("/v1/holds?pool=" + "x" * 201, "pool"),
        ("/v1/holds?state=open", "state"),
        ("/v1/holds?state=HELD", "state"),
        ("/v1/holds?limit=0", "limit"),
        ("/v1/holds?limit=-1", "limit"),
        ("/v1/holds?limit=1001", "limit"),
        ("/v1/holds?limit=1.0", "limit"),
        ("/v1/holds?limit=", "limit"),
        ("/v1/holds?limit=%D9%A1", "limit"),
        ("/v1/holds?limit=" + "9" * 5000, "limit"),
        ("/v1/holds?limit=1&limit=1", "limit"),
        ("/v1/holds?cursor=", "cursor"),
        ("/v1/holds?%6Cimt=1", "limt"),
        ("/v1/pools/mug?x=1", "x"),
        ("/v1/holds/none?x=1", "x"),
        ("/v1/pools/mug/adjustments?pool=a", "pool"),
        ("/v1/jobs?owner=a", "owner"),
        ("/v1/jobs?state=held", "state"),
        ("/v1/jobs?kind=", "kind"),
        ("/v1/jobs?lane=%00", "lane"),
        ("/v1/jobs?lane=a&lane=a", "lane"),
        ("/v1/jobs?limit=1001", "limit"),
        ("/v1/jobs?cursor=x", "cursor"),
        ("/v1/jobs/1?x=1", "x"),
        ("/v1/lanes?name=a", "name"),
        ("/v1/lanes?limit=0", "limit"),
        ("/v1/lanes/mail?x=1", "x"),
        ("/health/live?x=1", "x"),
        ("/health/ready?x=1", "x"),
        ("/problems/contended?x=1", "x"),
        ("/schema?x=1", "x"),
    ],
)
async def test_a_query_parameter_that_is_unknown_repeated_or_wrong_is_named(reader: Api, path: str, named: str):
    assert f"'{named}'" in refused(await reader.client.get(path), 400, "invalid-request")["detail"]


@pytest.mark.parametrize("query", ["x", "limit", "%FF=1", "owner=%FF", "&&", "limit=1&", "&".join(["key=a"] * 1101)])
async def test_a_query_that_cannot_be_read_is_a_bad_request(reader: Api, query: str):
    refused(await reader.client.get(f"http://reserve.test/v1/pools?{query}"), 400, "invalid-request")


@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_calls_that_change_something_take_no_query(reader: Api, method: str):
    paths = {
        "PUT": ["/v1/pools/mug?on_hand=5", "/v1/lanes/mail?paused=true"],
        "POST": [
            "/v1/holds?confirm=true",
            "/v1/lanes/mail/jobs?kind=k",
            "/v1/lanes/mail/claims?limit=1",
            "/v1/jobs/1/complete?token=1",
            "/v1/jobs/1/cancel?x=1",
        ],
    }
    for path in paths[method]:
        answer = await reader.client.request(method, path, json={}, headers={"Idempotency-Key": "k"})
        refused(answer, 400, "invalid-request")


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "====",
        "WyJwb29scyIsMSwi",
        "é",
        "a+b/",
        "x" * 3000,
        encode_cursor("holds", "01997a3e-5a1c-7c42-9d0e-3b8f6f2f7a10"),
        encode_cursor("pools", "1"),
        encode_cursor("pools", "x mug"),
        encode_cursor("pools", "0 mug"),
        encode_cursor("pools", "1 a\0b"),
        encode_cursor("pools", f"{2**63} mug"),
        encode_cursor("adjustments", "5"),
        "W1tbW1tbW1tbW1tbW1tbW1tb",
        "bnVsbA",
        "WyJwb29scyIsMiwiMSBtdWciXQ",
    ],
)
async def test_a_cursor_that_is_not_of_this_list_is_refused_by_name(reader: Api, cursor: str):
    answer = await reader.client.get("/v1/pools", params={"cursor": cursor})
    assert "'cursor'" in refused(answer, 400, "invalid-request")["detail"]


@pytest.mark.parametrize(
    ("listed", "cursor"),
    [
        ("jobs", encode_cursor("lanes", "a")),
        ("jobs", encode_cursor("jobs", "0")),
        ("jobs", encode_cursor("jobs", "01")),
        ("jobs", encode_cursor("jobs", 2**63)),
        ("lanes", encode_cursor("jobs", "1")),
        ("lanes", encode_cursor("lanes", "")),
        ("lanes", encode_cursor("lanes", "a\0")),
        ("lanes", encode_cursor("lanes", " a")),
    ],
)
async def test_a_cursor_of_jobs_or_lanes_is_of_its_own_list_and_sound(reader: Api, listed: str, cursor: str):
    answer = await reader.client.get(f"/v1/{listed}", params={"cursor": cursor})
    assert "'cursor'" in refused(answer, 400, "invalid-request")["detail"]


async def test_a_cursor_whose_pool_is_gone_still_leads_on(api: Api):
    await api.put_pool("b")
    cursor = encode_cursor("pools", "999999 a")
    items = (await api.client.get("/v1/pools", params={"cursor": cursor})).json()["items"]
    assert [pool["key"] for pool in items] == ["b"]
