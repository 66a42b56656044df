"""Each way in which a handler may end, and what its job is then."""

import asyncio

import pytest
from pydantic import BaseModel
from structlog.testing import capture_logs

from reserve.errors import ValidationFailed
from reserve.events import Event
from reserve.worker import Discard, Job, Release, Retry, Tally, Worker


class Mail(BaseModel):
    to: str


async def test_a_handler_gets_its_job_and_returns_its_output(yard, jobs):
    seen = []

    @jobs.handler("mail.send", payload=Mail)
    async def send(job: Job[Mail]):
        seen.append((job.id, job.lane, job.kind, job.payload, job.attempt, job.token, job.cancel_requested))
        assert job.idempotency_key == job.claimed.idempotency_key
        assert job.cancel_reason is None
        job.raise_if_cancelled()
        return {"sent": True}

    job_id = await yard.put("mail.send", {"to": "ann"}, lane="mail")
    assert await yard.drain(lanes=["mail"]) == Tally(succeeded=1)
    assert seen == [(job_id, "mail", "mail.send", Mail(to="ann"), 1, 1, False)]
    job = await yard.read(job_id)
    assert (job["state"], job["output"], job["error"]) == ("succeeded", {"sent": True}, None)


async def test_without_a_type_the_payload_is_json(yard, jobs):
    @jobs.handler("echo")
    async def echo(job):
        return job.payload

    ids = [await yard.put("echo", payload) for payload in ({"a": [1]}, [1, None], "x", 1.5, None)]
    await yard.drain()
    assert [(await yard.read(job_id))["output"] for job_id in ids] == [{"a": [1]}, [1, None], "x", 1.5, None]


async def test_a_payload_that_does_not_fit_is_discarded_with_the_field_named(yard, jobs):
    @jobs.handler("mail.send", payload=Mail)
    async def send(job):
        raise AssertionError("not called")

    job_id = await yard.put("mail.send", {"too": "ann"})
    assert await yard.drain() == Tally(discarded=1)
    job = await yard.read(job_id)
    assert (job["state"], job["error"]) == ("discarded", "The payload does not fit: /to: Field required.")


async def test_a_kind_that_nobody_knows_fails_and_is_tried_again_later(yard, jobs):
    jobs.handler("known")(lambda job: None)
    job_id = await yard.put("unknown")
    assert await yard.drain() == Tally(failed=1)
    job = await yard.read(job_id)
    assert (job["state"], job["failures"]) == ("scheduled", 1)
    assert job["error"] == "This worker has no handler for jobs of kind 'unknown'."


async def test_an_exception_fails_the_attempt_and_the_last_discards_the_job(yard, jobs):
    @jobs.handler("fails")
    async def fails(job):
        raise ValueError("no luck")

    often = await yard.put("fails")
    once = await yard.put("fails", max_attempts=1)
    with capture_logs() as logs:
        assert await yard.drain() == Tally(failed=1, discarded=1)
    job = await yard.read(often)
    assert (job["state"], job["failures"], job["error"].partition("\n")[0]) == (
        "scheduled",
        1,
        "ValueError: no luck",
    )
    assert (await yard.read(once))["state"] == "discarded"
    assert [line["error"] for line in logs if line["event"] == Event.JOB_FAILED] == ["ValueError: no luck"] * 2
    assert [line["job"] for line in logs if line["event"] == Event.JOB_DISCARDED] == [once]


async def test_a_handler_may_discard_retry_or_release(yard, jobs):
    @jobs.handler("ends")
    async def ends(job):
        match job.payload:
            case "discard":
                raise Discard("never")
            case "retry":
                raise Retry(60, "busy")
            case "release":
                raise Release(60)

    ids = {how: await yard.put("ends", how) for how in ("discard", "retry", "release")}
    assert await yard.drain() == Tally(discarded=1, failed=1, released=1)
    found = {how: await yard.read(job_id) for how, job_id in ids.items()}
    assert {how: (job["state"], job["failures"], job["error"]) for how, job in found.items()} == {
        "discard": ("discarded", 1, "never"),
        "retry": ("scheduled", 1, "busy"),
        "release": ("scheduled", 0, None),
    }


async def test_a_release_at_once_is_run_again_and_is_no_failure(yard, jobs):
    attempts = []

    @jobs.handler("twice")
    async def twice(job):
        attempts.append((job.attempt, job.token))
        if len(attempts) == 1:
            raise Release

    await yard.put("twice")
    assert await yard.drain() == Tally(released=1, succeeded=1)
    assert attempts == [(1, 1), (1, 2)]


