"""The verbs of a job over HTTP: those of its holder, fenced by a token, and those of whoever looks after jobs."""

import pytest

from tests.web.conftest import TIMESTAMP, Api, refused
from tests.web.test_idempotency import assert_replays
from tests.web.test_jobs import JOB_FIELDS

HELD_FIELDS = [*JOB_FIELDS, "token", "lease_expires_at"]
VERDICTS = [
    ("complete", {"token": 1}),
    ("fail", {"token": 1, "error": "no"}),
    ("release", {"token": 1}),
    ("extend", {"token": 1, "lease_seconds": 60}),
]


async def read(api: Api, job: dict) -> dict:
    answer = await api.client.get(f"/v1/jobs/{job['id']}")
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("job_id", ["0", "-1", "x", "1.0", "01", "1a", "%D9%A3", str(2**63), "9" * 400, "999999999"])
async def test_an_id_that_no_job_has_is_unknown(api: Api, job_id: str):
    refused(await api.client.get(f"/v1/jobs/{job_id}"), 404, "job-not-found")
    for verb, body in [*VERDICTS, ("cancel", {}), ("retry", {}), ("discard", {})]:
        refused(await api.post(f"/v1/jobs/{job_id}/{verb}", json=body), 404, "job-not-found")


async def test_completing_a_job_answers_with_it_and_its_output(api: Api):
    await api.enqueued()
    (claimed,) = await api.claimed()
    answer = await api.verdict(claimed, "complete", output={"sent": 1})
    job = answer.json()
    assert (answer.status_code, list(job)) == (200, JOB_FIELDS)
    assert (job["state"], job["output"], job["attempt"], job["failures"]) == ("succeeded", {"sent": 1}, 1, 0)
    assert TIMESTAMP.fullmatch(job["finished_at"])
    assert await read(api, claimed) == job
    assert (await api.verdict(claimed, "complete", output={"sent": 1})).json() == job


async def test_failing_a_job_counts_a_failure_and_schedules_the_next_attempt(api: Api):
    await api.enqueued()
    (claimed,) = await api.claimed()
    job = (await api.verdict(claimed, "fail", error="no\nluck", retry_in_seconds=60)).json()
    assert (job["state"], job["failures"], job["error"]) == ("scheduled", 1, "no\nluck")
    assert await api.claimed() == []
    retried = (await api.post(f"/v1/jobs/{job['id']}/retry")).json()
    assert retried["state"] == "ready"
    (again,) = await api.claimed()
    assert (again["id"], again["attempt"]) == (claimed["id"], 2)
    assert again["token"] > claimed["token"]
    assert again["idempotency_key"] == claimed["idempotency_key"]
    discarded = (await api.verdict(again, "fail", error="never", discard=True)).json()
    assert (discarded["state"], discarded["error"]) == ("discarded", "never")


async def test_releasing_a_job_counts_no_failure(api: Api):
    await api.enqueued()
    (claimed,) = await api.claimed()
    assert (await api.verdict(claimed, "release")).json()["state"] == "ready"
    (claimed,) = await api.claimed()
    job = (await api.verdict(claimed, "release", delay_seconds=60)).json()
    assert (job["state"], job["failures"]) == ("scheduled", 0)


async def test_extending_a_lease_answers_the_holder_and_keeps_what_is_absent(api: Api):
    await api.enqueued()
    (claimed,) = await api.claimed(lease_seconds=1)
    answer = await api.verdict(claimed, "extend", lease_seconds=600, progress={"done": 1})
    job = answer.json()
    assert (answer.status_code, list(job)) == (200, HELD_FIELDS)
    assert (job["state"], job["token"], job["progress"]) == ("running", claimed["token"], {"done": 1})
    assert job["lease_expires_at"] > claimed["lease_expires_at"]
    assert job["cancel_requested"] is False
    await api.post(f"/v1/jobs/{job['id']}/cancel")
    again = (await api.verdict(claimed, "extend", lease_seconds=600)).json()
    assert (again["progress"], again["cancel_requested"]) == ({"done": 1}, True)
    assert (await api.verdict(claimed, "extend", lease_seconds=600, progress=None)).json()["progress"] is None
    assert list(await read(api, job)) == JOB_FIELDS


@pytest.mark.parametrize(("verb", "body"), VERDICTS)
async def test_a_token_that_is_not_the_holders_changes_nothing(api: Api, verb: str, body: dict):
    await api.enqueued()
    (claimed,) = await api.claimed()
    before = await read(api, claimed)
    for token in (claimed["token"] + 1, 2**63 - 1):
        refused(await api.post(f"/v1/jobs/{claimed['id']}/{verb}", json=body | {"token": token}), 409, "lease-lost")
    assert await read(api, claimed) == before


@pytest.mark.parametrize(("verb", "body"), VERDICTS)
@pytest.mark.parametrize("token", [0, -1, 2**63, 1.0, "1", True, None, [1]])
async def test_what_is_no_token_is_refused_with_its_bound(reader: Api, verb: str, body: dict, token: object):
    (fault,) = refused(await reader.post(f"/v1/jobs/1/{verb}", json=body | {"token": token}), 422, "validation-failed")[
        "errors"
    ]
    assert fault["pointer"] == "/token"
    assert "from 1 to 9223372036854775807" in fault["detail"] or "1.8e308" in fault["detail"]


