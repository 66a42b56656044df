"""Rescue: jobs whose lease has lapsed are ready again by themselves, a bounded number of times; and due ones."""

import asyncio

import pytest

from reserve.errors import JobFinished, LeaseLost
from reserve.jobs import lanes
from reserve.jobs.claiming import Rescued, RescueScan, make_due_ready
from reserve.jobs.rows import LaneChange
from tests.jobs.yard import ids


async def test_a_lapsed_job_is_ready_again_in_its_old_place_without_a_failure(yard):
    held = await yard.running(priority=1)
    others = await yard.enqueue(2, priority=1)
    await yard.lapse(held)
    assert await yard.rescue() == Rescued(ready=1)
    job = await yard.get(held.id)
    assert (job.state, job.failures, job.rescues, job.attempt) == ("ready", 0, 1, 1)
    assert (job.lease_expires_at, job.token, job.run_at) == (None, None, held.run_at)
    assert ids(await yard.claim(3)) == [held.id, *ids(others)]


async def test_only_what_has_lapsed_is_rescued(yard):
    for state in ("scheduled", "running", "succeeded", "discarded", "cancelled", "ready"):
        await yard.in_state(state)
    assert await yard.rescue() == Rescued()


async def test_the_last_holder_counts_until_somebody_else_has_claimed_the_job(yard):
    completed, claimed = await yard.running(), await yard.running()
    await yard.lapse(completed, claimed)
    assert (await yard.rescue()).ready == 2
    assert (await yard.complete(completed)).state == "succeeded"
    assert ids(await yard.claim(2, worker="ben")) == [claimed.id]
    with pytest.raises(LeaseLost):
        await yard.complete(claimed)


async def test_a_job_that_nobody_survives_is_discarded_in_the_end_and_says_why(open_yard):
    yard = await open_yard(job_rescues_max=2)
    held = await yard.running()
    for rescues in (1, 2):
        await yard.lapse(held)
        assert await yard.rescue() == Rescued(ready=1)
        (held,) = await yard.claim()
        assert held.rescues == rescues
    await yard.lapse(held)
    assert await yard.rescue() == Rescued(discarded=1)
    job = await yard.get(held.id)
    assert (job.state, job.rescues, job.failures) == ("discarded", 2, 0)
    assert job.error == "Its lease lapsed again after it was rescued 2 times."
    with pytest.raises(JobFinished, match="discarded"):
        await yard.complete(held)
    await yard.retry(job)
    (again,) = await yard.claim()
    assert (again.id, again.rescues) == (held.id, 0)


async def test_without_any_rescue_allowed_the_first_lapse_discards(open_yard):
    yard = await open_yard(job_rescues_max=0)
    held = await yard.running()
    await yard.lapse(held)
    assert await yard.rescue() == Rescued(discarded=1)


async def test_a_lapsed_job_that_was_to_be_cancelled_is_cancelled(yard):
    held = await yard.running()
    await yard.cancel(held)
    await yard.lapse(held)
    assert await yard.rescue() == Rescued(cancelled=1)
    job = await yard.get(held.id)
    assert (job.state, job.error, job.cancel_requested) == ("cancelled", None, False)


async def test_a_limit_takes_the_longest_running_of_each_lane_first(yard):
    held = [await yard.running() for _ in range(3)] + [await yard.running(lane="bills") for _ in range(3)]
    await yard.lapse(*held)
    assert await yard.rescue(2) == Rescued(ready=4)
    assert [await yard.state(each) for each in held] == ["ready", "ready", "running"] * 2
    assert await yard.rescue(2) == Rescued(ready=2)


async def test_only_the_lanes_that_are_named_are_looked_at(yard):
    held = [await yard.running(lane=lane) for lane in ("a", "b", "c")]
    await yard.lapse(*held)
    assert await yard.rescue(lanes=["a", "c", "nowhere"]) == Rescued(ready=2)
    assert await yard.state(held[1]) == "running"
    assert await yard.rescue(lanes=[]) == Rescued()
    assert await yard.rescue() == Rescued(ready=1)


async def test_more_lanes_than_one_statement_takes_are_all_looked_at(yard):
    names = [f"lane {n:03}" for n in range(401)]
    await yard.execute(
        "insert into {ns}.lane (name, created_at) select 'lane ' || lpad(n::text, 3, '0'), now() "
        "from generate_series(0, 400) n"
    )
    held = [await yard.running(lane=names[n]) for n in (0, 200, 400)]
    later = [await yard.one(lane=names[n], delay_seconds=100) for n in (0, 199, 400)]
    await yard.lapse(*held)
    await yard.fall_due(*later)
    assert await yard.rescue() == Rescued(ready=3)
    assert await yard.make_due_ready() == 3


