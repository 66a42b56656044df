"""Enqueuing many jobs at once: each item is answered as its own call would be, and none spoils the others."""

import asyncio

import pytest

from reserve.db.connection import Database
from reserve.errors import Fault, ValidationFailed
from reserve.jobs import enqueuing
from reserve.web import job_batch
from tests.web.conftest import Api, refused

PATH = "/v1/lanes/mail/jobs/batch"


def item(key: str, **job) -> dict:
    return {"idempotency_key": key, "kind": "k"} | job


async def send(api: Api, *items: object) -> list[dict]:
    answer = await api.post(PATH, json={"items": list(items)})
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def listed(api: Api) -> list[dict]:
    return (await api.client.get("/v1/jobs?limit=1000")).json()["items"]


async def test_each_item_is_answered_in_its_place_with_its_job(api: Api):
    answered = await send(api, *(item(f"k{n}", payload={"n": n}) for n in range(300)))
    assert [list(one) for one in answered] == [["status", "job"]] * 300
    assert {one["status"] for one in answered} == {201}
    assert [one["job"]["payload"]["n"] for one in answered] == list(range(300))
    ids = [one["job"]["id"] for one in answered]
    assert ids == sorted(set(ids))
    assert await listed(api) == [one["job"] for one in reversed(answered)]


async def test_a_faulty_item_has_its_problem_and_the_others_are_enqueued(api: Api):
    good, wrong, nothing, unkeyed, last = await send(
        api, item("a"), item("b", priority=1.5, x=1), 5, {"kind": "k"}, item("f")
    )
    assert (good["status"], last["status"]) == (201, 201)
    assert [job["id"] for job in await listed(api)] == [last["job"]["id"], good["job"]["id"]]
    for number, one, pointers in [
        (1, wrong, ["/priority", "/x"]),
        (2, nothing, [""]),
        (3, unkeyed, ["/idempotency_key"]),
    ]:
        assert list(one) == ["status", "problem"]
        problem = one["problem"]
        assert (one["status"], problem["status"], problem["code"]) == (422, 422, "validation-failed")
        assert problem["instance"] == PATH
        assert [fault["pointer"] for fault in problem["errors"]] == [f"/items/{number}{tail}" for tail in pointers]


async def test_what_only_the_job_lane_can_refuse_is_refused_in_its_place_too(api: Api, monkeypatch):
    """The edge refuses all that it can see, so that a job lane with a bound of its own stands for the rest."""

    async def enqueue(conn, jobs, **options):
        at = [f"/{number}" if len(jobs) > 1 else "" for number in range(len(jobs))]
        faults = [Fault(f"{at[n]}/priority", "is too high") for n, job in enumerate(jobs) if job.priority > 5]
        if faults:
            raise ValidationFailed(faults)
        return await enqueuing.enqueue_in(conn, jobs, **options)

    monkeypatch.setattr(job_batch, "enqueue_in", enqueue)
    answered = await send(api, item("a", priority=9), item("b"), item("a", priority=9), item("c", priority=6))
    assert [one["status"] for one in answered] == [422, 201, 422, 422]
    (alone,) = await send(api, item("d", priority=6))
    assert alone["problem"]["errors"] == [{"pointer": "/items/0/priority", "detail": "is too high"}]
    assert answered[3]["problem"]["errors"] == [{"pointer": "/items/3/priority", "detail": "is too high"}]
    assert len(await listed(api)) == 1


async def test_what_postgresql_cannot_store_spoils_its_own_item_only(api: Api):
    body = (
        rb'{"items":[{"idempotency_key":"a","kind":"k","payload":{"x":["\u0000"]}},'
        rb'{"idempotency_key":"b","kind":"k"},{"idempotency_key":"c","kind":"\ud800"},'
        rb'{"idempotency_key":"d","kind":"k","payload":1e400}, "\udfff"]}'
    )
    answer = await api.client.post(PATH, content=body, headers={"Content-Type": "application/json"})
    answered = answer.json()["items"]
    assert [one["status"] for one in answered] == [422, 201, 422, 422, 422]
    pointers = [[fault["pointer"] for fault in one["problem"]["errors"]] for one in answered if "problem" in one]
    assert pointers == [["/items/0/payload/x/0"], ["/items/2/kind"], ["/items/3/payload"], ["/items/4"]]
    assert len(await listed(api)) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"items": None},
        {"items": {}},
        {"items": "x"},
        {"items": []},
        {"items": [{}] * 1001},
        {"items": [item("a")], "lane": "mail"},
    ],
)
async def test_a_fault_of_the_body_refuses_the_whole(api: Api, body: object):
    refused(await api.post(PATH, json=body), 422, "validation-failed")
    assert await listed(api) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"items":[{"a":1,"a":1}]}', b'{"items":' + b"[" * 40 + b"]" * 40 + b"}"]
)
async def test_a_body_that_cannot_be_read_refuses_the_whole(reader: Api, content: bytes):
    answer = await reader.client.post(PATH, content=content, headers={"Content-Type": "application/json"})
    refused(answer, 400, "invalid-request")


