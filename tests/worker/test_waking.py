"""New, due and lapsed jobs are found: by notification, by polling, and by the worker's own upkeep."""

import asyncio

import pytest

from reserve.jobs import notices
from reserve.worker.bell import Bell
from tests.steps import LOOKS_MAX
from tests.worker.yard import until

LISTENING = """
select pid from pg_stat_activity
where datname = current_database() and application_name = 'reserve' and query like 'listen %%' and query like %s
"""


async def until_listening(conn, namespace, other_than=None):
    for _ in range(LOOKS_MAX):
        cursor = await conn.execute(LISTENING, [f"%{notices.channel(namespace)}%"])
        row = await cursor.fetchone()
        if row and row[0] != other_than:
            return row[0]
        await asyncio.sleep(0)
    raise AssertionError("the worker should listen")


@pytest.fixture
def patient(yard, settings):
    """Workers of this yard look so seldom that they would never find anything by looking."""
    seldom = {
        "work_poll_seconds_min": 60,
        "work_poll_seconds_max": 3600,
        "job_due_interval_seconds": 3600,
        "job_rescue_interval_seconds": 3600,
    }
    yard.database.settings = settings.model_copy(update=seldom)


async def test_a_notification_wakes_a_worker_that_would_not_look_for_an_hour(yard, jobs, conn, namespace, patient):
    jobs.handler("noop")(lambda job: None)
    async with yard.working(lanes=["a", "b"]) as worker:
        await until_listening(conn, namespace)
        await until(lambda: worker._crew and all(lane.pace.pause for lane in worker._crew._fetcher._lanes))
        job_id = await yard.put("noop", lane="b")
        await yard.until_state(job_id, "succeeded")


async def test_a_listener_whose_connection_ends_makes_another(yard, jobs, conn, namespace, patient):
    jobs.handler("noop")(lambda job: None)
    async with yard.working():
        pid = await until_listening(conn, namespace)
        missed = await yard.put("noop")
        await yard.until_state(missed, "succeeded")
        await conn.execute("select pg_terminate_backend(%s)", [pid])
        await until_listening(conn, namespace, other_than=pid)
        job_id = await yard.put("noop")
        await yard.until_state(job_id, "succeeded")


async def test_without_listening_jobs_are_found_by_polling(yard, jobs, conn, namespace, settings):
    jobs.handler("noop")(lambda job: None)
    yard.database.settings = settings.model_copy(update={"work_listen": False})
    async with yard.working() as worker:
        await until(lambda: worker._crew)
        assert worker._crew._listener is None
        await until(lambda: worker._crew and all(lane.pace.pause for lane in worker._crew._fetcher._lanes))
        for _ in range(3):
            await yard.until_state(await yard.put("noop"), "succeeded")


async def test_due_jobs_become_ready_without_any_set_up(yard, jobs, conn, namespace):
    jobs.handler("noop")(lambda job: None)
    job_id = await yard.put("noop", delay_seconds=3600)
    async with yard.working():
        await conn.execute(f"update {namespace}.job_scheduled set run_at = now() where id = %s", [job_id])
        await yard.until_state(job_id, "succeeded")


async def test_jobs_of_a_worker_that_is_gone_are_rescued_without_any_set_up(yard, jobs):
    jobs.handler("noop")(lambda job: None)
    job_id = await yard.put("noop")
    gone = await yard.claim_as("gone")
    assert gone.id == job_id
    async with yard.working():
        await yard.lapse(job_id)
        job = await yard.until_state(job_id, "succeeded")
    assert (job["rescues"], job["failures"], job["attempt"], job["token"]) == (1, 0, 1, 2)


# --- the bell -----------------------------------------------------------------------------------------------


async def test_a_bell_that_was_rung_while_nobody_waited_is_heard_once():
    bell = Bell()
    bell.ring()
    bell.ring()
    await bell.wait(3600)
    await bell.wait(0)
    await bell.wait(0.001)


async def test_a_bell_wakes_who_waits():
    bell = Bell()
    waiting = asyncio.create_task(bell.wait())
    await asyncio.sleep(0)
    bell.ring()
    bell.ring()
    await waiting
    waiting = asyncio.create_task(bell.wait(3600))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await bell.wait(0.001)
