"""A handler whose job is cancelled or lost is told, and a lost one's verdict is refused."""

import asyncio
import threading

from structlog.testing import capture_logs

from reserve.events import Event
from reserve.jobs import finishing
from reserve.jobs.rows import Complete
from reserve.worker import CancelReason, Tally
from tests.steps import LOOKS_MAX
from tests.worker.yard import renew_now, until


async def test_a_third_of_a_lease_before_its_end_all_are_renewed_together(yard, jobs, conn, namespace):
    running, go_on = asyncio.Barrier(4), asyncio.Event()

    @jobs.handler("long")
    async def long(job):
        await running.wait()
        await go_on.wait()

    ids = await yard.put_many("long", 3)
    async with yard.working(concurrency=3) as worker:
        await running.wait()
        await conn.execute(f"update {namespace}.job set lease_expires_at = now() + interval '1 second'")
        renew_now(worker)
        for job_id in ids:
            await until_leased(conn, namespace, job_id)
        assert all(held.renew_at > 0 for held in worker._crew._keeper._held.values())
        go_on.set()
        for job_id in ids:
            await yard.until_state(job_id, "succeeded")


async def test_a_coroutine_is_cancelled_when_its_job_is(yard, jobs):
    told = []

    @jobs.handler("long")
    async def long(job):
        try:
            await asyncio.Event().wait()
        finally:
            told.append(job.cancel_reason)

    job_id = await yard.put("long")
    async with yard.working() as worker:
        await yard.until_state(job_id, "running")
        await until(lambda: worker._crew._hands.busy)
        await yard.ask_to_cancel(job_id)
        renew_now(worker)
        job = await yard.until_state(job_id, "cancelled")
        assert told == [CancelReason.CANCELLED]
        assert job["failures"] == 0
        worker.stop()
        assert await worker.ended == Tally(cancelled=1)


async def test_a_report_of_progress_hears_of_it_as_well_and_a_handler_may_finish_all_the_same(yard, jobs):
    @jobs.handler("long")
    async def long(job):
        await yard.ask_to_cancel(job.id)
        try:
            await job.progress(1)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "all done, nearly"

    job_id = await yard.put("long")
    assert await yard.drain() == Tally(succeeded=1)
    assert (await yard.read(job_id))["output"] == "all done, nearly"


async def test_after_a_cancelled_handler_its_hand_goes_on(yard, jobs):
    @jobs.handler("long")
    async def long(job):
        if job.payload["n"] % 2:
            return
        await yard.ask_to_cancel(job.id)
        await job.progress(1)
        await asyncio.Event().wait()

    await yard.put_many("long", 6)
    assert await yard.drain(concurrency=1) == Tally(succeeded=3, cancelled=3)


async def test_a_thread_can_ask_whether_its_job_is_cancelled(yard, jobs):
    asked = threading.Event()

    @jobs.handler("long")
    def long(job):
        while True:
            asked.set()
            job.raise_if_cancelled()

    job_id = await yard.put("long")
    async with yard.working() as worker:
        await asyncio.to_thread(asked.wait)
        await yard.ask_to_cancel(job_id)
        renew_now(worker)
        await yard.until_state(job_id, "cancelled")


async def test_a_prefetched_job_that_is_cancelled_is_not_begun(yard, jobs, settings):
    begun, go_on = [], asyncio.Event()

    @jobs.handler("first")
    async def first(job):
        begun.append(job.id)
        await go_on.wait()

    settings = settings.model_copy(update={"work_prefetch_min": 1})
    yard.database.settings = settings
    one, two = await yard.put("first"), await yard.put("first")
    async with yard.working(concurrency=1) as worker:
        await yard.until_state(two, "running")
        await until(lambda: begun and worker._crew._hands.waiting)
        await yard.ask_to_cancel(two)
        renew_now(worker)
        await until(lambda: any(held.reason for held in worker._crew._keeper._held.values()))
        go_on.set()
        await yard.until_state(one, "succeeded")
        await yard.until_state(two, "cancelled")
    assert begun == [one]


async def test_a_handler_whose_lease_is_lost_is_told_and_gives_no_verdict(yard, jobs):
    told = []

    @jobs.handler("long")
    async def long(job):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append(job.cancel_reason)
            return "too late"

    job_id = await yard.put("long")
    with capture_logs() as logs:
        async with yard.working(concurrency=1) as worker:
            await yard.until_state(job_id, "running")
            await until(lambda: worker._crew._hands.busy)
            thief = await yard.steal(job_id)
            renew_now(worker)
            await until(lambda: not worker._crew._keeper)
            worker.stop()
            assert await worker.ended == Tally(lost=1)
    assert told == [CancelReason.LEASE_LOST]
    assert [line["job"] for line in logs if line["event"] == Event.JOB_LEASE_LOST] == [job_id]
    job = await yard.read(job_id)
    assert (job["state"], job["token"], job["worker"]) == ("running", thief.token, "thief")


async def test_the_verdict_of_a_lost_lease_is_refused_by_its_token(yard, jobs):
    running, go_on = asyncio.Event(), asyncio.Event()

    @jobs.handler("long")
    async def long(job):
        running.set()
        await go_on.wait()
        return "too late"

    job_id = await yard.put("long")
    with capture_logs() as logs:
        async with yard.working(concurrency=1) as worker:
            await running.wait()
            thief = await yard.steal(job_id)
            go_on.set()
            await until(lambda: not worker._crew._keeper)
            worker.stop()
            assert await worker.ended == Tally(lost=1)
    assert [line["code"] for line in logs if line["event"] == Event.JOB_VERDICT_REFUSED] == ["lease-lost"]
    await finishing.finish(yard.database, Complete(job_id, thief.token, "in time"))
    assert (await yard.read(job_id))["output"] == "in time"


async def test_a_lapsed_job_that_nobody_has_claimed_is_finished_by_its_holder(yard, jobs):
    running, go_on = asyncio.Event(), asyncio.Event()

    @jobs.handler("long")
    async def long(job):
        running.set()
        await go_on.wait()

    job_id = await yard.put("long")
    async with yard.working(concurrency=1):
        await running.wait()
        await yard.lapse(job_id)
        await yard.until_state(job_id, "ready")
        go_on.set()
        await yard.until_state(job_id, "succeeded")


async def test_a_worker_that_gets_its_own_lapsed_job_again_tells_the_first_of_its_handlers(yard, jobs):
    told, tokens = [], []

    @jobs.handler("long")
    async def long(job):
        tokens.append(job.token)
        if len(tokens) == 2:
            return "second"
        try:
            await asyncio.Event().wait()
        finally:
            told.append(job.cancel_reason)

    job_id = await yard.put("long")
    async with yard.working(concurrency=2):
        await yard.until_state(job_id, "running")
        await until(lambda: tokens)
        await yard.lapse(job_id)
        job = await yard.until_state(job_id, "succeeded")
    assert tokens == [1, 2]
    assert told == [CancelReason.LEASE_LOST]
    assert job["output"] == "second"


async def until_leased(conn, namespace, job_id):
    """Wait until the lease of a job has more than a moment to go."""
    for _ in range(LOOKS_MAX):
        cursor = await conn.execute(
            f"select id from {namespace}.job where id = %s and lease_expires_at > now() + interval '30 seconds'",
            [job_id],
        )
        if await cursor.fetchone():
            return
    raise AssertionError("the lease should have been renewed")