async def test_a_paused_lane_is_rescued_and_made_due_all_the_same(yard):
    held = await yard.running()
    later = await yard.one(delay_seconds=100)
    await lanes.put(yard.database, "mail", LaneChange(paused=True))
    await yard.lapse(held)
    await yard.fall_due(later)
    assert await yard.rescue() == Rescued(ready=1)
    assert await yard.make_due_ready() == 1


async def test_a_scan_still_finds_what_was_claimed_before_it_looked(yard):
    """A short job between two looks does not move the scan past a long one."""
    scan = RescueScan()
    long = await yard.running()
    assert await yard.rescue(scan=scan) == Rescued()
    short = await yard.running()
    await yard.complete(short)
    assert await yard.rescue(scan=scan) == Rescued()
    await yard.lapse(long)
    assert await yard.rescue(scan=scan) == Rescued(ready=1)


async def test_a_scan_moves_on_with_the_jobs_that_run(yard):
    clock, scan = await yard.clock(), RescueScan()
    first = await yard.running()
    await yard.rescue(scan=scan)
    since = scan.since["mail"]
    await yard.complete(first)
    await clock.forward(3600)
    second = await yard.running()
    await yard.rescue(scan=scan)
    assert scan.since["mail"] > since
    await yard.lapse(second)
    assert await yard.rescue(scan=scan) == Rescued(ready=1)


async def test_rescues_at_once_take_each_job_once(yard):
    await yard.enqueue(100)
    await yard.lapse(*await yard.claim(100))
    rescued = await asyncio.gather(*(yard.rescue(20) for _ in range(8)))
    while (more := await yard.rescue(20)).total:
        rescued.append(more)
    assert sum(each.ready for each in rescued) == 100
    assert await yard.fetch("select distinct rescues, state from {ns}.job") == [(1, "ready")]


# --- due ----------------------------------------------------------------------------------------------------


async def test_a_scheduled_job_is_claimed_only_once_its_time_has_come(yard):
    later = await yard.one(delay_seconds=100, priority=2, max_attempts=3, payload={"n": 1})
    assert await yard.make_due_ready() == 0
    assert await yard.claim() == []
    await yard.fall_due(later)
    assert await yard.make_due_ready() == 1
    job = await yard.get(later.id)
    assert (job.state, job.priority, job.max_attempts, job.payload) == ("ready", 2, 3, {"n": 1})
    assert (job.created_at, job.run_at < later.run_at) == (later.created_at, True)
    assert ids(await yard.claim()) == [later.id]


async def test_a_job_that_failed_keeps_what_it_was_through_its_pause(yard):
    held = await yard.running(payload={"n": 1}, max_attempts=7)
    await yard.extend(held, progress={"half": True})
    await yard.fail(held, "it broke", retry_in_seconds=100)
    waiting = await yard.get(held.id)
    await yard.fall_due(waiting)
    await yard.make_due_ready()
    ready = await yard.get(held.id)
    for name in ("payload", "max_attempts", "failures", "error", "progress", "attempt", "started_at", "created_at"):
        assert getattr(ready, name) == getattr(waiting, name), name
    (again,) = await yard.claim()
    assert again.token == held.token + 1


async def test_the_earliest_are_due_first_and_each_lane_has_its_share_and_what_others_leave(yard):
    """Fails where a lane that has many takes the whole limit."""
    many = [await yard.one(delay_seconds=100 - n) for n in range(8)]
    others = [await yard.one(lane="bills", delay_seconds=50 + n) for n in range(3)]
    await yard.one(lane="empty")
    clock = await yard.clock()
    await clock.forward(500)
    assert await yard.make_due_ready(6) == 6
    assert [await yard.state(job) for job in many] == ["scheduled"] * 5 + ["ready"] * 3
    assert [await yard.state(job) for job in others] == ["ready"] * 3
    assert await make_due_ready(yard.database, limit=100, lanes=["bills", "nowhere"]) == 0
    assert await make_due_ready(yard.database, limit=2, lanes=["mail"]) == 2
    assert await make_due_ready(yard.database, limit=100, lanes=[]) == 0
    assert await yard.make_due_ready() == 3