async def test_a_handler_that_takes_too_long_is_cancelled_and_fails(yard, jobs):
    ended = []

    @jobs.handler("slow", timeout_seconds=0.01)
    async def slow(job):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(job.id)

    job_id = await yard.put("slow")
    assert await yard.drain() == Tally(failed=1)
    assert ended == [job_id]
    assert (await yard.read(job_id))["error"] == "Timed out after 0.01 s."


async def test_a_timeout_of_the_handlers_own_is_not_the_workers(yard, jobs):
    @jobs.handler("own", timeout_seconds=60)
    async def own(job):
        raise TimeoutError("the mail server")

    job_id = await yard.put("own")
    await yard.drain()
    assert (await yard.read(job_id))["error"].startswith("TimeoutError: the mail server\n")


class Odd(BaseException):
    pass


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), Odd()]
)
async def test_whatever_a_handler_raises_is_its_jobs_failure_alone(yard, jobs, error):
    @jobs.handler("crash")
    async def crash(job):
        raise error

    @jobs.handler("crash.sync")
    def crash_sync(job):
        raise error

    jobs.handler("well")(lambda job: None)
    ids = [await yard.put(kind) for kind in ("crash", "crash.sync")]
    await yard.put("well")
    assert await yard.drain(concurrency=1) == Tally(failed=2, succeeded=1)
    for job_id in ids:
        assert (await yard.read(job_id))["error"].startswith(type(error).__name__)


async def test_a_handler_that_cancels_its_own_task_takes_nobody_with_it(yard, jobs):
    @jobs.handler("suicide")
    async def suicide(job):
        asyncio.current_task().cancel()
        if job.payload == "wait":
            await asyncio.sleep(0)

    ids = [await yard.put("suicide", how) for how in ("wait", "return", "wait", "return")]
    assert (await yard.drain(concurrency=1)).total == 4
    assert [(await yard.read(job_id))["state"] for job_id in ids] == ["scheduled", "succeeded"] * 2


async def test_an_output_that_cannot_be_stored_discards_its_job_and_no_other(yard, jobs):
    @jobs.handler("odd")
    async def odd(job):
        return {"odd": object(), "nul": "\0", "well": 1}[job.payload]

    ids = [await yard.put("odd", how) for how in ("odd", "nul", "well")]
    assert await yard.drain() == Tally(discarded=2, succeeded=1)
    assert [(await yard.read(job_id))["state"] for job_id in ids] == ["discarded", "discarded", "succeeded"]


# --- lanes --------------------------------------------------------------------------------------------------


async def test_a_drain_ends_only_when_jobs_that_jobs_enqueue_are_done_as_well(yard, jobs):
    @jobs.handler("chain")
    async def chain(job):
        if job.payload:
            await yard.put("chain", job.payload - 1, lane="b" if job.lane == "a" else "a")

    await yard.put("chain", 5, lane="a")
    assert await yard.drain(lanes=["a", "b"]) == Tally(succeeded=6)


async def test_a_drain_takes_due_and_lapsed_jobs_and_leaves_later_ones(yard, jobs, conn, namespace):
    jobs.handler("noop")(lambda job: None)
    due, later = [await yard.put("noop", delay_seconds=3600) for _ in range(2)]
    await conn.execute(f"update {namespace}.job_scheduled set run_at = now() - interval '1 hour' where id = %s", [due])
    assert await yard.drain() == Tally(succeeded=1)
    assert (await yard.read(due))["state"] == "succeeded"
    assert (await yard.read(later))["state"] == "scheduled"


async def test_only_the_lanes_of_the_worker_are_worked_on(yard, jobs):
    jobs.handler("noop")(lambda job: None)
    await yard.put("noop", lane="a")
    other = await yard.put("noop", lane="b")
    assert await yard.drain(lanes=["a"]) == Tally(succeeded=1)
    assert (await yard.read(other))["state"] == "ready"


async def test_many_jobs_of_several_lanes_are_each_run_once(yard, jobs):
    ran = []

    @jobs.handler("noop")
    async def noop(job):
        ran.append(job.id)

    ids = [job_id for lane in ("a", "b", "c") for job_id in await yard.put_many("noop", 1500, lane=lane)]
    assert await yard.drain(lanes=["a", "b", "c", "a"], concurrency=7) == Tally(succeeded=4500)
    assert sorted(ran) == sorted(ids)
    assert await yard.states() == {"succeeded": 4500}


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"lanes": []}, "/lanes"),
        ({"lanes": "default"}, "/lanes"),
        ({"lanes": ["a", ""]}, "/lanes/1"),
        ({"concurrency": 0}, "/concurrency"),
        ({"concurrency": 10**6}, "/concurrency"),
        ({"name": "\0"}, "/name"),
    ],
)
async def test_a_worker_that_cannot_be_is_refused(database, jobs, wrong, pointer):
    with pytest.raises(ValidationFailed, match=f"^{pointer}: must"):
        Worker(database, jobs, **wrong)
