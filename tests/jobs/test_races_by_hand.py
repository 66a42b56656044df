"""Somebody's hand at a job while something else is: the first to have its lock decides, as named steps.

The first runs in a transaction that stays open until the second waits for it, or has passed over it.
"""

from reserve.errors import JobFinished, LeaseLost
from reserve.jobs.claiming import claim_in
from reserve.jobs.finishing import Finished, finish_in
from reserve.jobs.managing import cancel_in, discard_in, retry_discarded, retry_discarded_in, retry_in
from reserve.jobs.rows import Complete, JobState
from tests.jobs.yard import ids, in_this_order


async def due_in(yard, conn):
    parameters = {"lanes": ["mail"], "limit": 10}
    cursor = await conn.execute(yard.database.queries["job_due_claim"], parameters)
    return [row[0] for row in await cursor.fetchall()]


# --- cancel -------------------------------------------------------------------------------------------------


async def test_cancel_against_claim_the_claim_passes_over_it(yard):
    job = await yard.one()
    async with yard.database.transaction() as conn:
        await cancel_in(yard.database, conn, job.id)
        assert await yard.claim() == []
    assert await yard.claim() == []
    assert await yard.state(job) == "cancelled"


async def test_claim_against_cancel_the_holder_is_asked_to_stop(yard):
    """Fails where a cancel decides on the state that it saw before its wait: the job would end under its holder."""
    job = await yard.one()
    (held,), cancelled = await in_this_order(
        yard, lambda conn: claim_in(yard.database, conn, "mail", "anna", limit=1), yard.cancel(job)
    )
    assert (cancelled.state, cancelled.cancel_requested) == ("running", True)
    assert (await yard.extend(held)).cancel_requested


async def test_complete_against_cancel_it_has_succeeded(yard):
    held = await yard.running()
    _, cancelled = await in_this_order(
        yard, lambda conn: finish_in(yard.database, conn, Complete(held.id, held.token)), yard.cancel(held)
    )
    assert isinstance(cancelled, JobFinished)
    assert await yard.state(held) == "succeeded"


async def test_cancel_against_fail_it_ends_cancelled(yard):
    held = await yard.running()
    _, failed = await in_this_order(yard, lambda conn: cancel_in(yard.database, conn, held.id), yard.fail(held))
    assert failed == Finished(held.id, JobState.CANCELLED)


async def test_cancel_against_due_the_due_passes_over_it(yard):
    job = await yard.one(delay_seconds=100)
    await yard.fall_due(job)
    async with yard.database.transaction() as conn:
        await cancel_in(yard.database, conn, job.id)
        assert await yard.make_due_ready() == 0
    assert await yard.make_due_ready() == 0
    assert await yard.state(job) == "cancelled"


async def test_due_against_cancel_it_is_cancelled_where_it_is_then(yard):
    """Fails where a job that has moved is not looked for again: it would be said not to exist."""
    job = await yard.one(delay_seconds=100)
    await yard.fall_due(job)
    due, cancelled = await in_this_order(yard, lambda conn: due_in(yard, conn), yard.cancel(job))
    assert due == [job.id]
    assert cancelled.state == "cancelled"
    assert await yard.claim() == []


async def test_due_against_retry_and_discard(yard):
    for verb, state in ((yard.retry, "ready"), (yard.discard, "discarded")):
        job = await yard.one(delay_seconds=100)
        await yard.fall_due(job)
        _, answer = await in_this_order(yard, lambda conn: due_in(yard, conn), verb(job))
        assert answer.state == await yard.state(job) == state


# --- discard ------------------------------------------------------------------------------------------------


async def test_discard_against_complete_the_lease_is_lost(yard):
    held = await yard.running()
    _, completed = await in_this_order(yard, lambda conn: discard_in(yard.database, conn, held.id), yard.complete(held))
    assert isinstance(completed, LeaseLost)
    assert await yard.state(held) == "discarded"


async def test_complete_against_discard_it_has_succeeded(yard):
    held = await yard.running()
    _, discarded = await in_this_order(
        yard, lambda conn: finish_in(yard.database, conn, Complete(held.id, held.token)), yard.discard(held)
    )
    assert isinstance(discarded, JobFinished)
    assert await yard.state(held) == "succeeded"


async def test_discard_against_fail_and_extend_the_lease_is_lost(yard):
    for verb in (yard.fail, yard.release, yard.extend):
        held = await yard.running()
        _, answer = await in_this_order(
            yard, lambda conn, held=held: discard_in(yard.database, conn, held.id), verb(held)
        )
        assert isinstance(answer, LeaseLost)


# --- retry --------------------------------------------------------------------------------------------------


async def test_retry_twice_at_once_makes_it_ready_once(yard):
    job = await yard.finished()
    first, second = await in_this_order(yard, lambda conn: retry_in(yard.database, conn, job.id), yard.retry(job))
    assert first == second
    assert first.state == "ready"
    (claimed,) = await yard.claim(10)
    assert claimed.token == 3


async def test_retry_of_many_against_one_of_them(yard):
    jobs = [await yard.finished() for _ in range(2)]
    count, one = await in_this_order(
        yard,
        lambda conn: retry_discarded_in(yard.database, conn, "mail", kind=None, limit=10),
        yard.retry(jobs[1]),
    )
    assert (count, one.state) == (2, "ready")
    assert ids(await yard.claim(10)) == ids(jobs)


async def test_two_retries_of_many_share_what_there_is(yard):
    """Fails where the second returns fewer than there are, since the first has had those that it waited for."""
    jobs = [await yard.finished() for _ in range(4)]
    first, second = await in_this_order(
        yard,
        lambda conn: retry_discarded_in(yard.database, conn, "mail", kind=None, limit=2),
        retry_discarded(yard.database, "mail", kind=None, limit=2),
    )
    assert (first, second) == (2, 2)
    assert ids(await yard.claim(10)) == ids(jobs)
