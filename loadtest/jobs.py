"""Measures the job lane, the floor below it and its peers: `python loadtest/jobs.py [--quick] [--only PART,…]`.

One embedded server of its own, durable, a fresh database for each measurement; peers in environments of their own.
Prints figures only if no job was lost and none done twice. Exit status: 0 measured, 1 a check failed, 2 it could not
start or go on, 130 after Ctrl-C. This file reads the command line and puts the parts together.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import psycopg
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if not __package__:
    # Run as a script, Python looks for modules in this folder, where none is; the checkout is above it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from loadtest import (
    jobs_claims,
    jobs_drain,
    jobs_enqueue,
    jobs_floor,
    jobs_http,
    jobs_latency,
    jobs_library,
    jobs_server,
    jobs_snapshot,
)
from loadtest.jobs_bench import START_SECONDS, Bench
from loadtest.jobs_contestants import OURS, PEERS, Contestant
from loadtest.jobs_environments import NotInstalledError, install
from loadtest.jobs_figures import CheckError, Findings
from loadtest.jobs_options import parse
from loadtest.jobs_process import DriverError
from loadtest.jobs_report import print_findings
from reserve.errors import ReserveError

MEASURED, NOT_CHECKED, NOT_STARTED, INTERRUPTED = 0, 1, 2, 130

#: What `--only` names, in the order of `jobs_options.PARTS`.
PARTS: dict[str, Callable[[Bench], Awaitable[None]]] = {
    part.PART: part.measure
    for part in (
        jobs_floor,
        jobs_library,
        jobs_drain,
        jobs_http,
        jobs_enqueue,
        jobs_latency,
        jobs_claims,
        jobs_snapshot,
    )
}

#: Jobs that show whether a peer works on this machine at all.
_TRIAL_JOBS = 20

#: Parts that compare us with peers; without any of them no peer is installed.
_COMPARING = {jobs_drain.PART, jobs_enqueue.PART, jobs_latency.PART}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the command line says; the exit status."""
    options = parse(arguments)
    # Tables need room; a terminal says how much it has, a file has enough.
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160)
    findings = Findings()
    try:
        with tempfile.TemporaryDirectory(prefix="reserve-jobs-") as folder:
            homes = _install(options, findings, console)
            with jobs_server.start() as server:
                asyncio.run(_measure(options, server, homes, findings, Path(folder), console))
    except KeyboardInterrupt:
        console.print("Stopped; the server and every process of this run have ended.", markup=False)
        return INTERRUPTED
    except CheckError as error:
        console.print(f"A check failed, so there are no figures: {error}", style="bold red", markup=False)
        return NOT_CHECKED
    except (DriverError, ReserveError, TimeoutError, psycopg.Error) as error:
        console.print(str(error), markup=False)
        return NOT_STARTED
    print_findings(console, findings, quick=options.quick)
    if options.json is not None:
        options.json.write_text(json.dumps(findings.as_document(), indent=2, ensure_ascii=False) + "\n", "utf-8")
    return MEASURED


def _install(options: argparse.Namespace, findings: Findings, console: Console) -> dict[str, Path | None]:
    """The environment of everybody who is measured; ours is the one that runs this."""
    homes: dict[str, Path | None] = {OURS.name: None}
    for peer in PEERS:
        if peer.name not in options.peers or not _COMPARING & set(options.only):
            continue
        console.print(f"Looking for {peer.label} in {options.peers_dir} …", markup=False, highlight=False)
        try:
            homes[peer.name] = install(peer, options.peers_dir)
        except NotInstalledError as reason:
            findings.left_out[peer.label] = str(reason)
    return homes


async def _measure(
    options: argparse.Namespace,
    server: jobs_server.Server,
    homes: Mapping[str, Path | None],
    findings: Findings,
    folder: Path,
    console: Console,
) -> None:
    findings.environment |= _machine() | await server.told()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    shown = Progress(*columns, console=console) if console.is_terminal else None
    with shown or nullcontext():
        step = _steps(shown, "peers", console)
        bench = Bench(options, server, homes, (OURS,), findings, folder, random.Random(options.seed), step)
        bench.contestants = (OURS, *[peer for peer in PEERS if peer.name in homes and await _works(bench, peer)])
        step("done")
        for part in options.only:
            bench.step = _steps(shown, part, console)
            bench.random = random.Random(f"{options.seed}/{part}")
            await PARTS[part](bench)
            bench.step("done")


async def _works(bench: Bench, peer: Contestant) -> bool:
    """Whether the peer does a few jobs here; it is left out with its reason when not."""
    bench.step(f"does {peer.label} work here?")
    try:
        await jobs_drain.drain(bench, peer, _TRIAL_JOBS, peer.drain[0], START_SECONDS)
    except (DriverError, CheckError, psycopg.Error) as reason:
        bench.findings.left_out[peer.label] = str(reason)
        return False
    return True


def _steps(shown: Progress | None, part: str, console: Console) -> Callable[[str], object]:
    """What to call with each step of a part: a line that changes on a terminal, a line for each step elsewhere."""
    if shown is None:
        return lambda words: console.print(f"{part}: {words}", markup=False, highlight=False)
    task = shown.add_task(part, total=None)

    def step(words: str) -> None:
        shown.update(task, description=f"{part}: {words}")
        if words == "done":
            shown.update(task, total=1, completed=1)

    return step


def _machine() -> dict[str, str]:
    """What the figures depend on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": str(cores), "python": platform.python_version(), "psycopg": psycopg.__version__}


if __name__ == "__main__":
    sys.exit(main())
