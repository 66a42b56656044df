"""Looking after jobs by hand: reading and listing them wherever they are, and each verb in each state."""

from dataclasses import replace

import pytest

from reserve.errors import JobFinished, JobNotFound, LaneNotFound, LeaseLost, ValidationFailed
from reserve.jobs.managing import cancel, discard, find, get, retry, retry_discarded
from reserve.jobs.rows import JobFilter, JobState
from tests.jobs.yard import ids

BIGINT_MAX = 2**63 - 1
LIVE = ("scheduled", "ready", "running")


async def pages(yard, limit, **chosen):
    """All jobs that fit, page by page; every page but the last is full, and none but the first is empty."""
    found, after = [], None
    while True:
        page = await find(yard.database, JobFilter(**chosen), after=after, limit=limit)
        found += page.items
        if not page.more:
            assert (after is not None) <= len(page.items) <= limit
            return found
        assert len(page.items) == limit
        after = page.items[-1].id


@pytest.fixture
async def one_of_each(yard):
    """A job in every state, twice, in two lanes and of two kinds; oldest first."""
    jobs = []
    # Those that are ready come last, or the claims of the others would have them.
    for n, state in enumerate(sorted([*JobState] * 2, key=lambda state: state == "ready")):
        job, _ = await yard.in_state(state)
        if n % 3 == 0:
            await yard.fetch("update {ns}.job set kind = 'bill' where id = %s returning id", job.id)
            await yard.fetch("update {ns}.job_scheduled set kind = 'bill' where id = %s returning id", job.id)
            await yard.fetch("update {ns}.job_finished set kind = 'bill' where id = %s returning id", job.id)
        jobs.append(await yard.get(job.id))
    return [*jobs, await yard.one(lane="bills")]


# --- reading ------------------------------------------------------------------------------------------------


async def test_a_job_that_never_was_is_not_found(yard):
    for verb in (get, cancel, retry, discard):
        for job_id in (4711, 0, -1, BIGINT_MAX):
            with pytest.raises(JobNotFound):
                await verb(yard.database, job_id)


async def test_a_job_reads_as_what_it_is_in_every_state(yard):
    for state in JobState:
        job, token = await yard.in_state(state)
        seen = await yard.get(job.id)
        assert (seen.id, seen.state) == (job.id, state)
        assert (seen.finished_at is not None) == state.finished
        assert (seen.lease_expires_at is not None) == (state is JobState.RUNNING)
        assert seen.token == (token if state is JobState.RUNNING else None)
        await yard.discard(job) if not state.finished else None


async def test_pages_hold_every_job_once_newest_first_whatever_their_state(yard, one_of_each):
    for limit in (1, 2, 5, 13, 100):
        assert await pages(yard, limit) == one_of_each[::-1]


async def test_a_filter_keeps_the_order_and_leaves_out_the_rest(yard, one_of_each):
    for state in JobState:
        assert await pages(yard, 1, state=state) == [job for job in one_of_each[::-1] if job.state == state]
    for kind in ("bill", "send"):
        assert await pages(yard, 2, kind=kind) == [job for job in one_of_each[::-1] if job.kind == kind]
    assert await pages(yard, 4, lane="mail") == one_of_each[-2::-1]
    assert await pages(yard, 4, lane="bills", state=JobState.READY) == one_of_each[-1:]
    assert await pages(yard, 4, lane="bills", state=JobState.RUNNING) == []
    assert await pages(yard, 4, lane="nowhere") == []
    assert await pages(yard, 4, kind="unknown") == []


async def test_a_page_begins_below_its_cursor_whether_that_job_is_there_or_not(yard, one_of_each):
    page = await find(yard.database, JobFilter(), after=one_of_each[3].id, limit=2)
    assert (list(page.items), page.more) == ([one_of_each[2], one_of_each[1]], True)
    assert (await find(yard.database, JobFilter(), after=0, limit=2)).items == ()


# --- cancel -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["scheduled", "ready"])
async def test_a_job_that_waits_is_cancelled_at_once_and_again_is_the_same(yard, state):
    job, _ = await yard.in_state(state)
    cancelled = await yard.cancel(job)
    assert (cancelled.id, cancelled.state, cancelled.error) == (job.id, "cancelled", None)
    assert cancelled.finished_at is not None
    assert await yard.cancel(job) == cancelled == await yard.get(job.id)


async def test_a_running_job_is_asked_to_stop_and_again_is_the_same(yard):
    held = await yard.running()
    before = await yard.get(held.id)
    asked = await yard.cancel(held)
    assert asked == replace(before, cancel_requested=True)
    assert await yard.cancel(held) == asked
    assert (await yard.release(held)).state == "cancelled"
    assert (await yard.cancel(held)).state == "cancelled"


