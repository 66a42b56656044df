"""A claim with many ready jobs behind it against one with few: the same calls, in turns.

Each in a namespace of its own, as an index that both share would be equally deep for both.
"""

from loadtest.jobs_bench import START_SECONDS, WORK_SECONDS, Bench
from loadtest.jobs_contestants import OURS
from loadtest.jobs_figures import Figure, demand
from loadtest.jobs_server import read, settle
from loadtest.jobs_statistics import latencies

PART = "claims"
LIMITS = (1, 10)
_TARGET = 1.2
_ROUNDS = 20
_READY = "(select count(*) from {}.job where state = 'ready')"


async def measure(bench: Bench) -> None:
    shallow, deep = 1000, bench.options.deep_jobs
    depths = {"shallow": shallow, "deep": deep}
    async with bench.fresh(OURS) as place:
        for namespace, jobs in depths.items():
            bench.step(f"{jobs:,} ready jobs are put in")
            await bench.run(OURS, "set_up", place, {"namespace": namespace})
            await bench.run(OURS, "fill", place, {"namespace": namespace, "jobs": jobs})
        await settle(place)
        claims = max(_ROUNDS, bench.options.claims) // _ROUNDS
        config = {"namespaces": list(depths), "limits": LIMITS, "rounds": _ROUNDS, "claims": claims}
        config["seed"] = bench.options.seed
        bench.step(f"{claims * _ROUNDS} claims of each kind")
        async with bench.driving(OURS, "claims", place, config) as driver:
            await driver.wait_for("ready", START_SECONDS)
            await driver.send("go")
            done = await driver.wait_for("done", WORK_SECONDS)
        demand("claims that got another number than asked, or a job a second time", done["wrong"], 0)
        for namespace, jobs in depths.items():
            ready = await read(place, _READY.format(namespace))
            demand(f"{namespace}: ready jobs after as many were enqueued as claimed", ready, jobs)
    for limit in LIMITS:
        both = {name: latencies(done["microseconds"][f"{name} {limit}"]) for name in depths}
        for name, jobs in depths.items():
            found = both[name]
            assert found is not None, "there are claims of each kind"
            what = f"claim of {limit}, {jobs:,} ready jobs"
            bench.findings.figures.append(Figure(PART, OURS.label, what, found.count, None, found))
        few, many = both["shallow"], both["deep"]
        assert few is not None, "there are claims of each kind"
        assert many is not None, "there are claims of each kind"
        what = f"claim of {limit}, p99 at {deep:,} ready ÷ at {shallow:,}"
        bench.findings.add_ratio(PART, what, many.p99_ms, few.p99_ms, at_most=_TARGET)
    bench.findings.checks.append("every claim got as many jobs as it asked for, none of them a second time")
