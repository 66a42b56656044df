"""Claims that wait for a first job: what wakes them, what ends them, and that they hold no connection meanwhile."""

import asyncio

import pytest

from reserve.errors import Overloaded, Unavailable, ValidationFailed
from reserve.jobs import lanes
from reserve.jobs.rows import LaneChange
from reserve.jobs.waiting import _SCANS_MAX, Waits
from tests.jobs.yard import ids

#: Longer than any test: who waits so long is woken by something else, or the test hangs.
LONG = 1000


@pytest.fixture
async def quick(open_yard):
    """Looks every few milliseconds."""
    return await open_yard(job_poll_seconds=0.005, job_due_interval_seconds=0.05)


@pytest.fixture
def waits(quick):
    return Waits(quick.database)


def claim(waits, lane="mail", worker="anna", *, limit=1, wait_seconds=LONG, **rest):
    return asyncio.create_task(waits.claim(lane, worker, limit=limit, wait_seconds=wait_seconds, **rest))


async def until_waiting(waits, count=1):
    """Until so many wait for a first job."""
    while waits._count < count:
        await asyncio.sleep(0)


async def ended(task):
    await asyncio.wait([task])
    return task


async def test_a_job_that_is_there_is_claimed_at_once(quick, waits):
    job = await quick.one()
    assert ids(await claim(waits)) == [job.id]
    assert waits._looking is None


async def test_a_claim_that_may_not_wait_is_answered_at_once(quick, waits):
    assert await claim(waits, wait_seconds=0) == []
    assert waits._looking is None


async def test_a_claim_waits_until_its_time_is_up_and_looks_once_more(quick, waits):
    assert await claim(waits, wait_seconds=0.02) == []
    await quick.one(lane="bills")
    assert await claim(waits, wait_seconds=0.02) == []


async def test_a_claim_that_waits_is_woken_by_a_job(quick, waits):
    waiting = claim(waits, lease_seconds=7)
    await until_waiting(waits)
    job = await quick.one()
    (claimed,) = await waiting
    assert (claimed.id, claimed.token) == (job.id, 1)
    assert (claimed.lease_expires_at - claimed.started_at).total_seconds() == 7


async def test_a_claim_waits_for_a_lane_however_its_name_is_spelled(quick, waits):
    waiting = claim(waits, " mail ")
    await until_waiting(waits)
    job = await quick.one()
    assert ids(await waiting) == [job.id]
    with pytest.raises(ValidationFailed):
        await waits.claim("", "anna", limit=1, wait_seconds=LONG)


async def test_a_claim_that_waits_is_woken_by_whatever_makes_a_job_ready(quick, waits):
    """A job that falls due, one whose holder is gone, and a lane that is resumed; no sweep runs beside it."""
    later = await quick.one(delay_seconds=1000)
    waiting = claim(waits)
    await until_waiting(waits)
    await quick.fall_due(later)
    held = await waiting
    assert ids(held) == [later.id]
    waiting = claim(waits, worker="ben")
    await until_waiting(waits)
    await quick.lapse(*held)
    assert [(each.id, each.token, each.rescues) for each in await waiting] == [(later.id, 2, 1)]
    await lanes.put(quick.database, "mail", LaneChange(paused=True))
    job = await quick.one()
    waiting = claim(waits)
    await until_waiting(waits)
    await lanes.put(quick.database, "mail", LaneChange(paused=False))
    assert ids(await waiting) == [job.id]


async def test_a_paused_lane_wakes_nobody(quick, waits):
    await quick.one()
    await lanes.put(quick.database, "mail", LaneChange(paused=True))
    waiting, other = claim(waits), claim(waits, "bills")
    await until_waiting(waits, 2)
    await quick.one(lane="bills")
    await other
    assert not waiting.done()
    waiting.cancel()
    assert (await ended(waiting)).cancelled()


async def test_a_client_that_has_gone_gets_nothing(quick, waits):
    gone = asyncio.Event()
    waiting = claim(waits, gone=gone)
    await until_waiting(waits)
    gone.set()
    assert await waiting == []
    job = await quick.one()
    assert await claim(waits, gone=gone) == []
    assert await quick.state(job) == "ready"


