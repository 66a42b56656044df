"""PUT, GET and list of pools over HTTP."""

import pytest

from tests.web.conftest import TIMESTAMP, Api, drain, refused

POOL_FIELDS = [
    "key",
    "kind",
    "state",
    "on_hand",
    "available",
    "held",
    "confirmed",
    "buffer",
    "withheld",
    "hold_ttl_seconds",
    "max_per_owner",
    "late_confirm",
    "window",
    "limit",
    "metadata",
    "created_at",
    "version",
    "as_of",
]


async def test_a_new_pool_answers_201_with_the_whole_shape(api: Api):
    answer = await api.put_pool(
        "mug", kind="stock", on_hand=100, buffer=5, hold_ttl_seconds=600, metadata={"title": "Blåu 🫖"}
    )
    pool = answer.json()
    assert (answer.status_code, answer.headers["etag"], answer.headers["cache-control"]) == (201, '"1"', "no-store")
    assert list(pool) == POOL_FIELDS
    assert TIMESTAMP.fullmatch(pool.pop("created_at"))
    assert TIMESTAMP.fullmatch(pool.pop("as_of"))
    assert pool == {
        "key": "mug",
        "kind": "stock",
        "state": "open",
        "on_hand": 100,
        "available": 95,
        "held": 0,
        "confirmed": 0,
        "buffer": 5,
        "withheld": 0,
        "hold_ttl_seconds": 600,
        "max_per_owner": None,
        "late_confirm": "refuse",
        "window": None,
        "limit": None,
        "metadata": {"title": "Blåu 🫖"},
        "version": 1,
    }


async def test_a_change_answers_200_and_keeps_what_is_absent(api: Api):
    await api.put_pool(on_hand=10, buffer=2, hold_ttl_seconds=60, metadata={"a": 1})
    answer = await api.put_pool(buffer=3)
    pool = answer.json()
    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    assert (pool["on_hand"], pool["buffer"], pool["hold_ttl_seconds"], pool["metadata"]) == (10, 3, 60, {"a": 1})


async def test_null_takes_a_time_to_live_away_again(api: Api):
    await api.put_pool(hold_ttl_seconds=60)
    assert (await api.put_pool(hold_ttl_seconds=None)).json()["hold_ttl_seconds"] is None


async def test_what_a_pool_reads_as_its_settings_can_be_put_back(api: Api):
    await api.put_pool(on_hand=3, buffer=1)
    pool = await api.get_pool()
    settings = [
        "kind",
        "on_hand",
        "buffer",
        "hold_ttl_seconds",
        "max_per_owner",
        "late_confirm",
        "window",
        "limit",
        "metadata",
    ]
    assert (await api.put_pool(**{name: pool[name] for name in settings})).status_code == 200


@pytest.mark.parametrize("empty", [b"", b"{}"])
async def test_a_pool_can_be_made_of_an_empty_object_but_not_of_nothing(api: Api, empty: bytes):
    answer = await api.client.put("/v1/pools/mug", content=empty, headers={"Content-Type": "application/json"})
    if empty:
        assert (answer.status_code, answer.json()["on_hand"]) == (201, 0)
    else:
        assert "empty" in refused(answer, 400, "invalid-request")["detail"]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("kind", "units", "only 'stock' pools are served"),
        ("kind", "quota", "only 'stock' pools are served"),
        ("max_per_owner", 2, "not served by this version"),
        ("late_confirm", "if_available", "not served by this version"),
        ("window", {"every": "day", "time_zone": "UTC"}, "not served by this version"),
        ("limit", 5, "not served by this version"),
        ("held", 0, "not a known field"),
        ("on_hand", -1, "from 0 to 1000000000000"),
        ("on_hand", None, "from 0 to 1000000000000"),
        ("buffer", 10**12 + 1, "from 0 to 1000000000000"),
        ("hold_ttl_seconds", 0, "from 1 to 86400"),
        ("hold_ttl_seconds", 86_401, "from 1 to 86400"),
        ("metadata", [], "must be an object"),
        ("metadata", None, "must be an object"),
        ("metadata", {"a": "x" * 16_384}, "at most 16384 bytes"),
    ],
)
async def test_a_field_that_is_wrong_or_not_served_is_named(api: Api, field: str, value: object, says: str):
    problem = refused(await api.put_pool(**{field: value}), 422, "validation-failed")
    (fault,) = problem["errors"]
    assert fault["pointer"] == f"/{field}"
    assert says in fault["detail"]


