"""Whatever ends in the middle, a backend or the server: each job is found again, none is lost, none is twice.

The audit has the last word in each of these.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from reserve.db import embedded
from reserve.db.connection import Database
from reserve.db.migrate import migrate
from reserve.errors import Overloaded, Unavailable
from reserve.jobs import claiming, enqueuing, finishing, managing
from reserve.jobs.rows import Complete, Enqueue, Fail, JobState
from reserve.ops.audit import audit
from reserve.ops.jobs import Due, Rescue
from reserve.settings import load
from tests.ops.lane import WORKER, claim, enqueue, fall_due, lapse_lease
from tests.steps import LOOKS_MAX, MovableClock, fetch, until_gone, until_waiting


@pytest.fixture
async def clock(conn, namespace):
    return await MovableClock.install(conn, namespace)


@pytest.fixture
async def ended_in(clock, conn):
    """Runs work whose backend is terminated in the middle of a named statement, with its locks had."""

    async def run(statement, work):
        async with clock.stopped_for(statement):
            task = asyncio.create_task(work)
            (pid,) = await until_waiting(conn)
            await fetch(conn, "select pg_terminate_backend(%s)", pid)
            with pytest.raises(Unavailable):
                await task
        await until_gone(conn, pid)

    return run


async def expect_all_true(database, jobs):
    report = await audit(database)
    assert report.differences == ()
    assert report.jobs == jobs


# --- a backend ends -----------------------------------------------------------------------------------------


async def test_jobs_whose_claim_ends_in_the_middle_are_ready_as_before(database, ended_in):
    ids = await enqueue(database, 3)
    await ended_in("job_claim", claiming.claim(database, "a", WORKER, limit=3))
    jobs = await claim(database, 3)
    assert [(job.id, job.token) for job in jobs] == [(job_id, 1) for job_id in ids]
    await expect_all_true(database, 3)


async def test_jobs_whose_claim_was_written_and_never_committed_are_found_at_once(database, conn):
    ids = await enqueue(database, 3)

    async def claim_and_be_ended():
        async with database.transaction() as own:
            assert len(await claiming.claim_in(database, own, "a", WORKER, limit=3)) == 3
            assert await claiming.claim(database, "a", WORKER, limit=3) == [], "locked: nobody else gets them"
            await fetch(conn, "select pg_terminate_backend(%s)", own.info.backend_pid)
            await until_gone(conn, own.info.backend_pid)

    with pytest.raises(Unavailable):
        await claim_and_be_ended()
    assert [(job.id, job.token) for job in await claim(database, 3)] == [(job_id, 1) for job_id in ids]
    await expect_all_true(database, 3)


async def test_a_completion_that_ends_in_the_middle_can_be_said_again_and_counts_once(
    database, ended_in, conn, namespace
):
    await enqueue(database, 2)
    jobs = await claim(database, 2)
    verdicts = [Complete(job.id, job.token, {"done": True}) for job in jobs]
    await ended_in("job_complete", finishing.finish_many(database, verdicts))
    assert {(await managing.get(database, job.id)).state for job in jobs} == {JobState.RUNNING}
    for _ in range(2):
        answers = await finishing.finish_many(database, verdicts)
        assert [answer.state for answer in answers] == [JobState.SUCCEEDED] * 2
    assert await fetch(conn, f"select count(*) from {namespace}.job_finished") == [(2,)]
    await expect_all_true(database, 2)


async def test_a_failure_that_ends_in_the_middle_can_be_said_again_and_counts_once(database, ended_in):
    await enqueue(database, 1)
    (job,) = await claim(database, 1)
    verdict = Fail(job.id, job.token, "nobody there")
    await ended_in("job_put_off", finishing.finish(database, verdict))
    assert (await managing.get(database, job.id)).failures == 0
    for _ in range(2):
        assert (await finishing.finish(database, verdict)).state is JobState.SCHEDULED
    assert (await managing.get(database, job.id)).failures == 1
    await expect_all_true(database, 1)


async def test_jobs_that_are_enqueued_in_the_middle_of_an_end_are_all_there_or_none(database, ended_in):
    await enqueue(database, 1)
    many = [Enqueue("a", "greet", {"number": number}) for number in range(10)]
    await ended_in("job_enqueue", enqueuing.enqueue_many(database, many))
    await expect_all_true(database, 1)


@pytest.mark.parametrize("statement", ["job_rescue_claim", "job_abandon_claim"])
async def test_a_rescue_that_ends_in_the_middle_is_done_by_the_next(statement, settings, ended_in):
    rescues_max = 0 if statement == "job_abandon_claim" else 5
    async with Database.open(settings.model_copy(update={"job_rescues_max": rescues_max})) as database:
        await enqueue(database, 5)
        ids = [job.id for job in await claim(database, 5)]
        await lapse_lease(database, *ids)
        service = Rescue(database)
        await ended_in(statement, service.run_once())
        assert {(await managing.get(database, job_id)).state for job_id in ids} == {JobState.RUNNING}
        assert (await service.run_once()).handled == 5
        expected = JobState.READY if rescues_max else JobState.DISCARDED
        assert {(await managing.get(database, job_id)).state for job_id in ids} == {expected}
        await expect_all_true(database, 5)


async def test_due_jobs_whose_move_ends_in_the_middle_are_moved_by_the_next(database, ended_in, conn, namespace):
    await enqueue(database, 5, delay_seconds=60)
    await fall_due(conn, namespace)
    service = Due(database)
    await ended_in("job_due_claim", service.run_once())
    assert (await service.run_once()).handled == 5
    await claim(database, 5)
    await expect_all_true(database, 5)


# --- the server ends ----------------------------------------------------------------------------------------


@pytest.fixture
def data_dir():
    """A folder that the server's user can reach when we are root, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="reserve-test-")).resolve()
    folder.chmod(0o711)
    yield folder / "data"
    shutil.rmtree(folder)


@asynccontextmanager
async def opened(server):
    await migrate(server.url, "reserve")
    async with Database.open(load(database_url=server.url, _env_file=None)) as database:
        yield database


async def when_it_is_back(work):
    """What `work` answers once the connections that had died have been replaced."""
    for _ in range(LOOKS_MAX):
        with suppress(Unavailable, Overloaded):
            return await work()
    raise AssertionError("the database is back, and its connections should be")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_running_jobs_outlive_a_restart_of_the_server_and_so_do_the_services(data_dir, number):
    """One holder is still there and completes; another has gone, and its job is rescued and run again."""
    with ExitStack() as first:
        server = first.enter_context(embedded.start(data_dir))  # durable, as for everybody
        async with opened(server) as database:
            rescue = Rescue(database)
            await enqueue(database, 3)
            done, kept, left = await claim(database, 3)
            await finishing.finish(database, Complete(done.id, done.token, {"done": True}))
            os.kill(server.pid, number)
            await asyncio.wrap_future(server.ended)
            first.close()
            with pytest.raises(Unavailable):
                await rescue.run_once()
            with embedded.start(data_dir):
                assert (await when_it_is_back(rescue.run_once)).handled == 0, "both leases are as they were"
                assert (await finishing.finish(database, Complete(kept.id, kept.token))).state is JobState.SUCCEEDED
                await lapse_lease(database, left.id)
                assert (await rescue.run_once()).handled == 1
                (again,) = await claim(database, 1)
                assert (again.id, again.token, again.rescues) == (left.id, left.token + 1, 1)
                assert (await managing.get(database, done.id)).output == {"done": True}
                await expect_all_true(database, 3)
