"""Leases: who may renew one, for how long, what a holder is told by it, and what a renewal costs."""

from datetime import timedelta

import pytest

from reserve.errors import JobFinished, JobNotFound, LeaseLost, ValidationFailed
from reserve.jobs.claiming import RescueScan
from reserve.jobs.leases import extend, extend_many
from reserve.jobs.rows import Extend, Lease
from tests.jobs.yard import ids


def kinds(answers):
    return [answer if isinstance(answer, Lease) else type(answer) for answer in answers]


async def seconds_left(yard, held):
    ((seconds,),) = await yard.fetch(
        "select extract(epoch from lease_expires_at - {ns}.clock())::float from {ns}.job where id = %s", held.id
    )
    return seconds


@pytest.mark.parametrize("lease_seconds", [1000, 86_400])
async def test_a_holder_renews_its_lease_from_now(yard, lease_seconds):
    held = await yard.running()
    lease = await yard.extend(held, lease_seconds)
    assert lease == Lease(held.id, held.token, (await yard.get(held.id)).lease_expires_at, cancel_requested=False)
    assert lease_seconds - 30 < await seconds_left(yard, held) <= lease_seconds
    job = await yard.get(held.id)
    assert (job.state, job.attempt, job.started_at, job.token) == ("running", 1, held.started_at, held.token)


async def test_a_shorter_lease_is_a_shorter_lease(yard):
    held = await yard.running()
    await yard.extend(held, 1000)
    lease = await yard.extend(held, 500)
    assert lease.lease_expires_at - held.started_at < timedelta(seconds=900)


async def test_progress_replaces_the_last_and_stays_where_none_is_told(yard):
    held = await yard.running()
    for progress in ({"done": 1}, [], 0, None, "é"):
        await yard.extend(held, progress=progress)
        assert (await yard.get(held.id)).progress == progress
        await yard.extend(held)
        assert (await yard.get(held.id)).progress == progress
    await yard.release(held)
    assert (await yard.get(held.id)).progress == "é"


async def test_a_lease_that_lapsed_is_renewed_while_nobody_else_has_claimed_the_job(yard):
    """Rescued or not. Fails where `job_extend` does not ask for `rescued`."""
    lapsed, rescued = await yard.running(), await yard.running()
    await yard.lapse(rescued)
    assert (await yard.rescue()).ready == 1
    await yard.lapse(lapsed)
    for held in (lapsed, rescued):
        await yard.extend(held)
        assert await yard.state(held) == "running"
        assert await seconds_left(yard, held) > 30
    assert await yard.claim() == []
    assert (await yard.rescue()).total == 0
    assert (await yard.complete(rescued)).state == "succeeded"


async def test_a_rescued_job_that_was_renewed_and_lapses_again_is_found_again(yard):
    """By a scan that has moved past the time at which it was claimed. Fails where `job_extend` keeps `started_at`."""
    clock, scan = await yard.clock(), RescueScan()
    held = await yard.running()
    await clock.forward(3600)
    assert (await yard.rescue(scan=scan)).ready == 1
    (first,) = await yard.enqueue(lane="mail", priority=1)
    assert ids(await yard.claim()) == [first.id]
    assert (await yard.rescue(scan=scan)).total == 0
    await yard.extend(held)
    await clock.forward(3600)
    assert (await yard.rescue(scan=scan)).ready == 2


async def test_whoever_has_lost_the_job_renews_nothing(yard):
    held = await yard.running()
    await yard.lapse(held)
    await yard.rescue()
    (newer,) = await yard.claim(worker="ben")
    before = await yard.get(held.id)
    with pytest.raises(LeaseLost):
        await yard.extend(held, progress="mine")
    assert await yard.get(held.id) == before
    await yard.release(newer)
    with pytest.raises(LeaseLost):
        await yard.extend(newer)
    assert await yard.state(held) == "ready"


async def test_a_job_that_has_finished_says_so_to_its_last_holder(yard):
    held = await yard.running()
    await yard.complete(held)
    with pytest.raises(JobFinished, match="succeeded"):
        await yard.extend(held)
    with pytest.raises(LeaseLost):
        await extend(yard.database, Extend(held.id, held.token + 1, 60))
    with pytest.raises(JobNotFound):
        await extend(yard.database, Extend(4711, 1, 60))


