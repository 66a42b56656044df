"""A request as the calls see it, taken from an ASGI scope without a framework. Owns no rule of a call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from litestar.types import HTTPScope, Receive

from reserve.errors import Fault, InvalidRequest
from reserve.idempotency import IdempotencyKey, fingerprint
from reserve.settings import Settings
from reserve.web import body, headers
from reserve.web.fields import Body
from reserve.web.paths import segment_text
from reserve.web.polls import Polls
from reserve.web.query import refuse_query
from reserve.web.requests import validated

BodyType = TypeVar("BodyType", bound=Body)


@dataclass(frozen=True, slots=True)
class Incoming:
    """One request. `path` is canonical; `segments` are what fills the open parts of its route, encoded.

    `polls` is the application's own: what its requests share while they wait.
    """

    method: str
    path: str
    segments: Mapping[str, str]
    headers: dict[bytes, bytes]
    query: bytes
    receive: Receive
    polls: Polls

    @classmethod
    def of(cls, scope: HTTPScope, receive: Receive, polls: Polls) -> "Incoming":
        """The request of an ASGI scope; `InvalidRequest` when a header that must be single repeats."""
        return cls(
            scope["method"],
            scope["path"],
            cast("Mapping[str, str]", scope.get("path_params", {})),
            headers.single_headers(scope["headers"]),
            scope["query_string"],
            receive,
            polls,
        )

    def segment(self, name: str) -> str:
        return segment_text(self.segments[name])

    def idempotency_key(self, *, required: bool) -> str | None:
        """The client's key, which is checked before anything else of the request."""
        return headers.idempotency_key(self.headers, required=required)

    def if_match(self) -> int | str | None:
        return headers.if_match(self.headers)

    async def read(self, model: type[BodyType], settings: Settings, *, empty: bool = False) -> tuple[BodyType, object]:
        """The body as `model` and as the plain JSON that a fingerprint is made of.

        With `empty`, no body at all stands for an empty object. Raises `InvalidRequest`, `BodyTooLarge`,
        `UnsupportedMediaType` and, when it could be read, `ValidationFailed` with all its faults.
        """
        value, faults = await self.read_json(settings, empty=empty)
        return validated(model, value, faults, settings), value

    async def read_json(self, settings: Settings, *, empty: bool = False) -> tuple[object, list[Fault]]:
        """The body as plain JSON that no model has judged, and what in it cannot be stored. Raises as `read` does."""
        refuse_query(self.query)
        raw = await body.read(
            self.receive,
            self.headers,
            bytes_max=settings.body_bytes_max,
            seconds_max=settings.body_seconds_max,
        )
        if raw:
            body.require_json(self.headers)
            value = body.parse(raw, settings.json_depth_max)
            return value, body.unstorable(raw, value)
        if not empty:
            raise InvalidRequest("The body is empty; this call needs a JSON object.")
        return {}, []

    def keyed(self, key: str | None, value: object) -> IdempotencyKey | None:
        """The key with the fingerprint of this request, whose body is `value`."""
        return None if key is None else IdempotencyKey(key, fingerprint(self.method, self.path, value))
