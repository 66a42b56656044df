"""A worker that stops finishes what runs, gives back what it has not begun, and outlasts no handler for long."""

import asyncio
import threading

import pytest
from psycopg import AsyncConnection
from structlog.testing import capture_logs

from reserve.events import Event
from reserve.worker import CancelReason, Tally, Worker, crew
from tests.steps import LOOKS_MAX
from tests.worker.yard import until


@pytest.fixture
def prefetching(yard, settings):
    """Workers of this yard claim two jobs ahead."""
    yard.database.settings = settings.model_copy(update={"work_prefetch_min": 2})


@pytest.fixture
def impatient(yard, settings):
    """Workers of this yard give handlers no time to finish, and little to clean up."""
    yard.database.settings = settings.model_copy(update={"work_grace_seconds": 0})


class Long:
    """Handlers that wait to be let go; `begun` are their jobs, `told` what they heard."""

    def __init__(self, jobs):
        self.begun, self.told, self.go_on = [], [], asyncio.Event()
        jobs.handler("long")(self.run)

    async def run(self, job):
        self.begun.append(job.id)
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.told.append(job.cancel_reason)
            raise


@pytest.fixture
async def long(jobs):
    return Long(jobs)


async def test_what_was_not_begun_is_given_back_at_once_and_what_runs_finishes(yard, long, prefetching):
    ids = await yard.put_many("long", 3)
    with capture_logs() as logs:
        async with yard.working(concurrency=1) as worker:
            await until(lambda: long.begun and worker._crew._hands.waiting == 2)
            worker.stop()
            for job_id in ids[1:]:
                job = await yard.until_state(job_id, "ready")
                assert (job["failures"], job["rescues"]) == (0, 0)
            assert (await yard.read(ids[0]))["state"] == "running"
            long.go_on.set()
            assert await worker.ended == Tally(succeeded=1, released=2)
    assert await yard.states() == {"ready": 2, "succeeded": 1}
    assert long.begun == ids[:1]
    events = [line["event"] for line in logs]
    assert events == [Event.WORK_STARTED, Event.WORK_STOPPING, Event.WORK_STOPPED]


async def test_after_the_grace_handlers_are_cancelled_and_their_jobs_given_back(yard, long, impatient):
    job_id = await yard.put("long")
    async with yard.working() as worker:
        await until(lambda: long.begun)
        worker.stop()
        assert await worker.ended == Tally(released=1)
    assert long.told == [CancelReason.STOPPING]
    job = await yard.read(job_id)
    assert (job["state"], job["failures"]) == ("ready", 0)
    assert not worker.stuck


async def test_asked_again_nothing_is_waited_for(yard, long, prefetching):
    await yard.put_many("long", 4)
    async with yard.working(concurrency=2) as worker:
        await until(lambda: len(long.begun) == 2)
        worker.stop()
        await asyncio.sleep(0)
        worker.stop_now()
        tally = await worker.ended
    assert tally.released == tally.total >= 2
    assert long.told == [CancelReason.STOPPING] * 2
    assert await yard.states() == {"ready": 4}


async def test_cancelling_the_worker_gives_everything_back(yard, jobs, long):
    await yard.put_many("long", 2)
    task = asyncio.create_task(Worker(yard.database, jobs).run())
    await until(lambda: len(long.begun) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await yard.states() == {"ready": 2}


async def test_a_worker_may_work_again_after_it_has_stopped(yard, jobs):
    jobs.handler("noop")(lambda job: None)
    worker = Worker(yard.database, jobs)
    worker.stop()
    assert await worker.run() == Tally(), "asked before it began"
    await yard.put("noop")
    assert await worker.drain() == Tally(succeeded=1)
    assert await worker.drain() == Tally()


async def test_a_coroutine_that_will_not_end_loses_its_job_and_is_said_to_be_stuck(yard, jobs, impatient):
    let_go, begun = asyncio.Event(), asyncio.Event()

    @jobs.handler("stubborn")
    async def stubborn(job):
        begun.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    job_id = await yard.put("stubborn")
    async with yard.working() as worker:
        await begun.wait()
        worker.stop()
        assert await worker.ended == Tally(released=1)
        assert worker.stuck
        assert (await yard.read(job_id))["state"] == "ready"
        let_go.set()


async def test_a_thread_that_will_not_end_keeps_nobody(yard, jobs, impatient):
    let_go, begun = threading.Event(), threading.Event()

    @jobs.handler("stubborn")
    def stubborn(job):
        begun.set()
        let_go.wait()

    job_id = await yard.put("stubborn")
    try:
        async with yard.working() as worker:
            await asyncio.to_thread(begun.wait)
            worker.stop()
            assert await worker.ended == Tally(released=1)
        assert not worker.stuck
        assert (await yard.read(job_id))["state"] == "ready"
    finally:
        let_go.set()


async def test_a_handler_that_finishes_when_it_is_told_to_stop_has_finished(yard, jobs, impatient):
    begun = asyncio.Event()

    @jobs.handler("quick")
    async def quick(job):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "in time"

    job_id = await yard.put("quick")
    async with yard.working() as worker:
        await begun.wait()
        worker.stop()
        assert await worker.ended == Tally(succeeded=1)
    assert (await yard.read(job_id))["output"] == "in time"


async def test_a_claim_that_is_under_way_brings_jobs_that_go_back(yard, jobs, conn, namespace, database_url):
    """The claim waits for a lock of ours, so that the stop begins while it is under way."""
    ran = []
    jobs.handler("noop")(lambda job: ran.append(job.id))
    ids = await yard.put_many("noop", 3)
    async with (
        await AsyncConnection.connect(database_url) as holder,
        yard.working(concurrency=3) as worker,
    ):
        async with holder.transaction():
            # Locked for all who write, which a claim does.
            await holder.execute(f"lock table {namespace}.job in share mode")
            await until_claim_waits(conn)
            worker.stop()
            await until(lambda: worker._crew._hands._closing)
        tally = await worker.ended
    assert not set(ran) & {job_id for job_id in ids if (await yard.read(job_id))["state"] == "ready"}
    assert tally.succeeded + tally.released == tally.total
    assert "running" not in await yard.states()


async def until_claim_waits(conn):
    for _ in range(LOOKS_MAX):
        cursor = await conn.execute(
            "select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '/* reserve:job_claim */%'"
        )
        if await cursor.fetchone():
            return
        await asyncio.sleep(0)
    raise AssertionError("a claim should wait for the lock")


async def test_a_part_that_swallows_a_cancel_is_cancelled_again(monkeypatch):
    monkeypatch.setattr(crew, "_CANCEL_AGAIN_SECONDS", 0)
    heard = []

    async def deaf():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("once")
        await asyncio.Event().wait()

    part = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    await crew._cancel(part)
    assert heard == ["once"]
    assert part.cancelled()
