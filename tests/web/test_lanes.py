"""Lanes over HTTP: their settings, their figures, and bulk retries of what they have discarded."""

from urllib.parse import quote

import pytest

from tests.web.conftest import Api, refused

FIELDS = [
    "name",
    "paused",
    "lease_seconds",
    "max_attempts",
    "max_running",
    "backoff",
    "retention_days",
    "ready",
    "scheduled",
    "running",
    "discarded",
    "oldest_ready_age_seconds",
]
FIGURES = {"ready": 0, "scheduled": 0, "running": 0, "discarded": 0, "oldest_ready_age_seconds": None}
UNSAID = dict.fromkeys(["lease_seconds", "max_attempts", "max_running", "backoff", "retention_days"])


async def put(api: Api, lane: str = "mail", **body):
    return await api.client.put(f"/v1/lanes/{lane}", json=body)


async def get(api: Api, name: str = "mail") -> dict:
    answer = await api.client.get(f"/v1/lanes/{name}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_new_lane_answers_201_and_one_that_exists_200_with_the_whole_shape(api: Api):
    made = await put(api, "a%2Fb")
    assert (made.status_code, list(made.json())) == (201, FIELDS)
    assert made.json() == {"name": "a/b", "paused": False} | UNSAID | FIGURES
    assert (await put(api, "a%2Fb")).status_code == 200
    assert await get(api, "a%2Fb") == made.json()


async def test_what_is_absent_keeps_its_value_and_null_goes_back_to_the_services(api: Api):
    said = {
        "paused": True,
        "lease_seconds": 5,
        "max_attempts": 3,
        "max_running": None,
        "backoff": {"first_seconds": 0.5, "seconds_max": 8},
        "retention_days": 7,
    }
    lane = {"name": "mail"} | said | FIGURES
    assert (await put(api, **said)).json() == lane
    assert (await put(api)).json() == lane
    assert (await put(api, backoff=None, lease_seconds=None)).json() == lane | {"backoff": None, "lease_seconds": None}
    assert (await put(api, paused=False, retention_days=None)).json()["retention_days"] is None
    assert (await get(api))["max_attempts"] == 3


@pytest.mark.parametrize(
    ("field", "value", "pointer"),
    [
        ("paused", 1, "/paused"),
        ("paused", None, "/paused"),
        ("lease_seconds", 0, "/lease_seconds"),
        ("lease_seconds", 86_401, "/lease_seconds"),
        ("lease_seconds", 1.5, "/lease_seconds"),
        ("max_attempts", 101, "/max_attempts"),
        ("max_running", 5, "/max_running"),
        ("retention_days", 0, "/retention_days"),
        ("retention_days", 36_601, "/retention_days"),
        ("backoff", 5, "/backoff"),
        ("backoff", {"first_seconds": 1}, "/backoff/seconds_max"),
        ("backoff", {"first_seconds": -1, "seconds_max": 1}, "/backoff/first_seconds"),
        ("backoff", {"first_seconds": 1, "seconds_max": 31 * 86_400 + 1}, "/backoff/seconds_max"),
        ("backoff", {"first_seconds": 2, "seconds_max": 1}, "/backoff"),
        ("backoff", {"first_seconds": 1, "seconds_max": 1, "x": 1}, "/backoff/x"),
        ("name", "mail", "/name"),
        ("ready", 0, "/ready"),
    ],
)
async def test_a_wrong_setting_of_a_lane_is_named(reader: Api, field: str, value: object, pointer: str):
    problem = refused(await put(reader, **{field: value}), 422, "validation-failed")
    assert [fault["pointer"] for fault in problem["errors"]] == [pointer]


@pytest.mark.parametrize("name", ["x" * 201, "a%00b", "a%1Fb", "%20"])
async def test_a_name_that_no_lane_can_have_cannot_be_made_and_is_not_found(reader: Api, name: str):
    (fault,) = refused(await put(reader, name), 422, "validation-failed")["errors"]
    assert fault["pointer"] == "/lane"
    refused(await reader.client.get(f"/v1/lanes/{name}"), 404, "lane-not-found")
    refused(await reader.post(f"/v1/lanes/{name}/retry-discarded", json={"limit": 1}), 404, "lane-not-found")


async def test_an_unknown_lane_is_not_found(api: Api):
    refused(await api.client.get("/v1/lanes/none"), 404, "lane-not-found")
    refused(await api.post("/v1/lanes/none/retry-discarded", json={"limit": 1}), 404, "lane-not-found")


@pytest.mark.parametrize("name", ["a/b", "%", "jobs", "batch", "{lane}", "🫖", "claims", "x" * 200])
async def test_any_name_works_in_a_path_and_in_a_query(api: Api, name: str):
    path = quote(name, safe="")
    job = await api.enqueued(path)
    assert job["lane"] == name
    assert (await get(api, path))["ready"] == 1
    assert [one["id"] for one in await api.claimed(path)] == [job["id"]]
    assert len((await api.client.get("/v1/jobs", params={"lane": name})).json()["items"]) == 1


async def test_the_figures_count_jobs_by_their_state(api: Api):
    for wish in ({}, {}, {}, {"delay_seconds": 60}):
        await api.enqueued(**wish)
    (claimed,) = await api.claimed()
    await api.verdict(claimed, "fail", error="no", discard=True)
    await api.claimed()
    lane = await get(api)
    age = lane.pop("oldest_ready_age_seconds")
    assert age >= 0
    figures = {"ready": 1, "scheduled": 1, "running": 1, "discarded": 1}
    assert lane == {"name": "mail", "paused": False} | UNSAID | figures


async def test_nothing_is_claimed_from_a_paused_lane(api: Api):
    await api.enqueued()
    await put(api, paused=True)
    assert await api.claimed() == []
    await put(api, paused=False)
    assert len(await api.claimed()) == 1


async def test_lanes_are_listed_by_name_a_page_at_a_time(api: Api):
    for name in ("b", "Ω", "a", "c"):
        await put(api, name)
    first = (await api.client.get("/v1/lanes?limit=2")).json()
    rest = (await api.client.get(f"/v1/lanes?cursor={first['next_cursor']}")).json()
    assert [lane["name"] for lane in first["items"]] == ["a", "b"]
    assert [lane["name"] for lane in rest["items"]] == ["c", "Ω"]
    assert rest["next_cursor"] is None
    assert list(first["items"][0]) == FIELDS


async def test_discarded_jobs_of_a_lane_are_retried_in_bulk(api: Api):
    for kind in ("a", "b", "a", "a"):
        job = await api.enqueued(kind=kind)
        await api.post(f"/v1/jobs/{job['id']}/discard")

    async def retry(**body) -> dict:
        answer = await api.post("/v1/lanes/mail/retry-discarded", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert await retry(kind="a", limit=2) == {"retried": 2}
    assert await retry(kind="a", limit=2) == {"retried": 1}
    assert (await get(api))["ready"] == 3
    assert await retry(limit=1000, kind=None) == {"retried": 1}
    assert await retry(limit=1) == {"retried": 0}


async def test_a_bulk_retry_with_a_key_happens_once(api: Api):
    jobs = [await api.enqueued() for _ in range(3)]
    for job in jobs:
        await api.post(f"/v1/jobs/{job['id']}/discard")
    answers = [await api.post("/v1/lanes/mail/retry-discarded", json={"limit": 1}, key="k") for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert answers[1].headers["idempotent-replayed"] == "true"
    assert (await get(api))["ready"] == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({}, "/limit"), ({"limit": 0}, "/limit"), ({"limit": 1001}, "/limit"), ({"limit": 1, "kind": ""}, "/kind")],
)
async def test_a_bulk_retry_is_bounded(reader: Api, body: dict, pointer: str):
    (fault,) = refused(await reader.post("/v1/lanes/mail/retry-discarded", json=body), 422, "validation-failed")[
        "errors"
    ]
    assert fault["pointer"] == pointer
