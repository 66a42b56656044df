"""The calls on pools and their adjustments, as they are routed and documented."""

from typing import Final

from reserve import errors
from reserve.inventory.rows import PoolKind, PoolState
from reserve.web import adjustments, examples, pools, shapes
from reserve.web.call import BODY, BUSY, LATER, PAGE, READ, Call, QueryParameter, Success
from reserve.web.requests import AdjustmentBody, PoolBody

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
        (*BODY, errors.VersionMismatch, errors.PoolKindFixed, errors.BelowPromised, *LATER),
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
        (errors.InvalidRequest, errors.PoolNotFound, *BUSY),
    ),
    Call(
        "GET",
        "/v1/pools",
        pools.list_pools,
        "Pools",
        "List pools",
        "Ordered by key.",
        (Success(200, "A page of pools.", shapes.PoolListShape, examples.POOL_LIST),),
        READ,
        query=(
            QueryParameter("key", "Only pools with one of these keys.", repeats=True),
            QueryParameter("prefix", "Only pools whose key starts like this."),
            QueryParameter("kind", "Only pools of this kind.", values=tuple(PoolKind)),
            QueryParameter("state", "Only pools in this state; without it all but archived.", tuple(PoolState)),
            *PAGE,
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
            *BODY,
            errors.IdempotencyKeyReused,
            errors.PoolNotFound,
            errors.OnHandMismatch,
            errors.BelowPromised,
            *LATER,
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
        (errors.InvalidRequest, errors.PoolNotFound, *BUSY),
        query=PAGE,
    ),
)
