"""What the database holds of jobs, read past the service; and time, moved by the namespace's clock or by rows."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from reserve.errors import ReserveError
from reserve.jobs.finishing import Finished
from reserve.jobs.rows import Job, Lease
from tests.model.queue.expected import Expected, Window

_COLUMNS = (
    "t.id, l.name as lane, t.kind, t.payload, -t.rank as priority, t.max_attempts, t.run_at, t.created_at, t.token, "
    "t.attempt, t.failures, t.rescues, t.worker, t.error, t.progress, t.started_at"
)

#: Each table with what only its jobs have; what is not said of a job is what it must not have.
_TABLES = {
    "job": "t.state, t.rescued, t.cancel_requested, t.lease_expires_at",
    "job_scheduled": "'scheduled' as state",
    "job_finished": "t.state, t.output, t.finished_at",
}
_NOTHING = {"rescued": False, "cancel_requested": False, "lease_expires_at": None, "output": None, "finished_at": None}


class Sight:
    """A connection beside the service's own, on one namespace with a clock that can be moved on."""

    def __init__(self, conn: psycopg.Connection, namespace: str) -> None:
        self._conn = conn
        self._namespace = namespace
        self.execute("create table {ns}.moved_clock as select interval '0' as by")
        self.execute(
            "create or replace function {ns}.clock() returns timestamptz language sql volatile as "
            "$$ select clock_timestamp() + by from {ns}.moved_clock $$"
        )

    def execute(self, text: str, *parameters: Any) -> None:
        self._conn.execute(text.replace("{ns}", self._namespace), parameters or None)

    def clear(self) -> None:
        for table in (*_TABLES, "lane"):
            self.execute(f"delete from {{ns}}.{table}")

    def clock(self) -> datetime:
        ((at,),) = self._conn.execute(f"select {self._namespace}.clock()").fetchall()
        return at

    def forward(self, seconds: float) -> None:
        self.execute("update {ns}.moved_clock set by = by + make_interval(secs => %s)", seconds)

    def lapse(self, ids: Sequence[int]) -> None:
        """Let these leases have lapsed a second ago, by their rows."""
        self.execute("update {ns}.job set lease_expires_at = {ns}.clock() - interval '1 s' where id = any (%s)", ids)

    def fall_due(self, ids: Sequence[int]) -> None:
        """Let the time of these have come, the first first, by their rows."""
        self.execute(
            "update {ns}.job_scheduled set run_at = {ns}.clock() - interval '100 s' "
            "+ make_interval(secs => array_position(%s::bigint[], id)) where id = any (%s)",
            ids,
            ids,
        )

    def see(self) -> list[dict[str, Any]]:
        """Every job, from wherever it is, by id; one that is in two places twice."""
        rows = []
        with self._conn.transaction(), self._conn.cursor(row_factory=dict_row) as cursor:
            cursor.execute("set transaction isolation level repeatable read")
            for table, own in _TABLES.items():
                cursor.execute(
                    f"select {_COLUMNS}, {own} from {self._namespace}.{table} t "
                    f"join {self._namespace}.lane l on l.id = t.lane_id"
                )
                rows += [_NOTHING | row for row in cursor.fetchall()]
        return sorted(rows, key=lambda row: row["id"])


def compare(expected: dict[int, Expected], rows: Sequence[dict[str, Any]]) -> None:
    """Every job is in one place and as it must be; times that the clock decided are known from now on."""
    assert [row["id"] for row in rows] == sorted(expected), "each job is in exactly one place"
    for row in rows:
        job = expected[row["id"]]
        differences = {}
        for name, value in row.items():
            wanted = getattr(job, name)
            if isinstance(wanted, Window):
                if wanted.low <= value <= wanted.high:
                    setattr(job, name, value)
                    continue
            elif wanted == value:
                continue
            differences[name] = (wanted, value)
        assert differences == {}, f"job {job.id}"


def kind_of(answer):
    """An answer as the model gives it."""
    match answer:
        case ReserveError():
            return type(answer)
        case Finished() | Job():
            return answer.state
        case Lease():
            return answer.cancel_requested
        case _:
            return answer
