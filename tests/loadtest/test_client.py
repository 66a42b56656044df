"""The client of a replay, against answers made up for it: what it sends again, and what it does not believe."""

import json
import random
from collections.abc import Callable

import httpx2
import pytest

from loadtest import client as client_module
from loadtest.client import ATTEMPTS_MAX, Client, NoAnswerError, pool_path
from loadtest.ledger import Believed, Count, Held, Ledger, Stock
from loadtest.plan import Retry


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """How long it would have slept, each time."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(client_module.asyncio, "sleep", sleep)
    return slept


def problem(status, code, **headers):
    return httpx2.Response(status, headers=headers, json={"code": code, "status": status})


def placed(body=b'{"id":"1"}', *, replayed=False):
    headers = {"ETag": '"1"', "Location": "/v1/holds/1"} | ({"Idempotent-Replayed": "true"} if replayed else {})
    return httpx2.Response(201, headers=headers, content=body)


def talking(answers: list[httpx2.Response | Exception | Callable[[], httpx2.Response]]):
    """A client that gets these answers, in order, and the requests that it sent."""
    rest, sent = iter(answers), []

    def answer(request):
        sent.append(request)
        item = next(rest)
        if isinstance(item, Exception):
            raise item
        return item

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://reserve.test")
    return Client(http, Ledger(), random.Random(1)), sent  # noqa: S311 -- jitter of a backoff


async def test_contended_and_unavailable_are_sent_again_with_the_same_key_and_counted(pauses):
    client, sent = talking([problem(409, "contended", **{"Retry-After": "3"}), problem(503, "unavailable"), placed()])
    assert (await client.post("/v1/holds", {"lines": []}, "key-1")).status == 201
    assert [request.headers["Idempotency-Key"] for request in sent] == ["key-1"] * 3
    assert len({request.content for request in sent}) == 1
    assert pauses[0] == 3
    assert pauses[1] < 1
    assert client.ledger.counts == {Count.RETRIED_CONTENDED: 1, Count.RETRIED_UNAVAILABLE: 1}


async def test_what_stays_contended_is_taken_for_the_final_answer():
    client, sent = talking([problem(409, "contended")] * 100)
    assert (await client.post("/v1/holds", {}, "key-1")).code == "contended"
    assert len(sent) == ATTEMPTS_MAX


async def test_a_lost_connection_is_tried_again_but_not_for_ever():
    client, _ = talking([httpx2.ReadError("gone"), placed()])
    assert (await client.post("/v1/holds", {}, "key-1")).good
    client, sent = talking([httpx2.ConnectError("refused")] * 100)
    with pytest.raises(NoAnswerError, match="refused"):
        await client.get("/v1/pools/A")
    assert len(sent) == ATTEMPTS_MAX


@pytest.mark.parametrize("code", ["insufficient-stock", "pool-draining", "below-promised"])
async def test_other_refusals_are_final(code):
    client, sent = talking([problem(409, code)])
    assert (await client.post("/v1/holds", {}, "key-1")).code == code
    assert len(sent) == 1


async def test_an_answer_without_a_problem_document_is_named_by_its_status():
    client, _ = talking([httpx2.Response(502, content=b"<html>")])
    assert (await client.get("/v1/pools/A")).code == "502"


@pytest.mark.parametrize("retry", [Retry.IGNORE, Retry.TWICE])
async def test_a_repeat_that_comes_back_as_it_was_is_counted(retry):
    client, _ = talking([placed(), placed(replayed=True)])
    assert not (await client.post("/v1/holds", {}, "key-1", retry)).replayed
    assert client.ledger.faults_count == 0
    assert client.ledger.counts[Count.REPLAYED] == 1


@pytest.mark.parametrize("retry", [Retry.IGNORE, Retry.TWICE])
@pytest.mark.parametrize(
    "second",
    [
        placed(b'{"id":"2"}', replayed=True),
        placed(b'{"id": "1"}', replayed=True),
        placed(),
        problem(409, "insufficient-stock"),
    ],
    ids=["another hold", "another byte", "not marked as a replay", "refused"],
)
async def test_a_repeat_that_gets_another_answer_is_a_fault(retry, second):
    client, _ = talking([placed(), second, second])
    await client.post("/v1/holds", {}, "key-1", retry)
    assert client.ledger.faults_count > 0


async def test_a_repeat_without_the_etag_of_the_first_answer_is_a_fault():
    second = placed(replayed=True)
    del second.headers["ETag"]
    client, _ = talking([placed(), second])
    await client.post("/v1/holds", {}, "key-1", Retry.IGNORE)
    assert client.ledger.faults_count == 1


async def test_a_refusal_is_judged_anew_by_its_repeat():
    client, _ = talking([problem(409, "insufficient-stock"), placed()])
    assert (await client.post("/v1/holds", {}, "key-1", Retry.IGNORE)).good
    assert client.ledger.faults_count == 0


async def test_after_hanging_up_the_next_answer_counts_and_is_compared_with_one_more():
    client, sent = talking([placed(), placed(replayed=True), placed(replayed=True)])
    assert (await client.post("/v1/holds", {}, "key-1", Retry.ABORT)).good
    assert client.ledger.counts[Count.REPLAYED] == 1
    assert {json.dumps(dict(request.headers)) for request in sent} == {json.dumps(dict(sent[0].headers))}


def test_a_pool_key_is_one_segment_of_the_path():
    assert pool_path("a/b 50%") == "/v1/pools/a%2Fb%2050%25"


def test_no_more_comes_back_than_was_sold_and_has_not_come_back_yet():
    ledger = Ledger(stock={"A": Stock(initial=10)})
    ledger.place("h", Held("1", {"A": 4}, "2011-05-02T08:00:00.000000Z"))
    assert ledger.take_return("A", 3) == 0
    ledger.settle("h", Believed.CONFIRMED)
    assert [ledger.take_return("A", quantity) for quantity in (3, 3, 3)] == [3, 1, 0]
    assert ledger.take_return("never seen", 1) == 0
    ledger.undo_return("A", 1)
    stock = ledger.stock["A"]
    assert (stock.on_hand, stock.held, stock.confirmed, stock.available) == (13, 0, 4, 9)


def test_a_hold_that_was_answered_to_two_carts_is_a_fault():
    ledger = Ledger(stock={"A": Stock(initial=10)})
    for invoice in "12":
        ledger.place("h", Held(invoice, {"A": 1}, "2011-05-02T08:00:00.000000Z"))
    assert ledger.faults_count == 1
    assert ledger.stock["A"].held == 1
