"""Every refusal as a problem document (RFC 9457): the one place where an error gets its status and title.

`type` is `/problems/<code>`, where this service answers the meaning of the code; it is relative, so it
resolves wherever the service is reached. No text of an unexpected exception ever leaves here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from reserve import errors
from reserve.errors import Fault, ReserveError
from reserve.web.answers import Answer, encode
from reserve.web.shapes import ProblemKindShape

PROBLEM_JSON = b"application/problem+json"
INTERNAL_ERROR = "internal-error"


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """How an error looks over HTTP. `retry_after_seconds` is a hint for when trying again makes sense."""

    status: int
    title: str
    retry_after_seconds: int | None = None


PROBLEMS: Mapping[type[ReserveError], ProblemKind] = MappingProxyType(
    {
        errors.InvalidRequest: ProblemKind(400, "The request cannot be read"),
        errors.IdempotencyKeyMissing: ProblemKind(400, "An idempotency key is needed"),
        errors.NotFound: ProblemKind(404, "Nothing has this address"),
        errors.PoolNotFound: ProblemKind(404, "Unknown pool"),
        errors.HoldNotFound: ProblemKind(404, "Unknown hold"),
        errors.JobNotFound: ProblemKind(404, "Unknown job"),
        errors.LaneNotFound: ProblemKind(404, "Unknown lane"),
        errors.MethodNotAllowed: ProblemKind(405, "This address does not take this method"),
        errors.InsufficientStock: ProblemKind(409, "Too little stock"),
        errors.Contended: ProblemKind(409, "Locked by others for too long", retry_after_seconds=1),
        errors.PoolDraining: ProblemKind(409, "The pool takes no new holds"),
        errors.PoolArchived: ProblemKind(409, "The pool is archived"),
        errors.PoolKindFixed: ProblemKind(409, "The kind of a pool is fixed"),
        errors.BelowPromised: ProblemKind(409, "The change reaches into what is promised"),
        errors.OnHandMismatch: ProblemKind(409, "Another quantity is on hand than expected"),
        errors.HoldExpired: ProblemKind(409, "The hold has lapsed"),
        errors.HoldConfirmed: ProblemKind(409, "The hold is confirmed"),
        errors.HoldReleased: ProblemKind(409, "The hold is released"),
        errors.HoldFulfilled: ProblemKind(409, "The hold is fulfilled"),
        errors.HoldReturned: ProblemKind(409, "The hold is returned"),
        errors.HoldLifetimeExceeded: ProblemKind(409, "The hold would live too long"),
        errors.LeaseLost: ProblemKind(409, "The job is not this holder's any more"),
        errors.JobFinished: ProblemKind(409, "The job has finished"),
        errors.VersionMismatch: ProblemKind(412, "Another version is current"),
        errors.BodyTooLarge: ProblemKind(413, "The body is too large"),
        errors.UnsupportedMediaType: ProblemKind(415, "The body must be JSON"),
        errors.ValidationFailed: ProblemKind(422, "The request has faults"),
        errors.IdempotencyKeyReused: ProblemKind(422, "The idempotency key belongs to another request"),
        errors.PreconditionRequired: ProblemKind(428, "If-Match is needed"),
        errors.Overloaded: ProblemKind(503, "Too many requests are waiting", retry_after_seconds=1),
        errors.Unavailable: ProblemKind(503, "The database does not answer", retry_after_seconds=5),
        errors.NotMigrated: ProblemKind(503, "The database is not migrated"),
        errors.SchemaTooNew: ProblemKind(503, "The database is newer than this program"),
        # What the database refuses for good while the service runs, such as a password that was changed.
        errors.SettingsError: ProblemKind(503, "The service is not set up for its database"),
    }
)

#: This ends a program before it serves anything; should it get here all the same, it is an internal error.
NEVER_ANSWERED: frozenset[type[ReserveError]] = frozenset({errors.EmbeddedServerError})

_INTERNAL = ProblemKind(500, "Internal error")
_BY_CODE = {error.code: (kind, error.transient) for error, kind in PROBLEMS.items()} | {
    INTERNAL_ERROR: (_INTERNAL, False)
}


def problem_type(code: str) -> str:
    return f"/problems/{code}"


def problem(error: ReserveError, instance: str, *headers: tuple[bytes, bytes]) -> Answer:
    """The answer that refuses a request at the path `instance`, for an error that is in `PROBLEMS`."""
    kind = PROBLEMS[type(error)]
    if kind.retry_after_seconds is not None:
        headers = (*headers, (b"retry-after", b"%d" % kind.retry_after_seconds))
    return Answer(kind.status, encode(document(error, instance)), PROBLEM_JSON, headers)


def internal(instance: str, request_id: str) -> Answer:
    """The answer to whatever nobody expected; the log has the rest under the request id."""
    detail = f"Something went wrong here; the log says what, for request {request_id}."
    body = encode(_members(INTERNAL_ERROR, _INTERNAL, detail, instance))
    return Answer(_INTERNAL.status, body, PROBLEM_JSON)


def unparsed(detail: str) -> Answer:
    """The answer to bytes that are no HTTP request, of which no path is known."""
    return problem(errors.InvalidRequest(detail), "")


def document(error: ReserveError, instance: str) -> dict[str, object]:
    """The members of the problem document, extensions last."""
    detail = _summary(error.faults) if isinstance(error, errors.ValidationFailed) else str(error)
    kind = PROBLEMS[type(error)]
    return _members(error.code, kind, detail or f"{kind.title}.", instance) | _extensions(error)


def kind_shape(code: str) -> ProblemKindShape | None:
    """What the problem type with this code means, or None when there is no such code."""
    if code not in _BY_CODE:
        return None
    kind, transient = _BY_CODE[code]
    return {
        "type": problem_type(code),
        "title": kind.title,
        "status": kind.status,
        "code": code,
        "transient": transient,
    }


def _members(code: str, kind: ProblemKind, detail: str, instance: str) -> dict[str, object]:
    return {
        "type": problem_type(code),
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code,
        "instance": instance,
    }


def _summary(faults: tuple[Fault, ...]) -> str:
    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{first.pointer or 'The body'} {first.detail}{more}."


def _extensions(error: ReserveError) -> dict[str, object]:
    match error:
        case errors.ValidationFailed():
            return {"errors": [{"pointer": fault.pointer, "detail": fault.detail} for fault in error.faults]}
        case errors.InsufficientStock():
            return {
                "shortfalls": [
                    {"pool": short.pool, "requested": short.requested, "available": short.available}
                    for short in error.shortfalls
                ]
            }
        case errors.PoolNotFound() | errors.PoolDraining():
            return {"pools": list(error.pools)}
        case errors.BelowPromised():
            return {"on_hand": error.on_hand, "available": error.available, "promised": error.promised}
        case errors.OnHandMismatch():
            return {"on_hand": error.on_hand}
        case _:
            return {}
