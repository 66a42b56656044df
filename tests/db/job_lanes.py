"""The claims of jobs, each with rows to claim, as `lanes` wants them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from reserve.db.claim import JOB_ABANDON_CLAIM, JOB_CLAIM, JOB_DUE_CLAIM, JOB_RESCUE_CLAIM, Claim
from tests.db.filled import Filled
from tests.steps import fetch

#: How often a job may be rescued here.
RESCUES_MAX = 2

#: Number n is in the order n, whatever lane; every third one is not ready, nor is what comes after the eighth.
_READY = "n < 8 and n %% 3 <> 0"


async def add_lanes(conn, namespace, names) -> dict[str, int]:
    return dict(
        await fetch(
            conn,
            f"insert into {namespace}.lane (name, created_at) select name, now() from unnest(%s::text[]) name "
            "returning name, id",
            list(names),
        )
    )


class _JobLane:
    """What the claims of jobs share: a job's token is 1, and what is changed of it is added to that."""

    claim: ClassVar[Claim]
    keys: ClassVar[Sequence[str]]
    #: Columns and their values for job number n of a lane, and what makes it ready.
    columns: ClassVar[str]
    values: ClassVar[str]
    most = 3
    by_claim = 1

    async def fill(self, conn, namespace):
        filled = Filled({}, [])
        for name, lane_id in (await add_lanes(conn, namespace, self.keys)).items():
            rows = await fetch(
                conn,
                f"insert into {namespace}.{self.claim.table} "
                f"(lane_id, kind, payload, max_attempts, token, created_at, {self.columns}) "
                f"select %s, 'k', '{{}}', 9, 1, now() - interval '9 days', {self.values.format(namespace=namespace)} "
                f"from generate_series(1, 10) n order by n returning id",
                lane_id,
            )
            ids = [row[0] for row in rows]
            filled.ready[name] = [job for n, job in enumerate(ids, 1) if n < 8 and n % 3]
            filled.unready += [job for n, job in enumerate(ids, 1) if n >= 8 or n % 3 == 0]
        return filled

    def parameters(self, keys, count):
        return {
            "lanes": list(keys),
            "sinces": [datetime(2000, 1, 1, tzinfo=UTC)] * len(keys),
            "limit": count,
            "rescues_max": RESCUES_MAX,
        }

    def taken(self, rows):
        return [row[0] for row in rows]

    async def touch(self, conn, namespace, row):
        await conn.execute(f"update {namespace}.{self.claim.table} set token = token + 3 where id = %s", [row])

    async def spoil(self, conn, namespace, row):
        await conn.execute(
            f"update {namespace}.job set lease_expires_at = now() + interval '1 hour' where id = %s", [row]
        )

    async def amount(self, conn, namespace, row):
        """What was added to its token, and one for what the claim has made of it."""
        ((token, changed),) = await fetch(
            conn, f"select token, {self.changed} from {namespace}.job_as_read where id = %s", row
        )
        return token - 1 + changed

    changed: ClassVar[str]


class ReadyJobLane(_JobLane):
    """Ready jobs of one lane: by priority first, and for the same one by their time."""

    claim = JOB_CLAIM
    keys = ("mail",)
    columns = "rank, run_at, state, started_at, worker, lease_expires_at"
    values = (
        "case when n < 4 then -1 else 0 end, now() - interval '1 day' + n * interval '1 s', "
        f"case when {_READY} then 'ready' else 'running' end, now(), 'w', "
        f"case when not ({_READY}) then now() end"
    )
    changed = "0"

    def parameters(self, keys, count):
        return {
            "lane": keys[0],
            "limit": count,
            "worker": "w",
            "lease_seconds": None,
            "lease_seconds_default": 60,
            "after_rank": None,
            "after_run_at": None,
            "after_id": None,
        }

    async def spoil(self, conn, namespace, row):
        await conn.execute(
            f"update {namespace}.job set state = 'running', started_at = now(), worker = 'w', "
            "lease_expires_at = now() where id = %s",
            [row],
        )


class DueJobLane(_JobLane):
    """Scheduled jobs whose time has come; they move to the ready ones."""

    claim = JOB_DUE_CLAIM
    keys = ("mail", "thumbnails", "invoices")
    columns = "id, rank, run_at"
    values = (
        "nextval('{namespace}.job_id_seq'), 0, "
        f"now() + n * interval '1 s' + case when {_READY} then interval '-1 day' else interval '1 day' end"
    )
    changed = "(state = 'ready')::int"

    async def spoil(self, conn, namespace, row):
        await conn.execute(
            f"update {namespace}.job_scheduled set run_at = now() + interval '1 hour' where id = %s", [row]
        )


_RUNNING = (
    "0, now() - interval '1 day', 'running', now() - interval '1 hour' + n * interval '1 s', 'w', "
    f"case when {_READY} then now() - interval '1 s' else now() + interval '1 hour' end"
)


class LapsedJobLane(_JobLane):
    """Running jobs whose lease has lapsed; they are ready again."""

    claim = JOB_RESCUE_CLAIM
    keys = ("mail", "thumbnails", "invoices")
    columns = "rank, run_at, state, started_at, worker, lease_expires_at"
    values = _RUNNING
    changed = "rescues"


class AbandonedJobLane(_JobLane):
    """Lapsed jobs that nobody shall run again, either because of a cancel or of too many rescues; they are finished."""

    claim = JOB_ABANDON_CLAIM
    keys = ("mail", "thumbnails", "invoices")
    columns = "rank, run_at, state, started_at, worker, lease_expires_at, rescues, cancel_requested"
    values = f"{_RUNNING}, case when n %% 2 = 0 then {RESCUES_MAX} else 0 end, n %% 2 = 1"
    changed = "(finished_at is not null)::int"


JOB_LANES: Sequence[Any] = (ReadyJobLane(), DueJobLane(), LapsedJobLane(), AbandonedJobLane())
