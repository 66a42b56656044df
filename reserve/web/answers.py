"""What is sent back: one small ASGI answer type and the JSON that fills it. Knows no request and no error."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from litestar.types import Receive, Scope, Send

from reserve.idempotency import Done, Replay, Response

T = TypeVar("T")

JSON = b"application/json"
REPLAYED = (b"idempotent-replayed", b"true")
#: Quantities change without a new version, so nothing in between may keep an answer.
NO_STORE = (b"cache-control", b"no-store")

#: Made once: `json.dumps` with other than its default separators builds an encoder for each call.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer; itself an ASGI app, so that Litestar handlers and raw routes can both return it."""

    status: int
    body: bytes
    media_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 -- ASGI's signature
        headers = list(self.headers)
        if self.status != 204:
            headers += ((b"content-type", self.media_type), (b"content-length", b"%d" % len(self.body)))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def encode(document: object) -> bytes:
    """`document` as compact UTF-8 JSON. A lone surrogate, which only a refusal can quote, stays escaped."""
    return _encode(document).encode("utf-8", "backslashreplace")


def etag(version: int) -> str:
    return f'"{version}"'


def ok(document: object, *, status: int = 200, version: int | None = None) -> Answer:
    """An answer that is not stored: reads, and calls that need no idempotency key."""
    headers = (NO_STORE,) if version is None else (NO_STORE, (b"etag", etag(version).encode()))
    return Answer(status, encode(document), headers=headers)


def stored(response: Response, *, replayed: bool) -> Answer:
    """The answer that is kept under an idempotency key: the same bytes now and at each replay."""
    headers = [REPLAYED] if replayed else []
    if response.location is not None:
        headers.append((b"location", response.location.encode()))
    if response.etag is not None:
        headers.append((b"etag", response.etag.encode()))
    return Answer(response.status, response.body, headers=tuple(headers))


def outcome(result: Done[T] | Replay) -> Answer:
    """The answer to an effect that happened now or was replayed."""
    return stored(result.response, replayed=isinstance(result, Replay))


def renders(
    shape: Callable[[T], object],
    status: int,
    *,
    location: Callable[[T], str] | None = None,
    version: Callable[[T], int] | None = None,
) -> Callable[[T], Response]:
    """The pure function that a transaction calls to make the response it stores with its effect."""

    def render(value: T) -> Response:
        return Response(
            status,
            encode(shape(value)),
            None if location is None else location(value),
            None if version is None else etag(version(value)),
        )

    return render
