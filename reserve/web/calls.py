"""Every call of the HTTP interface with its function and its documentation: what is routed is documented."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from reserve import errors
from reserve.db.connection import Database
from reserve.errors import ReserveError
from reserve.inventory.rows import HoldState, PoolKind, PoolState
from reserve.web import adjustments, examples, health, holds, pools, shapes
from reserve.web.answers import Answer
from reserve.web.fields import Body
from reserve.web.incoming import Incoming
from reserve.web.requests import AdjustmentBody, EmptyBody, ExtendBody, HoldBody, PoolBody

Errors = tuple[type[ReserveError], ...]


@dataclass(frozen=True, slots=True)
class Success:
    """One 2xx answer: its shape, an example of it, and the headers that come with it."""

    status: int
    description: str
    shape: type
    example: object
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryParameter:
    name: str
    description: str
    values: tuple[str, ...] = ()
    integer: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One method on one path. `errors` are in the order in which they are checked; the first one answers."""

    method: Literal["GET", "PUT", "POST"]
    path: str
    answer: Callable[[Database, Incoming], Awaitable[Answer]]
    tag: str
    summary: str
    description: str
    successes: tuple[Success, ...]
    errors: Errors
    body: type[Body] | None = None
    body_example: object = None
    body_optional: bool = False
    query: tuple[QueryParameter, ...] = ()
    idempotency_key: Literal["required", "accepted"] | None = None
    if_match: bool = False


_BODY: Final[Errors] = (
    errors.InvalidRequest,
    errors.BodyTooLarge,
    errors.UnsupportedMediaType,
    errors.ValidationFailed,
)
_BUSY: Final[Errors] = (errors.Overloaded, errors.Unavailable)
_READ: Final[Errors] = (errors.InvalidRequest, *_BUSY)
_SETTLE: Final[Errors] = (
    *_BODY,
    errors.IdempotencyKeyReused,
    errors.HoldNotFound,
    errors.HoldExpired,
    errors.HoldConfirmed,
    errors.HoldReleased,
)
_LATER: Final[Errors] = (errors.Contended, *_BUSY)

_PAGE = (
    QueryParameter("cursor", "The `next_cursor` of the page before."),
    QueryParameter("limit", "Items of the page.", integer=True),
)
_HOLD_HEADERS = ("ETag", "Idempotent-Replayed")


def _hold_success(example: object, description: str) -> tuple[Success, ...]:
    return (Success(200, description, shapes.HoldShape, example, _HOLD_HEADERS),)


POOL_CALLS: Final = (
    Call(
        "PUT",
        "/v1/pools/{key}",
        pools.put_pool,
        "Pools",
        "Create or change a pool",
        "What is absent keeps its value. `on_hand` is set when the pool is made; later, adjust it.",
        (
            Success(201, "The pool was made.", shapes.PoolShape, examples.POOL, ("ETag",)),
            Success(200, "The pool was changed.", shapes.PoolShape, examples.POOL_CHANGED, ("ETag",)),
        ),
        (*_BODY, errors.VersionMismatch, errors.PoolKindFixed, errors.BelowPromised, *_LATER),
        body=PoolBody,
        body_example=examples.POOL_BODY,
        if_match=True,
    ),
    Call(
        "GET",
        "/v1/pools/{key}",
        pools.get_pool,
        "Pools",
        "Read a pool",
        "All figures are of one moment, `as_of`. Holds that have lapsed read as available, swept or not.",
        (Success(200, "The pool.", shapes.PoolShape, examples.POOL_IN_USE, ("ETag",)),),
        (errors.InvalidRequest, errors.PoolNotFound, *_BUSY),
    ),
    Call(
        "GET",
        "/v1/pools",
        pools.list_pools,
        "Pools",
        "List pools",
        "Ordered by key.",
        (Success(200, "A page of pools.", shapes.PoolListShape, examples.POOL_LIST),),
        _READ,
        query=(
            QueryParameter("key", "Only pools with one of these keys.", repeats=True),
            QueryParameter("prefix", "Only pools whose key starts like this."),
            QueryParameter("kind", "Only pools of this kind.", values=tuple(PoolKind)),
            QueryParameter("state", "Only pools in this state; without it all but archived.", tuple(PoolState)),
            *_PAGE,
        ),
    ),
    Call(
        "POST",
        "/v1/pools/{key}/adjustments",
        adjustments.adjust_pool,
        "Pools",
        "Change how much is on hand",
        "Stock that came, went or was counted. With `expected_on_hand` only if that is the figure now.",
        (Success(201, "The adjustment.", shapes.AdjustmentShape, examples.ADJUSTMENT, ("Idempotent-Replayed",)),),
        (
            errors.IdempotencyKeyMissing,
            *_BODY,
            errors.IdempotencyKeyReused,
            errors.PoolNotFound,
            errors.OnHandMismatch,
            errors.BelowPromised,
            *_LATER,
        ),
        body=AdjustmentBody,
        body_example=examples.ADJUSTMENT_BODY,
        idempotency_key="required",
    ),
    Call(
        "GET",
        "/v1/pools/{key}/adjustments",
        adjustments.list_adjustments,
        "Pools",
        "List a pool's adjustments",
        "Newest first.",
        (Success(200, "A page of adjustments.", shapes.AdjustmentListShape, examples.ADJUSTMENT_LIST),),
        (errors.InvalidRequest, errors.PoolNotFound, *_BUSY),
        query=_PAGE,
    ),
)

