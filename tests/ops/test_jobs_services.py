"""Due jobs become ready and lapsed leases are taken back, batch by batch, each job once, however many do it."""

import asyncio

import pytest

from reserve.db.connection import Database
from reserve.errors import LeaseLost
from reserve.jobs import finishing, managing
from reserve.jobs.rows import Complete, JobState
from reserve.ops.audit import audit
from reserve.ops.jobs import Due, Rescue
from reserve.ops.service import Outcome
from tests.ops.lane import claim, enqueue, fall_due, lapse_lease
from tests.steps import MovableClock


async def states(database, ids):
    return [(await managing.get(database, job_id)).state for job_id in ids]


# --- due ----------------------------------------------------------------------------------------------------


async def test_due_jobs_are_made_ready_a_batch_a_turn_and_others_wait_on(settings, conn, namespace):
    async with Database.open(settings.model_copy(update={"sweep_batch_size": 2})) as database:
        due = await enqueue(database, 3, delay_seconds=60)
        await fall_due(conn, namespace)
        later = await enqueue(database, 1, delay_seconds=60)
        service = Due(database)
        assert await service.run_once() == Outcome(2, full=True)
        assert await service.run_once() == Outcome(1, full=False)
        assert await service.run_once() == Outcome(0, full=False)
        assert set(await states(database, due)) == {JobState.READY}
        assert await states(database, later) == [JobState.SCHEDULED]


async def test_a_lane_with_many_due_jobs_is_not_kept_waiting_by_lanes_that_have_none(database, conn, namespace):
    for number in range(50):
        await enqueue(database, 1, lane=f"idle-{number}")
    due = await enqueue(database, 60, lane="busy", delay_seconds=60)
    await fall_due(conn, namespace)
    service = Due(database)
    handled = 0
    while (outcome := await service.run_once()).full:
        handled += outcome.handled
    assert handled + outcome.handled == 60, "in turns one after the other, without a pause"
    assert set(await states(database, due)) == {JobState.READY}


async def test_a_few_due_jobs_are_no_reason_not_to_pause(database, conn, namespace):
    await enqueue(database, 1, delay_seconds=60)
    await fall_due(conn, namespace)
    assert await Due(database).run_once() == Outcome(1, full=False)


async def test_two_at_once_make_each_due_job_ready_once(database, conn, namespace):
    due = await enqueue(database, 40, delay_seconds=60)
    await fall_due(conn, namespace)
    outcomes = await asyncio.gather(Due(database).run_once(), Due(database).run_once())
    assert sum(outcome.handled for outcome in outcomes) == 40
    assert sorted(job.id for job in await claim(database, 40)) == due
    assert (await audit(database)).clean


async def test_a_due_job_that_somebody_has_locked_is_left_to_the_next_turn(database, conn, namespace):
    locked, _ = await enqueue(database, 2, delay_seconds=60)
    await fall_due(conn, namespace)
    async with conn.transaction():
        await conn.execute(f"select from {namespace}.job_scheduled where id = %s for no key update", [locked])
        assert (await Due(database).run_once()).handled == 1
    assert (await Due(database).run_once()).handled == 1


# --- rescue -------------------------------------------------------------------------------------------------


async def test_lapsed_leases_are_taken_back_a_batch_a_turn_and_live_ones_are_left(settings):
    async with Database.open(settings.model_copy(update={"sweep_batch_size": 2})) as database:
        await enqueue(database, 4)
        *lapsed, living = [job.id for job in await claim(database, 4)]
        await lapse_lease(database, *lapsed)
        service = Rescue(database)
        assert await service.run_once() == Outcome(2, full=True)
        assert await service.run_once() == Outcome(1, full=False)
        assert await service.run_once() == Outcome(0, full=False)
        assert set(await states(database, lapsed)) == {JobState.READY}
        assert await states(database, [living]) == [JobState.RUNNING]


async def test_what_is_rescued_cancelled_or_discarded_all_counts(settings):
    async with Database.open(settings.model_copy(update={"job_rescues_max": 0})) as database:
        ids = await enqueue(database, 2)
        await claim(database, 2)
        await managing.cancel(database, ids[0])
        await lapse_lease(database, *ids)
        assert (await Rescue(database).run_once()).handled == 2
        assert await states(database, ids) == [JobState.CANCELLED, JobState.DISCARDED]
        assert (await audit(database)).clean


async def test_two_at_once_rescue_each_job_once(database):
    await enqueue(database, 40)
    ids = [job.id for job in await claim(database, 40)]
    await lapse_lease(database, *ids)
    outcomes = await asyncio.gather(*(Rescue(database).run_once() for _ in range(2)))
    assert sum(outcome.handled for outcome in outcomes) == 40
    assert {(await managing.get(database, job_id)).rescues for job_id in ids} == {1}
    assert len({job.id for job in await claim(database, 40)}) == 40
    assert (await audit(database)).clean


async def test_a_service_that_has_looked_finds_a_lease_that_lapses_later(database):
    service = Rescue(database)
    await enqueue(database, 2)
    first, second = await claim(database, 2)
    assert (await service.run_once()).handled == 0
    await finishing.finish(database, Complete(first.id, first.token))
    assert (await service.run_once()).handled == 0
    await lapse_lease(database, second.id)
    assert (await service.run_once()).handled == 1


# --- the clock of the namespace -----------------------------------------------------------------------------


async def test_a_lease_lapses_by_the_clock_of_the_namespace(database, conn, namespace):
    clock = await MovableClock.install(conn, namespace)
    service = Rescue(database)
    await enqueue(database, 1)
    (held,) = await claim(database, 1, lease_seconds=600)
    await clock.forward(590)
    assert (await service.run_once()).handled == 0
    await clock.forward(20)
    assert (await service.run_once()).handled == 1
    (again,) = await claim(database, 1)
    assert (again.id, again.token, again.failures, again.rescues) == (held.id, held.token + 1, 0, 1)
    with pytest.raises(LeaseLost):
        await finishing.finish(database, Complete(held.id, held.token))
    await finishing.finish(database, Complete(again.id, again.token))
    assert (await audit(database)).clean


async def test_a_job_falls_due_by_the_clock_of_the_namespace(database, conn, namespace):
    clock = await MovableClock.install(conn, namespace)
    await enqueue(database, 1, delay_seconds=600)
    await clock.forward(590)
    assert (await Due(database).run_once()).handled == 0
    await clock.forward(20)
    assert (await Due(database).run_once()).handled == 1
    await claim(database, 1)


async def test_jobs_under_a_clock_that_was_set_back_are_rescued_when_it_has_caught_up(database, conn, namespace):
    clock = await MovableClock.install(conn, namespace)
    service = Rescue(database)
    await clock.forward(86_400)
    await enqueue(database, 1)
    await claim(database, 1, lease_seconds=60)
    await clock.forward(-86_400)
    assert (await service.run_once()).handled == 0
    await clock.forward(86_400 + 61)
    assert (await service.run_once()).handled == 1
