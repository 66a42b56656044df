"""Claiming over HTTP: what a claim answers, how it waits, and that a client that has gone gets nothing."""

import asyncio
import socket
from collections.abc import AsyncIterator

import httpx2
import pytest
import uvicorn

from reserve.db.connection import Database
from reserve.web import app
from reserve.web.polls import Polls
from tests.steps import LOOKS_MAX
from tests.web.conftest import TIMESTAMP, Api, refused

CLAIMED_FIELDS = [
    "id",
    "token",
    "lane",
    "kind",
    "payload",
    "priority",
    "attempt",
    "max_attempts",
    "failures",
    "rescues",
    "created_at",
    "lease_expires_at",
    "idempotency_key",
]
#: A wait that no test is meant to sit through.
LONG = 20


async def until_open(polls: Polls, count: int) -> None:
    """Wait until `count` clients are waited on."""
    for _ in range(LOOKS_MAX):
        if len(polls._clients) == count:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{count} claims should be open, and {len(polls._clients)} are")


@pytest.fixture
def polls(database: Database) -> Polls:
    return Polls(database)


@pytest.fixture
async def polled(database: Database, polls: Polls):
    """The interface with `polls` in sight."""
    transport = httpx2.ASGITransport(app.create_app(database, polls))
    async with httpx2.AsyncClient(transport=transport, base_url="http://reserve.test") as client:
        yield Api(client)


async def test_a_claim_answers_with_the_whole_shape_of_each_job(api: Api):
    job = await api.enqueued(payload={"n": 1}, priority=3)
    answer = await api.claim(limit=5, lease_seconds=120)
    assert (answer.status_code, list(answer.json())) == (200, ["jobs"])
    assert answer.headers["cache-control"] == "no-store"
    (claimed,) = answer.json()["jobs"]
    assert list(claimed) == CLAIMED_FIELDS
    assert TIMESTAMP.fullmatch(claimed["lease_expires_at"])
    for name in ("id", "lane", "kind", "payload", "priority", "max_attempts", "failures", "rescues", "created_at"):
        assert claimed[name] == job[name]
    assert (claimed["attempt"], claimed["token"] > 0, bool(claimed["idempotency_key"])) == (1, True, True)
    assert (await api.client.get(f"/v1/jobs/{job['id']}")).json()["state"] == "running"


async def test_jobs_are_claimed_once_by_priority_and_then_in_their_order(api: Api):
    ids = [(await api.enqueued(priority=priority))["id"] for priority in (0, 5, 0, -1)]
    assert [job["id"] for job in await api.claimed(limit=3)] == [ids[1], ids[0], ids[2]]
    assert [job["id"] for job in await api.claimed(limit=3)] == [ids[3]]
    assert await api.claimed(limit=3) == []


async def test_one_job_is_claimed_when_nobody_says_how_many(api: Api):
    await api.enqueued()
    await api.enqueued()
    assert len(await api.claimed(lease_seconds=None)) == 1


async def test_claiming_from_a_lane_that_does_not_exist_answers_empty_and_makes_none(api: Api):
    assert await api.claimed("none", wait_seconds=0.01) == []
    assert (await api.client.get("/v1/lanes")).json()["items"] == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("worker", None),
        ("worker", ""),
        ("worker", "x" * 201),
        ("worker", "a\0"),
        ("limit", 0),
        ("limit", 1001),
        ("limit", 1.0),
        ("limit", None),
        ("lease_seconds", 0),
        ("lease_seconds", 86_401),
        ("lease_seconds", 0.5),
        ("wait_seconds", -1),
        ("wait_seconds", 20.5),
        ("wait_seconds", "1"),
        ("wait_seconds", None),
        ("kinds", ["a"]),
    ],
)
async def test_a_wrong_field_of_a_claim_is_named(reader: Api, field: str, value: object):
    problem = refused(await reader.claim(**{field: value}), 422, "validation-failed")
    assert [fault["pointer"] for fault in problem["errors"]] == [f"/{field}"]


async def test_a_waiting_claim_gets_the_job_that_comes(polled: Api, polls: Polls):
    claim = asyncio.create_task(polled.claimed(wait_seconds=LONG))
    await until_open(polls, 1)
    job = await polled.enqueued()
    assert [one["id"] for one in await claim] == [job["id"]]


async def test_a_waiting_claim_with_a_key_gets_the_job_that_comes_and_its_retry_the_same(polled: Api, polls: Polls):
    claim = asyncio.create_task(polled.claim(wait_seconds=LONG, key="k"))
    await until_open(polls, 1)
    await polled.enqueued()
    first = await claim
    assert len(first.json()["jobs"]) == 1
    await polled.enqueued()
    again = await polled.claim(wait_seconds=LONG, key="k")
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    refused(await polled.claim(key="k", limit=2), 422, "idempotency-key-reused")
    assert len(await polled.claimed(limit=9)) == 1


