"""Handlers that are no coroutines run in threads; any handler may tell how far it is."""

import asyncio
import threading

import pytest

from reserve.errors import ValidationFailed
from reserve.worker import Tally


async def test_functions_run_in_threads_of_which_there_are_no_more_than_hands(yard, jobs):
    threads, meeting = set(), threading.Barrier(2, timeout=30)

    @jobs.handler("sync")
    def sync(job):
        threads.add(threading.current_thread().name)
        meeting.wait()
        return job.payload["n"]

    ids = await yard.put_many("sync", 6)
    assert await yard.drain(concurrency=2) == Tally(succeeded=6)
    assert threads == {"handler-1", "handler-2"}
    assert [(await yard.read(job_id))["output"] for job_id in ids] == list(range(6))


async def test_a_thread_that_takes_too_long_is_told_and_its_job_fails(yard, jobs):
    told = threading.Event()

    @jobs.handler("slow", timeout_seconds=0.01)
    def slow(job):
        while not job.cancel_requested:
            pass
        told.set()
        job.raise_if_cancelled()

    job_id = await yard.put("slow")
    assert await yard.drain() == Tally(failed=1)
    assert (await yard.read(job_id))["error"] == "Timed out after 0.01 s."
    assert await asyncio.to_thread(told.wait, 30)


async def test_a_thread_may_raise_and_quick_ones_keep_within_their_time(yard, jobs):
    @jobs.handler("raises", timeout_seconds=60)
    def raises(job):
        if job.payload:
            raise StopIteration(job.payload)
        return 1

    ids = [await yard.put("raises", payload) for payload in ("x", None)]
    assert await yard.drain() == Tally(failed=1, succeeded=1)
    assert (await yard.read(ids[0]))["error"].startswith("RuntimeError: coroutine raised StopIteration\n")


# --- progress -----------------------------------------------------------------------------------------------


async def test_progress_is_stored_when_it_returns_in_the_loop_and_in_threads(yard, jobs):
    seen, loop = {}, asyncio.get_running_loop()

    @jobs.handler("loop")
    async def in_loop(job):
        await job.progress({"done": 1})
        await job.progress({"done": 2})
        seen["loop"] = (await yard.read(job.id))["progress"]

    @jobs.handler("thread")
    def in_thread(job):
        job.progress_from_thread([1, 2])
        seen["thread"] = asyncio.run_coroutine_threadsafe(yard.read(job.id), loop).result()["progress"]

    for kind in ("loop", "thread"):
        await yard.put(kind)
        assert await yard.drain() == Tally(succeeded=1)
    assert seen == {"loop": {"done": 2}, "thread": [1, 2]}


async def test_progress_that_cannot_be_stored_is_refused_where_it_is_told(yard, jobs):
    @jobs.handler("odd")
    async def odd(job):
        with pytest.raises(ValidationFailed, match="/progress: must not contain NaN"):
            await job.progress(float("nan"))

    await yard.put("odd")
    assert await yard.drain() == Tally(succeeded=1)


async def test_progress_of_many_handlers_at_once_is_stored_for_each(yard, jobs):
    all_there = asyncio.Barrier(5)

    @jobs.handler("many")
    async def many(job):
        await all_there.wait()
        await asyncio.gather(job.progress("older"), job.progress(job.payload["n"]))

    ids = await yard.put_many("many", 5)
    assert await yard.drain() == Tally(succeeded=5)
    assert [(await yard.read(job_id))["progress"] for job_id in ids] == list(range(5))
