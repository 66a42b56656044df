"""Problem documents: every error has one, the order in which they apply, and what they never say."""

import json
from dataclasses import replace

import httpx2
import pytest
import structlog

from reserve import errors
from reserve.db.connection import Database
from reserve.errors import ReserveError
from reserve.events import Event
from reserve.web import app, examples, problems
from tests.web.conftest import Api, drain, refused


def leaves(error: type[ReserveError] = ReserveError) -> set[type[ReserveError]]:
    below = error.__subclasses__()
    return set().union(*map(leaves, below)) if below else {error}


def test_every_error_is_mapped_or_known_never_to_be_answered():
    assert leaves() == set(problems.PROBLEMS) | problems.NEVER_ANSWERED
    assert not set(problems.PROBLEMS) & problems.NEVER_ANSWERED


def test_every_error_that_is_answered_has_an_example():
    assert [type(error) for error, _ in examples.ERRORS] == list(problems.PROBLEMS)


@pytest.mark.parametrize("error", problems.PROBLEMS, ids=lambda error: error.code)
def test_transient_errors_and_no_others_say_when_to_try_again(error: type[ReserveError]):
    assert (problems.PROBLEMS[error].retry_after_seconds is not None) == error.transient


@pytest.mark.parametrize("code", [*(error.code for error in problems.PROBLEMS), "internal-error"])
async def test_the_type_of_each_problem_leads_to_its_meaning(reader: Api, code: str):
    meaning = (await reader.client.get(problems.problem_type(code))).json()
    assert list(meaning) == ["type", "title", "status", "code", "transient"]
    assert (meaning["type"], meaning["code"]) == (f"/problems/{code}", code)


def test_the_members_come_in_one_order_with_the_extensions_last():
    error = errors.InsufficientStock([errors.Shortfall("mug", 2, 1)])
    assert json.dumps(problems.document(error, "/v1/holds")) == json.dumps(
        {
            "type": "/problems/insufficient-stock",
            "title": "Too little stock",
            "status": 409,
            "detail": "Too little stock ('mug': 2 asked, 1 left).",
            "code": "insufficient-stock",
            "instance": "/v1/holds",
            "shortfalls": [{"pool": "mug", "requested": 2, "available": 1}],
        }
    )


async def test_the_first_of_several_faults_in_the_documented_order_answers(api: Api, database: Database):
    """Key present, body readable, body valid, key reused or replayed, pool known, pool open, stock."""
    await api.put_pool("mug", on_hand=5)
    await api.put_pool("shut", on_hand=1)
    await drain(database, "shut")
    used = await api.place(key="used", pool="mug")
    wrong = json.dumps({"lines": [{"pool": "none", "quantity": 0}]}).encode()
    everywhere = [{"pool": pool, "quantity": 99} for pool in ("mug", "none", "shut")]

    refused(
        await api.client.post("/v1/holds", content=b"{", headers={"Content-Type": "text/plain"}),
        400,
        "idempotency-key-missing",
    )
    refused(await api.post_raw(b"{", Content_Type="text/plain", Idempotency_Key="used"), 415, "unsupported-media-type")
    refused(await api.post_raw(b"{", Idempotency_Key="used"), 400, "invalid-request")
    refused(await api.post_raw(wrong, Idempotency_Key="used"), 422, "validation-failed")
    refused(await api.place(key="used", lines=everywhere), 422, "idempotency-key-reused")
    assert (await api.place(key="used", pool="mug")).content == used.content
    refused(await api.place(lines=everywhere), 404, "pool-not-found")
    refused(await api.place(lines=[everywhere[0], everywhere[2]]), 409, "pool-draining")
    refused(await api.place(lines=everywhere[:1]), 409, "insufficient-stock")


async def test_a_database_that_is_away_is_unavailable_but_the_service_lives(away: Api):
    lines = [{"pool": "mug", "quantity": 1}]
    answers = [
        await away.client.get("/health/ready"),
        await away.put_pool("mug"),
        await away.client.get("/v1/pools/mug"),
        await away.client.get("/v1/holds"),
        await away.place(lines=lines),
        await away.adjust(delta=1, reason="count"),
        await away.post("/v1/holds/01997a3e-5a1c-7c42-9d0e-3b8f6f2f7a10/confirm"),
        await away.client.put("/v1/lanes/mail", json={}),
        await away.client.get("/v1/lanes"),
        await away.client.get("/v1/jobs/1"),
        await away.enqueue(),
        await away.claim(),
        await away.claim(key="k", wait_seconds=1),
        await away.post("/v1/jobs/1/complete", json={"token": 1}),
    ]
    for answer in answers:
        refused(answer, 503, "unavailable")
        assert answer.headers["retry-after"] == "5"
    assert (await away.client.get("/health/live")).json() == {"status": "live"}


async def test_a_database_with_its_schema_is_ready(api: Api):
    answer = await api.client.get("/health/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("delete from {}.migration", "not-migrated"),
        ("insert into {}.migration (number, name, checksum) values (9999, '9999_x', 'x')", "schema-too-new"),
    ],
)
async def test_a_database_with_another_schema_is_not_ready(api: Api, database: Database, conn, change: str, code: str):
    await conn.execute(change.format(database.namespace))
    refused(await api.client.get("/health/ready"), 503, code)


async def test_an_unexpected_fault_says_nothing_of_itself_and_everything_in_the_log(database: Database, monkeypatch):
    """A row that the program cannot read stands for any fault of ours."""
    secret = "select secret from somewhere"

    async def fail(database, incoming):
        raise RuntimeError(secret)

    monkeypatch.setattr(
        app,
        "CALLS",
        tuple(
            replace(call, answer=fail) if call.path == "/v1/holds" and call.method == "GET" else call
            for call in app.CALLS
        ),
    )
    transport = httpx2.ASGITransport(app.create_app(database))
    async with httpx2.AsyncClient(transport=transport, base_url="http://reserve.test") as client:
        with structlog.testing.capture_logs() as lines:
            answer = await client.get("/v1/holds", headers={"X-Request-Id": "r-1"})
    problem = refused(answer, 500, "internal-error")
    assert list(problem) == ["type", "title", "status", "detail", "code", "instance"]
    assert "r-1" in problem["detail"]
    for word in ("secret", "RuntimeError", "Traceback", ".py"):
        assert word not in answer.text
    logged = next(line for line in lines if line["event"] == Event.REQUEST_FAILED)
    assert (logged["request_id"], logged["log_level"], str(logged["exc_info"])) == ("r-1", "error", secret)


async def test_failures_are_logged_with_their_request_id_and_refusals_are_not(away: Api):
    with structlog.testing.capture_logs() as lines:
        await away.client.get("/v1/pools/a%20b", headers={"X-Request-Id": "r-1"})
        await away.client.get("/none%0Aforged", headers={"X-Request-Id": "r-2"})
    assert [(line["event"], line["code"], line["path"], line["request_id"]) for line in lines] == [
        (Event.REQUEST_REFUSED, "unavailable", "/v1/pools/a%20b", "r-1")
    ]


async def test_a_host_header_that_is_none_is_a_bad_request(reader: Api):
    answer = await reader.client.get("/health/live", headers={"Host": "a b"})
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid-request"


async def test_no_environment_turns_a_page_with_the_stack_on(database: Database, monkeypatch):
    monkeypatch.setenv("LITESTAR_DEBUG", "1")
    assert app.create_app(database).debug is False
