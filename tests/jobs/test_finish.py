"""Finishing: each verdict, said once and said again, alone and among others; only by whoever has the token."""

import pytest

from reserve.errors import JobFinished, JobNotFound, LeaseLost
from reserve.jobs import lanes
from reserve.jobs.finishing import Finished, finish, finish_many
from reserve.jobs.rows import Backoff, Complete, Fail, JobState, LaneChange, Release
from tests.jobs.yard import ids, kinds

BIGINT_MAX = 2**63 - 1


async def seconds_until_run(yard, job_id):
    ((seconds,),) = await yard.fetch(
        "select extract(epoch from run_at - {ns}.clock())::float from {ns}.job_scheduled where id = %s", job_id
    )
    return seconds


# --- each verdict -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", [None, {"n": [1, "é", None]}, 0, False, "", []])
async def test_a_completed_job_succeeded_and_keeps_its_output(yard, output):
    held = await yard.running()
    assert await yard.complete(held, output) == Finished(held.id, JobState.SUCCEEDED)
    job = await yard.get(held.id)
    assert (job.state, job.output, job.error) == ("succeeded", output, None)
    assert (job.attempt, job.failures, job.started_at, job.worker) == (1, 0, held.started_at, "anna")
    assert job.finished_at >= held.started_at
    assert (job.token, job.lease_expires_at) == (None, None)


async def test_a_failed_job_waits_for_its_backoff_and_counts_a_failure(yard):
    await lanes.put(yard.database, "mail", LaneChange(backoff=Backoff(100, 150)))
    held = await yard.running(priority=3)
    for failures, (low, high) in enumerate([(50, 100), (75, 150), (75, 150)], 1):
        answer = await yard.fail(held, f"failure {failures}")
        job = await yard.get(held.id)
        assert answer == Finished(held.id, JobState.SCHEDULED, job.run_at)
        assert (job.state, job.failures, job.error, job.priority) == ("scheduled", failures, f"failure {failures}", 3)
        # So much has passed since then at most.
        assert low - 30 < await seconds_until_run(yard, job.id) <= high
        await yard.fall_due(job)
        await yard.make_due_ready()
        (held,) = await yard.claim()
        assert (held.attempt, held.failures) == (failures + 1, failures)


async def test_the_services_backoff_counts_where_the_lane_has_none(open_yard):
    yard = await open_yard(job_backoff_first_seconds=1000, job_backoff_seconds_max=1000)
    held = await yard.running()
    await yard.fail(held)
    assert 470 < await seconds_until_run(yard, held.id) <= 1000


async def test_a_holder_may_say_when_to_try_again(yard):
    held = await yard.running()
    answer = await yard.fail(held, retry_in_seconds=500)
    assert answer.state == "scheduled"
    assert 470 < await seconds_until_run(yard, held.id) <= 500
    at_once = await yard.running()
    answer = await yard.fail(at_once, retry_in_seconds=0)
    assert answer == Finished(at_once.id, JobState.READY, at_once.run_at)


async def test_a_job_is_discarded_with_its_last_allowed_failure_and_keeps_its_error(yard):
    held = await yard.running(max_attempts=2)
    await yard.fail(held, "first", retry_in_seconds=0)
    (held,) = await yard.claim()
    assert await yard.fail(held, "second", retry_in_seconds=0) == Finished(held.id, JobState.DISCARDED)
    job = await yard.get(held.id)
    assert (job.state, job.failures, job.attempt, job.error) == ("discarded", 2, 2, "second")


async def test_a_holder_may_discard_at_once(yard):
    held = await yard.running(max_attempts=9)
    assert await yard.fail(held, discard=True) == Finished(held.id, JobState.DISCARDED)
    assert (await yard.get(held.id)).failures == 1


async def test_a_released_job_is_ready_in_its_old_place_without_a_failure(yard):
    first = await yard.running()
    later = await yard.one()
    assert await yard.release(first) == Finished(first.id, JobState.READY, first.run_at)
    job = await yard.get(first.id)
    assert (job.state, job.failures, job.token, job.error) == ("ready", 0, None, None)
    assert ids(await yard.claim(2)) == ids([first, later])


