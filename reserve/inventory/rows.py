"""What the inventory stores and answers: pools, holds, adjustments, as frozen rows. Owns no statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from reserve.errors import Fault, ValidationFailed
from reserve.unset import UNSET, Unset


class PoolKind(StrEnum):
    STOCK = "stock"
    UNITS = "units"
    QUOTA = "quota"


class PoolState(StrEnum):
    OPEN = "open"
    DRAINING = "draining"
    ARCHIVED = "archived"


class HoldState(StrEnum):
    HELD = "held"
    CONFIRMED = "confirmed"
    RELEASED = "released"
    EXPIRED = "expired"
    FULFILLED = "fulfilled"
    RETURNED = "returned"


class LateConfirm(StrEnum):
    REFUSE = "refuse"
    IF_AVAILABLE = "if_available"
    IF_AVAILABLE_ANY = "if_available_any"


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool with its quantities in one snapshot, taken at `as_of`; lapsed holds count as available."""

    id: int
    key: str
    kind: PoolKind
    state: PoolState
    on_hand: int
    available: int
    held: int
    confirmed: int
    buffer: int
    withheld: int
    hold_ttl_seconds: int | None
    max_per_owner: int | None
    late_confirm: LateConfirm
    window_every: str | None
    window_time_zone: str | None
    quota_limit: int | None
    metadata: Mapping[str, object]
    created_at: datetime
    version: int
    as_of: datetime


@dataclass(frozen=True, slots=True)
class PoolChange:
    """What a PUT says of a pool. `on_hand` counts at creation; later it must equal what the pool has."""

    kind: PoolKind | Unset = UNSET
    on_hand: int | Unset = UNSET
    buffer: int | Unset = UNSET
    hold_ttl_seconds: int | Unset | None = UNSET
    metadata: Mapping[str, object] | Unset = UNSET


@dataclass(frozen=True, slots=True)
class Adjust:
    """A wish to change `on_hand` by `delta`, which is never 0.

    `expected_on_hand` makes it compare-and-set. `allow_shortage` lets it reach into what is promised; the pool
    is then short: it takes no new holds until give-backs and new stock have paid the shortage.
    """

    delta: int
    reason: str
    expected_on_hand: int | None = None
    allow_shortage: bool = False


@dataclass(frozen=True, slots=True)
class Adjustment:
    """An adjustment that happened. `on_hand` is the pool's figure right after it."""

    id: int
    pool: str
    delta: int
    reason: str
    on_hand: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Line:
    """One pool of a hold with the quantity asked or held; a hold names each pool once."""

    pool: str
    quantity: int


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold as clients see it. `finalized_at` is when it left `held`; for an expired one its `expires_at`."""

    id: UUID
    state: HoldState
    lines: tuple[Line, ...]
    owner: str | None
    reference: str | None
    metadata: Mapping[str, object]
    created_at: datetime
    expires_at: datetime
    finalized_at: datetime | None
    version: int


@dataclass(frozen=True, slots=True)
class Place:
    """A wish to place a hold: each pool once (sum repeats first, `sum_lines`), quantities at least 1.

    Without `ttl_seconds` the hold lives as long as the shortest `hold_ttl_seconds` of its pools, else the
    setting.
    """

    lines: Sequence[Line]
    ttl_seconds: int | None = None
    owner: str | None = None
    reference: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.lines:
            raise ValidationFailed([Fault("/lines", "must name at least one pool")])


@dataclass(frozen=True, slots=True)
class PoolFilter:
    """Which pools to list; unset fields do not restrict. Without `state`, archived pools are left out."""

    keys: Sequence[str] = ()
    prefix: str | None = None
    kind: PoolKind | None = None
    state: PoolState | None = None


@dataclass(frozen=True, slots=True)
class HoldFilter:
    """Which holds to list; unset fields do not restrict. A lapsed hold counts as `expired`, swept or not."""

    owner: str | None = None
    reference: str | None = None
    state: HoldState | None = None
    pool: str | None = None


def sum_lines(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Each pool once, in order of first mention, with its quantities summed."""
    total: dict[str, int] = {}
    for line in lines:
        total[line.pool] = total.get(line.pool, 0) + line.quantity
    return tuple(Line(pool, quantity) for pool, quantity in total.items())
