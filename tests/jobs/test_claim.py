"""Claiming: in which order, how many, by whom, for how long; and where a walk resumes that has been there before."""

import asyncio
from datetime import timedelta

import pytest

from reserve.errors import ValidationFailed
from reserve.jobs import lanes
from reserve.jobs.claiming import Scan, claim, claim_in
from reserve.jobs.rows import LaneChange
from tests.jobs.yard import ids


@pytest.fixture
def resuming():
    """A scan that has begun at the start a moment ago, and for this test stays so."""
    scan = Scan()
    scan._from_start_at = float("inf")
    ended = scan.ended

    def stay(last, *, resumed):
        ended(last, resumed=resumed)
        scan._from_start_at = float("inf")

    scan.ended = stay
    return scan


def begin_anew(scan):
    """The moment is over."""
    scan._from_start_at = float("-inf")


async def reorder(yard, job, seconds):
    """Let a ready job have become ready so many seconds earlier."""
    await yard.fetch(
        "update {ns}.job set run_at = run_at - make_interval(secs => %s) where id = %s returning id", seconds, job.id
    )


# --- which and how many -------------------------------------------------------------------------------------


async def test_jobs_come_by_priority_then_time_then_id(yard):
    jobs = [await yard.one(priority=priority) for priority in (0, 5, -5, 0, 5, 0)]
    await reorder(yard, jobs[3], 60)
    order = [jobs[n].id for n in (1, 4, 3, 0, 5, 2)]
    assert ids(await yard.claim(4)) == order[:4]
    assert ids(await yard.claim(4)) == order[4:]
    assert await yard.claim(4) == []


async def test_jobs_of_one_moment_come_in_the_order_of_their_ids(yard):
    jobs = await yard.enqueue(30)
    assert [(await yard.claim())[0].id for _ in range(3)] == ids(jobs[:3])
    assert ids(await yard.claim(100)) == ids(jobs[3:])


async def test_only_ready_jobs_of_the_lane_are_claimed(yard):
    for state in ("scheduled", "running", "succeeded", "discarded", "cancelled"):
        await yard.in_state(state)
    await yard.one(lane="bills")
    assert await yard.claim(100) == []
    assert len(await yard.claim(100, lane="bills")) == 1


async def test_a_paused_lane_gives_nothing_until_it_is_resumed(yard):
    job = await yard.one()
    await lanes.put(yard.database, "mail", LaneChange(paused=True))
    assert await yard.claim() == []
    await lanes.put(yard.database, "mail", LaneChange(paused=False))
    assert ids(await yard.claim()) == [job.id]


async def test_a_lane_that_does_not_exist_gives_nothing_and_does_not_come_to_be(yard):
    assert await yard.claim(lane="nowhere") == []
    assert await yard.fetch("select name from {ns}.lane") == []


async def test_a_lane_is_found_however_its_name_is_spelled(yard):
    job = await yard.one(lane="sénd")
    assert ids(await yard.claim(lane=" se\N{COMBINING ACUTE ACCENT}nd ")) == [job.id]


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"limit": 0}, "/limit"),
        ({"limit": 1001}, "/limit"),
        ({"limit": 1.5}, "/limit"),
        ({"lease_seconds": 0}, "/lease_seconds"),
        ({"lease_seconds": 86_401}, "/lease_seconds"),
        ({"lane": "\0"}, "/lane"),
    ],
)
async def test_what_is_out_of_bounds_is_refused(yard, wrong, pointer):
    with pytest.raises(ValidationFailed) as raised:
        await claim(yard.database, **{"lane": "mail", "worker": "anna", "limit": 1} | wrong)
    assert [fault.pointer for fault in raised.value.faults] == [pointer]


# --- what a claim says --------------------------------------------------------------------------------------


async def test_a_claimed_job_says_all_that_its_holder_needs(yard):
    job = await yard.one(payload={"to": ["a", None]}, priority=3, max_attempts=5)
    (claimed,) = await yard.claim(worker="anna")
    seen = await yard.get(job.id)
    for name in ("id", "lane", "kind", "payload", "priority", "max_attempts", "run_at", "created_at"):
        assert getattr(claimed, name) == getattr(job, name) == getattr(seen, name)
    for name in ("token", "attempt", "failures", "rescues", "started_at", "lease_expires_at"):
        assert getattr(claimed, name) == getattr(seen, name)
    assert (claimed.token, claimed.attempt, claimed.failures, claimed.rescues) == (1, 1, 0, 0)
    assert (seen.state, seen.worker, seen.finished_at) == ("running", "anna", None)
    assert claimed.started_at >= job.created_at
    assert claimed.idempotency_key == f"{yard.namespace}-job-{job.id}"


