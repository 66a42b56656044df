"""What a call of the HTTP interface is, and what calls share. Owns no call; see `calls`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from reserve import errors
from reserve.db.connection import Database
from reserve.errors import ReserveError
from reserve.web.answers import Answer
from reserve.web.fields import Body
from reserve.web.incoming import Incoming

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


#: What any body can be refused for, in the order in which it is checked.
BODY: Final[Errors] = (
    errors.InvalidRequest,
    errors.BodyTooLarge,
    errors.UnsupportedMediaType,
    errors.ValidationFailed,
)
BUSY: Final[Errors] = (errors.Overloaded, errors.Unavailable)
READ: Final[Errors] = (errors.InvalidRequest, *BUSY)
#: What ends a call that changes something, when nothing else has.
LATER: Final[Errors] = (errors.Contended, *BUSY)

PAGE: Final = (
    QueryParameter("cursor", "The `next_cursor` of the page before."),
    QueryParameter("limit", "Items of the page.", integer=True),
)
