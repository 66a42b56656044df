"""The floor: `pgbench` claiming and completing on a plain table of jobs, in batches; what any queue is measured by.

No lane, no lease, no history, no client but pgbench: a queue that does its work reaches some share of this.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from psycopg import AsyncConnection, sql

from loadtest import jobs_process
from loadtest.jobs_bench import WORK_SECONDS, Bench
from loadtest.jobs_figures import Figure, check_tally, middle
from loadtest.jobs_process import DriverError
from loadtest.jobs_server import Place, settle
from loadtest.jobs_statistics import Latencies, latencies

PART = "floor"
WHO = "pgbench"
BATCHES = (1, 10, 100)
CLIENTS = 2

_TABLE = """
create table job (
  id bigint generated always as identity primary key,
  lane_id bigint not null,
  priority smallint not null,
  run_at timestamptz not null,
  state text not null,
  payload json not null,
  token bigint not null default 0
) with (fillfactor = 70);
create index job_ready on job (lane_id, priority, run_at, id) where state = 'ready'
"""

_FILL = """
insert into job (lane_id, priority, run_at, state, payload)
select 1, 0, now(), 'ready', json_build_object('n', n) from generate_series(0, {} - 1) n
"""

#: A claim as textbooks have it, its ids kept in a variable, and a second statement that completes them.
_SCRIPT = """
with picked as materialized (
  select id from job where lane_id = 1 and state = 'ready' order by priority, run_at, id
  limit {batch} for no key update skip locked
), claimed as (
  update job set state = 'running', token = token + 1 where id = any(array(select id from picked)) returning id
)
select coalesce(array_agg(id), '{{}}') as ids from claimed \\gset
delete from job where id = any(:ids::bigint[]);
"""


def what(batch: int) -> str:
    return f"claim and complete in batches of {batch}"


async def measure(bench: Bench) -> None:
    for batch in BATCHES:
        rates: list[float] = []
        took: list[float] = []
        jobs = _jobs(bench.options.jobs, batch)
        for number in range(bench.options.rounds):
            bench.step(f"batches of {batch}, round {number + 1}")
            rate, each = await _one(bench, batch, jobs)
            rates.append(rate)
            took.extend(each)
        rate, note = middle(rates)
        both: Latencies | None = latencies(took)
        bench.findings.figures.append(Figure(PART, WHO, what(batch), jobs, rate, both, note))
    bench.findings.checks.append("pgbench completed every job of the plain table, each by one claim")


def _jobs(wanted: int, batch: int) -> int:
    """How many jobs, so that every client has the same number of whole batches. Single ones are slow."""
    share = wanted if batch > 1 else wanted // 4
    return max(1, share // (batch * CLIENTS)) * batch * CLIENTS


async def _one(bench: Bench, batch: int, jobs: int) -> tuple[float, list[float]]:
    """Jobs/s of one round, and the microseconds of each claim with its completion."""
    bench.databases += 1
    async with bench.server.database(f"bench_{bench.databases}") as place:
        async with await AsyncConnection.connect(place.url, autocommit=True) as conn:
            await conn.execute(_TABLE)
            await conn.execute(sql.SQL(_FILL).format(jobs))
        await settle(place)
        script = bench.folder / f"batch-{batch}.sql"
        script.write_text(_SCRIPT.format(batch=batch), "ascii")
        prefix = bench.folder / f"floor-{bench.databases}"
        await _pgbench(bench, place, script, prefix, jobs // batch // CLIENTS)
        async with await AsyncConnection.connect(place.url, autocommit=True) as conn:
            row = await (await conn.execute("select count(*) from job")).fetchone()
        assert row is not None, "a count has one row"
        lines = [
            line.split() for log in prefix.parent.glob(f"{prefix.name}.*") for line in log.read_text().splitlines()
        ]
        done = len(lines) * batch - row[0]
        check_tally(WHO, jobs, {"handled": done, "distinct": jobs - row[0], "repeated": 0})
        # A line: client, number, microseconds, script, second and microsecond of its end.
        ends = [int(line[4]) * 1_000_000 + int(line[5]) for line in lines]
        begins = [end - int(line[2]) for end, line in zip(ends, lines, strict=True)]
        return jobs / ((max(ends) - min(begins)) / 1e6), [float(line[2]) for line in lines]


async def _pgbench(bench: Bench, place: Place, script: Path, prefix: Path, transactions: int) -> None:
    where = place.connection
    command: Sequence[str | Path] = [
        bench.server.bin_dir / "pgbench",
        *("--no-vacuum", "--protocol=prepared", f"--client={CLIENTS}", f"--jobs={CLIENTS}"),
        *(f"--transactions={transactions}", f"--file={script}", "--log", f"--log-prefix={prefix}"),
        *("--host", where["host"], "--port", str(where["port"]), "--username", where["user"], where["dbname"]),
    ]
    log = bench.folder / "pgbench.log"
    generic = {"PGOPTIONS": "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off"}
    async with jobs_process.running(command, log, pipes=False, more=generic) as process:
        status = await asyncio.wait_for(process.wait(), WORK_SECONDS)
    if status:
        raise DriverError(f"pgbench failed: {jobs_process.last_words(log)}")
