"""Drives this checkout, as the drivers beside it drive its peers: `drive_reserve.py ROLE CONFIG`; see `lines`."""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog
from lines import Commands, Config, Tally, drive, enqueue_on_command, enqueue_on_credit, enqueue_one_by_one, say
from plain_http import Connection

from reserve.db.connection import Database
from reserve.db.migrate import migrate
from reserve.jobs import claiming, enqueuing, finishing
from reserve.jobs.rows import Claimed, Complete, Enqueue
from reserve.settings import Settings, load
from reserve.worker import Job, Registry, Worker

_LANE = "bench"
_WORKER = "bench"
_FILL_BATCH = 10_000

#: After this many claims as many jobs are put back in: few enough for a lane to keep about its depth.
_CLAIMS_BETWEEN = 10


def _settings(config: Config, **more: Any) -> Settings:
    return load(_env_file=None, database_url=config["url"], namespace=config.get("namespace", "reserve"), **more)


@asynccontextmanager
async def _database(config: Config, **more: Any) -> AsyncIterator[Database]:
    async with Database.open(_settings(config, **more)) as database:
        yield database


def _job(number: int) -> Enqueue:
    return Enqueue(_LANE, "noop", {"n": number})


async def set_up(config: Config) -> None:
    await migrate(config["url"], config.get("namespace", "reserve"))
    say("done")


async def fill(config: Config) -> None:
    # A batch is one transaction, and the first of a busy moment may take longer than a request may.
    async with _database(config, statement_timeout_seconds=300) as database:
        for first in range(0, config["jobs"], _FILL_BATCH):
            numbers = range(first, min(first + _FILL_BATCH, config["jobs"]))
            await enqueuing.enqueue_many(database, [_job(number) for number in numbers])
    say("done")


async def work(config: Config) -> None:
    """Our worker as `reserve work` runs it; settings that begin with `work_` are those of the service."""
    commands = await Commands.open()
    tally = Tally(config["jobs"], echo=config.get("echo", False))
    registry = Registry()

    @registry.handler("noop")
    async def noop(job: Job[Any]) -> None:
        tally.count(job.payload["n"])

    own = {name: value for name, value in config.items() if name.startswith("work_")}
    async with _database(config, **own) as database:
        worker = Worker(database, registry, lanes=[_LANE], concurrency=config["concurrency"], name=_WORKER)
        say("ready")
        await commands.wait_for("go")
        say("begun", at=time.time_ns())
        tasks = [asyncio.create_task(worker.run()), asyncio.create_task(commands.wait_for("stop"))]
        reporting = asyncio.create_task(tally.report_progress()) if config.get("progress") else None
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        worker.stop()
        await tasks[0]
        if reporting is not None:
            reporting.cancel()
    say("stopped", **tally.sums())


async def enqueue(config: Config) -> None:
    async with _database(config) as database:
        await enqueue_one_by_one(config, lambda number: enqueuing.enqueue(database, _job(number)))


async def pace(config: Config) -> None:
    async with _database(config) as database:
        await enqueue_on_command(lambda number: enqueuing.enqueue(database, _job(number)))


async def feed(config: Config) -> None:
    async with _database(config) as database:
        await enqueue_on_credit(
            config, lambda numbers: enqueuing.enqueue_many(database, [_job(number) for number in numbers])
        )


