"""The flash sale of the demo: its buyers, what its checks notice, and a small sale on the live service."""

import builtins
import io
import json
from collections import Counter

import httpx2
import pytest
from rich.console import Console

from reserve.errors import SettingsError
from reserve.ops import demo, demo_sale
from reserve.ops.demo_buyers import SHORT_TTL_SECONDS, Buyer, Manner, Options, plan_buyers
from reserve.ops.demo_sale import POOL, Sale

EXPIRES_AT = "2026-05-02T08:00:02.000000Z"


# --- who comes and does what --------------------------------------------------------------------------------


def test_the_seed_decides_the_buyers():
    options = Options(buyers=500, units=10, seed=3)
    assert plan_buyers(options) == plan_buyers(options)
    assert plan_buyers(options) != plan_buyers(Options(buyers=500, units=10, seed=4))


def test_every_buyer_comes_once_in_the_order_of_arrival():
    buyers = plan_buyers(Options(buyers=2000))
    assert sorted(buyer.number for buyer in buyers) == list(range(1, 2001))
    arrivals = [buyer.arrives_after_seconds for buyer in buyers]
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] <= 10
    assert arrivals[1000] < 2, "half of them at once"


def test_a_small_crowd_does_not_keep_anybody_waiting():
    assert plan_buyers(Options(buyers=20))[-1].arrives_after_seconds <= 0.1


def test_every_manner_occurs_and_most_buyers_mean_it():
    manners = Counter(buyer.manner for buyer in plan_buyers(Options(buyers=2000)))
    assert set(manners) == set(Manner)
    assert manners[Manner.ABANDON] + manners[Manner.RELEASE] < 1000


def test_only_what_is_left_to_lapse_is_short_and_dawdlers_come_back_around_its_end():
    buyers = plan_buyers(Options(buyers=2000))
    short = {buyer.manner for buyer in buyers if buyer.ttl_seconds == SHORT_TTL_SECONDS}
    assert short == {Manner.ABANDON, Manner.DAWDLE}
    dawdling = [buyer.thinks_seconds for buyer in buyers if buyer.manner is Manner.DAWDLE]
    assert min(dawdling) < SHORT_TTL_SECONDS < max(dawdling)


# --- what the checks notice ---------------------------------------------------------------------------------


def buyer(manner):
    return Buyer(1, manner, 0, thinks_seconds=0, hangs_up_after_seconds=0.01, tries=1)


def hold(hold_id="h-1", state="held", **more):
    return {"id": hold_id, "state": state, "created_at": EXPIRES_AT, "expires_at": EXPIRES_AT} | more


def placed(document, *, replayed=False):
    return httpx2.Response(201, json=document, headers={"Idempotent-Replayed": "true"} if replayed else {})


def problem(code, status=409):
    return httpx2.Response(status, json={"code": code})


def sale_that_hears(*answers):
    """A sale whose requests get these answers in order; the last one again and again."""
    rest = list(answers)

    def answer(_request):
        return rest.pop(0) if len(rest) > 1 else rest[0]

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://reserve.test")
    return Sale(http, httpx2.TransportError, requests_at_once=4)


async def visit(manner, *answers):
    sale = sale_that_hears(*answers)
    await sale.visit(buyer(manner))
    return sale.tally


async def test_a_buyer_who_confirms_has_the_unit():
    done = httpx2.Response(200, json=hold(state="confirmed", finalized_at="2026-05-02T08:00:01.000000Z"))
    tally = await visit(Manner.CONFIRM, placed(hold()), done)
    assert (tally.placed, tally.confirmed, tally.faults) == (1, 1, [])


async def test_a_buyer_who_is_refused_is_counted_by_the_reason():
    assert (await visit(Manner.CONFIRM, problem("insufficient-stock"))).insufficient == 1
    tally = await visit(Manner.CONFIRM, problem("pool-not-found", 404))
    assert "unexpected reason" in tally.faults[0]


async def test_a_failing_server_is_a_fault_and_no_crash():
    assert "500" in (await visit(Manner.CONFIRM, httpx2.Response(500, text="Internal Server Error"))).faults[0]


@pytest.mark.parametrize("manner", [Manner.RETRY, Manner.DOUBLE_CLICK])
async def test_one_key_that_gets_two_holds_is_noticed(manner):
    two = placed(hold("h-1")), placed(hold("h-2")), placed(hold("h-3"))
    tally = await visit(manner, *two, problem("hold-released"))
    assert any("two answers" in fault or "effect of their own" in fault for fault in tally.faults)