async def test_another_on_hand_is_refused_with_the_way_to_do_it(api: Api):
    await api.put_pool(on_hand=5)
    problem = refused(await api.put_pool(on_hand=6), 422, "validation-failed")
    assert problem["errors"][0]["pointer"] == "/on_hand"
    assert "adjustments" in problem["errors"][0]["detail"]


async def test_a_buffer_beyond_what_is_free_is_refused_with_the_figures(api: Api):
    await api.put_pool(on_hand=5)
    await api.placed(quantity=3)
    problem = refused(await api.put_pool(buffer=3), 409, "below-promised")
    assert (problem["on_hand"], problem["available"], problem["promised"]) == (5, 2, 3)


async def test_another_kind_than_the_pool_has_is_refused(api: Api, database):
    await api.put_pool(on_hand=5)

    async def work(conn) -> None:
        await conn.execute(f"update {database.namespace}.pool set kind = 'units'")

    await database.transact(work)
    refused(await api.put_pool(kind="stock"), 409, "pool-kind-fixed")


@pytest.mark.parametrize("tag", ['"2"', '"0"', '"x"', 'W/"1"', '""', '"99999999999999999999999"'])
async def test_if_match_with_another_version_changes_nothing(api: Api, tag: str):
    await api.put_pool(on_hand=5)
    refused(await api.put_pool(buffer=1, headers={"If-Match": tag}), 412, "version-mismatch")
    assert (await api.get_pool())["buffer"] == 0


@pytest.mark.parametrize("tag", ['"1"', "*"])
async def test_if_match_with_the_current_version_or_any_changes_the_pool(api: Api, tag: str):
    await api.put_pool(on_hand=5)
    assert (await api.put_pool(buffer=1, headers={"If-Match": tag})).json()["version"] == 2


@pytest.mark.parametrize("tag", ['"1"', "*"])
async def test_if_match_makes_no_pool(api: Api, tag: str):
    refused(await api.put_pool(headers={"If-Match": tag}), 412, "version-mismatch")
    refused(await api.client.get("/v1/pools/mug"), 404, "pool-not-found")


@pytest.mark.parametrize("tag", ["1", '"1', '"1", "2"', "", "w/1"])
async def test_if_match_that_is_no_entity_tag_is_a_bad_request(api: Api, tag: str):
    assert "If-Match" in refused(await api.put_pool(headers={"If-Match": tag}), 400, "invalid-request")["detail"]


async def test_an_unknown_pool_is_named(api: Api):
    assert refused(await api.client.get("/v1/pools/cup"), 404, "pool-not-found")["pools"] == ["cup"]
    refused(await api.client.get("/v1/pools/cup/adjustments"), 404, "pool-not-found")
    refused(await api.adjust("cup", delta=1, reason="count"), 404, "pool-not-found")


async def test_pools_are_listed_by_key_a_page_at_a_time(api: Api):
    keys = ["a", "a b", "b", "ü/%", "🫖"]
    for key in ["🫖", "b", "a", "ü%2F%25", "a%20b"]:
        assert (await api.put_pool(key)).status_code == 201
    seen, cursor = [], None
    while True:
        page = (await api.client.get("/v1/pools", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
        assert list(page) == ["items", "next_cursor"]
        seen.append([pool["key"] for pool in page["items"]])
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [keys[:2], keys[2:4], keys[4:]]


async def test_a_listed_pool_has_the_shape_of_a_single_one(api: Api):
    await api.put_pool(on_hand=3)
    (listed,) = (await api.client.get("/v1/pools")).json()["items"]
    assert list(listed) == POOL_FIELDS
    assert listed | {"as_of": ""} == await api.get_pool() | {"as_of": ""}


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("", ["mug-blue", "mug-red", "pot"]),
        ("?prefix=mug", ["mug-blue", "mug-red"]),
        ("?prefix=mug-blue&prefix=", None),
        ("?prefix=%25", []),
        ("?prefix=_", []),
        ("?key=pot&key=mug-red&key=none", ["mug-red", "pot"]),
        ("?kind=stock", ["mug-blue", "mug-red", "pot"]),
        ("?kind=units", []),
        ("?state=draining", ["pot"]),
        ("?state=open&prefix=p", []),
        ("?state=archived", []),
    ],
)
async def test_pools_are_found_by_what_is_asked(api: Api, database, query: str, keys: list[str] | None):
    for key in ("pot", "mug-red", "mug-blue"):
        await api.put_pool(key)
    await drain(database, "pot")
    answer = await api.client.get(f"/v1/pools{query}")
    if keys is None:
        refused(answer, 400, "invalid-request")
    else:
        assert [pool["key"] for pool in answer.json()["items"]] == keys
