"""Claiming jobs: ready ones for a holder, due ones for the ready, and those whose lease has lapsed.

Every statement here is the one claim (`reserve.db.claim`); nothing waits for a lock. Owns where a lane's walk resumes,
so that a claim costs the same however long somebody else keeps an old snapshot.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from psycopg import AsyncConnection

from reserve.db.connection import Database
from reserve.jobs.checking import LEASE_SECONDS_MAX, WORKER_LENGTH_MAX, check_name, check_whole
from reserve.jobs.rows import Claimed

T = TypeVar("T")

#: How long a walk may resume past what may have become ready before it: a rescued job, or one that was committed late.
_RESUME_SECONDS = 0.25

#: Lanes of one statement of upkeep.
_LANES_MAX = 200

#: How far back running jobs are looked for at first, and again now and then: further than any lease can reach back.
_ALWAYS = datetime(2000, 1, 1, tzinfo=UTC)
_LOOK_BACK_SECONDS = 600

#: Beyond the longest statement: what was claimed by one that had not committed yet when we looked.
_LATE_SECONDS = 5


class Scan:
    """Where the last claim of one lane by one claimer has ended."""

    def __init__(self) -> None:
        self._after: tuple[int, datetime, int] | None = None
        self._from_start_at = -_RESUME_SECONDS

    def start(self) -> tuple[int, datetime, int] | tuple[None, None, None]:
        """Where the next walk begins: past the last job, or at the start if it has not begun there for a while."""
        if self._after is None or time.monotonic() - self._from_start_at >= _RESUME_SECONDS:
            return None, None, None
        return self._after

    def ended(self, last: tuple[int, datetime, int] | None, *, resumed: bool) -> None:
        """`last` is the last job that a walk has found, if any; `resumed` says that it did not begin at the start."""
        if not resumed:
            self._from_start_at = time.monotonic()
        self._after = last


@dataclass(frozen=True, slots=True)
class Rescued:
    """What became of jobs whose lease had lapsed."""

    ready: int = 0
    discarded: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        return self.ready + self.discarded + self.cancelled


@dataclass(slots=True)
class RescueScan:
    """Since when running jobs have to be looked for, by lane; one for each process that rescues."""

    since: dict[str, datetime] = field(default_factory=dict)
    looked_back_at: float = -_LOOK_BACK_SECONDS


async def claim(
    database: Database,
    lane: str,
    worker: str,
    *,
    limit: int,
    lease_seconds: int | None = None,
    scan: Scan | None = None,
) -> list[Claimed]:
    """Claim up to `limit` (1 to `job_claim_limit_max`) ready jobs, by priority, run_at, id; committed on return.

    None where the lane is paused or does not exist. `lease_seconds` (1 to 86,400) is else the lane's. One round trip.
    """
    parameters = _parameters(database, lane, worker, limit, lease_seconds)

    async def work(conn: AsyncConnection) -> list[Claimed]:
        return await _claim(database, conn, parameters)

    return await _resuming(scan or Scan(), parameters, lambda: database.transact_once(work))


async def claim_in(
    database: Database,
    conn: AsyncConnection,
    lane: str,
    worker: str,
    *,
    limit: int,
    lease_seconds: int | None = None,
    scan: Scan | None = None,
) -> list[Claimed]:
    """As `claim`, in the transaction that `conn` is in."""
    parameters = _parameters(database, lane, worker, limit, lease_seconds)
    return await _resuming(scan or Scan(), parameters, lambda: _claim(database, conn, parameters))


async def make_due_ready(database: Database, *, limit: int, lanes: Sequence[str] | None = None) -> int:
    """Make scheduled jobs ready whose time has come, about `limit` of each 200 lanes at most; their number.

    Of `lanes`, else of all: each has its share of the limit, so that one that has many keeps nobody else's back.
    """
    return sum([await _make_due_ready(database, names, limit) async for names in _chunks(database, lanes)])


async def _make_due_ready(database: Database, lanes: Sequence[str], limit: int) -> int:
    """As `make_due_ready`, of a few lanes: what some leave of their share goes to those that have more."""
    made = 0
    while lanes and made < limit:
        share = max(1, (limit - made) // len(lanes))
        rows = await _once(database, "job_due_claim", {"lanes": list(lanes), "limit": share})
        made += len(rows)
        counts = Counter(lane for _, lane in rows)
        lanes = [lane for lane in lanes if counts[lane] >= share]
    return made


async def rescue(
    database: Database, *, limit: int, lanes: Sequence[str] | None = None, scan: RescueScan | None = None
) -> Rescued:
    """Take back jobs whose lease has lapsed, up to `limit` of each lane; of `lanes`, else of all.

    They are ready again; discarded where they have been rescued `job_rescues_max` times before; cancelled where that
    had been asked. A rescue is no failure. Until it is claimed, a rescued job's last holder may still finish it.
    """
    scan = scan or RescueScan()
    if time.monotonic() - scan.looked_back_at >= _LOOK_BACK_SECONDS:
        scan.since.clear()
        scan.looked_back_at = time.monotonic()
    ready = discarded = cancelled = 0
    async for names in _chunks(database, lanes):
        running = await _find_running(database, names, scan)
        if not running:
            continue
        parameters = {
            "lanes": list(running),
            "sinces": list(running.values()),
            "limit": limit,
            "rescues_max": database.settings.job_rescues_max,
        }
        ready += len(await _once(database, "job_rescue_claim", parameters))
        states = [state for _, state in await _once(database, "job_abandon_claim", parameters)]
        discarded += states.count("discarded")
        cancelled += states.count("cancelled")
    return Rescued(ready, discarded, cancelled)


async def _find_running(database: Database, names: Sequence[str], scan: RescueScan) -> dict[str, datetime]:
    """The lanes that have running jobs, each with the time before which it has none."""
    sinces = [scan.since.get(name, _ALWAYS) for name in names]
    found = await _once(database, "job_running_first", {"lanes": names, "sinces": sinces})
    late = timedelta(seconds=database.settings.statement_timeout_seconds + _LATE_SECONDS)
    for name, started_at, at in found:
        scan.since[name] = min(started_at, at - late)
    return {name: started_at for name, started_at, _ in found}


async def _chunks(database: Database, lanes: Sequence[str] | None) -> Any:
    """`lanes`, else the names of all, some at a time."""
    if lanes is not None:
        for start in range(0, len(lanes), _LANES_MAX):
            yield list(lanes[start : start + _LANES_MAX])
        return
    after = ""
    while names := [name for (name,) in await _once(database, "lane_names", {"after": after, "limit": _LANES_MAX})]:
        yield names
        if len(names) < _LANES_MAX:
            return
        after = names[-1]


async def _once(database: Database, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    async def work(conn: AsyncConnection) -> list[tuple[Any, ...]]:
        return await (await conn.execute(database.queries[name], parameters)).fetchall()

    return await database.transact_once(work)


def _parameters(database: Database, lane: str, worker: str, limit: int, lease_seconds: int | None) -> dict[str, Any]:
    check_whole(limit, "/limit", 1, database.settings.job_claim_limit_max)
    if lease_seconds is not None:
        check_whole(lease_seconds, "/lease_seconds", 1, LEASE_SECONDS_MAX)
    assert 1 <= len(worker) <= WORKER_LENGTH_MAX, "the edge has checked what the worker is called"
    return {
        "lane": check_name(lane, "/lane"),
        "worker": worker,
        "limit": limit,
        "lease_seconds": lease_seconds,
        "lease_seconds_default": database.settings.job_lease_seconds,
    }


async def _resuming(
    scan: Scan, parameters: dict[str, Any], run: Callable[[], Awaitable[list[Claimed]]]
) -> list[Claimed]:
    """Run where the scan resumes, and from the start before the answer is *empty*."""
    while True:
        start = scan.start()
        parameters["after_rank"], parameters["after_run_at"], parameters["after_id"] = start
        resumed = start[0] is not None
        jobs = await run()
        last = jobs[-1] if jobs else None
        scan.ended(None if last is None else (-last.priority, last.run_at, last.id), resumed=resumed)
        if jobs or not resumed:
            return jobs


async def _claim(database: Database, conn: AsyncConnection, parameters: dict[str, Any]) -> list[Claimed]:
    lane = parameters["lane"]
    cursor = await conn.execute(database.queries["job_claim"], parameters)
    return [
        Claimed(
            id=job_id,
            token=token,
            lane=lane,
            kind=kind,
            payload=payload,
            priority=-rank,
            attempt=attempt,
            max_attempts=max_attempts,
            failures=failures,
            rescues=rescues,
            run_at=run_at,
            created_at=created_at,
            started_at=started_at,
            lease_expires_at=lease_expires_at,
            idempotency_key=f"{database.namespace}-job-{job_id}",
        )
        for (
            job_id,
            token,
            kind,
            payload,
            rank,
            attempt,
            max_attempts,
            failures,
            rescues,
            run_at,
            created_at,
            started_at,
            lease_expires_at,
        ) in await cursor.fetchall()
    ]
