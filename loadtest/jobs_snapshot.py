"""Jobs under load while another session keeps a snapshot open, and without one: side by side, on one server.

Two databases of the same kind, each with an enqueuer that keeps a lane full and a worker that empties it; in one of
them a third session has taken a snapshot and idles. Both pairs share the machine, so that a slow minute is slow for
both, and their ratio is that of the work which one job costs.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from loadtest.jobs_bench import START_SECONDS, WORK_SECONDS, Bench
from loadtest.jobs_contestants import OURS
from loadtest.jobs_figures import CheckError, Figure, check_tally, demand
from loadtest.jobs_process import Driver
from loadtest.jobs_server import Place, read, settle, snapshot, wait_until_finished
from loadtest.jobs_statistics import rate_between

PART = "snapshot"
_TARGET = 0.8

#: Jobs that the enqueuer keeps ahead of its worker, and how many it puts in at once.
_DEPTH = 10_000
_BATCH = 500

#: Both pairs run this long before the snapshot is taken and the time begins.
_WARM_UP_SECONDS = 3
_LAST_SECONDS = 60

_QUIET_SECONDS_MAX = 60


@dataclass(slots=True)
class Pair:
    """An enqueuer and a worker on one database, and how far the worker was when: (second, jobs)."""

    name: str
    place: Place
    enqueuer: Driver
    worker: Driver
    samples: list[tuple[float, int]] = field(default_factory=list)
    feeding: bool = True
    stopped: dict[str, Any] = field(default_factory=dict)

    async def start(self) -> None:
        for driver in (self.enqueuer, self.worker):
            await driver.wait_for("ready", START_SECONDS)
            await driver.send("go")
        await self.worker.wait_for("begun", START_SECONDS)

    async def follow(self) -> None:
        """Pass on how far the worker is, until it has stopped."""
        while (event := await self.worker.next(_QUIET_SECONDS_MAX))["event"] == "progress":
            self.samples.append((event["at"] / 1e9, event["handled"]))
            if self.feeding:
                await self.enqueuer.send("handled", handled=event["handled"])
        self.stopped = event

    async def stop(self, following: asyncio.Task[None]) -> None:
        """The enqueuer first, then the worker when it has done the rest; and all of it is checked."""
        self.feeding = False
        await self.enqueuer.send("stop")
        enqueued = (await self.enqueuer.wait_for("stopped", WORK_SECONDS))["enqueued"]
        await wait_until_finished(self.place, OURS.unfinished, WORK_SECONDS)
        await self.worker.send("stop")
        with suppress(asyncio.CancelledError):
            await following
        check_tally(f"{self.name}: worker", enqueued, self.stopped)
        assert OURS.succeeded is not None, "our own jobs have a history"
        demand(f"{self.name}: jobs recorded as done", await read(self.place, OURS.succeeded), enqueued)


async def measure(bench: Bench) -> None:
    seconds: float = bench.options.snapshot_seconds
    async with AsyncExitStack() as stack:
        without, held = [await _pair(bench, stack, name) for name in ("without a snapshot", "snapshot held")]
        await asyncio.gather(without.start(), held.start())
        followings = [asyncio.create_task(pair.follow()) for pair in (without, held)]
        try:
            await _wait(bench, followings, _WARM_UP_SECONDS, "warming up")
            async with snapshot(held.place):
                begin = _now(without, held)
                await _wait(bench, followings, seconds, "under load")
                end = _now(without, held)
            for pair, following in zip((without, held), followings, strict=True):
                bench.step(f"{pair.name}: the rest, and counting")
                await pair.stop(following)
        finally:
            for following in followings:
                following.cancel()
    _report(bench, (without, held), begin, end)


async def _pair(bench: Bench, stack: AsyncExitStack, name: str) -> Pair:
    place = await stack.enter_async_context(bench.fresh(OURS))
    await settle(place)
    feeding = {"depth": _DEPTH, "batch": _BATCH}
    working = {**OURS.drain[0], "jobs": None, "progress": True}
    enqueuer = await stack.enter_async_context(bench.driving(OURS, "feed", place, feeding))
    worker = await stack.enter_async_context(bench.driving(OURS, "work", place, working))
    return Pair(name, place, enqueuer, worker)


async def _wait(bench: Bench, followings: list[asyncio.Task[None]], seconds: float, what: str) -> None:
    """Some time, unless a worker ends meanwhile."""
    for second in range(int(seconds)):
        if second % 10 == 0:
            bench.step(f"{what}, {second} of {seconds:.0f} s")
        await _pause(followings, 1)
    await _pause(followings, seconds % 1)


async def _pause(followings: list[asyncio.Task[None]], seconds: float) -> None:
    ended, _ = await asyncio.wait(followings, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for each in ended:
        each.result()
        raise CheckError("A worker stopped in the middle of the load.")


def _now(*pairs: Pair) -> float:
    """A moment that both pairs have sampled."""
    return min(pair.samples[-1][0] for pair in pairs)


def _report(bench: Bench, pairs: tuple[Pair, Pair], begin: float, end: float) -> None:
    spans = {"whole": begin}
    if end - begin > _LAST_SECONDS:
        spans[f"last {_LAST_SECONDS} s"] = end - _LAST_SECONDS
    for words, since in spans.items():
        rates = [rate_between(pair.samples, since, end) for pair in pairs]
        for pair, rate in zip(pairs, rates, strict=True):
            what = f"{pair.name}, {words} of {end - begin:.0f} s"
            bench.findings.figures.append(Figure(PART, OURS.label, what, round(rate * (end - since)), rate))
        what = f"snapshot held ÷ without, {words}"
        bench.findings.add_ratio(PART, what, rates[1], rates[0], at_least=_TARGET)
    bench.findings.checks.append("under load no job was lost and none done twice, with the snapshot and without")
