"""Enqueuing, reading and listing jobs over HTTP; how a job behaves is tested where it lives, in the job lane."""

import json
from datetime import datetime, timedelta, timezone

import pytest

from reserve.db.connection import Database
from tests.web.conftest import TIMESTAMP, Api, refused

JOB_FIELDS = [
    "id",
    "lane",
    "kind",
    "payload",
    "state",
    "priority",
    "attempt",
    "max_attempts",
    "failures",
    "rescues",
    "run_at",
    "unique_key",
    "order_key",
    "pool",
    "output",
    "error",
    "progress",
    "cancel_requested",
    "created_at",
    "started_at",
    "finished_at",
]


async def test_a_new_job_answers_201_with_the_whole_shape_and_its_address(api: Api):
    answer = await api.enqueue("m%2Fail", kind=" send ", payload={"é": [1, 2.5, None]}, priority=-7, max_attempts=3)
    job = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert "idempotent-replayed" not in answer.headers
    assert list(job) == JOB_FIELDS
    assert (await api.client.get(answer.headers["location"])).json() == job
    assert TIMESTAMP.fullmatch(job.pop("created_at"))
    assert TIMESTAMP.fullmatch(job.pop("run_at"))
    assert job.pop("id") > 0
    assert job == {
        "lane": "m/ail",
        "kind": "send",
        "payload": {"é": [1, 2.5, None]},
        "state": "ready",
        "priority": -7,
        "attempt": 0,
        "max_attempts": 3,
        "failures": 0,
        "rescues": 0,
        "unique_key": None,
        "order_key": None,
        "pool": None,
        "output": None,
        "error": None,
        "progress": None,
        "cancel_requested": False,
        "started_at": None,
        "finished_at": None,
    }


@pytest.mark.parametrize("payload", [{}, [], None, 0, -1.5, "x", True, [[[]]], {"": {"a": "\x7f"}}, "é" * 1000])
async def test_a_payload_is_any_json_and_comes_back_as_it_was(api: Api, payload: object):
    job = await api.enqueued(payload=payload)
    assert job["payload"] == payload
    (claimed,) = await api.claimed()
    assert claimed["payload"] == payload


async def test_what_may_be_null_is_as_good_as_absent(api: Api):
    nothing = ("run_at", "delay_seconds", "max_attempts", "unique_key", "order_key", "pool")
    job = await api.enqueued(**dict.fromkeys(nothing))
    assert (job["state"], job["payload"], job["priority"], job["max_attempts"]) == ("ready", {}, 0, 20)


@pytest.mark.parametrize("delay", [60, 60.5, 366 * 86_400])
async def test_a_job_for_later_is_scheduled(api: Api, delay: float):
    job = await api.enqueued(delay_seconds=delay)
    assert (job["state"], await api.claimed()) == ("scheduled", [])
    assert job["run_at"] > job["created_at"]


@pytest.mark.parametrize("hours", [-12, 0, 5.5])
async def test_a_job_for_a_time_is_scheduled_for_it(api: Api, hours: float):
    zone = timezone(timedelta(hours=hours))
    moment = datetime.now(zone) + timedelta(days=2)
    job = await api.enqueued(run_at=moment.isoformat())
    assert (job["state"], datetime.fromisoformat(job["run_at"])) == ("scheduled", moment)


@pytest.mark.parametrize(
    "run_at", ["2020-01-05T10:00:00Z", "2020-01-05t10:00:00.123456789z", "0001-01-02T00:00:00+02:00"]
)
async def test_a_time_that_has_passed_means_at_once(api: Api, run_at: str):
    assert (await api.enqueued(run_at=run_at))["state"] == "ready"
    assert len(await api.claimed()) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", ""),
        ("kind", None),
        ("kind", 5),
        ("kind", "x" * 201),
        ("kind", "a\u0007"),
        ("payload", "x" * (256 * 2**10 - 1)),
        ("priority", 32_768),
        ("priority", -32_768),
        ("priority", 1.0),
        ("priority", "1"),
        ("priority", None),
        ("run_at", "2020-01-05"),
        ("run_at", "2020-01-05T10:00:00"),
        ("run_at", "2020-01-05T10:00:00+0200"),
        ("run_at", "2020-13-05T10:00:00Z"),
        ("run_at", "0001-01-01T00:00:00+14:00"),
        ("run_at", "9999-12-31T23:59:59-14:00"),
        ("run_at", 1_700_000_000),
        ("delay_seconds", -1),
        ("delay_seconds", 366 * 86_400 + 1),
        ("delay_seconds", "1"),
        ("delay_seconds", True),
        ("max_attempts", 0),
        ("max_attempts", 101),
        ("unique_key", "a"),
        ("order_key", "a"),
        ("pool", "mug"),
        ("lane", "mail"),
        ("idempotency_key", "a"),
    ],
)
async def test_a_wrong_field_of_a_job_is_named(api: Api, field: str, value: object):
    answer = await api.post("/v1/lanes/mail/jobs", json={"kind": "k"} | {field: value}, key="k")
    problem = refused(answer, 422, "validation-failed")
    assert [fault["pointer"] for fault in problem["errors"]] == [f"/{field}"]
    assert (await api.client.get("/v1/jobs")).json()["items"] == []


