"""Our queue over HTTP: `reserve serve` on the database; clients in a process of their own claim and complete."""

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from loadtest import jobs_process
from loadtest.jobs_bench import START_SECONDS, WORK_SECONDS, Bench
from loadtest.jobs_contestants import OURS
from loadtest.jobs_figures import Figure, check_tally, demand, middle
from loadtest.jobs_process import DriverError
from loadtest.jobs_server import Place, read, settle
from loadtest.jobs_statistics import latencies

PART = "http"
_BATCH = 100
_CLIENTS = 8

#: One request completes one job, so fewer jobs than elsewhere take as long.
_JOBS_SHARE = 10

#: `reserve` of the same environment, also where its scripts are not on the path.
_SERVE = (sys.executable, "-c", "from reserve.cli import main; main()", "serve")


async def measure(bench: Bench) -> None:
    jobs = max(_BATCH, bench.options.jobs // _JOBS_SHARE)
    rates: list[float] = []
    claims: list[float] = []
    completes: list[float] = []
    for number in range(bench.options.rounds):
        bench.step(f"{_CLIENTS} clients, round {number + 1}")
        rate, claim, complete = await _one(bench, jobs)
        rates.append(rate)
        claims.extend(claim)
        completes.extend(complete)
    rate, spread = middle(rates)
    whole = f"claims of {_BATCH}, then complete each, {_CLIENTS} clients"
    add = bench.findings.figures.append
    add(Figure(PART, OURS.label, whole, jobs, rate, None, spread))
    add(Figure(PART, OURS.label, f"POST …/claims of {_BATCH}", len(claims), None, latencies(claims)))
    add(Figure(PART, OURS.label, "POST …/complete of one", len(completes), None, latencies(completes)))
    bench.findings.checks.append("over HTTP every job was claimed and completed once")


async def _one(bench: Bench, jobs: int) -> tuple[float, list[float], list[float]]:
    async with bench.fresh(OURS) as place:
        await bench.run(OURS, "fill", place, {"jobs": jobs})
        await settle(place)
        config = {"batch": _BATCH, "clients": _CLIENTS, "jobs": jobs}
        async with (
            _serving(bench, place) as port,
            bench.driving(OURS, "over_http", place, {**config, "port": port}) as driver,
        ):
            await driver.wait_for("ready", START_SECONDS)
            await driver.send("go")
            done = await driver.wait_for("done", WORK_SECONDS)
        check_tally("over HTTP", jobs, done)
        assert OURS.succeeded is not None, "our own jobs have a history"
        demand("over HTTP: jobs recorded as done", await read(place, OURS.succeeded), jobs)
        return jobs / done["seconds"], done["claims"], done["completes"]


@asynccontextmanager
async def _serving(bench: Bench, place: Place) -> AsyncIterator[int]:
    """`reserve serve` on a free port of the loopback address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    log = bench.folder / "serve.log"
    more = {"RESERVE_DATABASE_URL": place.url, "RESERVE_HOST": "127.0.0.1", "RESERVE_PORT": str(port)}
    async with jobs_process.running(_SERVE, log, pipes=False, more={**more, **OURS.environment}) as process:
        await _wait_until_ready(process, port, log)
        yield port


async def _wait_until_ready(process: asyncio.subprocess.Process, port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    async with httpx2.AsyncClient(trust_env=False, timeout=5) as http:
        while process.returncode is None and time.monotonic() < deadline:
            try:
                if (await http.get(f"http://127.0.0.1:{port}/health/ready")).status_code == 200:
                    return
            except httpx2.TransportError:
                pass  # not listening yet
            await asyncio.sleep(0.05)
    raise DriverError(f"`reserve serve` does not get ready: {jobs_process.last_words(log)}")
