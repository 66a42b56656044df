"""From enqueue to start on an idle lane: one job at a time, each after the last has started and a short random pause.

The enqueuing process notes the time before it calls, the handler when it starts; both read the clock of the machine.
"""

from loadtest.jobs_bench import START_SECONDS, WORK_SECONDS, Bench
from loadtest.jobs_contestants import OURS, Contestant, Settings
from loadtest.jobs_drain import words
from loadtest.jobs_figures import Figure, check_tally
from loadtest.jobs_process import Driver
from loadtest.jobs_server import settle, wait_until_finished
from loadtest.jobs_statistics import Latencies, latencies

PART = "latency"
_WHAT = "enqueue to start on an idle lane"

#: The first ones find cold caches, unplanned statements and code that was never run.
_WARM_UP = 20
_TRIAL_JOBS = 30
_PAUSE_SECONDS = (0.005, 0.025)
_TARGETS = {"graphile-worker": 1.0}


async def measure(bench: Bench) -> None:
    chosen = {each: await _choose(bench, each) for each in bench.contestants}
    took: dict[Contestant, list[float]] = {each: [] for each in bench.contestants}
    jobs = max(1, bench.options.latency_jobs // bench.options.rounds)
    for number in range(bench.options.rounds):
        for each in bench.random.sample(bench.contestants, len(bench.contestants)):
            bench.step(f"{each.name}, round {number + 1}")
            took[each].extend(await _one(bench, each, chosen[each], jobs))
    found: dict[Contestant, Latencies] = {}
    for each in bench.contestants:
        both = latencies(took[each])
        assert both is not None, "every round has at least one job"
        found[each] = both
        bench.findings.figures.append(Figure(PART, each.label, _WHAT, both.count, None, both, words(chosen[each])))
    for peer in bench.peers:
        target = {"at_most": _TARGETS[peer.name]} if peer.name in _TARGETS else {}
        ours, theirs = found[OURS], found[peer]
        bench.findings.add_ratio(PART, f"{_WHAT}, p50 ÷ {peer.name}", ours.p50_ms, theirs.p50_ms, **target)
        bench.findings.add_ratio(PART, f"{_WHAT}, p99 ÷ {peer.name}", ours.p99_ms, theirs.p99_ms, **target)
    bench.findings.checks.append("every job of the idle lanes started once, after it was enqueued")


async def _choose(bench: Bench, contestant: Contestant) -> Settings:
    choices = contestant.latency[:1] if bench.options.quick else contestant.latency
    if len(choices) == 1:
        return choices[0]
    middles = []
    for settings in choices:
        bench.step(f"{contestant.name}, trial: {words(settings)}")
        both = latencies(await _one(bench, contestant, settings, _TRIAL_JOBS))
        assert both is not None, "a trial has jobs"
        middles.append(both.p50_ms)
    return choices[middles.index(min(middles))]


async def _one(bench: Bench, contestant: Contestant, settings: Settings, jobs: int) -> list[float]:
    """The microseconds of each of `jobs` jobs, after those that warm up."""
    total = _WARM_UP + jobs
    async with bench.fresh(contestant) as place:
        await settle(place)
        async with (
            bench.driving(contestant, "work", place, {**settings, "jobs": total, "echo": True}) as worker,
            bench.driving(contestant, "pace", place) as pacer,
        ):
            await worker.wait_for("ready", START_SECONDS)
            await pacer.wait_for("ready", START_SECONDS)
            await worker.send("go")
            await worker.wait_for("begun", START_SECONDS)
            took = [await _job(bench, worker, pacer, number) for number in range(total)]
            await pacer.send("stop")
            await worker.wait_for("handled", WORK_SECONDS)
            await wait_until_finished(place, contestant.unfinished, WORK_SECONDS)
            await worker.send("stop")
            check_tally(contestant.name, total, await worker.wait_for("stopped", WORK_SECONDS))
    return took[_WARM_UP:]


async def _job(bench: Bench, worker: Driver, pacer: Driver, number: int) -> float:
    await pacer.send("next", n=number, pause_seconds=bench.random.uniform(*_PAUSE_SECONDS))
    enqueued = await pacer.wait_for("enqueued", WORK_SECONDS)
    started = await worker.wait_for("started", WORK_SECONDS)
    assert enqueued["n"] == started["n"] == number, "there is one job at a time"
    return float(started["at"] - enqueued["at"]) / 1000
