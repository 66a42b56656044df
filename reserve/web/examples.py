"""An example for all that the OpenAPI document shows, of one story: a shop sells blue mugs. Plain data."""

from typing import Final

from reserve import errors
from reserve.errors import Fault, ReserveError, Shortfall

_HOLD_ID = "01997a3e-5a1c-7c42-9d0e-3b8f6f2f7a10"
_CURSOR = "WyJwb29scyIsMSwibXVnLWJsdWUiXQ"

POOL_BODY: Final = {
    "kind": "stock",
    "on_hand": 100,
    "buffer": 5,
    "hold_ttl_seconds": 600,
    "metadata": {"title": "Blue mug"},
}
POOL: Final = {
    "key": "mug-blue",
    "kind": "stock",
    "state": "open",
    "on_hand": 100,
    "available": 95,
    "held": 0,
    "confirmed": 0,
    "buffer": 5,
    "withheld": 0,
    "hold_ttl_seconds": 600,
    "max_per_owner": None,
    "late_confirm": "refuse",
    "window": None,
    "limit": None,
    "metadata": {"title": "Blue mug"},
    "created_at": "2026-01-05T09:00:00.000000Z",
    "version": 1,
    "as_of": "2026-01-05T09:00:00.000000Z",
}
POOL_CHANGED: Final = POOL | {
    "buffer": 10,
    "available": 90,
    "version": 2,
    "as_of": "2026-01-05T09:30:00.250000Z",
}
POOL_IN_USE: Final = POOL | {
    "available": 90,
    "held": 2,
    "confirmed": 3,
    "as_of": "2026-01-05T10:00:00.500000Z",
}
POOL_LIST: Final = {"items": [POOL_IN_USE], "next_cursor": _CURSOR}

ADJUSTMENT_BODY: Final = {"delta": 50, "reason": "delivery 4711", "expected_on_hand": 100}
ADJUSTMENT: Final = {
    "id": 1874,
    "pool": "mug-blue",
    "delta": 50,
    "reason": "delivery 4711",
    "on_hand": 150,
    "created_at": "2026-01-05T11:00:00.000000Z",
}
ADJUSTMENT_LIST: Final = {"items": [ADJUSTMENT], "next_cursor": None}

HOLD_BODY: Final = {
    "lines": [{"pool": "mug-blue", "quantity": 2}],
    "ttl_seconds": 600,
    "owner": "customer-17",
    "reference": "cart-2041",
    "metadata": {"channel": "web"},
}
HOLD: Final = {
    "id": _HOLD_ID,
    "state": "held",
    "lines": [{"pool": "mug-blue", "quantity": 2}],
    "owner": "customer-17",
    "reference": "cart-2041",
    "metadata": {"channel": "web"},
    "created_at": "2026-01-05T10:00:00.000000Z",
    "expires_at": "2026-01-05T10:10:00.000000Z",
    "finalized_at": None,
    "version": 1,
}
HOLD_CONFIRMED: Final = HOLD | {
    "state": "confirmed",
    "finalized_at": "2026-01-05T10:04:12.125000Z",
    "version": 2,
}
HOLD_RELEASED: Final = HOLD | {
    "state": "released",
    "finalized_at": "2026-01-05T10:02:30.000000Z",
    "version": 2,
}
HOLD_EXTENDED: Final = HOLD | {"expires_at": "2026-01-05T10:18:00.000000Z", "version": 2}
HOLD_LIST: Final = {"items": [HOLD], "next_cursor": None}
EXTEND_BODY: Final = {"ttl_seconds": 600}
EMPTY_BODY: Final[dict[str, object]] = {}

LIVE: Final = {"status": "live"}
READY: Final = {"status": "ready"}
PROBLEM_KIND: Final = {
    "type": "/problems/contended",
    "title": "Locked by others for too long",
    "status": 409,
    "code": "contended",
    "transient": True,
}

