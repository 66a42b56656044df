"""Replays order files against a running service: `python loadtest/replay.py FILE… [--url URL]`.

One invoice is one cart, placed at once by concurrent clients; paid carts are confirmed, others released or left to
lapse; cancellations come back as adjustments; some requests are repeated on purpose. Without `--url` it starts a
service of its own. Exit status: 0 when nothing was wrong, 1 when something was, 2 when it could not start, 130 after
Ctrl-C. This file reads the command line and puts the parts together.
"""

import argparse
import asyncio
import os
import random
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path

import httpx2
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if not __package__:
    # Run as a script, Python looks for modules in this folder, where none is; the checkout is above it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from loadtest import stack
from loadtest.carts import NotFreshError, Run
from loadtest.checks import check
from loadtest.client import Client, NoAnswerError
from loadtest.ledger import Count, Ledger
from loadtest.odd import OrderFileError
from loadtest.options import parse
from loadtest.orders import Orders, read_orders
from loadtest.plan import Shares, choose_order, plan_stock
from loadtest.report import print_faults, print_odd_rows, print_table
from reserve.errors import ReserveError
from reserve.names import KEY_LENGTH_MAX

#: One answer may wait for locks several times; anything longer is a service that has stalled.
_ANSWER_SECONDS_MAX = 60

CLEAN, NOT_CLEAN, NOT_STARTED, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay as the command line says; the exit status."""
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        # Before the clients started, or for the second time; what was started has been ended on the way here.
        return INTERRUPTED


def _main(arguments: Sequence[str] | None) -> int:
    options = parse(arguments)
    console = Console()
    name = f"replay-{secrets.token_hex(6)}"
    prefix = options.prefix or f"{name}/"
    try:
        files = [(file, Path(file).read_bytes()) for file in options.files]
        orders = read_orders(files, lines_max=options.lines_max, code_length_max=KEY_LENGTH_MAX - len(prefix))
    except (OSError, OrderFileError) as error:
        console.print(f"The orders cannot be read: {error}", markup=False)
        return NOT_STARTED
    print_odd_rows(console, orders.odd, options.odd_rows)
    if not orders.carts:
        console.print("There is not one cart in these files.", markup=False)
        return NOT_STARTED
    with ExitStack() as own:
        try:
            if options.url is None:
                console.print("Starting a service on a temporary PostgreSQL …", highlight=False)
                running = own.enter_context(stack.start())
            else:
                running = stack.Stack(options.url, options.database_url or os.environ.get("RESERVE_DATABASE_URL"))
            status = asyncio.run(_replay(options, orders, running.url, (name, prefix), console))
        except (stack.StackError, NotFreshError, NoAnswerError, ReserveError) as error:
            console.print(str(error), markup=False)
            return NOT_STARTED
        if status == INTERRUPTED:
            return status
        if running.database_url is None:
            console.print("No audit: give --database-url or RESERVE_DATABASE_URL for one.", markup=False)
        elif stack.audit(running.database_url):
            return NOT_CLEAN
        return status


async def _replay(
    options: argparse.Namespace, orders: Orders, url: str, names: tuple[str, str], console: Console
) -> int:
    ledger = Ledger()
    limits = httpx2.Limits(max_connections=2 * options.clients, max_keepalive_connections=2 * options.clients)
    # Not through a proxy of the environment: it would answer in the service's place.
    async with httpx2.AsyncClient(base_url=url, limits=limits, timeout=_ANSWER_SECONDS_MAX, trust_env=False) as http:
        client = Client(http, ledger, random.Random(f"{options.seed}/client"))
        shares = Shares(options.paid, options.lapsing, options.repeated)
        run = Run(client, ledger, *names, options.seed, shares, options.lapse_seconds)
        if threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, _stop, run, console)
        seconds = await _run(run, options, orders, console)
    odd = [*orders.odd, *run.unsold]
    finished = not run.stop.is_set()
    answered = ledger.counts[Count.PLACED] + ledger.counts[Count.INSUFFICIENT] + ledger.counts[Count.CONTENDED_CARTS]
    if finished and answered != len(orders.carts):
        ledger.fault(f"Of {len(orders.carts)} carts {answered} were answered.")
    print_odd_rows(console, run.unsold, options.odd_rows)
    print_table(console, orders, odd, ledger, seconds, finished=finished)
    print_faults(console, ledger)
    if ledger.faults_count:
        console.print(f"Not clean: {ledger.faults_count} faults.", style="bold red")
        return NOT_CLEAN
    if not finished:
        console.print("Stopped; holds that are left lapse by themselves.", markup=False)
        return INTERRUPTED
    console.print("Clean over HTTP: the service agrees with its clients on every hold and every pool.", style="green")
    return CLEAN


async def _run(run: Run, options: argparse.Namespace, orders: Orders, console: Console) -> float:
    """Set up, replay, check; the seconds that the clients took."""
    stock = plan_stock(orders, options.share)
    invoices = choose_order(options.seed, orders, shuffle=options.shuffle)
    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = Progress(*columns, console=console) if console.is_terminal else None
    with shown or nullcontext():
        await run.set_up(stock, options.clients, _bar(shown, "pools", len(stock)))
        started = time.monotonic()
        await run.replay(invoices, options.clients, _bar(shown, "invoices", len(invoices)))
        seconds = time.monotonic() - started
        if not run.stop.is_set():
            checked = _bar(shown, "checks", 1)
            try:
                await check(run)
                checked()
            except NoAnswerError as error:
                run.ledger.fault(f"The service does not answer: {error}")
    return seconds


def _bar(shown: Progress | None, what: str, total: int) -> Callable[[], None]:
    """What to call for each of them that is done."""
    if shown is None:
        return lambda: None
    return partial(shown.advance, shown.add_task(what, total=total))


def _stop(run: Run, console: Console) -> None:
    """Ctrl-C: no new carts; a second one ends everything at once."""
    run.stop.set()
    console.print("Stopping after the answers that are under way; Ctrl-C again does not wait for them.", markup=False)
    asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
