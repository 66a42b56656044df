"""Draining: a full lane, a handler that does nothing, and one worker process until the last completion is committed.

The jobs are put in by another process before. The time runs from the moment the worker is started, connected and
with its code loaded, to the moment the benchmark sees in the database that nothing is left to do.
"""

from collections.abc import Sequence

from loadtest.jobs_bench import START_SECONDS, Bench
from loadtest.jobs_contestants import OURS, Contestant, Settings
from loadtest.jobs_figures import Figure, check_tally, demand, middle
from loadtest.jobs_server import read, settle, wait_until_finished

PART = "drain"

#: Jobs of a trial that chooses between settings.
_TRIAL_JOBS = 10_000

#: Shares of the largest number that are drained: 20,000 and 100,000 by default.
_SIZES = (5, 1)

#: Nobody needs that long for the longest lane by default: a worker that has stalled.
_DRAIN_SECONDS = 300

_TARGETS = {"pgqueuer": 2.0, "graphile-worker": 1.0}


def sizes(jobs: int) -> tuple[int, ...]:
    return tuple(jobs // share for share in _SIZES)


async def measure(bench: Bench) -> None:
    chosen = {each: await _choose(bench, each) for each in bench.contestants}
    for wanted in sizes(bench.options.jobs):
        rates: dict[Contestant, list[float]] = {each: [] for each in bench.contestants}
        for number in range(bench.options.rounds):
            # In turns, so that whatever the machine does meanwhile meets all of them.
            for each in bench.random.sample(bench.contestants, len(bench.contestants)):
                bench.step(f"{each.name}, {each.jobs(wanted):,} jobs, round {number + 1}")
                rates[each].append(await drain(bench, each, each.jobs(wanted), chosen[each]))
        _report(bench, wanted, rates, chosen)
    bench.findings.checks.append("every worker handled every job once, and left none unfinished")


def _report(
    bench: Bench, wanted: int, rates: dict[Contestant, list[float]], chosen: dict[Contestant, Settings]
) -> None:
    what = f"no-op jobs, lane of {wanted:,}"
    middles = {}
    for each, measured in rates.items():
        middles[each], spread = middle(measured)
        jobs = each.jobs(wanted)
        fewer = f"only {jobs:,} jobs" if jobs < wanted else ""
        note = "; ".join(word for word in (words(chosen[each]), fewer, spread) if word)
        bench.findings.figures.append(Figure(PART, each.label, what, jobs, middles[each], None, note))
    for peer in bench.peers:
        target = {"at_least": _TARGETS[peer.name]} if peer.name in _TARGETS else {}
        bench.findings.add_ratio(PART, f"{what} ÷ {peer.name}", middles[OURS], middles[peer], **target)
    floor = bench.findings.rate("floor", "pgbench", "claim and complete in batches of 100")
    bench.findings.add_ratio(PART, f"{what} ÷ floor in batches of 100", middles[OURS], floor)


def words(settings: Settings) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


async def _choose(bench: Bench, contestant: Contestant) -> Settings:
    """The fastest of the settings worth a try, on a short lane."""
    choices: Sequence[Settings] = contestant.drain[:1] if bench.options.quick else contestant.drain
    if len(choices) == 1:
        return choices[0]
    rates = []
    for settings in choices:
        bench.step(f"{contestant.name}, trial: {words(settings)}")
        jobs = contestant.jobs(min(_TRIAL_JOBS, bench.options.jobs)) // (4 if contestant.jobs_max else 1)
        rates.append(await drain(bench, contestant, jobs, settings))
    return choices[rates.index(max(rates))]


async def drain(
    bench: Bench, contestant: Contestant, jobs: int, settings: Settings, seconds: float = _DRAIN_SECONDS
) -> float:
    """Jobs/s of one lane on a database of its own; an error when nothing happens for `seconds`."""
    async with bench.fresh(contestant) as place:
        await bench.run(contestant, "fill", place, {"jobs": jobs})
        await settle(place)
        async with bench.driving(contestant, "work", place, {**settings, "jobs": jobs}) as worker:
            await worker.wait_for("ready", START_SECONDS)
            await worker.send("go")
            begun = await worker.wait_for("begun", START_SECONDS)
            await worker.wait_for("handled", seconds)
            finished_at = await wait_until_finished(place, contestant.unfinished, seconds)
            await worker.send("stop")
            check_tally(contestant.name, jobs, await worker.wait_for("stopped", seconds))
        if contestant.succeeded:
            demand(f"{contestant.name}: jobs recorded as done", await read(place, contestant.succeeded), jobs)
        return jobs / ((finished_at - begun["at"]) / 1e9)