async def test_an_empty_claim_does_not_use_up_its_key(api: Api):
    empty = await api.claim(key="k")
    assert (empty.json(), "idempotent-replayed" in empty.headers) == ({"jobs": []}, False)
    await api.enqueued()
    assert len((await api.claim(key="k")).json()["jobs"]) == 1


async def test_claims_that_wait_hold_no_connection(database: Database, polled: Api, polls: Polls):
    """Twice as many wait as there are connections, and others are answered meanwhile."""
    count = 2 * database.settings.connections_max
    claiming = [asyncio.create_task(polled.claimed(f"lane {n}", wait_seconds=LONG)) for n in range(count)]
    await until_open(polls, count)
    for n in range(count):
        await polled.enqueued(f"lane {n}")
    assert [len(jobs) for jobs in await asyncio.gather(*claiming)] == [1] * count


async def test_more_claims_than_may_wait_are_refused(polled: Api, polls: Polls, database: Database, monkeypatch):
    monkeypatch.setattr(database, "settings", database.settings.model_copy(update={"job_claim_waits_max": 1}))
    waits = asyncio.create_task(polled.claimed(wait_seconds=LONG))
    await until_open(polls, 1)
    await polled.enqueued("other")
    assert len(await polled.claimed("other", wait_seconds=LONG)) == 1
    for key in (None, "k"):
        refused(await polled.claim("other", wait_seconds=LONG, key=key), 503, "overloaded")
        assert (await polled.claim("other", key=key)).json() == {"jobs": []}
    polls.end()
    assert await waits == []


async def test_an_orderly_stop_answers_what_waits_at_once(polled: Api, polls: Polls):
    waits = [asyncio.create_task(polled.claim(wait_seconds=LONG, key=key)) for key in (None, "k")]
    await until_open(polls, 2)
    polls.end()
    assert [(await wait).json() for wait in waits] == [{"jobs": []}] * 2
    assert await polled.claimed(wait_seconds=LONG) == []


async def test_a_client_that_left_while_its_jobs_were_claimed_gives_them_back(
    api: Api, database: Database, monkeypatch
):
    """The client goes away, in the very moment in which the database answers."""
    job = await api.enqueued()
    gone = asyncio.Event()
    polls = Polls(database)
    claim = polls.waits.claim

    async def claim_then_leave(*args, **options):
        jobs = await claim(*args, **options)
        gone.set()
        await options["gone"].wait()
        return jobs

    monkeypatch.setattr(polls.waits, "claim", claim_then_leave)
    await call(app.create_app(database, polls), b'{"worker":"w","wait_seconds":20}', gone)
    again = (await api.client.get(f"/v1/jobs/{job['id']}")).json()
    assert (again["state"], again["attempt"], again["failures"], again["rescues"]) == ("ready", 1, 0, 0)


async def call(application, body: bytes, gone: asyncio.Event) -> None:
    """One claim over bare ASGI, whose client goes away when `gone` is set."""
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict:
        if unread:
            return unread.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message) -> None:
        pass

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "raw_path": b"/v1/lanes/mail/claims",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"reserve.test"), (b"content-type", b"application/json")],
    }
    await application(scope, receive, send)


@pytest.fixture(params=["httptools", "h11"])
async def port(request: pytest.FixtureRequest, database: Database, polls: Polls) -> AsyncIterator[int]:
    """The service on real sockets, with each HTTP parser that uvicorn may choose, and with `polls` in sight."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app.create_app(database, polls), http=request.param, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve([listener]))
    yield listener.getsockname()[1]
    server.should_exit = True
    await serving
    listener.close()


@pytest.mark.parametrize("key", [b"", b"Idempotency-Key: k\r\n"])
async def test_a_client_that_went_away_while_it_waited_gets_nothing(
    port: int, api: Api, database: Database, polls: Polls, key: bytes
):
    body = b'{"worker":"leaves","wait_seconds":%d}' % LONG
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /v1/lanes/mail/claims HTTP/1.1\r\nHost: reserve.test\r\nContent-Type: application/json\r\n"
        + key
        + b"Content-Length: %d\r\n\r\n" % len(body)
        + body
    )
    await until_open(polls, 1)
    writer.transport.abort()
    await until_open(polls, 0)
    job = await api.enqueued()
    assert (await api.client.get(f"/v1/jobs/{job['id']}")).json() == job
    assert len(await api.claimed()) == 1


async def test_a_claim_over_real_http_waits_for_its_job(service_url: str):
    async with httpx2.AsyncClient(base_url=service_url, timeout=60) as client:
        api = Api(client)
        claim = asyncio.create_task(api.claimed(wait_seconds=LONG))
        job = await api.enqueued()
        (claimed,) = await claim
        assert claimed["id"] == job["id"]
        done = await api.verdict(claimed, "complete", output=[1])
        assert (done.status_code, done.json()["state"], done.json()["output"]) == (200, "succeeded", [1])