@pytest.mark.parametrize(
    ("verb", "body", "pointers"),
    [
        ("complete", {}, ["/token"]),
        ("complete", {"token": 1, "output": "x" * 262_143}, ["/output"]),
        ("complete", {"token": 1, "error": "x"}, ["/error"]),
        ("fail", {"token": 1}, ["/error"]),
        ("fail", {"token": 1, "error": None}, ["/error"]),
        ("fail", {"token": 1, "error": "a\0"}, ["/error"]),
        ("fail", {"token": 1, "error": "x", "retry_in_seconds": -1}, ["/retry_in_seconds"]),
        ("fail", {"token": 1, "error": "x", "retry_in_seconds": 1, "discard": True}, ["/discard"]),
        ("fail", {"token": 1, "error": "x", "discard": 1}, ["/discard"]),
        ("extend", {"token": 1}, ["/lease_seconds"]),
        ("extend", {"token": 1, "lease_seconds": 0}, ["/lease_seconds"]),
        ("extend", {"token": 1, "lease_seconds": 86_401}, ["/lease_seconds"]),
        ("extend", {"token": 1, "lease_seconds": 60, "progress": "x" * 262_143}, ["/progress"]),
        ("release", {"token": 1, "delay_seconds": "1"}, ["/delay_seconds"]),
        ("release", {"token": 1, "delay_seconds": None}, ["/delay_seconds"]),
        ("cancel", {"token": 1}, ["/token"]),
        ("retry", {"limit": 1}, ["/limit"]),
        ("discard", {"x": 1}, ["/x"]),
    ],
)
async def test_a_wrong_field_of_a_verb_is_named(reader: Api, verb: str, body: dict, pointers: list[str]):
    problem = refused(await reader.post(f"/v1/jobs/1/{verb}", json=body), 422, "validation-failed")
    assert [fault["pointer"] for fault in problem["errors"]] == pointers


@pytest.mark.parametrize("verb", ["cancel", "retry", "discard"])
@pytest.mark.parametrize("content", [b"", b"{}", b" {} "])
async def test_what_needs_no_token_needs_no_body(api: Api, verb: str, content: bytes):
    job = await api.enqueued()
    answer = await api.post_raw(content, path=f"/v1/jobs/{job['id']}/{verb}")
    assert (answer.status_code, list(answer.json())) == (200, JOB_FIELDS)


async def test_cancelling_and_discarding_end_a_job_and_retrying_begins_it_anew(api: Api):
    job = await api.enqueued()
    path = f"/v1/jobs/{job['id']}"
    assert (await api.post(f"{path}/cancel")).json()["state"] == "cancelled"
    assert (await api.post(f"{path}/cancel")).json()["state"] == "cancelled"
    assert (await api.post(f"{path}/retry")).json()["state"] == "ready"
    assert (await api.post(f"{path}/discard")).json()["state"] == "discarded"
    assert (await api.post(f"{path}/retry")).json()["state"] == "ready"
    (claimed,) = await api.claimed()
    assert (await api.post(f"{path}/cancel")).json() == await read(api, job)
    assert (await read(api, job))["cancel_requested"] is True
    assert (await api.verdict(claimed, "fail", error="stopped")).json()["state"] == "cancelled"


async def test_a_holder_whose_job_was_discarded_has_lost_it(api: Api):
    await api.enqueued()
    (claimed,) = await api.claimed()
    assert (await api.post(f"/v1/jobs/{claimed['id']}/discard")).json()["state"] == "discarded"
    for verb, body in VERDICTS:
        answer = await api.post(f"/v1/jobs/{claimed['id']}/{verb}", json=body | {"token": claimed["token"]})
        refused(answer, 409, "lease-lost")


async def test_a_verb_for_living_jobs_is_refused_on_one_that_has_succeeded(api: Api):
    await api.enqueued()
    (claimed,) = await api.claimed()
    await api.verdict(claimed, "complete")
    for verb in ("cancel", "retry", "discard"):
        refused(await api.post(f"/v1/jobs/{claimed['id']}/{verb}"), 409, "job-finished")


@pytest.mark.parametrize("verb", ["complete", "fail", "extend", "release", "cancel", "retry", "discard"])
async def test_a_verb_with_a_key_happens_once_and_is_replayed(api: Api, verb: str):
    job = await api.enqueued()
    (claimed,) = await api.claimed()
    body = dict(VERDICTS).get(verb, {})
    if body:
        body = body | {"token": claimed["token"]}
    path = f"/v1/jobs/{job['id']}/{verb}"
    first = await api.post(path, json=body, key="k")
    assert first.status_code == 200, first.text
    after_first = await read(api, job)
    assert_replays(await api.post(path, json=body, key="k"), first)
    assert await read(api, job) == after_first
    refused(await api.post("/v1/jobs/999/cancel", key="k"), 422, "idempotency-key-reused")


async def test_a_refused_verb_does_not_use_up_its_key(api: Api):
    job = await api.enqueued()
    path = f"/v1/jobs/{job['id']}/complete"
    refused(await api.post(path, json={"token": 1}, key="k"), 409, "lease-lost")
    (claimed,) = await api.claimed()
    assert claimed["token"] == 1
    assert (await api.post(path, json={"token": 1}, key="k")).json()["state"] == "succeeded"
