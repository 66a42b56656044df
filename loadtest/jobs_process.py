"""Child processes of the benchmark: drivers that speak in lines of JSON, and their end, whatever happens.

Ends only what it started. Knows nothing of queues; what a driver says is in `peers/lines.py`.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

#: How long a process may take to end when it is asked to, before it is ended unasked.
_END_SECONDS = 5
_END_UNASKED_SECONDS = 0.5

#: One line of a driver has its latencies, a number for each of some hundred thousand jobs.
_LINE_BYTES_MAX = 2**26

#: How much of what a process said last is repeated when it failed.
_LAST_WORDS = 2000


class DriverError(Exception):
    """A driver ended, said something else than was due, or said nothing for too long."""


def environment(**more: str) -> dict[str, str]:
    """Ours, without what would change a connection or a queue behind the benchmark's back."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "RESERVE_", "NODE_"))}
    # One thread of our own per process is measured, not one of a numeric library's.
    return kept | {"PYTHONUNBUFFERED": "1"} | more


def last_words(log: Path) -> str:
    """What a process complained of before it failed."""
    return log.read_text(errors="replace")[-_LAST_WORDS:]


class Driver:
    """A running driver; made by `driving`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._log = log

    async def send(self, command: str, **fields: object) -> None:
        assert self._process.stdin is not None, "a driver is started with a pipe"
        self._process.stdin.write((json.dumps({"command": command, **fields}) + "\n").encode())
        try:
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise DriverError(await self._last_words()) from error

    async def next(self, seconds: float) -> dict[str, Any]:
        """The next event; `DriverError` when there is none within `seconds`."""
        assert self._process.stdout is not None, "a driver is started with a pipe"
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), seconds)
        except TimeoutError as error:
            raise DriverError(f"{self.name} said nothing for {seconds:.0f} seconds.") from error
        if not line:
            raise DriverError(await self._last_words())
        event: dict[str, Any] = json.loads(line)
        return event

    async def wait_for(self, name: str, seconds: float) -> dict[str, Any]:
        """The next event, which must be this one; reports of progress on the way are passed over."""
        while (event := await self.next(seconds))["event"] != name:
            if event["event"] != "progress":
                raise DriverError(f"{self.name} said {event} where {name!r} was due.")
        return event

    async def _last_words(self) -> str:
        status = await self._process.wait()
        return f"{self.name} ended (exit status {status}): {last_words(self._log)}"


@asynccontextmanager
async def running(
    command: Sequence[str | Path], log: Path, *, pipes: bool, more: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process, ended with the context; what it says goes into `log`, or with `pipes` only its complaints."""
    pipe = asyncio.subprocess.PIPE if pipes else asyncio.subprocess.DEVNULL
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=pipe,
            stdout=pipe if pipes else output,
            stderr=output,
            limit=_LINE_BYTES_MAX,
            env=environment(**(more or {})),
            # Ctrl-C is for the benchmark, which ends its processes itself.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        await _end(process)


@asynccontextmanager
async def driving(
    name: str, command: Sequence[str | Path], config: Mapping[str, Any], log: Path
) -> AsyncIterator[Driver]:
    """A driver in its role (the last word of `command`), with its configuration."""
    async with running([*command, json.dumps(config)], log, pipes=True) as process:
        yield Driver(name, process, log)


async def _end(process: asyncio.subprocess.Process) -> None:
    try:
        if process.stdin is not None:
            process.stdin.close()  # a driver whose commands end, ends
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _END_UNASKED_SECONDS)
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _END_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
    except asyncio.CancelledError:
        # A second Ctrl-C: no patience left, but no process either.
        if process.returncode is None:
            process.kill()
        raise
