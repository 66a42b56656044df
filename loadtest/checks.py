"""What must be true after a replay, looked up over HTTP; every difference becomes a fault in the ledger.

Compares the service with what its clients believe: each hold, each pool. The audit, which compares the service
with its own movements, is another program.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from loadtest.carts import Run
from loadtest.ledger import Believed, Count, Held
from loadtest.plan import Fate, Retry, choose_fate

#: The largest page that the service gives by default.
_PAGE = 1000

#: Beyond the expiry of the last hold, how long the database's clock may take to get there.
_LAPSE_PATIENCE_SECONDS = 30


async def check(run: Run) -> None:
    """All checks, in an order in which each can rely on the one before. Waits for holds that shall lapse."""
    found = {str(hold["id"]): hold async for hold in _pages(run, "/v1/holds", owner=run.name)}
    await _adopt(run, found)
    await _wait_for_lapses(run)
    await _refuse_late_confirms(run)
    if run.stop.is_set():
        return  # holds that should have lapsed may not have, and are no fault
    # Read again, as the two steps before have changed what is there.
    found = {str(hold["id"]): hold async for hold in _pages(run, "/v1/holds", owner=run.name)}
    _compare_holds(run, found)
    pools = {str(pool["key"]): pool async for pool in _pages(run, "/v1/pools", prefix=run.prefix)}
    _compare_pools(run, pools)


async def _pages(run: Run, path: str, **query: str) -> AsyncIterator[Mapping[str, Any]]:
    """Every item of a list, page by page."""
    cursor: str | None = None
    while True:
        parameters = query | {"limit": str(_PAGE)} | ({} if cursor is None else {"cursor": cursor})
        answer = await run.client.get(f"{path}?{urlencode(parameters)}")
        if not answer.good:
            run.ledger.fault(f"GET {path} was refused: {answer}")
            return
        for item in answer.document["items"]:
            yield item
        cursor = answer.document["next_cursor"]
        if cursor is None:
            return


async def _adopt(run: Run, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Take in holds that nobody was told of: the client hung up, and its repeats were judged before it was.

    They are the client's by right, and released here. After any other request an unknown hold is a fault.
    """
    for hold_id, hold in found.items():
        if hold_id in run.ledger.holds:
            continue
        invoice = str(hold["reference"])
        excused = run.retry_of(invoice) is Retry.ABORT or run.ledger.counts[Count.RETRIED_CONNECTION]
        if not excused or hold["state"] not in {Believed.HELD, Believed.EXPIRED}:
            run.ledger.fault(f"The hold {hold_id} of {invoice} is {hold['state']}, and no client was told of it.")
            continue
        run.ledger.counts[Count.LATE] += 1
        quantities = {str(line["pool"]).removeprefix(run.prefix): int(line["quantity"]) for line in hold["lines"]}
        run.ledger.place(hold_id, Held(invoice, quantities, str(hold["expires_at"])))
        answer = await run.client.send("POST", f"/v1/holds/{hold_id}/release")
        state = answer.document.get("state")
        if state in {Believed.RELEASED, Believed.EXPIRED}:
            run.ledger.settle(hold_id, Believed(state))
        else:
            run.ledger.fault(f"The hold {hold_id} of {invoice} cannot be released: {answer}")


def _lapsing(run: Run) -> dict[str, Held]:
    return {
        hold_id: held
        for hold_id, held in run.ledger.holds.items()
        if held.state is Believed.HELD and choose_fate(run.seed, held.invoice, run.shares) is Fate.LAPSE
    }


async def _wait_for_lapses(run: Run) -> None:
    """Wait until the database's clock is past the expiry of every hold that shall lapse."""
    last = max((datetime.fromisoformat(held.expires_at) for held in _lapsing(run).values()), default=None)
    for _ in range((run.lapse_seconds + _LAPSE_PATIENCE_SECONDS) * 5):
        now = None if last is None else await run.database_time()
        if last is None or now is None or now > last or run.stop.is_set():
            return
        await asyncio.sleep(0.2)
    run.ledger.fault(f"The database's clock has not reached {last}.")


async def _refuse_late_confirms(run: Run) -> None:
    """A lapsed hold cannot be confirmed, swept or not."""
    for hold_id, held in _lapsing(run).items():
        if run.stop.is_set():
            return
        answer = await run.client.send("POST", f"/v1/holds/{hold_id}/confirm")
        if answer.code == "hold-expired":
            await run.judge_expiry(hold_id)
            run.ledger.settle(hold_id, Believed.EXPIRED)
        else:
            run.ledger.fault(f"The lapsed hold {hold_id} of {held.invoice} was not refused to be confirmed: {answer}")


def _compare_holds(run: Run, found: Mapping[str, Mapping[str, Any]]) -> None:
    for hold_id, held in run.ledger.holds.items():
        hold = found.get(hold_id)
        if hold is None:
            run.ledger.fault(f"The hold {hold_id} of {held.invoice} is lost: it was answered, but is not listed.")
        elif hold["state"] != held.state:
            run.ledger.fault(f"The hold {hold_id} of {held.invoice} is {hold['state']}, but must be {held.state}.")
    by_invoice: dict[str, str] = {}
    for hold_id, hold in found.items():
        other = by_invoice.setdefault(str(hold["reference"]), hold_id)
        if other != hold_id:
            run.ledger.fault(f"{hold['reference']} was placed once, but has the holds {other} and {hold_id}.")


def _compare_pools(run: Run, pools: Mapping[str, Mapping[str, Any]]) -> None:
    for code, stock in run.ledger.stock.items():
        pool = pools.get(run.prefix + code)
        if pool is None:
            run.ledger.fault(f"The pool of {code!r} is lost: it was made, but is not listed.")
            continue
        figures = {name: pool[name] for name in ("on_hand", "held", "confirmed", "available")}
        believed = {name: getattr(stock, name) for name in figures}
        if figures != believed:
            run.ledger.fault(f"The pool of {code!r} has {figures}, but must have {believed}.")
        if min(figures.values()) < 0 or figures["held"] + figures["confirmed"] > figures["on_hand"]:
            run.ledger.fault(f"The pool of {code!r} is oversold: {figures}.")
    for key in pools.keys() - {run.prefix + code for code in run.ledger.stock}:
        run.ledger.fault(f"There is a pool {key!r} that nobody made.")