@pytest.mark.parametrize("manner", [Manner.RETRY, Manner.DOUBLE_CLICK])
async def test_one_key_that_gets_its_answer_again_is_no_fault(manner):
    done = httpx2.Response(200, json=hold(state="confirmed", finalized_at="2026-05-02T08:00:01.000000Z"))
    repeats = [placed(hold(), replayed=True)] * (2 if manner is Manner.RETRY else 1)
    tally = await visit(manner, placed(hold()), *repeats, done)
    assert (tally.faults, tally.replayed, tally.confirmed) == ([], 1, 1)


@pytest.mark.parametrize(
    ("as_of", "early"), [("2026-05-02T08:00:01.999999Z", True), ("2026-05-02T08:00:02.000000Z", False)]
)
async def test_a_hold_that_expired_early_by_the_databases_clock_is_noticed(as_of, early):
    pool = httpx2.Response(200, json={"as_of": as_of})
    tally = await visit(Manner.DAWDLE, placed(hold()), problem("hold-expired"), pool)
    assert bool(tally.faults) is early


async def test_a_confirm_after_the_expiry_is_noticed():
    done = httpx2.Response(200, json=hold(state="confirmed", finalized_at="2026-05-02T08:00:02.000001Z"))
    assert "after it had expired" in (await visit(Manner.DAWDLE, placed(hold()), done)).faults[0]


@pytest.mark.parametrize(
    ("available", "held", "confirmed", "word"),
    [(0, 0, 11, "Oversold"), (-1, 1, 10, "Oversold"), (0, 6, 5, "Oversold"), (0, 4, 5, "Lost"), (3, 4, 3, None)],
)
def test_units_that_do_not_add_up_are_noticed(available, held, confirmed, word):
    sale = sale_that_hears(problem("unused"))
    demo._judge_pool(sale, Options(units=10), {"available": available, "held": held, "confirmed": confirmed})
    assert [fault.partition(":")[0] for fault in sale.tally.faults] == ([word] if word else [])


def test_faults_beyond_the_first_are_counted():
    tally = demo_sale.Tally()
    for number in range(100):
        tally.fault(f"fault {number}")
    assert len(tally.faults) + tally.faults_more == 100


# --- a whole sale -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [True, False], ids=["live display", "plain lines"])
async def test_a_small_sale_on_the_live_service_is_clean(service_url, terminal):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=160)
    result = await demo.run(service_url, Options(buyers=150, units=12, seed=5, requests_at_once=16), console)
    assert result.faults == ()
    assert result.clean
    assert result.confirmed <= 12
    assert result.placed == result.confirmed + result.released + result.expired
    assert result.placed + result.insufficient + result.contended >= 150
    assert ("available 12" if not terminal else "stock") in out.getvalue()
    assert ("\x1b[" in out.getvalue()) is terminal


async def test_a_sale_that_is_lied_to_is_not_clean(service_url, monkeypatch):
    ask = Sale.ask

    async def lie(self, method, path, body=None, key=None):
        """Release in the place of a confirm, and say that it was one."""
        if not path.endswith("/confirm"):
            return await ask(self, method, path, body, key)
        answer = await ask(self, method, path.replace("/confirm", "/release"), body, key)
        document = answer.document | {"state": "confirmed"}
        return demo_sale.Answer(
            answer.status, json.dumps(document).encode(), answer.headers, replayed=False, retry_after_seconds=0
        )

    monkeypatch.setattr(Sale, "ask", lie)
    result = await demo.run(service_url, Options(buyers=40, units=5), Console(file=io.StringIO()))
    assert not result.clean
    assert any("were told that they have their unit" in fault for fault in result.faults)


async def test_a_pool_that_is_there_already_is_said_in_a_sentence(service_url):
    async with httpx2.AsyncClient(base_url=service_url, trust_env=False) as http:
        await http.put(f"/v1/pools/{POOL}", json={"on_hand": 100})
    with pytest.raises(SettingsError, match="empty database"):
        await demo.run(service_url, Options(), Console(file=io.StringIO()))


async def test_without_the_http_client_the_sentence_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def no_httpx2(name, *arguments, **keywords):
        if name == "httpx2":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", no_httpx2)
    with pytest.raises(SettingsError, match=r"pip install 'reserve\[embedded\]'"):
        await demo.run("http://127.0.0.1:9", Options(), Console(file=io.StringIO()))
