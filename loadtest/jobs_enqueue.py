"""Enqueueing one job at a time from several tasks of one process: how many a second, and how long one takes."""

from loadtest.jobs_bench import START_SECONDS, WORK_SECONDS, Bench
from loadtest.jobs_contestants import OURS, Contestant, Settings
from loadtest.jobs_drain import words
from loadtest.jobs_figures import Figure, demand, middle
from loadtest.jobs_server import read
from loadtest.jobs_statistics import latencies

PART = "enqueue"
TASKS = 8
_WARM_UP = 50
_TARGETS = {"pgqueuer": 3.0}
_WHAT = f"one at a time from {TASKS} tasks"


async def measure(bench: Bench) -> None:
    seconds: float = bench.options.enqueue_seconds
    middles: dict[Contestant, float] = {}
    chosen: dict[Contestant, Settings] = {}
    for each in bench.contestants:
        chosen[each] = await _choose(bench, each, seconds)
    rates: dict[Contestant, list[float]] = {each: [] for each in bench.contestants}
    took: dict[Contestant, list[float]] = {each: [] for each in bench.contestants}
    for number in range(bench.options.rounds):
        for each in bench.random.sample(bench.contestants, len(bench.contestants)):
            bench.step(f"{each.name}, round {number + 1}")
            rate, microseconds = await _one(bench, each, chosen[each], seconds)
            rates[each].append(rate)
            took[each].extend(microseconds)
    for each in bench.contestants:
        middles[each], spread = middle(rates[each])
        note = "; ".join(word for word in (words(chosen[each]), spread) if word)
        bench.findings.figures.append(
            Figure(PART, each.label, _WHAT, len(took[each]), middles[each], latencies(took[each]), note)
        )
    for peer in bench.peers:
        target = {"at_least": _TARGETS[peer.name]} if peer.name in _TARGETS else {}
        bench.findings.add_ratio(PART, f"{_WHAT} ÷ {peer.name}", middles[OURS], middles[peer], **target)
    bench.findings.checks.append("every job whose enqueue returned is in its database, and no other")


async def _choose(bench: Bench, contestant: Contestant, seconds: float) -> Settings:
    choices = contestant.enqueue[:1] if bench.options.quick else contestant.enqueue
    if len(choices) == 1:
        return choices[0]
    rates = []
    for settings in choices:
        bench.step(f"{contestant.name}, trial: {words(settings)}")
        rates.append((await _one(bench, contestant, settings, seconds / 2))[0])
    return choices[rates.index(max(rates))]


async def _one(bench: Bench, contestant: Contestant, settings: Settings, seconds: float) -> tuple[float, list[float]]:
    """Jobs/s, and the microseconds of each call."""
    config = {**settings, "tasks": TASKS, "seconds": seconds, "warm_up": _WARM_UP}
    async with bench.fresh(contestant) as place, bench.driving(contestant, "enqueue", place, config) as driver:
        await driver.wait_for("ready", START_SECONDS)
        await driver.send("go")
        done = await driver.wait_for("done", seconds + WORK_SECONDS)
        demand(f"{contestant.name}: jobs stored", await read(place, contestant.count), done["jobs"] + _WARM_UP)
        return done["jobs"] / done["seconds"], done["microseconds"]
