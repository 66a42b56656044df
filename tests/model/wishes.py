"""What Hypothesis draws: wishes near what there is, on few pools and keys, so that they meet each other."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from reserve.inventory.rows import (
    UNSET,
    Adjust,
    HoldFilter,
    HoldState,
    Line,
    Place,
    PoolChange,
    PoolFilter,
    PoolKind,
    PoolState,
    sum_lines,
)
from tests.model.operations import AdjustPool, ChangeHold, Keyed, PlaceHold
from tests.model.stock import Model

POOLS = ("ale", "bolts", "čaj/50 %")

#: Mostly those that are there from the start. What is more likely stands more often, here and below.
pools = st.sampled_from([*POOLS * 8, "d"])
_owners = st.sampled_from([None, "ann", "bob"])
_references = st.sampled_from([None, "o-1", "o-2"])

#: Times to live, none so short that it ends by itself while a history runs.
_TTLS = (600, 3600, 86_400)


@dataclass(frozen=True)
class Near:
    """A quantity by what is available."""

    more: int


@dataclass(frozen=True)
class Fresh:
    """An idempotency key that was never used."""


#: A key: none, a new one, or the last that was used.
keys = st.sampled_from([None, None, None, *[Fresh()] * 6, 0])

_quantities = st.sampled_from([1, 1, 1, 1, 2, 2, 2, 3, 3, 5, 9, *map(Near, [-2, 0, 1])])
lines = st.lists(st.tuples(pools, _quantities), min_size=1, max_size=4)
places = st.fixed_dictionaries(
    {"ttl_seconds": st.sampled_from([None, None, None, *_TTLS]), "owner": _owners, "reference": _references}
)

changes = st.builds(
    PoolChange,
    kind=st.sampled_from([UNSET, UNSET, UNSET, PoolKind.STOCK]),
    on_hand=st.sampled_from([UNSET, UNSET, UNSET, UNSET, 0, 3, 9, 40]),
    buffer=st.sampled_from([UNSET, UNSET, 0, 1, 2, 5, 9]),
    hold_ttl_seconds=st.sampled_from([UNSET, None, *_TTLS]),
    metadata=st.sampled_from([UNSET, {}, {"shelf": 3}]),
)

#: A change of on_hand: by a number, or to so much more or less than what is promised.
deltas = st.sampled_from([-3, -1, 1, 2, 4, 9, 18, *map(Near, range(-4, 4))])

pool_filters = st.builds(
    PoolFilter,
    keys=st.lists(pools, max_size=2).map(tuple),
    prefix=st.sampled_from([None, None, "č", "b"]),
    kind=st.sampled_from([None, PoolKind.STOCK, PoolKind.QUOTA]),
    state=st.sampled_from([None, PoolState.OPEN, PoolState.DRAINING]),
)
hold_filters = st.builds(
    HoldFilter,
    owner=st.sampled_from([None, None, None, None, "ann"]),
    reference=st.sampled_from([None, None, None, None, "o-1"]),
    state=st.sampled_from([*[None] * 5, *HoldState]),
    pool=st.sampled_from([None, None, None, *POOLS, "d"]),
)


def place_of(model: Model, drawn: list[tuple[str, int | Near]], **rest) -> Place:
    """The wish that was drawn, its quantities near what there is now, repeated pools summed."""
    resolved = []
    for pool, quantity in drawn:
        available = model.available(pool) if pool in model.pools else 0
        resolved.append(Line(pool, max(1, available + quantity.more) if isinstance(quantity, Near) else quantity))
    return Place(lines=sum_lines(resolved), **rest)


def delta_of(model: Model, pool: str, drawn: int | Near) -> int:
    if not isinstance(drawn, Near):
        return drawn
    free = model.pools[pool].on_hand - model.promised(pool) if pool in model.pools else 0
    # Never 0, which is no adjustment.
    return drawn.more - free or 1


def with_another_body(operation: Keyed) -> Keyed:
    """The same call with the same key, but asking for something else."""
    match operation:
        case PlaceHold(place):
            first, *others = place.lines
            return replace(operation, place=replace(place, lines=[Line(first.pool, first.quantity + 1), *others]))
        case ChangeHold():
            return replace(operation, ttl_seconds=operation.ttl_seconds + 1)
        case AdjustPool(wish=wish):
            return replace(operation, wish=replace(wish, reason=f"{wish.reason}!"))


def adjust_of(delta: int, expected_on_hand: int | None, *, allow_shortage: bool) -> Adjust:
    return Adjust(delta, "counted", expected_on_hand, allow_shortage)
