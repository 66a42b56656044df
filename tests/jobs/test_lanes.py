"""Lanes: their settings, kept or changed, and the figures of what is in them."""

import asyncio
import math

import pytest

from reserve.errors import LaneNotFound, ValidationFailed
from reserve.jobs import lanes
from reserve.jobs.rows import Backoff, LaneChange

ALL = LaneChange(
    paused=True, lease_seconds=5, max_attempts=3, max_running=10, backoff=Backoff(0.5, 100), retention_days=7
)
SETTINGS = ("paused", "lease_seconds", "max_attempts", "max_running", "backoff", "retention_days")


def settings_of(lane):
    return {name: getattr(lane, name) for name in SETTINGS}


async def put(yard, name="mail", **change):
    return await lanes.put(yard.database, name, LaneChange(**change))


async def test_a_lane_is_created_once_and_then_changed(yard):
    made, created = await put(yard, " mail ")
    assert created
    assert made == await lanes.get(yard.database, "mail")
    assert settings_of(made) == dict.fromkeys(SETTINGS) | {"paused": False}
    assert (made.name, made.version, made.ready, made.oldest_ready_age_seconds) == ("mail", 1, 0, None)
    changed, created = await lanes.put(yard.database, "mail", ALL)
    assert not created
    assert settings_of(changed) == {name: getattr(ALL, name) for name in SETTINGS}
    assert changed.version == 2


async def test_what_a_change_does_not_say_stays_and_none_goes_back_to_the_services(yard):
    await lanes.put(yard.database, "mail", ALL)
    changed, _ = await put(yard, lease_seconds=9)
    assert settings_of(changed) == {name: getattr(ALL, name) for name in SETTINGS} | {"lease_seconds": 9}
    assert changed.version == 3
    cleared, _ = await put(yard, lease_seconds=None, backoff=None)
    assert (cleared.lease_seconds, cleared.backoff, cleared.max_attempts) == (None, None, 3)


async def test_a_change_to_what_is_so_already_is_none(yard):
    await lanes.put(yard.database, "mail", ALL)
    same, created = await lanes.put(yard.database, "mail", ALL)
    assert (created, same.version) == (False, 2)
    assert (await put(yard))[0].version == 2


async def test_puts_of_one_new_lane_at_once_create_it_once(yard):
    answers = await asyncio.gather(*(put(yard, lease_seconds=n + 1) for n in range(8)))
    assert sum(created for _, created in answers) == 1
    assert sorted(lane.version for lane, _ in answers) == list(range(2, 10))


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"lease_seconds": 0}, "/lease_seconds"),
        ({"lease_seconds": 86_401}, "/lease_seconds"),
        ({"max_attempts": 101}, "/max_attempts"),
        ({"max_attempts": 1.5}, "/max_attempts"),
        ({"max_running": 0}, "/max_running"),
        ({"retention_days": 36_601}, "/retention_days"),
        ({"backoff": Backoff(-1, 10)}, "/backoff/first_seconds"),
        ({"backoff": Backoff(11, 10)}, "/backoff/first_seconds"),
        ({"backoff": Backoff(math.nan, 10)}, "/backoff/first_seconds"),
        ({"backoff": Backoff(1, 31 * 86_400 + 1)}, "/backoff/seconds_max"),
        ({"backoff": Backoff(0, math.nan)}, "/backoff/seconds_max"),
        ({"name": ""}, "/lane"),
        ({"name": "x" * 201}, "/lane"),
    ],
)
async def test_what_is_out_of_bounds_is_refused_and_creates_nothing(yard, change, pointer):
    with pytest.raises(ValidationFailed) as raised:
        await put(yard, **change)
    assert [fault.pointer for fault in raised.value.faults] == [pointer]
    assert (await lanes.find(yard.database, after=None, limit=1)).items == ()


async def test_the_bounds_themselves_are_inside(yard):
    largest = {"lease_seconds": 86_400, "max_attempts": 100, "max_running": 10**6, "retention_days": 36_600}
    lane, _ = await put(yard, "x" * 200, backoff=Backoff(31 * 86_400, 31 * 86_400), **largest)
    assert {name: getattr(lane, name) for name in largest} == largest


async def test_an_unknown_lane_is_not_found(yard):
    with pytest.raises(LaneNotFound, match="nowhere"):
        await lanes.get(yard.database, "nowhere")


async def test_lanes_are_listed_by_name_page_by_page(yard):
    names = ["a", "B", "ä", "a b", "Z", "z"]
    for name in names:
        await put(yard, name)
    found, after = [], None
    while True:
        page = await lanes.find(yard.database, after=after, limit=4)
        found += [lane.name for lane in page.items]
        if not page.more:
            break
        after = found[-1]
    assert found == sorted(names)


async def test_figures_count_the_jobs_of_the_lane_by_state(yard):
    for state, count in {"scheduled": 3, "ready": 2, "succeeded": 1, "discarded": 4, "cancelled": 1}.items():
        for _ in range(count):
            if state == "ready":
                await yard.one(priority=-1)
            else:
                await yard.in_state(state)
    await yard.claim(1)
    await yard.one(lane="other")
    lane = await lanes.get(yard.database, "mail")
    assert (lane.scheduled, lane.ready, lane.running, lane.discarded) == (3, 1, 1, 4)


async def test_the_oldest_age_is_that_of_any_priority(yard):
    """Fails where only the next job in line is looked at."""
    clock = await yard.clock()
    assert (await put(yard))[0].oldest_ready_age_seconds is None
    for priority, wait in ((3, 50), (-3, 100), (0, 25), (-3, 0)):
        await yard.one(priority=priority)
        await clock.forward(wait)
    age = (await lanes.get(yard.database, "mail")).oldest_ready_age_seconds
    assert 175 <= age < 205
    await yard.claim(1)
    age = (await lanes.get(yard.database, "mail")).oldest_ready_age_seconds
    assert 125 <= age < 155


async def test_figures_of_a_long_backlog_are_counted_up_to_a_bound(yard, monkeypatch):
    monkeypatch.setattr(lanes, "COUNT_MAX", 3)
    await yard.enqueue(5)
    await yard.enqueue(4, delay_seconds=100)
    lane = await lanes.get(yard.database, "mail")
    assert (lane.ready, lane.scheduled) == (3, 3)
