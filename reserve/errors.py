"""Every expected error, one closed tree; owns the `code` clients see and whether trying again may help.

An error here changes nothing in the database. `code` is the last part of the problem document's `type`;
`transient` says that the same request may succeed later. HTTP statuses are not known on this floor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class ReserveError(Exception):
    """Root of all expected errors; `str(error)` is one sentence for the caller."""

    code: ClassVar[str]
    transient: ClassVar[bool] = False


# --- at start -----------------------------------------------------------------------------------------------


class SettingsError(ReserveError):
    code = "settings-invalid"


class NotMigrated(ReserveError):
    """The database has not the schema this program needs; the message names the command to run."""

    code = "not-migrated"


class SchemaTooNew(ReserveError):
    """The database was migrated by a newer program."""

    code = "schema-too-new"


class EmbeddedServerError(ReserveError):
    """The embedded PostgreSQL cannot run here, or its data directory is in use."""

    code = "embedded-server"


# --- about the request --------------------------------------------------------------------------------------


class InvalidRequest(ReserveError):
    """The request cannot be read: not JSON, wrong encoding, too deep, a bad header or query parameter."""

    code = "invalid-request"


class IdempotencyKeyMissing(ReserveError):
    code = "idempotency-key-missing"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a request: a JSON pointer (`/lines/0/quantity`) and a sentence naming the bound."""

    pointer: str
    detail: str


class ValidationFailed(ReserveError):
    """The request was read, but says something impossible; nothing was changed."""

    code = "validation-failed"

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(f"{fault.pointer or '/'}: {fault.detail}" for fault in faults))
        self.faults = tuple(faults)


class IdempotencyKeyReused(ReserveError):
    code = "idempotency-key-reused"


class BodyTooLarge(ReserveError):
    code = "body-too-large"


class MethodNotAllowed(ReserveError):
    code = "method-not-allowed"


class UnsupportedMediaType(ReserveError):
    code = "unsupported-media-type"


class NotFound(ReserveError):
    """No resource has this address."""

    code = "not-found"


class PreconditionRequired(ReserveError):
    code = "precondition-required"


class VersionMismatch(ReserveError):
    """`If-Match` named another version than the current one."""

    code = "version-mismatch"


# --- pools --------------------------------------------------------------------------------------------------


class PoolNotFound(ReserveError):
    code = "pool-not-found"

    def __init__(self, pools: Sequence[str]) -> None:
        super().__init__(f"Unknown pool: {', '.join(map(repr, pools))}.")
        self.pools = tuple(pools)


class PoolDraining(ReserveError):
    code = "pool-draining"

    def __init__(self, pools: Sequence[str]) -> None:
        super().__init__(f"No new holds are placed on a draining pool: {', '.join(map(repr, pools))}.")
        self.pools = tuple(pools)


class PoolArchived(ReserveError):
    code = "pool-archived"


class PoolKindFixed(ReserveError):
    code = "pool-kind-fixed"


class BelowPromised(ReserveError):
    """A change would reach into what is held, confirmed, buffered or withheld; carries the figures."""

    code = "below-promised"

    def __init__(self, message: str, *, on_hand: int, available: int, promised: int) -> None:
        super().__init__(message)
        self.on_hand = on_hand
        self.available = available
        self.promised = promised


class OnHandMismatch(ReserveError):
    """`expected_on_hand` was not the real figure; carries the real one."""

    code = "on-hand-mismatch"

    def __init__(self, on_hand: int) -> None:
        super().__init__(f"The pool has {on_hand} on hand, not what was expected.")
        self.on_hand = on_hand


# --- holds --------------------------------------------------------------------------------------------------


class HoldNotFound(ReserveError):
    code = "hold-not-found"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A line that asked for more than there is: `available < requested`, both in units of the pool."""

    pool: str
    requested: int
    available: int


class InsufficientStock(ReserveError):
    """In one snapshot there was less than asked, lapsed holds included; names every short line in line order."""

    code = "insufficient-stock"

    def __init__(self, shortfalls: Sequence[Shortfall]) -> None:
        listed = ", ".join(f"{short.pool!r}: {short.requested} asked, {short.available} left" for short in shortfalls)
        super().__init__(f"Too little stock ({listed}).")
        self.shortfalls = tuple(shortfalls)


class HoldExpired(ReserveError):
    code = "hold-expired"


class HoldConfirmed(ReserveError):
    code = "hold-confirmed"


class HoldReleased(ReserveError):
    code = "hold-released"


class HoldFulfilled(ReserveError):
    code = "hold-fulfilled"


class HoldReturned(ReserveError):
    code = "hold-returned"


class HoldLifetimeExceeded(ReserveError):
    code = "hold-lifetime-exceeded"


# --- jobs ---------------------------------------------------------------------------------------------------


class JobNotFound(ReserveError):
    code = "job-not-found"


class LaneNotFound(ReserveError):
    code = "lane-not-found"


class LeaseLost(ReserveError):
    """The token is not that of the job's holder, or no longer: somebody else has it, or nobody; nothing was changed."""

    code = "lease-lost"


class JobFinished(ReserveError):
    """The verb is for a job that lives, and this one has finished."""

    code = "job-finished"


# --- about the moment ---------------------------------------------------------------------------------------


class Contended(ReserveError):
    """There may be enough, but it stayed locked past the lock wait."""

    code = "contended"
    transient = True

    def __init__(self, message: str = "What this needs stayed locked by others for too long; try again.") -> None:
        super().__init__(message)


class Overloaded(ReserveError):
    """Too many requests wait already."""

    code = "overloaded"
    transient = True


class Unavailable(ReserveError):
    """The database does not answer."""

    code = "unavailable"
    transient = True
