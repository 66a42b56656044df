"""The JSON of pools, holds and adjustments, from the inventory's rows; pure. Its types are documented."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

# pydantic reads the stdlib's TypedDict only from Python 3.12 on.
from typing_extensions import TypedDict

from reserve.inventory.rows import Adjustment, Hold, HoldState, LateConfirm, Pool, PoolKind, PoolState

Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
HoldId = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid"})]
Count = Annotated[int, Field(ge=0)]


class WindowShape(TypedDict):
    every: str
    time_zone: str


class PoolShape(TypedDict):
    """A pool; all figures are of `as_of`. In `available`, holds that have lapsed count as given back."""

    key: str
    kind: PoolKind
    state: PoolState
    on_hand: Count
    available: Count
    held: Count
    confirmed: Count
    buffer: Count
    withheld: Count
    hold_ttl_seconds: int | None
    max_per_owner: int | None
    late_confirm: LateConfirm
    window: WindowShape | None
    limit: int | None
    metadata: Mapping[str, object]
    created_at: Timestamp
    version: int
    as_of: Timestamp


class LineShape(TypedDict):
    pool: str
    quantity: int


class HoldShape(TypedDict):
    """A hold. `finalized_at` is when it left `held`; of an expired one its `expires_at`."""

    id: HoldId
    state: HoldState
    lines: list[LineShape]
    owner: str | None
    reference: str | None
    metadata: Mapping[str, object]
    created_at: Timestamp
    expires_at: Timestamp
    finalized_at: Timestamp | None
    version: int


class AdjustmentShape(TypedDict):
    """An adjustment; `on_hand` is the pool's figure right after it."""

    id: int
    pool: str
    delta: int
    reason: str
    on_hand: Count
    created_at: Timestamp


class PoolListShape(TypedDict):
    items: list[PoolShape]
    next_cursor: str | None


class HoldListShape(TypedDict):
    items: list[HoldShape]
    next_cursor: str | None


class AdjustmentListShape(TypedDict):
    items: list[AdjustmentShape]
    next_cursor: str | None


class HealthShape(TypedDict):
    status: Literal["live", "ready"]


class ProblemKindShape(TypedDict):
    """What a problem type means; `transient` says that the same request may succeed later."""

    type: str
    title: str
    status: int
    code: str
    transient: bool


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, always with six decimals, so that the texts sort like the moments."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def pool_shape(pool: Pool) -> PoolShape:
    window: WindowShape | None = None
    if pool.window_every is not None and pool.window_time_zone is not None:
        window = {"every": pool.window_every, "time_zone": pool.window_time_zone}
    return {
        "key": pool.key,
        "kind": pool.kind,
        "state": pool.state,
        "on_hand": pool.on_hand,
        "available": pool.available,
        "held": pool.held,
        "confirmed": pool.confirmed,
        "buffer": pool.buffer,
        "withheld": pool.withheld,
        "hold_ttl_seconds": pool.hold_ttl_seconds,
        "max_per_owner": pool.max_per_owner,
        "late_confirm": pool.late_confirm,
        "window": window,
        "limit": pool.quota_limit,
        "metadata": pool.metadata,
        "created_at": timestamp(pool.created_at),
        "version": pool.version,
        "as_of": timestamp(pool.as_of),
    }


def hold_shape(hold: Hold) -> HoldShape:
    return {
        "id": str(hold.id),
        "state": hold.state,
        "lines": [{"pool": line.pool, "quantity": line.quantity} for line in hold.lines],
        "owner": hold.owner,
        "reference": hold.reference,
        "metadata": hold.metadata,
        "created_at": timestamp(hold.created_at),
        "expires_at": timestamp(hold.expires_at),
        "finalized_at": None if hold.finalized_at is None else timestamp(hold.finalized_at),
        "version": hold.version,
    }


def adjustment_shape(adjustment: Adjustment) -> AdjustmentShape:
    return {
        "id": adjustment.id,
        "pool": adjustment.pool,
        "delta": adjustment.delta,
        "reason": adjustment.reason,
        "on_hand": adjustment.on_hand,
        "created_at": timestamp(adjustment.created_at),
    }


def list_shape(items: Iterable[object], next_cursor: str | None) -> dict[str, object]:
    return {"items": list(items), "next_cursor": next_cursor}
