"""How a driver and the benchmark talk: one JSON object a line, commands on standard input, events on standard output.

Knows no queue and needs nothing but the standard library, as it runs in the environment of every peer.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

_loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
with suppress(ImportError):
    from uvloop import new_event_loop as _loop_factory

Config = Mapping[str, Any]
Role = Callable[[Config], Awaitable[None]]

#: A command is short; a line that is longer comes from somebody else.
_LINE_BYTES_MAX = 2**20

#: How often a driver under a steady load says how far it is.
PROGRESS_SECONDS = 0.1


def say(event: str, **fields: object) -> None:
    """Tell the benchmark; it reads at once."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Commands:
    """What the benchmark says. Its end, wanted or not, is the end of the driver: nobody is left to drive for."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    @classmethod
    async def open(cls) -> "Commands":
        reader = asyncio.StreamReader(limit=_LINE_BYTES_MAX)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        return cls(reader)

    async def next(self) -> dict[str, Any]:
        line = await self._reader.readline()
        if not line:
            os._exit(3)  # no clean-up: what it would wait for may never come
        command: dict[str, Any] = json.loads(line)
        return command

    async def wait_for(self, name: str) -> dict[str, Any]:
        command = await self.next()
        if command["command"] != name:
            raise RuntimeError(f"The benchmark said {command} where {name!r} was due.")
        return command


class Tally:
    """Which jobs were handled, by their numbers from 0, and when; `done` is set once there were `wanted`."""

    def __init__(self, wanted: int | None, *, echo: bool = False) -> None:
        self.seen = bytearray(wanted or 2**20)
        self.handled = 0
        self.first_at: int | None = None
        self.done = asyncio.Event()
        self._wanted = wanted
        self._echo = echo

    def count(self, number: int) -> None:
        """To be called first thing in a handler."""
        now = time.time_ns()
        if self.first_at is None:
            self.first_at = now
        if number >= len(self.seen):
            self.seen.extend(bytes(max(number + 1 - len(self.seen), len(self.seen))))
        self.seen[number] += 1
        self.handled += 1
        if self._echo:
            say("started", n=number, at=now)
        if self.handled == self._wanted:
            say("handled", first_at=self.first_at, at=now)
            self.done.set()

    def sums(self) -> dict[str, int]:
        """How many jobs were handled at all, and how many more than once."""
        once = self.seen.count(1)
        distinct = len(self.seen) - self.seen.count(0)
        return {"handled": self.handled, "distinct": distinct, "repeated": distinct - once}

    async def report_progress(self) -> None:
        while True:
            say("progress", handled=self.handled, at=time.time_ns())
            await asyncio.sleep(PROGRESS_SECONDS)


async def enqueue_one_by_one(config: Config, enqueue: Callable[[int], Awaitable[object]]) -> None:
    """`tasks` tasks enqueue one job after the other for `seconds`; says how many, and how long each took."""
    commands = await Commands.open()
    numbers = iter(range(10**9))
    for _ in range(config["warm_up"]):
        await enqueue(next(numbers))
    say("ready")
    await commands.wait_for("go")
    took: list[int] = []
    started = time.perf_counter_ns()
    end = started + round(config["seconds"] * 1e9)

    async def work() -> None:
        while (before := time.perf_counter_ns()) < end:
            await enqueue(next(numbers))
            took.append(time.perf_counter_ns() - before)

    await asyncio.gather(*(work() for _ in range(config["tasks"])))
    seconds = (time.perf_counter_ns() - started) / 1e9
    say("done", jobs=len(took), seconds=seconds, microseconds=[each // 1000 for each in took])


async def enqueue_on_command(enqueue: Callable[[int], Awaitable[object]]) -> None:
    """One job for each command `next`, after its pause; says when the call began, by the clock of the wall."""
    commands = await Commands.open()
    say("ready")
    while (command := await commands.next())["command"] == "next":
        await asyncio.sleep(command["pause_seconds"])
        at = time.time_ns()
        await enqueue(command["n"])
        say("enqueued", n=command["n"], at=at)
    say("stopped")


async def enqueue_on_credit(config: Config, enqueue_many: Callable[[range], Awaitable[object]]) -> None:
    """Keep `depth` jobs ahead of what was handled, as commands `handled` tell, in batches, until `stop`."""
    commands = await Commands.open()
    enqueued, limit = 0, config["depth"]
    more, stopping = asyncio.Event(), False
    more.set()

    async def feed() -> None:
        nonlocal enqueued
        while not stopping:
            if limit - enqueued < config["batch"]:
                more.clear()
                await more.wait()
                continue
            await enqueue_many(range(enqueued, enqueued + config["batch"]))
            enqueued += config["batch"]

    say("ready")
    await commands.wait_for("go")
    feeding = asyncio.create_task(feed())
    while not feeding.done() and (command := await commands.next())["command"] == "handled":
        limit = command["handled"] + config["depth"]
        more.set()
    # It ends between two batches: one that is cancelled may be written or not.
    stopping = True
    more.set()
    await feeding
    say("stopped", enqueued=enqueued)


def drive(roles: Mapping[str, Role]) -> None:
    """Run the role that the command line names, with the configuration beside it; on uvloop where it is there."""
    role, config = roles[sys.argv[1]], json.loads(sys.argv[2])
    with asyncio.Runner(loop_factory=_loop_factory) as runner:
        runner.run(role(config))
