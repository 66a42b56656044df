"""Drives pgqueuer, in an environment of its own: `drive_pgqueuer.py ROLE CONFIG`; see `lines`."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
from lines import Commands, Config, Tally, drive, enqueue_on_command, enqueue_one_by_one, say
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, Job, PgQueuer, Queries

_FILL_BATCH = 1000


@asynccontextmanager
async def _driver(config: Config) -> AsyncIterator[AsyncpgDriver | AsyncpgPoolDriver]:
    size = config.get("pool", 0)
    where = dict(config["connection"])
    where["database"] = where.pop("dbname")
    if size:
        async with asyncpg.create_pool(**where, min_size=size, max_size=size) as pool:
            yield AsyncpgPoolDriver(pool)
    else:
        connection = await asyncpg.connect(**where)
        try:
            yield AsyncpgDriver(connection)
        finally:
            await connection.close()


async def set_up(config: Config) -> None:
    async with _driver(config) as driver:
        await Queries(driver).install()  # all its tables are durable unless its settings say otherwise
    say("done")


async def fill(config: Config) -> None:
    async with _driver(config) as driver:
        queries = Queries(driver)
        for first in range(0, config["jobs"], _FILL_BATCH):
            numbers = range(first, min(first + _FILL_BATCH, config["jobs"]))
            payloads = [_payload(number) for number in numbers]
            await queries.enqueue(["noop"] * len(numbers), payloads, [0] * len(numbers))
    say("done")


async def work(config: Config) -> None:
    logging.getLogger("pgqueuer").setLevel(logging.WARNING)
    commands = await Commands.open()
    tally = Tally(config["jobs"], echo=config.get("echo", False))
    async with _driver(config) as driver:
        queuer = PgQueuer(driver)

        @queuer.entrypoint("noop")
        async def noop(job: Job) -> None:
            tally.count(json.loads(job.payload)["n"])

        say("ready")
        await commands.wait_for("go")
        say("begun", at=time.time_ns())
        running = asyncio.create_task(
            queuer.run(batch_size=config["batch"], dequeue_timeout=timedelta(seconds=config.get("poll_seconds", 30)))
        )
        stopping = asyncio.create_task(commands.wait_for("stop"))
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        queuer.shutdown.set()
        await running
    say("stopped", **tally.sums())


async def enqueue(config: Config) -> None:
    async with _driver(config) as driver:
        queries = Queries(driver)
        await enqueue_one_by_one(config, lambda number: queries.enqueue("noop", _payload(number)))


async def pace(config: Config) -> None:
    async with _driver(config) as driver:
        queries = Queries(driver)
        await enqueue_on_command(lambda number: queries.enqueue("noop", _payload(number)))


def _payload(number: int) -> bytes:
    return json.dumps({"n": number}).encode()


if __name__ == "__main__":
    drive({"set_up": set_up, "fill": fill, "work": work, "enqueue": enqueue, "pace": pace})