async def library(config: Config) -> None:
    """`loops` tasks claim and finish `batch` jobs at a time until there is none; says how long each took."""
    commands = await Commands.open()
    tally = Tally(None)
    took: list[int] = []
    async with _database(config) as database:
        scan = claiming.Scan()

        async def work() -> None:
            while True:
                before = time.perf_counter_ns()
                claimed = await claiming.claim(database, _LANE, _WORKER, limit=config["batch"], scan=scan)
                if not claimed:
                    return
                for job in claimed:
                    tally.count(job.payload["n"])
                await _finish(database, claimed)
                took.append((time.perf_counter_ns() - before) // 1000)

        say("ready")
        await commands.wait_for("go")
        started = time.perf_counter_ns()
        await asyncio.gather(*(work() for _ in range(config["loops"])))
        seconds = (time.perf_counter_ns() - started) / 1e9
    say("done", seconds=seconds, microseconds=took, **tally.sums())


async def _finish(database: Database, claimed: list[Claimed]) -> None:
    for answer in await finishing.finish_many(database, [Complete(job.id, job.token) for job in claimed]):
        if isinstance(answer, Exception):
            raise answer


async def claims(config: Config) -> None:
    """Claims with many and with few jobs behind them, in turns; as many jobs are put back in as were claimed."""
    commands = await Commands.open()
    turns = random.Random(config["seed"])
    took: dict[str, list[int]] = {}
    wrong = 0
    async with AsyncExitStack() as stack:
        lanes = {
            name: Lane(await stack.enter_async_context(_database({**config, "namespace": name})))
            for name in config["namespaces"]
        }
        kinds = [(name, limit) for name in config["namespaces"] for limit in config["limits"]]
        say("ready")
        await commands.wait_for("go")
        for number in range(config["rounds"] + 1):  # the first only warms up
            for name, limit in turns.sample(kinds, len(kinds)):
                microseconds, faults = await lanes[name].claim(limit, config["claims"])
                wrong += faults
                if number:
                    took.setdefault(f"{name} {limit}", []).extend(microseconds)
    say("done", microseconds=took, wrong=wrong)


class Lane:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._scan = claiming.Scan()
        self._seen: set[int] = set()

    async def claim(self, limit: int, times: int) -> tuple[list[int], int]:
        """The microseconds of each claim; and how many got another number of jobs than `limit`, or a job twice."""
        took: list[int] = []
        claimed: list[Claimed] = []
        wrong = 0
        for number in range(1, times + 1):
            before = time.perf_counter_ns()
            got = await claiming.claim(self._database, _LANE, _WORKER, limit=limit, scan=self._scan)
            took.append((time.perf_counter_ns() - before) // 1000)
            ids = {job.id for job in got}
            wrong += len(got) != limit or len(ids) != limit or not ids.isdisjoint(self._seen)
            self._seen |= ids
            claimed += got
            if number % _CLAIMS_BETWEEN == 0 or number == times:
                await self._put_back(claimed)
                claimed = []
        return took, wrong

    async def _put_back(self, claimed: list[Claimed]) -> None:
        """Finish them, and enqueue as many, so that the lane is as deep as before."""
        await _finish(self._database, claimed)
        await enqueuing.enqueue_many(self._database, [_job(job.payload["n"]) for job in claimed])


async def over_http(config: Config) -> None:
    """`clients` workers claim `batch` jobs and complete each, over HTTP, until there is none."""
    commands = await Commands.open()
    tally = Tally(None)
    claims_took: list[int] = []
    completes_took: list[int] = []
    connections = [await Connection.open(config["port"]) for _ in range(config["clients"])]

    async def work(connection: Connection) -> None:
        wish = {"worker": _WORKER, "limit": config["batch"]}
        while True:
            before = time.perf_counter_ns()
            claimed = (await connection.post(f"/v1/lanes/{_LANE}/claims", wish))["jobs"]
            if not claimed:
                return
            claims_took.append((time.perf_counter_ns() - before) // 1000)
            for job in claimed:
                tally.count(job["payload"]["n"])
                before = time.perf_counter_ns()
                await connection.post(f"/v1/jobs/{job['id']}/complete", {"token": job["token"]})
                completes_took.append((time.perf_counter_ns() - before) // 1000)

    say("ready")
    await commands.wait_for("go")
    started = time.perf_counter_ns()
    await asyncio.gather(*map(work, connections))
    seconds = (time.perf_counter_ns() - started) / 1e9
    await asyncio.gather(*(connection.close() for connection in connections))
    say("done", seconds=seconds, claims=claims_took, completes=completes_took, **tally.sums())


if __name__ == "__main__":
    # Standard output is for the benchmark; the level is the default of the service.
    structlog.configure(
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger("info"),
    )
    drive(
        {
            "set_up": set_up,
            "fill": fill,
            "work": work,
            "enqueue": enqueue,
            "pace": pace,
            "feed": feed,
            "library": library,
            "claims": claims,
            "over_http": over_http,
        }
    )
