"""Lanes: their settings, and how many jobs they have. Locks the lane's row, which no claim and no job waits for."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row

from reserve.db.connection import Database
from reserve.errors import Fault, LaneNotFound, ValidationFailed
from reserve.jobs.checking import ATTEMPTS_MAX, LEASE_SECONDS_MAX, check_name, check_whole
from reserve.jobs.rows import COUNT_MAX, Backoff, Lane, LaneChange
from reserve.lists import Page
from reserve.unset import Unset

#: Longest first pause and longest pause of a lane, about a month; and how long jobs of a lane may be kept.
BACKOFF_SECONDS_MAX = 31 * 86_400
RETENTION_DAYS_MAX = 36_600
RUNNING_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    paused: bool
    lease_seconds: int | None
    max_attempts: int | None
    max_running: int | None
    backoff_first_seconds: float | None
    backoff_seconds_max: float | None
    retention_days: int | None
    ready: int
    scheduled: int
    running: int
    discarded: int
    oldest_ready_age_seconds: float | None
    created_at: datetime
    version: int


async def put(database: Database, name: str, change: LaneChange) -> tuple[Lane, bool]:
    """Create the lane, or change what is set in `change`; whether it was created. Raises `ValidationFailed`."""
    name = check_name(name, "/lane")
    _check(change)

    async def work(conn: AsyncConnection) -> tuple[Lane, bool]:
        added = await conn.execute(database.queries["lane_add"], {"names": [name]})
        row = await (await conn.execute(database.queries["lane_lock"], {"name": name})).fetchone()
        assert row is not None, "it was added, or was there; lanes are never deleted"
        if parameters := _changed(row, change):
            await conn.execute(database.queries["lane_change"], {"id": row[0], **parameters})
        return await _get(database, conn, name), added.rowcount == 1

    return await database.transact(work)


async def get(database: Database, name: str) -> Lane:
    """The lane with its figures; `LaneNotFound`."""
    return await database.transact(lambda conn: _get(database, conn, name))


async def find(database: Database, *, after: str | None, limit: int) -> Page[Lane]:
    """Lanes by name, at most `limit`, those after the name `after`."""
    found = await database.transact(lambda conn: _find(database, conn, after or "", None, limit + 1))
    return Page(tuple(found[:limit]), more=len(found) > limit)


async def _get(database: Database, conn: AsyncConnection, name: str) -> Lane:
    found = await _find(database, conn, "", name, 1)
    if not found:
        raise LaneNotFound(f"There is no lane {name!r}.")
    return found[0]


async def _find(database: Database, conn: AsyncConnection, after: str, name: str | None, limit: int) -> list[Lane]:
    async with conn.cursor(row_factory=class_row(_Row)) as cursor:
        await database.plan_anew(conn)
        parameters = {"after": after, "name": name, "limit": limit, "count_max": COUNT_MAX}
        await cursor.execute(database.queries["lane_find"], parameters, prepare=False)
        return [_as_lane(row) for row in await cursor.fetchall()]


def _as_lane(row: _Row) -> Lane:
    backoff = None
    if row.backoff_first_seconds is not None and row.backoff_seconds_max is not None:
        backoff = Backoff(row.backoff_first_seconds, row.backoff_seconds_max)
    return Lane(
        name=row.name,
        paused=row.paused,
        lease_seconds=row.lease_seconds,
        max_attempts=row.max_attempts,
        max_running=row.max_running,
        backoff=backoff,
        retention_days=row.retention_days,
        ready=row.ready,
        scheduled=row.scheduled,
        running=row.running,
        discarded=row.discarded,
        oldest_ready_age_seconds=row.oldest_ready_age_seconds,
        created_at=row.created_at,
        version=row.version,
    )


def _changed(row: tuple[Any, ...], change: LaneChange) -> dict[str, Any] | None:
    """The lane's settings as they are to be; None when they are so already."""
    _, paused, lease_seconds, max_attempts, max_running, first_seconds, seconds_max, retention_days = row
    before = {
        "paused": paused,
        "lease_seconds": lease_seconds,
        "max_attempts": max_attempts,
        "max_running": max_running,
        "backoff_first_seconds": first_seconds,
        "backoff_seconds_max": seconds_max,
        "retention_days": retention_days,
    }
    wanted: dict[str, Any] = {
        name: value
        for name in ("paused", "lease_seconds", "max_attempts", "max_running", "retention_days")
        if not isinstance(value := getattr(change, name), Unset)
    }
    if not isinstance(change.backoff, Unset):
        wanted["backoff_first_seconds"] = None if change.backoff is None else change.backoff.first_seconds
        wanted["backoff_seconds_max"] = None if change.backoff is None else change.backoff.seconds_max
    after = before | wanted
    return None if after == before else after


def _check(change: LaneChange) -> None:
    for name, high in (
        ("lease_seconds", LEASE_SECONDS_MAX),
        ("max_attempts", ATTEMPTS_MAX),
        ("max_running", RUNNING_MAX),
        ("retention_days", RETENTION_DAYS_MAX),
    ):
        value = getattr(change, name)
        if value is not None and not isinstance(value, Unset):
            check_whole(value, f"/{name}", 1, high)
    backoff = change.backoff
    if isinstance(backoff, Backoff):
        if not 0 <= backoff.seconds_max <= BACKOFF_SECONDS_MAX:
            raise _out_of_bounds("/backoff/seconds_max", BACKOFF_SECONDS_MAX)
        if not 0 <= backoff.first_seconds <= backoff.seconds_max:
            raise _out_of_bounds("/backoff/first_seconds", backoff.seconds_max)


def _out_of_bounds(pointer: str, high: float) -> ValidationFailed:
    return ValidationFailed([Fault(pointer, f"must be a number of seconds from 0 to {high:g}")])
