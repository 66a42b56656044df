"""The calls on holds, as they are routed and documented."""

from typing import Final

from reserve import errors
from reserve.inventory.rows import HoldState
from reserve.web import examples, holds, shapes
from reserve.web.call import BODY, BUSY, LATER, PAGE, READ, Call, Errors, QueryParameter, Success
from reserve.web.requests import EmptyBody, ExtendBody, HoldBody

_SETTLE: Final[Errors] = (
    *BODY,
    errors.IdempotencyKeyReused,
    errors.HoldNotFound,
    errors.HoldExpired,
    errors.HoldConfirmed,
    errors.HoldReleased,
)
_HOLD_HEADERS = ("ETag", "Idempotent-Replayed")


def _hold_success(example: object, description: str) -> tuple[Success, ...]:
    return (Success(200, description, shapes.HoldShape, example, _HOLD_HEADERS),)


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
            *BODY,
            errors.IdempotencyKeyReused,
            errors.PoolNotFound,
            errors.PoolDraining,
            errors.InsufficientStock,
            *LATER,
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
        (errors.InvalidRequest, errors.HoldNotFound, *BUSY),
    ),
    Call(
        "GET",
        "/v1/holds",
        holds.list_holds,
        "Holds",
        "List holds",
        "Newest first.",
        (Success(200, "A page of holds.", shapes.HoldListShape, examples.HOLD_LIST),),
        READ,
        query=(
            QueryParameter("owner", "Only holds of this owner."),
            QueryParameter("reference", "Only holds with this reference."),
            QueryParameter("state", "Only holds in this state.", values=tuple(HoldState)),
            QueryParameter("pool", "Only holds with a line on this pool."),
            *PAGE,
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
        (*_SETTLE, *LATER),
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
        (*BODY, errors.IdempotencyKeyReused, errors.HoldNotFound, errors.HoldConfirmed, *LATER),
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
        (*_SETTLE, errors.HoldLifetimeExceeded, *LATER),
        body=ExtendBody,
        body_example=examples.EXTEND_BODY,
        idempotency_key="accepted",
    ),
)