async def test_tokens_grow_and_the_idempotency_key_stays_while_attempts_count_failures_only(yard):
    first = await yard.running()
    await yard.release(first)
    (second,) = await yard.claim()
    await yard.lapse(second)
    await yard.rescue()
    (third,) = await yard.claim()
    await yard.fail(third, retry_in_seconds=0)
    (fourth,) = await yard.claim()
    claims = [first, second, third, fourth]
    assert [each.token for each in claims] == [1, 2, 3, 4]
    assert [each.attempt for each in claims] == [1, 1, 1, 2]
    assert [each.rescues for each in claims] == [0, 0, 1, 1]
    assert [each.failures for each in claims] == [0, 0, 0, 1]
    assert {each.idempotency_key for each in claims} == {first.idempotency_key}
    assert {each.run_at for each in claims} == {first.run_at}


async def test_a_lease_is_as_long_as_the_claim_says_else_the_lane_else_the_service(open_yard):
    yard = await open_yard(job_lease_seconds=70)

    async def lease(**rest):
        await yard.one()
        (claimed,) = await yard.claim(**rest)
        return (claimed.lease_expires_at - claimed.started_at) / timedelta(seconds=1)

    assert await lease() == 70
    await lanes.put(yard.database, "mail", LaneChange(lease_seconds=50))
    assert await lease() == 50
    assert await lease(lease_seconds=86_400) == 86_400


async def test_a_claim_in_a_transaction_that_rolls_back_has_not_happened(yard):
    job = await yard.one()
    with pytest.raises(ZeroDivisionError):
        async with yard.database.transaction() as conn:
            (claimed,) = await claim_in(yard.database, conn, "mail", "anna", limit=1)
            assert await yard.claim() == []
            raise ZeroDivisionError
    (again,) = await yard.claim()
    assert (again.id, again.token) == (claimed.id, claimed.token) == (job.id, 1)


# --- where a walk resumes -----------------------------------------------------------------------------------


async def test_a_scan_resumes_past_the_last_job_it_was_given(yard, resuming):
    jobs = await yard.enqueue(6)
    assert ids(await yard.claim(2, scan=resuming)) == ids(jobs[:2])
    earlier = await yard.one()
    await reorder(yard, earlier, 60)
    assert ids(await yard.claim(2, scan=resuming)) == ids(jobs[2:4])
    begin_anew(resuming)
    assert ids(await yard.claim(2, scan=resuming)) == ids([earlier, jobs[4]])


async def test_a_scan_sees_a_higher_priority_at_once(yard, resuming):
    """Fails where the walk resumes without a look at higher priorities (`resumes` is always true)."""
    jobs = await yard.enqueue(4)
    await yard.claim(1, scan=resuming)
    urgent = await yard.one(priority=1)
    assert ids(await yard.claim(2, scan=resuming)) == ids([urgent, jobs[1]])


async def test_a_scan_looks_from_the_start_before_it_says_empty(yard, resuming):
    """Fails where `_resuming` answers what the resumed walk has found."""
    held = await yard.running()
    (later,) = await yard.enqueue()
    assert ids(await yard.claim(1, scan=resuming)) == [later.id]
    await yard.lapse(held)
    await yard.rescue()
    assert ids(await yard.claim(1, scan=resuming)) == [held.id]
    assert await yard.claim(1, scan=resuming) == []


async def test_a_scan_that_found_nothing_begins_at_the_start(yard, resuming):
    await yard.enqueue()
    await yard.claim(1, scan=resuming)
    assert await yard.claim(1, scan=resuming) == []
    assert resuming.start() == (None, None, None)


async def test_a_scan_of_a_paused_lane_is_empty(yard, resuming):
    await yard.enqueue(3)
    await yard.claim(1, scan=resuming)
    await lanes.put(yard.database, "mail", LaneChange(paused=True))
    assert await yard.claim(1, scan=resuming) == []


def test_a_scan_begins_at_the_start_now_and_then():
    """By its own clock: whatever has become ready before the place where it resumes is found in time."""
    scan = Scan()
    assert scan.start() == (None, None, None)
    scan.ended((0, "a time", 7), resumed=False)
    assert scan.start() == (0, "a time", 7)
    scan._from_start_at -= 0.25
    assert scan.start() == (None, None, None)


# --- the check every article on such queues ends with -------------------------------------------------------


async def test_two_workers_that_drain_a_lane_at_once_never_get_the_same_job(open_yard):
    """500 jobs, 8 connections, and every job is claimed once with its first token."""
    yard = await open_yard(connections_max=8)
    jobs = await yard.enqueue(500)
    scans = {"anna": Scan(), "ben": Scan()}

    async def drain(worker):
        claimed = []
        while batch := await yard.claim(7, worker=worker, scan=scans[worker]):
            claimed += batch
        return claimed

    claims = await asyncio.gather(*(drain(worker) for worker in ("anna", "ben") for _ in range(4)))
    taken = [each for each_claims in claims for each in each_claims]
    # Whoever met a moment in which others had locked all that was left has stopped; those had it, then.
    assert sorted(ids(taken)) == ids(jobs)
    assert {each.token for each in taken} == {1}
    workers = dict(await yard.fetch("select worker, count(*) from {ns}.job where state = 'running' group by worker"))
    assert sum(workers.values()) == 500
    assert workers.keys() <= {"anna", "ben"}
