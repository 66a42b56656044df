"""When a lane is looked at again, and how many jobs are claimed ahead: pure, so time is what the test says it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserve.worker.pace import Ahead, Pace


def looked(pace, now, found, wanted=10):
    pace.looked(now, found=found, wanted=wanted, jitter=0.5)
    return pace.next_at - now


def test_a_lane_that_gives_all_that_is_asked_is_looked_at_again_at_once():
    assert looked(Pace(0.002, 1), 100, found=10) == 0


def test_after_some_jobs_the_pause_is_short():
    assert looked(Pace(0.002, 1), 100, found=3) == pytest.approx(0.002)


def test_while_a_lane_is_empty_pauses_double_up_to_the_longest():
    pace = Pace(0.002, 1)
    pauses = [looked(pace, 100, found=0) for _ in range(12)]
    assert pauses[:4] == pytest.approx([0.002, 0.004, 0.008, 0.016])
    assert pauses[-2:] == pytest.approx([1, 1])
    assert looked(pace, 100, found=1) == pytest.approx(0.002), "something came"


def test_a_lane_that_is_woken_is_looked_at_now_and_often_again():
    pace = Pace(0.002, 1)
    for _ in range(12):
        looked(pace, 100, found=0)
    pace.wake()
    assert pace.next_at <= 0
    assert looked(pace, 100, found=0) == pytest.approx(0.002)


@given(st.floats(0, 1), st.lists(st.integers(0, 10)))
def test_no_pause_is_beyond_the_longest_by_more_than_jitter(jitter, finds):
    pace = Pace(0.002, 1)
    for found in finds:
        pace.looked(100, found=found, wanted=10, jitter=jitter)
        assert 0 <= pace.next_at - 100 <= 1.2


def test_nothing_is_claimed_ahead_before_anything_has_ended():
    ahead = Ahead(0, 1000)
    assert ahead.wanted(100, 0) == 0
    assert ahead.wanted(100, 0) == 0, "at the same instant"


def test_slow_handlers_have_nothing_ahead_and_quick_ones_a_moment_of_work():
    slow, quick = Ahead(0, 1000), Ahead(0, 1000)
    for second in range(100, 110):
        slow.wanted(second, second - 100)
    assert slow.wanted(110, 10) == 0, "one a second"
    for tick in range(1000):
        quick.wanted(100 + tick / 1000, tick * 10)
    assert quick.wanted(101, 10_000) == pytest.approx(500, abs=5), "10,000 a second"
    assert quick.wanted(105, 10_000) <= 1, "they have become slow"


def test_what_is_ahead_stays_within_its_bounds():
    ahead = Ahead(5, 20)
    assert ahead.wanted(100, 0) == 5
    assert ahead.wanted(101, 1_000_000) == 20