async def test_a_thousand_items_are_answered_at_once(api: Api):
    answered = await send(api, *(item(f"k{n}") for n in range(1000)))
    assert len({one["job"]["id"] for one in answered}) == 1000


async def test_a_key_in_a_header_is_refused_before_anything_else(reader: Api):
    problem = refused(await reader.post(PATH, content=b"{", key="k"), 400, "invalid-request")
    assert "idempotency_key" in problem["detail"]


async def test_a_batch_that_is_sent_again_answers_the_same_and_enqueues_nothing(api: Api):
    first = await api.post(PATH, json={"items": [item("a"), item("b", payload=[1])]})
    (claimed,) = await api.claimed()
    await api.verdict(claimed, "complete")
    again = await api.post(PATH, json={"items": [item("a"), item("b", payload=[1])]})
    assert again.content == first.content
    assert len(await listed(api)) == 2


async def test_what_was_stored_is_replayed_beside_what_is_new(api: Api):
    (a,) = await send(api, item("a"))
    again, fresh, reused = await send(api, item("a"), item("b"), item("a", priority=1))
    assert again == a
    assert fresh["job"]["id"] > a["job"]["id"]
    assert (reused["status"], reused["problem"]["code"]) == (422, "idempotency-key-reused")
    (other,) = await send(api, item("b", kind="other"))
    assert (other["status"], other["problem"]["code"]) == (422, "idempotency-key-reused")
    assert len(await listed(api)) == 2


async def test_a_key_that_is_repeated_in_a_batch_replays_the_first_or_is_reused(api: Api):
    first, same, other, faulty = await send(
        api, item("a"), {"kind": "k", "idempotency_key": "a"}, item("a", payload=1), item("a", kind="")
    )
    assert (first["status"], same) == (201, first)
    assert (other["status"], other["problem"]["code"]) == (422, "idempotency-key-reused")
    assert faulty["problem"]["code"] == "validation-failed"
    assert len(await listed(api)) == 1


async def test_a_faulty_item_does_not_use_up_its_key(api: Api):
    faulty, good = await send(api, item("a", priority="x"), item("a"))
    assert (faulty["status"], good["status"]) == (422, 201)


async def test_an_item_and_the_single_call_it_stands_for_replay_each_other(api: Api):
    (one,) = await send(api, item("a", payload={"n": 1}))
    single = await api.enqueue(key="a", payload={"n": 1})
    assert (single.status_code, single.json()) == (201, one["job"])
    assert single.headers["idempotent-replayed"] == "true"
    assert single.headers["location"] == f"/v1/jobs/{one['job']['id']}"
    single = await api.enqueue(key="b")
    (one,) = await send(api, item("b"))
    assert one == {"status": 201, "job": single.json()}
    assert len(await listed(api)) == 2


async def test_the_same_batch_at_once_enqueues_each_job_once(api: Api):
    items, shifts = [item(f"k{n}") for n in range(50)], range(0, 50, 10)
    answers = await asyncio.gather(*(send(api, *items[n:], *items[:n]) for n in shifts))
    by_key = [
        {(n + shift) % 50: one for n, one in enumerate(found)} for shift, found in zip(shifts, answers, strict=True)
    ]
    assert all(found == by_key[0] for found in by_key)
    assert len(await listed(api)) == 50


@pytest.mark.parametrize("key", ["", "x" * 256, "é", "a\tb", 5])
async def test_the_key_of_an_item_is_bounded_as_in_the_header(api: Api, key: object):
    (one,) = await send(api, {"idempotency_key": key, "kind": "k"})
    assert [fault["pointer"] for fault in one["problem"]["errors"]] == ["/items/0/idempotency_key"]


async def test_an_answer_stays_short_however_much_is_wrong(reader: Api):
    many = {f"field {number}": 1 for number in range(40)}
    answer = await reader.post(PATH, json={"items": [many] * 1000})
    assert answer.status_code == 200
    for one in answer.json()["items"]:
        assert len(one["problem"]["errors"]) == 11


async def test_a_database_that_is_away_refuses_the_whole(away: Api, database: Database):
    refused(await away.post(PATH, json={"items": [item("a")]}), 503, "unavailable")