async def test_a_holder_is_told_that_its_job_is_to_be_cancelled(yard):
    held = await yard.running()
    assert (await yard.extend(held)).cancel_requested is False
    await yard.cancel(held)
    assert (await yard.extend(held)).cancel_requested is True
    assert (await yard.extend(held)).cancel_requested is True
    assert (await yard.complete(held)).state == "succeeded"


async def test_a_job_discarded_by_hand_is_lost_to_its_holder(yard):
    held = await yard.running()
    await yard.discard(held)
    with pytest.raises(LeaseLost):
        await yard.extend(held)
    with pytest.raises(LeaseLost):
        await yard.complete(held)
    assert await yard.state(held) == "discarded"


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"lease_seconds": 0}, "/lease_seconds"),
        ({"lease_seconds": 86_401}, "/lease_seconds"),
        ({"lease_seconds": 1.5}, "/lease_seconds"),
        ({"lease_seconds": 60, "progress": "\0"}, "/progress"),
        ({"lease_seconds": 60, "progress": "x" * 2**20}, "/progress"),
        ({"lease_seconds": 60, "token": 2**63}, "/token"),
        ({"lease_seconds": 60, "job_id": -1}, "/job_id"),
    ],
)
async def test_what_is_out_of_bounds_is_refused(yard, wrong, pointer):
    held = await yard.running()
    with pytest.raises(ValidationFailed) as raised:
        await extend(yard.database, Extend(**{"job_id": held.id, "token": held.token} | wrong))
    assert [fault.pointer for fault in raised.value.faults] == [pointer]


async def test_many_are_answered_in_order_and_none_spoils_another(yard):
    await yard.enqueue(4)
    held = await yard.claim(4)
    await yard.complete(held[2])
    wishes = [
        Extend(held[1].id, held[1].token, 60),
        Extend(held[0].id, held[0].token + 1, 60),
        Extend(held[2].id, held[2].token, 60),
        Extend(4711, 1, 60),
        Extend(held[0].id, held[0].token, 60),
        Extend(held[3].id, held[3].token, 0),
        Extend(2**70, 1, 60),
        Extend(held[1].id, held[1].token, 600, progress=1),
    ]
    answers = await extend_many(yard.database, wishes)
    later = (await yard.get(held[1].id)).lease_expires_at
    assert kinds(answers) == [
        Lease(held[1].id, held[1].token, later, cancel_requested=False),
        LeaseLost,
        JobFinished,
        JobNotFound,
        Lease(held[0].id, held[0].token, answers[4].lease_expires_at, cancel_requested=False),
        ValidationFailed,
        ValidationFailed,
        answers[0],
    ]
    assert await seconds_left(yard, held[1]) > 300
    assert await extend_many(yard.database, []) == []


async def test_a_thousand_leases_are_one_statement(yard):
    await yard.enqueue(1000)
    held = await yard.claim(1000)
    leases = await extend_many(yard.database, [Extend(each.id, each.token, 600) for each in reversed(held)])
    assert [lease.job_id for lease in leases] == ids(held)[::-1]
    assert await yard.fetch("select count(distinct xmin::text) from {ns}.job") == [(1,)]


async def test_renewals_are_hot(yard):
    """No index has a new entry for them. Fails with an index on `lease_expires_at`."""
    await yard.enqueue(3)
    held = await yard.claim(3)
    async with yard.database.transaction() as conn:

        async def updates():
            cursor = await conn.execute(
                "select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables where relid = %s::regclass",
                [f"{yard.namespace}.job"],
            )
            return await cursor.fetchone()

        before = await updates()
        for _ in range(5):
            for each in held:
                await conn.execute(
                    yard.database.queries["job_extend"],
                    {
                        "ids": [each.id],
                        "tokens": [each.token],
                        "lease_seconds": [60.0],
                        "progresses": ["1"],
                        "tells": [True],
                    },
                )
        after = await updates()
    assert (after[0] - before[0], after[1] - before[1]) == (15, 15)
