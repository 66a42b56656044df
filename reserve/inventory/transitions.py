"""The life of a hold as a pure state table: what each verb makes of it, or why it is refused."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from reserve.errors import (
    HoldConfirmed,
    HoldExpired,
    HoldFulfilled,
    HoldLifetimeExceeded,
    HoldReleased,
    HoldReturned,
    ReserveError,
)
from reserve.inventory.rows import Hold, HoldState


class Verb(StrEnum):
    CONFIRM = "confirm"
    RELEASE = "release"
    EXTEND = "extend"
    EXPIRE = "expire"


@dataclass(frozen=True, slots=True)
class Transition:
    """The hold after the verb. Without `effect` nothing is to be written: it is so already."""

    hold: Hold
    effect: bool


def confirm(hold: Hold, now: datetime) -> Transition:
    """Held becomes confirmed; confirmed again, or fulfilled since, is the same answer without effect."""
    match hold.state:
        case HoldState.HELD:
            return _finalize(hold, HoldState.CONFIRMED, now)
        case HoldState.CONFIRMED | HoldState.FULFILLED:
            return Transition(hold, effect=False)
        case HoldState.EXPIRED | HoldState.RELEASED | HoldState.RETURNED:
            raise refusal(hold)
        case _:
            assert_never(hold.state)


def release(hold: Hold, now: datetime, *, unswept: bool) -> Transition:
    """Held becomes released. An expired hold is the wish fulfilled; one that nobody has swept yet is expired now."""
    match hold.state:
        case HoldState.HELD:
            return _finalize(hold, HoldState.RELEASED, now)
        case HoldState.RELEASED | HoldState.EXPIRED:
            return Transition(hold, effect=unswept)
        case HoldState.CONFIRMED | HoldState.FULFILLED | HoldState.RETURNED:
            raise refusal(hold)
        case _:
            assert_never(hold.state)


def extend(hold: Hold, now: datetime, *, ttl_seconds: int, lifetime_seconds_max: int) -> Transition:
    """The expiry becomes the later of itself and `now + ttl_seconds`; never past the lifetime cap, never revived."""
    if hold.state is not HoldState.HELD:
        raise refusal(hold)
    wanted = now + timedelta(seconds=ttl_seconds)
    if wanted <= hold.expires_at:
        return Transition(hold, effect=False)
    latest = hold.created_at + timedelta(seconds=lifetime_seconds_max)
    if wanted > latest:
        raise HoldLifetimeExceeded(
            f"A hold lives at most {lifetime_seconds_max} seconds from its placing, so until {latest.isoformat()}."
        )
    return Transition(replace(hold, expires_at=wanted, version=hold.version + 1), effect=True)


def expire(hold: Hold, *, unswept: bool) -> Transition:
    """A hold that has lapsed becomes expired; any other stays as it is."""
    return Transition(hold, effect=unswept)


def refusal(hold: Hold) -> ReserveError:
    """The error that says in which state a hold is that cannot change any more."""
    match hold.state:
        case HoldState.HELD:
            raise AssertionError("a held hold is refused nothing for its state")
        case HoldState.CONFIRMED:
            return HoldConfirmed("The hold is confirmed.")
        case HoldState.RELEASED:
            return HoldReleased("The hold was released.")
        case HoldState.EXPIRED:
            return HoldExpired(f"The hold expired at {hold.expires_at.isoformat()}.")
        case HoldState.FULFILLED:
            return HoldFulfilled("The hold was fulfilled.")
        case HoldState.RETURNED:
            return HoldReturned("The hold was returned.")
        case _:
            assert_never(hold.state)


def _finalize(hold: Hold, state: HoldState, now: datetime) -> Transition:
    return Transition(replace(hold, state=state, finalized_at=now, version=hold.version + 1), effect=True)
