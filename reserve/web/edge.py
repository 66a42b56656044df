"""The outermost layer, around Litestar: request ids, raw paths, HEAD. Owns no route and no log line.

It has to stand outside of Litestar's routing, which would take the `/` of an encoded pool key for a separator
and knows HEAD only where a handler declares it. It must stay cheap: every request passes it.
"""

import random
import re
from typing import Any, cast
from urllib.parse import quote

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.types import (
    HTTPScope,
    LifeSpanReceive,
    LifeSpanScope,
    LifeSpanSend,
    Message,
    Receive,
    Scope,
    Send,
)

from reserve.errors import NotFound, ReserveError
from reserve.web.paths import canonical_path, has_empty_segment
from reserve.web.problems import problem

#: What may be repeated in a header and a log line as it came; anything else is replaced, not refused.
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}\Z")


#: Most paths need no look at each character.
_PLAIN_PATH = re.compile(rb"[A-Za-z0-9/_.-]*\Z")


class Application(Litestar):
    """Litestar with the edge around it."""

    async def __call__(
        self,
        scope: Scope | LifeSpanScope,
        receive: Receive | LifeSpanReceive,
        send: Send | LifeSpanSend,
    ) -> None:
        if scope["type"] != ScopeType.HTTP:
            await super().__call__(scope, receive, send)
            return
        scope, receive, send = cast("HTTPScope", scope), cast("Receive", receive), cast("Send", send)
        exchange = _Exchange(scope, send)
        try:
            inner = _inner_scope(scope, exchange.path, exchange.request_id)
        except ReserveError as error:
            refusal = problem(error, exchange.path)
            await refusal(scope, receive, exchange.send)
            return
        await super().__call__(inner, receive, exchange.send)


def request_id_of(scope: Scope) -> str:
    return str(scope["state"]["request_id"])


class _Exchange:
    """One request and what is added to its answer."""

    __slots__ = ("_head", "_send", "path", "request_id")

    def __init__(self, scope: HTTPScope, send: Send) -> None:
        offered = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        self.request_id = offered.decode() if _REQUEST_ID.match(offered) else _new_request_id()
        self._send = send
        self.path = _sent_path(scope)
        self._head = scope["method"] == "HEAD"

    async def send(self, message: Message) -> None:
        """Pass a message on, with the request id at its start and without the body that HEAD does not get."""
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
        elif self._head and message["type"] == "http.response.body":
            message["body"] = b""
        await self._send(message)


def _new_request_id() -> str:
    # A name, not a secret, so it need not come from the kernel, which would cost more.
    return f"{random.getrandbits(128):032x}"


def _sent_path(scope: HTTPScope) -> str:
    """The path as it was sent, without the part that an outer server took; ASCII, with nothing decoded."""
    raw = scope.get("raw_path")
    if not raw:
        raw = quote(scope["path"]).encode()
    # Some servers, and test clients, leave the query on it.
    path = raw.partition(b"?")[0].removeprefix(scope.get("root_path", "").encode())
    if _PLAIN_PATH.match(path):
        return path.decode()
    return quote(path, safe="/%:@!$&'()*+,;=~")


def _inner_scope(scope: HTTPScope, sent_path: str, request_id: str) -> HTTPScope:
    """The scope for Litestar: the canonical path as its path, GET for HEAD, the request id in its state."""
    inner: dict[str, Any] = dict(scope)
    path = canonical_path(sent_path)
    if has_empty_segment(path):
        raise NotFound("Nothing has this address: it has an empty part, or a slash at its end.")
    if not path.startswith("/"):
        raise NotFound("Nothing has this address: it is not a path.")
    inner["path"] = path
    inner["root_path"] = ""
    inner["state"] = {**scope.get("state", {}), "request_id": request_id}
    if scope["method"] == "HEAD":
        inner["method"] = "GET"
    return cast("HTTPScope", inner)