async def test_a_rescued_job_is_cancelled_at_once_and_its_last_holder_has_lost_it(yard):
    held = await yard.running()
    await yard.lapse(held)
    await yard.rescue()
    assert (await yard.cancel(held)).state == "cancelled"
    with pytest.raises(LeaseLost):
        await yard.complete(held)


# --- discard ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", LIVE)
async def test_a_live_job_is_discarded_by_hand_and_says_so(yard, state):
    job, _ = await yard.in_state(state)
    discarded = await yard.discard(job)
    assert (discarded.state, discarded.error, discarded.failures) == ("discarded", "It was discarded by hand.", 0)
    assert await yard.discard(job) == discarded


async def test_a_job_that_was_to_be_cancelled_may_be_discarded(yard):
    held = await yard.running()
    await yard.cancel(held)
    assert (await yard.discard(held)).state == "discarded"


# --- retry --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["discarded", "cancelled"])
async def test_a_finished_job_is_ready_again_as_if_new(yard, state):
    """Fails where a retry keeps the old failures (`job_reopen` with `failures`): it would be discarded at once."""
    held = await yard.running(payload={"n": 1}, priority=4, max_attempts=2)
    await yard.extend(held, progress="half")
    await yard.lapse(held)
    await yard.rescue()
    (held,) = await yard.claim()
    await yard.fail(held, "first", retry_in_seconds=0)
    (held,) = await yard.claim()
    if state == "cancelled":
        await yard.cancel(held)
    await yard.fail(held, "second")
    before = await yard.get(held.id)
    assert (before.state, before.failures, before.rescues) == (state, 2, 1)
    again = await yard.retry(held)
    assert again == await yard.get(held.id)
    assert again == replace(
        before,
        state=JobState.READY,
        attempt=0,
        failures=0,
        rescues=0,
        run_at=again.run_at,
        progress=None,
        started_at=None,
        finished_at=None,
        worker=None,
    )
    assert again.run_at > before.run_at
    (claimed,) = await yard.claim()
    assert (claimed.id, claimed.attempt) == (held.id, 1)
    assert claimed.token > held.token
    assert (await yard.fail(claimed)).state == "scheduled"


async def test_a_scheduled_job_is_ready_now(yard):
    held = await yard.running()
    await yard.fail(held, "it broke", retry_in_seconds=1000)
    before = await yard.get(held.id)
    now = await yard.retry(held)
    assert now == replace(before, state=JobState.READY, run_at=now.run_at)
    assert now.run_at < before.run_at
    assert ids(await yard.claim()) == [held.id]


@pytest.mark.parametrize("state", ["ready", "running"])
async def test_a_job_that_is_ready_or_runs_is_left_as_it_is(yard, state):
    job, _ = await yard.in_state(state)
    before = await yard.get(job.id)
    assert await yard.retry(job) == before


@pytest.mark.parametrize(
    ("verb", "state"),
    [
        (cancel, "succeeded"),
        (cancel, "discarded"),
        (discard, "succeeded"),
        (discard, "cancelled"),
        (retry, "succeeded"),
    ],
)
async def test_a_verb_that_comes_too_late_says_so_and_changes_nothing(yard, verb, state):
    job, _ = await yard.in_state(state)
    with pytest.raises(JobFinished, match=state):
        await verb(yard.database, job.id)
    assert await yard.get(job.id) == job


# --- many discarded ones ------------------------------------------------------------------------------------


async def test_discarded_jobs_are_retried_oldest_first_of_their_kind_up_to_a_limit(yard):
    sends = [await yard.finished() for _ in range(3)]
    bills = [await yard.finished(kind="bill") for _ in range(3)]
    others = [await yard.finished(lane="bills"), *[await yard.finished(state) for state in ("succeeded", "cancelled")]]

    async def retried(kind=None, limit=100):
        return await retry_discarded(yard.database, "mail", kind=kind, limit=limit)

    assert await retried(kind="bill", limit=2) == 2
    assert [await yard.state(job) for job in sends + bills] == ["discarded"] * 3 + ["ready"] * 2 + ["discarded"]
    assert await retried(limit=1) == 1
    assert await yard.state(sends[0]) == "ready"
    assert await retried(kind="unknown") == 0
    assert await retried() == 3
    assert await retried() == 0
    assert [await yard.state(job) for job in others] == ["discarded", "succeeded", "cancelled"]
    assert len(await yard.claim(100)) == 6


async def test_retrying_the_discarded_of_no_lane_or_too_many_is_refused(yard):
    with pytest.raises(LaneNotFound, match="nowhere"):
        await retry_discarded(yard.database, "nowhere", kind=None, limit=1)
    await yard.one()
    for limit in (0, 1001):
        with pytest.raises(ValidationFailed):
            await retry_discarded(yard.database, "mail", kind=None, limit=limit)