async def test_a_released_job_may_wait(yard):
    held = await yard.running()
    answer = await yard.release(held, 500)
    assert answer.state == "scheduled"
    assert 470 < await seconds_until_run(yard, held.id) <= 500


async def test_what_was_to_be_cancelled_ends_cancelled_unless_it_is_completed(yard):
    verdicts = {
        "released": lambda held: yard.release(held, 100),
        "failed": yard.fail,
        "failed at last": lambda held: yard.fail(held, discard=True),
        "completed": yard.complete,
    }
    for name, verdict in verdicts.items():
        held = await yard.running()
        await yard.cancel(held)
        answer = await verdict(held)
        assert answer == Finished(held.id, JobState.SUCCEEDED if name == "completed" else JobState.CANCELLED)
        assert await yard.state(held) == answer.state


# --- said again ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "verb", [Complete, lambda *held: Fail(*held, "e"), lambda *held: Fail(*held, "e", discard=True), Release]
)
async def test_a_verdict_again_has_the_same_answer_and_no_effect_until_a_newer_token(yard, verb):
    held = await yard.running()
    verdict = verb(held.id, held.token)
    first = await finish(yard.database, verdict)
    before = await yard.get(held.id)
    assert await finish(yard.database, verdict) == first
    assert await finish_many(yard.database, [verdict, verdict]) == [first, first]
    assert await yard.get(held.id) == before
    if first.state == "succeeded":
        return
    await yard.retry(held)
    (newer,) = await yard.claim()
    assert newer.token > held.token
    assert kinds(await finish_many(yard.database, [verdict])) == [LeaseLost]
    assert await yard.state(newer) == "running"


async def test_another_verb_on_a_finished_job_says_that_it_has_finished(yard):
    held = await yard.running()
    await yard.complete(held)
    others = [Fail(held.id, held.token, "e"), Release(held.id, held.token)]
    assert kinds(await finish_many(yard.database, others)) == [JobFinished] * 2
    with pytest.raises(JobFinished, match="succeeded"):
        await yard.fail(held)
    discarded = await yard.running()
    await yard.fail(discarded, discard=True)
    with pytest.raises(JobFinished, match="discarded"):
        await yard.complete(discarded)


# --- by nobody else -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [Complete, lambda *held: Fail(*held, "e"), Release])
async def test_whoever_has_another_token_changes_nothing(yard, verb):
    """Fails where a statement does not ask for the token (`t.token = given.token` left out of `job_complete`)."""
    first = await yard.running()
    await yard.lapse(first)
    await yard.rescue()
    (second,) = await yard.claim(worker="ben")
    before = await yard.get(first.id)
    wrong = [verb(first.id, token) for token in (first.token, second.token + 1, 0, BIGINT_MAX)]
    assert kinds(await finish_many(yard.database, wrong)) == [LeaseLost] * 4
    for verdict in wrong:
        with pytest.raises(LeaseLost):
            await finish(yard.database, verdict)
    assert await yard.get(first.id) == before
    assert (await finish(yard.database, verb(second.id, second.token))).job_id == second.id


@pytest.mark.parametrize("verb", [Complete, lambda *held: Fail(*held, "e"), Release])
async def test_a_holder_whose_lease_has_lapsed_still_counts_until_somebody_claims_the_job(yard, verb):
    lapsed, rescued = await yard.running(), await yard.running()
    await yard.lapse(rescued)
    await yard.rescue()
    await yard.lapse(lapsed)
    for held in (lapsed, rescued):
        answer = await finish(yard.database, verb(held.id, held.token))
        assert await yard.state(held) == answer.state
    assert (await yard.get(rescued.id)).rescues == 1


async def test_a_job_that_was_given_back_is_nobodys(yard):
    held = await yard.running()
    await yard.release(held)
    with pytest.raises(LeaseLost):
        await yard.complete(held)
    assert await yard.state(held) == "ready"


async def test_a_job_that_never_was_is_not_found(yard):
    with pytest.raises(JobNotFound):
        await finish(yard.database, Complete(4711, 1))
    never = [Complete(4711, 1), Fail(4711, 1, "e"), Release(BIGINT_MAX, 1)]
    assert kinds(await finish_many(yard.database, never)) == [JobNotFound] * 3
