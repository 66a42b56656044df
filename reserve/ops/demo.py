"""The flash sale of `reserve demo`: lets the buyers in, shows the sale, and checks that nothing went wrong.

Runs against the base URL of a service on an empty database and knows nothing of that database. The caller starts
the service, and lets the audit have the last word.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from reserve.errors import SettingsError
from reserve.ops.demo_buyers import SHORT_TTL_SECONDS, Manner, Options, plan_buyers
from reserve.ops.demo_sale import POOL, Sale

__all__ = ["Options", "Result", "run"]

#: One answer waits for the requests before it and for locks; anything longer is a service that has stalled.
_ANSWER_SECONDS_MAX = 60

#: Buyers who are in the shop at once, most of them thinking; the rest waits at the door.
_VISITORS_MAX = 5000

#: Connections beside those of the crowd: of the display, and of buyers who have a hold.
_HOLDERS_MAX = 50

#: How often the pool is looked at, and how often a line is printed where nothing can be redrawn.
_LOOK_SECONDS = 0.25
_LINE_SECONDS = 2

#: Beyond the last expiry, how long the database's clock may take to get there.
_LAPSE_PATIENCE_SECONDS = 15

_BAR_WIDTH = 50


@dataclass(frozen=True, slots=True)
class Result:
    """How a sale ended, by the service's own figures where it has them; `faults` are sentences."""

    buyers: int
    units: int
    placed: int
    confirmed: int
    released: int
    expired: int
    insufficient: int
    contended: int
    replayed: int
    seconds: float
    faults: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing was oversold, lost or expired early."""
        return not self.faults


async def run(url: str, options: Options, console: Console) -> Result:
    """Hold the sale on the service at `url`, which must have no such pool yet, and check how it ended.

    Raises `SettingsError` when the HTTP client is not installed or the pool exists already.
    """
    try:
        import httpx2  # noqa: PLC0415 -- only the demo needs it, and only an extra installs it
    except ImportError:
        raise SettingsError("`reserve demo` needs the HTTP client httpx2: pip install 'reserve[embedded]'.") from None
    connections_max = options.requests_at_once + _HOLDERS_MAX
    limits = httpx2.Limits(max_connections=connections_max, max_keepalive_connections=connections_max)
    # Not through a proxy of the environment: the service is on this machine.
    async with httpx2.AsyncClient(base_url=url, limits=limits, timeout=_ANSWER_SECONDS_MAX, trust_env=False) as http:
        sale = Sale(http, httpx2.TransportError, requests_at_once=options.requests_at_once)
        made = await sale.ask("PUT", f"/v1/pools/{POOL}", {"on_hand": options.units})
        if made.status != 201:
            raise SettingsError(f"The demo needs an empty database; making its pool was answered by {made.body!r}.")
        started = time.monotonic()
        async with _watched(sale, options, console):
            await _let_in(sale, options)
            await _wait_for_lapses(sale)
        seconds = time.monotonic() - started
        return await _check(sale, options, seconds)


async def _let_in(sale: Sale, options: Options) -> None:
    """Every buyer comes in time, as far as the shop has room; returns when the last one has left."""
    opened = time.monotonic()
    room = asyncio.Semaphore(_VISITORS_MAX)
    async with asyncio.TaskGroup() as group:
        for buyer in plan_buyers(options):
            await asyncio.sleep(max(0.0, opened + buyer.arrives_after_seconds - time.monotonic()))
            await room.acquire()
            group.create_task(sale.visit(buyer)).add_done_callback(lambda _: room.release())


async def _wait_for_lapses(sale: Sale) -> None:
    """Wait until the database's clock is past the expiry of every abandoned hold."""
    deadline = time.monotonic() + SHORT_TTL_SECONDS + _LAPSE_PATIENCE_SECONDS
    short = [
        datetime.fromisoformat(hold["expires_at"])
        for hold in sale.tally.holds.values()
        if _ttl_seconds(hold) <= SHORT_TTL_SECONDS
    ]
    last = max(short, default=None)
    while last is not None and (pool := await sale.pool()) and datetime.fromisoformat(pool["as_of"]) <= last:
        if time.monotonic() > deadline:
            sale.tally.fault(f"The database's clock has not reached {last}.")
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _ttl_seconds(hold: Mapping[str, Any]) -> float:
    return (datetime.fromisoformat(hold["expires_at"]) - datetime.fromisoformat(hold["created_at"])).total_seconds()


# --- the end ------------------------------------------------------------------------------------------------


async def _check(sale: Sale, options: Options, seconds: float) -> Result:
    """Compare the service with what its buyers were told."""
    tally = sale.tally
    await _release_untold(sale, options)
    found = await _all_holds(sale)
    for hold_id in tally.holds.keys() - found.keys():
        tally.fault(f"The hold {hold_id} was answered, but is lost.")
    for reference, count in Counter(hold["reference"] for hold in found.values()).items():
        if count > 1:
            tally.fault(f"{reference} asked with one key only, and has {count} holds.")
    states = Counter(str(hold["state"]) for hold in found.values())
    pool = await sale.pool() or {}
    if pool:
        _judge_pool(sale, options, pool)
    if not tally.confirmed == states["confirmed"] == pool.get("confirmed"):
        tally.fault(
            f"{tally.confirmed} buyers were told that they have their unit, {states['confirmed']} holds are confirmed, "
            f"and the pool says {pool.get('confirmed')}."
        )
    more = (f"… and {tally.faults_more} faults more.",) if tally.faults_more else ()
    return Result(
        buyers=options.buyers,
        units=options.units,
        placed=len(found),
        confirmed=states["confirmed"],
        released=states["released"],
        expired=states["expired"],
        insufficient=tally.insufficient,
        contended=tally.contended,
        replayed=tally.replayed,
        seconds=seconds,
        faults=(*tally.faults, *more),
    )


