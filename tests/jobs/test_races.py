"""Two at one job at once, as named steps: the first to have its lock decides, the second sees what came of it.

The first runs in a transaction that stays open until the second waits for it, or has passed over it.
"""

import asyncio

from reserve.errors import LeaseLost
from reserve.jobs.claiming import Rescued, claim_in
from reserve.jobs.finishing import Finished, finish_in
from reserve.jobs.leases import extend_in
from reserve.jobs.rows import Complete, Extend, Fail, JobState
from tests.jobs.yard import in_this_order
from tests.steps import until_waiting


async def rescue_in(yard, conn):
    """The rescue of one lane, in a transaction that is still open."""
    parameters = {"lanes": ["mail"], "sinces": ["2000-01-01 00:00Z"], "limit": 10, "rescues_max": 5}
    cursor = await conn.execute(yard.database.queries["job_rescue_claim"], parameters)
    return [row[0] for row in await cursor.fetchall()]


# --- complete and rescue ------------------------------------------------------------------------------------


async def test_complete_against_rescue_the_rescue_passes_over_it(yard):
    held = await yard.running()
    await yard.lapse(held)
    async with yard.database.transaction() as conn:
        await finish_in(yard.database, conn, Complete(held.id, held.token))
        assert await yard.rescue() == Rescued()
    assert await yard.state(held) == "succeeded"


async def test_rescue_against_complete_the_holder_still_counts(yard):
    """Fails where the completion decides on the row as it was before its wait (`t.rescued` left out)."""
    held = await yard.running()
    await yard.lapse(held)
    rescued, answer = await in_this_order(yard, lambda conn: rescue_in(yard, conn), yard.complete(held))
    assert rescued == [held.id]
    assert answer == Finished(held.id, JobState.SUCCEEDED)
    assert (await yard.get(held.id)).rescues == 1


async def test_the_claim_of_another_against_complete_the_lease_is_lost(yard):
    """Fails where the token is not asked for under the lock."""
    held = await yard.running()
    await yard.lapse(held)
    await yard.rescue()
    (newer,), answer = await in_this_order(
        yard, lambda conn: claim_in(yard.database, conn, "mail", "ben", limit=1), yard.complete(held)
    )
    assert isinstance(answer, LeaseLost)
    assert (await yard.complete(newer)).state == "succeeded"


async def test_complete_against_the_claim_of_another_the_claim_passes_over_it(yard):
    held = await yard.running()
    await yard.lapse(held)
    await yard.rescue()
    async with yard.database.transaction() as conn:
        await finish_in(yard.database, conn, Complete(held.id, held.token))
        assert await yard.claim(worker="ben") == []
    assert await yard.claim(worker="ben") == []


async def test_fail_against_rescue_and_rescue_against_fail(yard):
    failed, rescued = await yard.running(), await yard.running()
    await yard.lapse(failed)
    async with yard.database.transaction() as conn:
        await finish_in(yard.database, conn, Fail(failed.id, failed.token, "e"))
        assert await yard.rescue() == Rescued()
    assert await yard.state(failed) == "scheduled"
    await yard.lapse(rescued)
    _, answer = await in_this_order(yard, lambda conn: rescue_in(yard, conn), yard.fail(rescued))
    assert answer.state == "scheduled"
    job = await yard.get(rescued.id)
    assert (job.failures, job.rescues) == (1, 1)


async def test_the_same_completion_twice_at_once_completes_once(yard):
    held = await yard.running()
    first, second = await in_this_order(
        yard, lambda conn: finish_in(yard.database, conn, Complete(held.id, held.token, 1)), yard.complete(held, 2)
    )
    assert first == second == Finished(held.id, JobState.SUCCEEDED)
    assert (await yard.get(held.id)).output == 1


async def test_the_same_failure_twice_at_once_counts_once(yard):
    held = await yard.running()
    first, second = await in_this_order(
        yard, lambda conn: finish_in(yard.database, conn, Fail(held.id, held.token, "e")), yard.fail(held)
    )
    assert first == second
    assert (await yard.get(held.id)).failures == 1


# --- extend -------------------------------------------------------------------------------------------------


async def test_the_claim_of_another_against_extend_the_lease_is_lost(yard):
    held = await yard.running()
    await yard.lapse(held)
    await yard.rescue()
    (newer,), answer = await in_this_order(
        yard, lambda conn: claim_in(yard.database, conn, "mail", "ben", limit=1), yard.extend(held, progress="mine")
    )
    assert isinstance(answer, LeaseLost)
    job = await yard.get(held.id)
    assert (job.progress, job.worker, job.lease_expires_at) == (None, "ben", newer.lease_expires_at)


async def test_extend_against_the_claim_of_another_the_claim_passes_over_it(yard):
    held = await yard.running()
    await yard.lapse(held)
    await yard.rescue()
    async with yard.database.transaction() as conn:
        await extend_in(yard.database, conn, Extend(held.id, held.token, 60))
        assert await yard.claim(worker="ben") == []
    assert await yard.claim(worker="ben") == []
    assert await yard.state(held) == "running"


async def test_extend_against_a_rescue_that_has_looked_already(yard):
    """The rescue's snapshot shows the lease as lapsed; under the lock it is not."""
    held = await yard.running()
    clock = await yard.clock()
    await clock.forward(3600)
    async with clock.stopped_for("job_rescue_claim"):
        rescue = asyncio.create_task(yard.rescue())
        await until_waiting(yard.conn)
        await yard.extend(held, 600)
    assert await rescue == Rescued()
    assert await yard.state(held) == "running"


async def test_rescue_against_extend_the_holder_has_it_again(yard):
    held = await yard.running()
    await yard.lapse(held)
    rescued, lease = await in_this_order(yard, lambda conn: rescue_in(yard, conn), yard.extend(held))
    assert (rescued, lease.token) == ([held.id], held.token)
    assert await yard.state(held) == "running"
    assert await yard.claim(worker="ben") == []


async def test_many_verdicts_and_many_extensions_of_the_same_jobs_never_lock_in_a_ring(open_yard):
    """Opposite orders, some turns. A ring would be broken by the server, and nothing is run again here."""
    yard = await open_yard(transaction_retries_max=0)
    await yard.enqueue(40, max_attempts=100)
    for _ in range(5):
        held = await yard.claim(40)
        answers = await asyncio.gather(
            *(yard.fail_many(order, retry_in_seconds=0) for order in (held, held[::-1])),
            *(yard.extend_many(order) for order in (held, held[::-1])),
        )
        assert all(isinstance(answer, Finished) for answer in answers[0] + answers[1])
