"""Drives procrastinate, in an environment of its own: `drive_procrastinate.py ROLE CONFIG`; see `lines`."""

import asyncio
import logging
import time

from lines import Commands, Config, Tally, drive, enqueue_on_command, enqueue_one_by_one, say
from procrastinate import App, PsycopgConnector

_FILL_BATCH = 1000


def _app(config: Config) -> App:
    return App(
        connector=PsycopgConnector(
            kwargs=config["connection"], min_size=config.get("pool", 4), max_size=config.get("pool", 4)
        )
    )


async def set_up(config: Config) -> None:
    app = _app(config)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
    say("done")


async def fill(config: Config) -> None:
    app = _app(config)
    async with app.open_async():
        for first in range(0, config["jobs"], _FILL_BATCH):
            numbers = range(first, min(first + _FILL_BATCH, config["jobs"]))
            await app.configure_task("noop").batch_defer_async(*({"n": number} for number in numbers))
    say("done")


async def work(config: Config) -> None:
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    commands = await Commands.open()
    tally = Tally(config["jobs"], echo=config.get("echo", False))
    app = _app(config)

    @app.task(name="noop")
    async def noop(n: int) -> None:
        tally.count(n)

    async with app.open_async():
        say("ready")
        await commands.wait_for("go")
        say("begun", at=time.time_ns())
        running = asyncio.create_task(
            app.run_worker_async(
                concurrency=config["concurrency"],
                delete_jobs=config.get("delete_jobs", "never"),
                install_signal_handlers=False,
            )
        )
        stopping = asyncio.create_task(commands.wait_for("stop"))
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        running.cancel()  # its documented way to stop: running jobs are finished
        await asyncio.wait([running])
    say("stopped", **tally.sums())


async def enqueue(config: Config) -> None:
    app = _app(config)
    async with app.open_async():
        await enqueue_one_by_one(config, lambda number: app.configure_task("noop").defer_async(n=number))


async def pace(config: Config) -> None:
    app = _app(config)
    async with app.open_async():
        await enqueue_on_command(lambda number: app.configure_task("noop").defer_async(n=number))


if __name__ == "__main__":
    drive({"set_up": set_up, "fill": fill, "work": work, "enqueue": enqueue, "pace": pace})