async def _release_untold(sale: Sale, options: Options) -> None:
    """Give back what nobody was told of, which is a fault unless its buyer hung up.

    Then the repeats were refused before the first request had its turn, and the sale was over for that buyer.
    """
    hanging_up = {buyer.name for buyer in plan_buyers(options) if buyer.manner is Manner.RETRY}
    for hold_id, hold in (await _all_holds(sale)).items():
        if hold_id in sale.tally.holds:
            continue
        if hold["reference"] in hanging_up and hold["state"] == "held":
            await sale.ask("POST", f"/v1/holds/{hold_id}/release")
        else:
            sale.tally.fault(f"The hold {hold_id} of {hold['reference']} is {hold['state']}; nobody was told of it.")


async def _all_holds(sale: Sale) -> dict[str, Mapping[str, Any]]:
    """Every hold of the pool, page by page."""
    found: dict[str, Mapping[str, Any]] = {}
    cursor = ""
    while True:
        answer = await sale.ask("GET", f"/v1/holds?pool={POOL}&limit=1000{cursor}")
        if not answer.good:
            sale.tally.fault(f"The holds cannot be listed: {answer.status} {answer.code}.")
            return found
        page = answer.document
        found |= {hold["id"]: hold for hold in page["items"]}
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def _judge_pool(sale: Sale, options: Options, pool: Mapping[str, Any]) -> None:
    """At every instant: nothing negative, nothing oversold, nothing lost."""
    figures = {name: pool[name] for name in ("available", "held", "confirmed")}
    if min(figures.values()) < 0 or figures["held"] + figures["confirmed"] > options.units:
        sale.tally.fault(f"Oversold: {figures} of {options.units} units.")
    elif sum(figures.values()) != options.units:
        sale.tally.fault(f"Lost: {figures} do not make up {options.units} units.")


# --- the display --------------------------------------------------------------------------------------------


@asynccontextmanager
async def _watched(sale: Sale, options: Options, console: Console) -> AsyncIterator[None]:
    """Look at the pool all the time while the context lasts, judge what is seen, and show it."""
    started = time.monotonic()
    live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    async def look() -> None:
        pool = await sale.pool()
        if pool is None:
            return
        _judge_pool(sale, options, pool)
        seconds = time.monotonic() - started
        if live is not None:
            live.update(_picture(sale, options, pool, seconds), refresh=True)
        else:
            console.print(_line(sale, options, pool, seconds), soft_wrap=True, highlight=False)

    async def watch() -> None:
        while True:
            await look()
            await asyncio.sleep(_LOOK_SECONDS if live is not None else _LINE_SECONDS)

    with live if live is not None else nullcontext():
        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        await look()


def _picture(sale: Sale, options: Options, pool: Mapping[str, Any], seconds: float) -> RenderableType:
    tally = sale.tally
    taken = _BAR_WIDTH * (pool["confirmed"] + pool["held"]) // options.units
    sold = _BAR_WIDTH * pool["confirmed"] // options.units
    bar = Text.assemble(
        "stock ",
        ("█" * sold, "green"),
        ("█" * (taken - sold), "yellow"),
        ("░" * (_BAR_WIDTH - taken), "dim"),
        f"  {pool['available']:,} of {options.units:,} left",
    )
    table = Table.grid(padding=(0, 3))
    table.add_row("buyers", f"{tally.arrived:,} of {options.buyers:,}", "time", f"{seconds:.1f} s")
    table.add_row("holds placed", f"{tally.placed:,}", "insufficient", f"{tally.insufficient:,}")
    table.add_row("confirmed", f"[green]{pool['confirmed']:,}[/]", "contended", f"{tally.contended:,}")
    table.add_row("held", f"[yellow]{pool['held']:,}[/]", "expired", f"{_expired(sale, pool):,}")
    table.add_row("released", f"{tally.released:,}", "replayed", f"{tally.replayed:,}")
    if faults := len(tally.faults) + tally.faults_more:
        table.add_row("[red]faults[/]", f"[red]{faults:,}[/]")
    return Group(bar, table)


def _line(sale: Sale, options: Options, pool: Mapping[str, Any], seconds: float) -> str:
    tally = sale.tally
    return (
        f"{seconds:5.1f} s  buyers {tally.arrived} of {options.buyers}  confirmed {pool['confirmed']}  "
        f"held {pool['held']}  available {pool['available']}  released {tally.released}  "
        f"expired {_expired(sale, pool)}  insufficient {tally.insufficient}  contended {tally.contended}  "
        f"replayed {tally.replayed}"
    )


def _expired(sale: Sale, pool: Mapping[str, Any]) -> int:
    """Holds that have lapsed: placed, not given back, not confirmed and not held any more."""
    tally = sale.tally
    return max(0, tally.placed - tally.released - tally.confirmed - int(pool["held"]))
