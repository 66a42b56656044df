"""What each verb makes of a hold in each state; pure."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from reserve.errors import (
    HoldConfirmed,
    HoldExpired,
    HoldFulfilled,
    HoldLifetimeExceeded,
    HoldReleased,
    HoldReturned,
)
from reserve.inventory import transitions
from reserve.inventory.rows import Hold, HoldState, Line
from reserve.inventory.transitions import Transition

CREATED = datetime(2026, 1, 2, tzinfo=UTC)
NOW = CREATED + timedelta(minutes=5)
LIFETIME = 3600
HELD = Hold(
    id=UUID(int=1),
    state=HoldState.HELD,
    lines=(Line("tea", 2),),
    owner=None,
    reference=None,
    metadata={},
    created_at=CREATED,
    expires_at=CREATED + timedelta(minutes=15),
    finalized_at=None,
    version=3,
)


def in_state(state):
    return HELD if state is HoldState.HELD else replace(HELD, state=state, finalized_at=NOW, version=4)


def confirm(hold):
    return transitions.confirm(hold, NOW)


def release(hold):
    return transitions.release(hold, NOW, unswept=False)


def extend(hold, ttl_seconds=LIFETIME // 2):
    return transitions.extend(hold, NOW, ttl_seconds=ttl_seconds, lifetime_seconds_max=LIFETIME)


@pytest.mark.parametrize(("verb", "state"), [(confirm, HoldState.CONFIRMED), (release, HoldState.RELEASED)])
def test_a_held_hold_is_finalized_now_one_version_up(verb, state):
    assert verb(HELD) == Transition(replace(HELD, state=state, finalized_at=NOW, version=4), effect=True)


@pytest.mark.parametrize(
    ("verb", "state"),
    [
        (confirm, HoldState.CONFIRMED),
        (confirm, HoldState.FULFILLED),
        (release, HoldState.RELEASED),
        (release, HoldState.EXPIRED),
    ],
)
def test_a_wish_that_is_fulfilled_already_has_no_effect(verb, state):
    assert verb(in_state(state)) == Transition(in_state(state), effect=False)


@pytest.mark.parametrize(
    ("verb", "state", "error"),
    [
        (confirm, HoldState.EXPIRED, HoldExpired),
        (confirm, HoldState.RELEASED, HoldReleased),
        (confirm, HoldState.RETURNED, HoldReturned),
        (release, HoldState.CONFIRMED, HoldConfirmed),
        (release, HoldState.FULFILLED, HoldFulfilled),
        (release, HoldState.RETURNED, HoldReturned),
        (extend, HoldState.CONFIRMED, HoldConfirmed),
        (extend, HoldState.RELEASED, HoldReleased),
        (extend, HoldState.EXPIRED, HoldExpired),
        (extend, HoldState.FULFILLED, HoldFulfilled),
        (extend, HoldState.RETURNED, HoldReturned),
    ],
)
def test_what_cannot_be_is_refused_by_the_name_of_its_state(verb, state, error):
    with pytest.raises(error):
        verb(in_state(state))


def test_every_state_has_an_answer_to_every_verb():
    for state in HoldState:
        for verb in (confirm, release, extend):
            try:
                assert isinstance(verb(in_state(state)), Transition)
            except (HoldConfirmed, HoldExpired, HoldFulfilled, HoldReleased, HoldReturned):
                continue


def test_extending_moves_the_expiry_only_and_one_version_up():
    wanted = NOW + timedelta(seconds=1800)
    assert extend(HELD, 1800) == Transition(replace(HELD, expires_at=wanted, version=4), effect=True)


@pytest.mark.parametrize("ttl_seconds", [1, 599, 600])
def test_extending_never_shortens(ttl_seconds):
    assert extend(HELD, ttl_seconds) == Transition(HELD, effect=False)


def test_extending_goes_up_to_the_lifetime_and_not_a_second_further():
    left = LIFETIME - 300
    assert extend(HELD, left).hold.expires_at == CREATED + timedelta(seconds=LIFETIME)
    with pytest.raises(HoldLifetimeExceeded, match=r"2026-01-02T01:00:00\+00:00"):
        extend(HELD, left + 1)


def test_a_hold_that_lapsed_is_expired_by_whoever_comes_first():
    read = in_state(HoldState.EXPIRED)
    assert transitions.release(read, NOW, unswept=True) == Transition(read, effect=True)
    assert transitions.expire(read, unswept=True) == Transition(read, effect=True)
    assert transitions.expire(HELD, unswept=False) == Transition(HELD, effect=False)