HOLD_CALLS: Final = (
    Call(
        "POST",
        "/v1/holds",
        holds.place_hold,
        "Holds",
        "Place a hold",
        "Holds every line or nothing. All unknown pools are named in one answer, and all shortfalls.",
        (Success(201, "The hold.", shapes.HoldShape, examples.HOLD, ("Location", *_HOLD_HEADERS)),),
        (
            errors.IdempotencyKeyMissing,
            *_BODY,
            errors.IdempotencyKeyReused,
            errors.PoolNotFound,
            errors.PoolDraining,
            errors.InsufficientStock,
            *_LATER,
        ),
        body=HoldBody,
        body_example=examples.HOLD_BODY,
        idempotency_key="required",
    ),
    Call(
        "GET",
        "/v1/holds/{id}",
        holds.get_hold,
        "Holds",
        "Read a hold",
        "A hold that has lapsed reads `expired` from that instant on.",
        (Success(200, "The hold.", shapes.HoldShape, examples.HOLD, ("ETag",)),),
        (errors.InvalidRequest, errors.HoldNotFound, *_BUSY),
    ),
    Call(
        "GET",
        "/v1/holds",
        holds.list_holds,
        "Holds",
        "List holds",
        "Newest first.",
        (Success(200, "A page of holds.", shapes.HoldListShape, examples.HOLD_LIST),),
        _READ,
        query=(
            QueryParameter("owner", "Only holds of this owner."),
            QueryParameter("reference", "Only holds with this reference."),
            QueryParameter("state", "Only holds in this state.", values=tuple(HoldState)),
            QueryParameter("pool", "Only holds with a line on this pool."),
            *_PAGE,
        ),
    ),
    Call(
        "POST",
        "/v1/holds/{id}/confirm",
        holds.confirm_hold,
        "Holds",
        "Confirm a hold",
        "Makes it last. Confirming again gives the same answer.",
        _hold_success(examples.HOLD_CONFIRMED, "The hold, confirmed."),
        (*_SETTLE, *_LATER),
        body=EmptyBody,
        body_example=examples.EMPTY_BODY,
        body_optional=True,
        idempotency_key="accepted",
    ),
    Call(
        "POST",
        "/v1/holds/{id}/release",
        holds.release_hold,
        "Holds",
        "Release a hold",
        "Gives its stock back. Releasing again, or after it lapsed, gives the hold as it is.",
        _hold_success(examples.HOLD_RELEASED, "The hold, released or expired."),
        (*_BODY, errors.IdempotencyKeyReused, errors.HoldNotFound, errors.HoldConfirmed, *_LATER),
        body=EmptyBody,
        body_example=examples.EMPTY_BODY,
        body_optional=True,
        idempotency_key="accepted",
    ),
    Call(
        "POST",
        "/v1/holds/{id}/extend",
        holds.extend_hold,
        "Holds",
        "Extend a hold",
        "Lets it live `ttl_seconds` from now, or as long as it would anyway. Never revives a lapsed one.",
        _hold_success(examples.HOLD_EXTENDED, "The hold with its new `expires_at`."),
        (*_SETTLE, errors.HoldLifetimeExceeded, *_LATER),
        body=ExtendBody,
        body_example=examples.EXTEND_BODY,
        idempotency_key="accepted",
    ),
)

SERVICE_CALLS: Final = (
    Call(
        "GET",
        "/health/live",
        health.live,
        "Service",
        "Whether the service lives",
        "Does not ask the database.",
        (Success(200, "It lives.", shapes.HealthShape, examples.LIVE),),
        (errors.InvalidRequest,),
    ),
    Call(
        "GET",
        "/health/ready",
        health.ready,
        "Service",
        "Whether the service can work",
        "Asks the database, and whether it has the schema of this program.",
        (Success(200, "It is ready.", shapes.HealthShape, examples.READY),),
        (errors.InvalidRequest, errors.NotMigrated, errors.SchemaTooNew, errors.SettingsError, *_BUSY),
    ),
    Call(
        "GET",
        "/problems/{code}",
        health.problem_kind,
        "Service",
        "What a problem type means",
        "The `type` of each problem document leads here.",
        (Success(200, "The problem type.", shapes.ProblemKindShape, examples.PROBLEM_KIND),),
        (errors.InvalidRequest, errors.NotFound),
    ),
)

CALLS: Final[tuple[Call, ...]] = (*POOL_CALLS, *HOLD_CALLS, *SERVICE_CALLS)
