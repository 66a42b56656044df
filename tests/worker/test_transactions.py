"""A handler's writes and the completion of its job commit together, once, or not at all."""

import asyncio

import psycopg
import pytest
from structlog.testing import capture_logs

from reserve.db.connection import Database
from reserve.errors import LeaseLost
from reserve.events import Event
from reserve.jobs import enqueuing, finishing
from reserve.jobs.rows import Complete, Enqueue
from reserve.worker import Tally
from tests.worker.yard import until


@pytest.fixture
async def effects(conn, namespace):
    """A table of the application's own, and what is in it."""
    await conn.execute(f"create table {namespace}.effect (job_id bigint not null, note text)")

    async def read():
        cursor = await conn.execute(f"select job_id, note from {namespace}.effect order by job_id, note")
        return await cursor.fetchall()

    return read


@pytest.fixture
def write(namespace):
    async def write(conn, job, note=None):
        await conn.execute(f"insert into {namespace}.effect values (%s, %s)", [job.id, note])

    return write


async def test_writes_and_completion_commit_together(yard, jobs, effects, write):
    seen = []

    @jobs.handler("charge")
    async def charge(job):
        async with job.transaction() as conn:
            await write(conn, job)
            job.output = {"charged": 1}
            seen.append((await effects(), (await yard.read(job.id))["state"]))
        seen.append((await effects(), (await yard.read(job.id))["state"]))

    job_id = await yard.put("charge")
    assert await yard.drain() == Tally(succeeded=1)
    assert seen == [([], "running"), ([(job_id, None)], "succeeded")]
    assert (await yard.read(job_id))["output"] == {"charged": 1}


async def test_what_raises_inside_is_rolled_back_and_fails_the_job(yard, jobs, effects, write):
    @jobs.handler("charge")
    async def charge(job):
        async with job.transaction() as conn:
            await write(conn, job)
            raise ValueError("declined")

    job_id = await yard.put("charge")
    assert await yard.drain() == Tally(failed=1)
    assert await effects() == []
    assert (await yard.read(job_id))["error"].startswith("ValueError: declined\n")


async def test_a_transaction_that_failed_may_be_tried_again_in_the_same_attempt(yard, jobs, effects, write):
    @jobs.handler("charge")
    async def charge(job):
        with pytest.raises(psycopg.errors.NotNullViolation):
            async with job.transaction() as conn:
                await conn.execute(f"insert into {yard.namespace}.effect values (null)")
        async with job.transaction() as conn:
            await write(conn, job)

    job_id = await yard.put("charge")
    assert await yard.drain() == Tally(succeeded=1)
    assert await effects() == [(job_id, None)]


async def test_with_a_lost_lease_everything_is_rolled_back_and_the_job_left_alone(yard, jobs, effects, write):
    refused = []

    @jobs.handler("charge")
    async def charge(job):
        try:
            async with job.transaction() as conn:
                await write(conn, job, "late")
                refused.append(await yard.steal(job.id))
        except LeaseLost:
            refused.append(job.cancel_reason)

    job_id = await yard.put("charge")
    async with yard.working(concurrency=1) as worker:
        job = await yard.until_state(job_id, "running")
        await until(lambda: len(refused) == 2)
        thief, reason = refused
        assert reason == "lease_lost"
        assert await effects() == []
        job = await yard.read(job_id)
        assert (job["state"], job["worker"], job["token"], job["failures"]) == ("running", "thief", thief.token, 0)
        await finishing.finish(yard.database, Complete(job_id, thief.token, "by the thief"))
        worker.stop()
        assert await worker.ended == Tally(lost=1)
    assert (await yard.read(job_id))["output"] == "by the thief"


async def test_a_finished_job_has_no_second_transaction_and_no_progress(yard, jobs, effects, write):
    @jobs.handler("twice")
    async def twice(job):
        async with job.transaction():
            pass
        for use in (job.progress(1), job.transaction().__aenter__()):
            with pytest.raises(RuntimeError, match="is finished: its transaction has committed"):
                await use

    await yard.put("twice")
    assert await yard.drain() == Tally(succeeded=1)


async def test_what_fails_after_the_commit_changes_nothing_and_is_told(yard, jobs, effects, write):
    @jobs.handler("late")
    async def late(job):
        async with job.transaction() as conn:
            await write(conn, job)
        raise ValueError("after the party")

    job_id = await yard.put("late")
    with capture_logs() as logs:
        assert await yard.drain() == Tally(succeeded=1)
    assert (await yard.read(job_id))["state"] == "succeeded"
    errors = [line["error"] for line in logs if line["event"] == Event.JOB_FAILED]
    assert errors == ["after its transaction: ValueError: after the party"]


async def test_more_transactions_than_connections_wait_for_each_other(yard, jobs, settings, effects, write):
    @jobs.handler("charge")
    async def charge(job):
        async with job.transaction() as conn:
            await write(conn, job)
            await asyncio.sleep(0)

    ids = await yard.put_many("charge", 40)
    few = settings.model_copy(update={"connections_max": 3, "connection_wait_seconds": 5})
    async with Database.open(few) as database:
        yard.database = database
        assert await yard.drain(concurrency=20) == Tally(succeeded=40)
    assert await effects() == [(job_id, None) for job_id in ids]


async def test_jobs_enqueued_in_the_transaction_exist_if_it_commits(yard, jobs, settings, effects):
    @jobs.handler("parent")
    async def parent(job):
        if job.payload == "raise":
            async with job.transaction() as conn:
                await enqueuing.enqueue_in(
                    conn, [Enqueue("default", "child")], namespace=yard.namespace, settings=settings
                )
                raise ValueError
        async with job.transaction() as conn:
            await enqueuing.enqueue_in(conn, [Enqueue("default", "child")], namespace=yard.namespace, settings=settings)

    jobs.handler("child")(lambda job: None)
    await yard.put("parent", "raise")
    assert await yard.drain() == Tally(failed=1)
    await yard.put("parent")
    assert await yard.drain() == Tally(succeeded=2)


async def test_a_stalled_transaction_is_ended_by_the_database(yard, jobs, settings, conn, effects, write):
    """Its locks are gone when the setting says so, whatever the handler waits for."""
    ended = asyncio.Event()

    @jobs.handler("stall")
    async def stall(job):
        async with job.transaction() as own:
            await write(own, job)
            pid = own.info.backend_pid
            while not ended.is_set():
                cursor = await conn.execute("select pid from pg_stat_activity where pid = %s", [pid])
                if await cursor.fetchone() is None:
                    ended.set()

    job_id = await yard.put("stall")
    short = settings.model_copy(update={"job_transaction_seconds_max": 0.05})
    async with Database.open(short) as database:
        yard.database = database
        assert await yard.drain() == Tally(failed=1)
    assert ended.is_set()
    assert await effects() == []
    assert (await yard.read(job_id))["error"].startswith("Unavailable: ")
