"""What an audit can find, as a closed set, and the list it keeps of it, which is bounded. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

#: How many differences are kept in memory and shown; the rest are counted. Whoever has more has one cause.
DIFFERENCES_MAX = 1000


class What(StrEnum):
    """What is not as it was recomputed."""

    # A pool's quantities, summed over its slots, against its movements.
    ON_HAND = "on_hand"
    BUFFER = "buffer"
    WITHHELD = "withheld"
    HELD = "held"
    CONFIRMED = "confirmed"
    # What is promised, by slots or movements, against on_hand and the shortage that was allowed.
    OVERSOLD = "oversold"
    # The shortage against what is promised beyond on_hand, and the mark on the slots against the shortage.
    SHORTAGE = "shortage"
    SHORT = "short"
    # A pool of stock without a slot.
    SLOTS = "slots"
    # One slot against its lines, and against its own capacity (the constraint, should somebody have dropped it).
    SLOT_HELD = "slot_held"
    SLOT_CONFIRMED = "slot_confirmed"
    SLOT_OVERSOLD = "slot_oversold"
    # A hold or a line whose partner is not there.
    LINES = "lines"
    HOLD_MISSING = "hold_missing"
    LINE_SLOT = "line_slot"
    POOL_MISSING = "pool_missing"
    # A line against its hold, and a hold against its own expiry.
    LINE_STATE = "line_state"
    LINE_EXPIRES_AT = "line_expires_at"
    FINALIZED_AT = "finalized_at"
    # A hold and its lines against its movements in one pool.
    PLACED = "placed"
    HOLD_HELD = "hold_held"
    HOLD_CONFIRMED = "hold_confirmed"
    HOLD_STATE = "hold_state"
    HOLD_VERSION = "hold_version"
    EXPIRED_EARLY = "expired_early"
    # A job in more than one of its tables, or more than once in one; with an id that was never drawn; of no lane.
    JOB_PLACE = "job_place"
    JOB_ID = "job_id"
    JOB_LANE_MISSING = "job_lane_missing"
    # A job against the table that it is in, and against its own state.
    JOB_STATE = "job_state"
    JOB_LEASE = "job_lease"
    JOB_TOKEN = "job_token"  # noqa: S105 -- the name of a finding
    JOB_STARTED_AT = "job_started_at"
    JOB_WORKER = "job_worker"
    JOB_RESCUED = "job_rescued"
    JOB_CANCEL_REQUESTED = "job_cancel_requested"
    JOB_FAILURES = "job_failures"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is stored otherwise than it was recomputed. `pool` is its key, or `#` and the id it had."""

    pool: str | None
    what: What
    stored: str
    recomputed: str
    window_id: int = 0
    slot: int | None = None
    hold: UUID | None = None
    job: int | None = None

    @property
    def sentence(self) -> str:
        where = [
            "" if self.pool is None else f"pool {self.pool!r}",
            f"window {self.window_id}" if self.window_id else "",
            "" if self.slot is None else f"slot {self.slot}",
            "" if self.hold is None else f"hold {self.hold}",
            "" if self.job is None else f"job {self.job}",
        ]
        return f"{', '.join(filter(None, where))}: {self.what}: stored {self.stored}, recomputed {self.recomputed}"


@dataclass(slots=True)
class Findings:
    """Counts all differences and keeps the first `DIFFERENCES_MAX`."""

    count: int = 0
    kept: list[Difference] = field(default_factory=list)

    def add(self, differences: Iterable[Difference], *, unseen: int = 0) -> None:
        """`unseen` are counted without being there to be kept."""
        for difference in differences:
            self.count += 1
            if len(self.kept) < DIFFERENCES_MAX:
                self.kept.append(difference)
        self.count += unseen