async def test_only_one_of_two_fields_says_when(reader: Api):
    both = {"run_at": "2020-01-05T10:00:00Z", "delay_seconds": 0}
    (fault,) = refused(await reader.enqueue(**both), 422, "validation-failed")["errors"]
    assert fault == {"pointer": "/delay_seconds", "detail": "must be left out where there is 'run_at'"}


async def test_what_is_not_served_yet_says_so(reader: Api):
    (fault,) = refused(await reader.enqueue(unique_key="a"), 422, "validation-failed")["errors"]
    assert "not served by this version" in fault["detail"]


async def test_a_payload_has_its_bound_in_bytes_of_compact_json(api: Api):
    text = "é" * (128 * 2**10 - 1)
    assert len(json.dumps(text, ensure_ascii=False).encode()) == 256 * 2**10
    assert (await api.enqueued(payload=text))["payload"] == text
    (fault,) = refused(await api.enqueue(payload=text + "a"), 422, "validation-failed")["errors"]
    assert fault == {"pointer": "/payload", "detail": "must have at most 262144 bytes as compact JSON, has 262145"}


@pytest.mark.parametrize("path", ["x" * 201, "a%00b", "a%1Fb", "%20"])
async def test_a_name_that_no_lane_can_have_is_refused_where_a_lane_would_come_to_be(api: Api, path: str):
    for call, body in [("jobs", {"kind": "k"}), ("jobs/batch", {"items": [{}]}), ("claims", {"worker": "w"})]:
        key = None if call == "jobs/batch" else "k"
        answer = await api.post(f"/v1/lanes/{path}/{call}", json=body, key=key)
        (fault,) = refused(answer, 422, "validation-failed")["errors"]
        assert fault["pointer"] == "/lane"


async def test_jobs_are_listed_newest_first_a_page_at_a_time(api: Api):
    ids = [(await api.enqueued(lane))["id"] for lane in ("a", "b", "a", "a")]
    first = (await api.client.get("/v1/jobs?limit=3")).json()
    rest = (await api.client.get(f"/v1/jobs?limit=3&cursor={first['next_cursor']}")).json()
    assert [job["id"] for job in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next_cursor"] is None
    assert list(first["items"][0]) == JOB_FIELDS


async def test_jobs_are_listed_by_lane_state_and_kind(api: Api):
    ready, other, later = (
        await api.enqueued("a/1".replace("/", "%2F"), kind="x"),
        await api.enqueued("b", kind="x"),
        await api.enqueued("b", kind="y", delay_seconds=60),
    )

    async def listed(**chosen: str) -> list[int]:
        return [job["id"] for job in (await api.client.get("/v1/jobs", params=chosen)).json()["items"]]

    assert await listed(lane="a/1") == [ready["id"]]
    assert await listed(lane="b") == [later["id"], other["id"]]
    assert await listed(kind="x") == [other["id"], ready["id"]]
    assert await listed(state="scheduled") == [later["id"]]
    assert await listed(lane="b", state="ready", kind="x") == [other["id"]]
    assert await listed(lane="none") == await listed(state="discarded") == []


async def test_the_first_of_several_faults_in_the_documented_order_answers(api: Api):
    """Key present, body readable, body valid, key reused or replayed, job known, lease held."""
    used = await api.enqueue(key="used")
    path = "/v1/lanes/mail/jobs"
    refused(await api.client.post(path, content=b"{"), 400, "idempotency-key-missing")
    refused(await api.post_raw(b"{", path=path, Content_Type="text/plain"), 415, "unsupported-media-type")
    refused(await api.post_raw(b"{", path=path, Idempotency_Key="used"), 400, "invalid-request")
    refused(await api.post_raw(b"{}", path=path, Idempotency_Key="used"), 422, "validation-failed")
    refused(await api.enqueue(key="used", kind="other"), 422, "idempotency-key-reused")
    assert (await api.enqueue(key="used")).content == used.content
    complete = {"token": 1}
    refused(await api.post("/v1/jobs/999999/complete", json={}, key="used"), 422, "validation-failed")
    refused(await api.post("/v1/jobs/999999/complete", json=complete, key="used"), 422, "idempotency-key-reused")
    refused(await api.post("/v1/jobs/999999/complete", json=complete), 404, "job-not-found")
    refused(await api.post(f"/v1/jobs/{used.json()['id']}/complete", json=complete), 409, "lease-lost")


async def test_a_setting_makes_the_key_optional(api: Api, database: Database, monkeypatch):
    monkeypatch.setattr(database, "settings", database.settings.model_copy(update={"idempotency_key_required": False}))
    one, two = [await api.post("/v1/lanes/mail/jobs", json={"kind": "k"}) for _ in range(2)]
    assert (one.status_code, two.status_code) == (201, 201)
    assert one.json()["id"] != two.json()["id"]
    batch = await api.post("/v1/lanes/mail/jobs/batch", json={"items": [{"kind": "k"}, {"kind": "k"}]})
    assert [item["status"] for item in batch.json()["items"]] == [201, 201]
    assert len((await api.client.get("/v1/jobs")).json()["items"]) == 4
