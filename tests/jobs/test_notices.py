"""Notices of new jobs: whoever listens hears of each lane when its jobs are there, and not too often."""

import asyncio

import pytest

from reserve.jobs.enqueuing import enqueue, enqueue_in, enqueue_many
from reserve.jobs.notices import Notices, channel
from tests.jobs.yard import mail


async def heard(conn, yard):
    """The lanes that were notified of so far: whatever was sent before the mark that this sends."""
    name = channel(yard.namespace)
    await yard.conn.execute("select pg_notify(%s, 'that is all')", [name])
    lanes_told = []
    async for notice in conn.notifies():
        if notice.payload == "that is all":
            return lanes_told
        assert notice.channel == name
        lanes_told.append(notice.payload)
    raise AssertionError("the connection ended")


@pytest.fixture
async def listening(yard):
    conn = await yard.plain(autocommit=True)
    await conn.execute(f"listen {channel(yard.namespace)}")
    return conn


async def test_whoever_listens_hears_of_each_lane_also_of_a_new_one(yard, listening):
    """Fails where a lane that had to be added first is forgotten."""
    await enqueue(yard.database, mail(0, " first "))
    assert await heard(listening, yard) == ["first"]
    await enqueue_many(yard.database, [mail(0, "b"), mail(0, " a "), mail(0, "b")])
    assert sorted(await heard(listening, yard)) == ["a", "b"]
    caller = await yard.plain()
    await enqueue_in(caller, [mail(0, "b"), mail(0, "c"), mail(0, "b")], namespace=yard.namespace)
    assert await heard(listening, yard) == []
    await caller.commit()
    assert sorted(await heard(listening, yard)) == ["b", "c"]


async def test_a_new_lane_among_known_ones_is_told_of_when_its_jobs_are_there(open_yard):
    yard = await open_yard(job_notify_interval_seconds=0)
    await yard.one()
    conn = await yard.plain(autocommit=True)
    await conn.execute(f"listen {channel(yard.namespace)}")
    await asyncio.gather(enqueue(yard.database, mail(0)), enqueue(yard.database, mail(1, "new")))
    assert (await heard(conn, yard))[-1] == "new"


async def test_a_lane_is_told_of_once_in_an_interval(open_yard):
    yard = await open_yard(job_notify_interval_seconds=60)
    conn = await yard.plain(autocommit=True)
    await conn.execute(f"listen {channel(yard.namespace)}")
    for n in range(5):
        await enqueue(yard.database, mail(n))
    await enqueue_many(yard.database, [mail(), mail(0, "bills")])
    assert await heard(conn, yard) == ["mail", "bills"]


async def test_notices_are_due_again_after_the_interval_and_always_without_one():
    slow, always = Notices(1000), Notices(0)
    assert slow.due(["b", "a", "b"]) == ["a", "b"]
    assert slow.due(["a", "c"]) == ["c"]
    slow._told_at["a"] -= 1000
    assert slow.due(["a", "c"]) == ["a"]
    assert [always.due(["a"]) for _ in range(2)] == [["a"], ["a"]]


async def test_notices_of_ever_new_lanes_are_forgotten_in_time():
    notices = Notices(1000)
    for n in range(25_000):
        notices.due([str(n)])
    assert len(notices._told_at) <= 10_001