#: One error of each kind that can be answered, with the path it would be answered at.
ERRORS: Final[tuple[tuple[ReserveError, str], ...]] = (
    (errors.InvalidRequest("The body is not JSON: Expecting value at line 1, column 11."), "/v1/holds"),
    (
        errors.IdempotencyKeyMissing("This call needs an Idempotency-Key header, so that a retry is safe."),
        "/v1/holds",
    ),
    (errors.NotFound("Nothing has this address."), "/v1/hold"),
    (errors.PoolNotFound(["mug-blu"]), "/v1/holds"),
    (errors.HoldNotFound(f"There is no hold {_HOLD_ID!r}."), f"/v1/holds/{_HOLD_ID}"),
    (errors.JobNotFound("There is no job 7301."), "/v1/jobs/7301"),
    (errors.LaneNotFound("There is no lane 'mial'."), "/v1/lanes/mial"),
    (errors.MethodNotAllowed("This address takes GET, HEAD, OPTIONS, POST."), "/v1/holds"),
    (errors.InsufficientStock([Shortfall("mug-blue", 2, 1)]), "/v1/holds"),
    (errors.Contended(), "/v1/holds"),
    (errors.PoolDraining(["mug-blue"]), "/v1/holds"),
    (errors.PoolArchived("The pool 'mug-blue' is archived."), "/v1/pools/mug-blue"),
    (errors.PoolKindFixed("The pool 'mug-blue' is of kind 'units', which is fixed."), "/v1/pools/mug-blue"),
    (
        errors.BelowPromised("Only 90 of 100 are not promised.", on_hand=100, available=90, promised=10),
        "/v1/pools/mug-blue/adjustments",
    ),
    (errors.OnHandMismatch(98), "/v1/pools/mug-blue/adjustments"),
    (errors.HoldExpired("The hold lapsed."), f"/v1/holds/{_HOLD_ID}/confirm"),
    (
        errors.HoldConfirmed("The hold is confirmed; giving it back is a return."),
        f"/v1/holds/{_HOLD_ID}/release",
    ),
    (errors.HoldReleased("The hold is released."), f"/v1/holds/{_HOLD_ID}/confirm"),
    (errors.HoldFulfilled("The hold is fulfilled."), f"/v1/holds/{_HOLD_ID}/confirm"),
    (errors.HoldReturned("The hold is returned."), f"/v1/holds/{_HOLD_ID}/confirm"),
    (errors.HoldLifetimeExceeded("The hold may live 86400 seconds in all."), f"/v1/holds/{_HOLD_ID}/extend"),
    (errors.LeaseLost("Somebody else has the job 7301."), "/v1/jobs/7301/complete"),
    (errors.JobFinished("The job 7301 has succeeded."), "/v1/jobs/7301/cancel"),
    (errors.VersionMismatch("The current version is 2."), "/v1/pools/mug-blue"),
    (errors.BodyTooLarge("The body may have at most 4194304 bytes."), "/v1/holds"),
    (
        errors.UnsupportedMediaType("The body must be sent as Content-Type: application/json, in UTF-8."),
        "/v1/holds",
    ),
    (
        errors.ValidationFailed([Fault("/lines/0/quantity", "must be a whole number from 1 to 1000000000000")]),
        "/v1/holds",
    ),
    (errors.IdempotencyKeyReused("The Idempotency-Key was used for another request."), "/v1/holds"),
    (errors.PreconditionRequired("This call needs If-Match."), f"/v1/holds/{_HOLD_ID}"),
    (errors.Overloaded("Too many requests are waiting."), "/v1/holds"),
    (errors.Unavailable("The database does not answer."), "/v1/holds"),
    (errors.NotMigrated("The database is not migrated; run `reserve migrate`."), "/health/ready"),
    (errors.SchemaTooNew("The database was migrated by a newer program; upgrade this one."), "/health/ready"),
    (
        errors.SettingsError("The database refuses the user, password or database name of RESERVE_DATABASE_URL."),
        "/health/ready",
    ),
)