async def test_each_of_many_that_wait_has_a_job_of_its_own(quick, waits):
    """More than are woken at one look."""
    waiting = [claim(waits, worker=f"worker {n}") for n in range(30)]
    await until_waiting(waits, 30)
    jobs = await quick.enqueue(30)
    claimed = [each for answer in await asyncio.gather(*waiting) for each in answer]
    assert sorted(ids(claimed)) == ids(jobs)


async def test_whoever_came_first_is_served_first(quick, waits):
    waiting = []
    for n in range(3):
        waiting.append(claim(waits, worker=f"worker {n}"))
        await until_waiting(waits, n + 1)
    first = waits._waiting["mail"][0]
    waits._wake("mail", 1)
    assert first.done()
    assert [each.done() for each in waits._waiting["mail"]] == [False, False]
    for task in waiting:
        task.cancel()
        await ended(task)


async def test_who_was_woken_in_vain_waits_on(quick, waits):
    waiting = claim(waits)
    await until_waiting(waits)
    for _ in range(3):
        waits._wake("mail", 1)
        await until_waiting(waits)
    job = await quick.one()
    assert ids(await waiting) == [job.id]


async def test_more_than_may_wait_are_refused_and_then_served_again(open_yard):
    yard = await open_yard(job_claim_waits_max=2, job_poll_seconds=0.005)
    waits = Waits(yard.database)
    waiting = [claim(waits), claim(waits, "bills")]
    await until_waiting(waits, 2)
    with pytest.raises(Overloaded):
        await claim(waits, "others")
    job = await yard.one(lane="others")
    assert ids(await claim(waits, "others")) == [job.id]
    waiting[0].cancel()
    await ended(waiting[0])
    assert await claim(waits, "others", wait_seconds=0.02) == []
    waiting[1].cancel()
    await ended(waiting[1])


async def test_waiting_holds_no_connection(open_yard):
    """Twenty wait, with two connections; everybody else has both."""
    yard = await open_yard(connections_max=2, job_poll_seconds=60)
    waits = Waits(yard.database)
    waiting = [claim(waits) for _ in range(20)]
    await until_waiting(waits, 20)
    async with yard.database.transaction(), yard.database.transaction():
        pass
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_the_task_that_looks_ends_with_the_last_that_waits(quick, waits):
    first, second = claim(waits), claim(waits, "bills")
    await until_waiting(waits, 2)
    looking = waits._looking
    assert not looking.done()
    first.cancel()
    await ended(first)
    assert waits._looking is looking
    await quick.one(lane="bills")
    await second
    assert waits._looking is None
    assert (await ended(looking)).cancelled()
    third = claim(waits)
    await until_waiting(waits)
    assert waits._looking not in {None, looking}
    third.cancel()
    await ended(third)
    assert (waits._count, waits._waiting) == (0, {})


async def test_a_database_that_is_away_for_a_moment_is_looked_at_again(quick, waits):
    waiting = claim(waits)
    await until_waiting(waits)
    own = "select pid from pg_stat_activity where datname = current_database() and application_name = 'reserve'"
    await quick.fetch(f"select pg_terminate_backend(pid) from ({own}) own")
    job = await quick.one()
    (answer,) = await asyncio.gather(waiting, return_exceptions=True)
    # Whoever was just claiming is told so, and asks again; nobody waits for ever.
    if isinstance(answer, Unavailable):
        answer = await claim(waits)
    assert ids(answer) == [job.id]


async def test_names_of_lanes_that_clients_make_up_are_forgotten(quick, waits):
    """Fails where a scan is kept for each lane that was ever asked for."""
    for n in range(_SCANS_MAX + 10):
        waits._scan(f"lane {n}")
    assert await claim(waits, "one more", wait_seconds=0) == []
    assert len(waits._scans) == _SCANS_MAX
    assert waits._waiting == {}
