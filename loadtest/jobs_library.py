"""Our queue through the library: claim and finish in batches, two at once, as the floor has two clients."""

from loadtest.jobs_bench import START_SECONDS, WORK_SECONDS, Bench
from loadtest.jobs_contestants import OURS
from loadtest.jobs_figures import Figure, check_tally, demand, middle
from loadtest.jobs_server import read, settle
from loadtest.jobs_statistics import latencies

PART = "library"
BATCHES = (100, 500)
_LOOPS = 2


async def measure(bench: Bench) -> None:
    jobs = bench.options.jobs
    for batch in BATCHES:
        rates: list[float] = []
        took: list[float] = []
        for number in range(bench.options.rounds):
            bench.step(f"batches of {batch}, round {number + 1}")
            rate, microseconds = await _one(bench, batch, jobs)
            rates.append(rate)
            took.extend(microseconds)
        rate, spread = middle(rates)
        what = f"claim and finish_many in batches of {batch}"
        bench.findings.figures.append(Figure(PART, OURS.label, what, jobs, rate, latencies(took), spread))
        floor = bench.findings.rate("floor", "pgbench", "claim and complete in batches of 100")
        bench.findings.add_ratio(PART, f"{what} ÷ floor in batches of 100", rate, floor)
    bench.findings.checks.append("the library claimed and finished every job once")


async def _one(bench: Bench, batch: int, jobs: int) -> tuple[float, list[float]]:
    """Jobs/s, and the microseconds of each claim with its finish."""
    async with bench.fresh(OURS) as place:
        await bench.run(OURS, "fill", place, {"jobs": jobs})
        await settle(place)
        config = {"jobs": jobs, "batch": batch, "loops": _LOOPS}
        async with bench.driving(OURS, "library", place, config) as driver:
            await driver.wait_for("ready", START_SECONDS)
            await driver.send("go")
            done = await driver.wait_for("done", WORK_SECONDS)
        check_tally("library", jobs, done)
        assert OURS.succeeded is not None, "our own jobs have a history"
        demand("library: jobs recorded as done", await read(place, OURS.succeeded), jobs)
        return jobs / done["seconds"], done["microseconds"]
