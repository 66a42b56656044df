"""Puts the HTTP interface together: a route for each of `calls.CALLS`, a problem document for each refusal.

The caller opens and closes the database; nothing here has a lifespan of its own.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, HTTPScope

from reserve import errors
from reserve.db.connection import Database
from reserve.errors import ReserveError
from reserve.events import Event
from reserve.web.answers import Answer, encode
from reserve.web.call import Call
from reserve.web.calls import CALLS
from reserve.web.edge import Application, request_id_of
from reserve.web.incoming import Incoming
from reserve.web.openapi import openapi_document
from reserve.web.polls import Polls
from reserve.web.problems import NEVER_ANSWERED, internal, problem
from reserve.web.query import refuse_query

_log = structlog.get_logger("reserve.web")

#: The document is served at both; tools look for the second.
_SCHEMA_PATHS = ("/schema", "/schema/openapi.json")


def create_app(database: Database, polls: Polls | None = None) -> Application:
    """The ASGI application that serves `database`, with the settings it was opened with.

    Whoever stops it in an orderly way gives it `polls` and ends them first, so that no claim keeps it waiting.
    """
    polls = polls or Polls(database)
    methods: defaultdict[str, set[str]] = defaultdict(set)
    for path, method in [
        *((call.path, call.method) for call in CALLS),
        *((path, "GET") for path in _SCHEMA_PATHS),
    ]:
        methods[path].add(method)
    return Application(
        [
            # First, because Litestar gives each path that has none an OPTIONS of its own, which forgets HEAD.
            *(_options_handler(path, names) for path, names in methods.items()),
            *(_call_handler(call, database, polls) for call in CALLS),
            _schema_handler(),
        ],
        exception_handlers={HTTPException: _refused_by_litestar, Exception: _unexpected},
        # The document and the log are our own; see `openapi` and `edge`.
        openapi_config=None,
        logging_config=None,
        # Never from the environment: a debug page shows the stack.
        debug=False,
    )


def _call_handler(call: Call, database: Database, polls: Polls) -> HTTPRouteHandler:
    async def handle(request: Request[Any, Any, Any]) -> ASGIApp:
        try:
            return await call.answer(database, Incoming.of(request.scope, request.receive, polls))
        except ReserveError as error:
            return _refusal(error, request.scope)

    return HTTPRouteHandler(_route(call.path), http_method=call.method, name=call.answer.__name__)(handle)


def _refusal(error: ReserveError, scope: HTTPScope) -> Answer:
    if type(error) in NEVER_ANSWERED:
        raise error
    answer = problem(error, scope["path"])
    if answer.status >= 500:
        _log.warning(
            Event.REQUEST_REFUSED,
            request_id=request_id_of(scope),
            method=scope["method"],
            path=scope["path"],
            code=error.code,
            detail=str(error),
        )
    return answer


def _schema_handler() -> HTTPRouteHandler:
    async def openapi(request: Request[Any, Any, Any]) -> ASGIApp:
        try:
            refuse_query(request.scope["query_string"])
        except ReserveError as error:
            return _refusal(error, request.scope)
        return _schema()

    return HTTPRouteHandler(list(_SCHEMA_PATHS), http_method="GET")(openapi)


@cache
def _schema() -> Answer:
    """The document, built when somebody first asks for it; it depends on nothing that changes."""
    return Answer(200, encode(openapi_document()))


def _options_handler(path: str, methods: Iterable[str]) -> HTTPRouteHandler:
    answer = Answer(204, b"", headers=((b"allow", _allow(methods)),))

    async def options(request: Request[Any, Any, Any]) -> ASGIApp:  # noqa: ARG001 -- Litestar's handler signature
        return answer

    return HTTPRouteHandler(_route(path), http_method="OPTIONS", name=f"options {path}")(options)


def _route(path: str) -> str:
    """A path of `calls` in Litestar's notation."""
    return path.replace("}", ":str}")


def _allow(methods: Iterable[str]) -> bytes:
    allowed = {*methods, "OPTIONS"}
    return ", ".join(sorted(allowed | {"HEAD"} if "GET" in allowed else allowed)).encode()


def _refused_by_litestar(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """What routing refuses: an unknown address, a wrong method, a bad Host header."""
    path = request.scope["path"]
    if error.status_code == 405:
        allow = _allow((error.headers or {}).get("allow", "").split(", "))
        wrong = errors.MethodNotAllowed(f"This address takes {allow.decode()}.")
        return _response(problem(wrong, path, (b"allow", allow)))
    if error.status_code == 404:
        return _response(problem(errors.NotFound("Nothing has this address."), path))
    if error.status_code < 500:
        return _response(problem(errors.InvalidRequest(f"The request cannot be read: {error.detail}."), path))
    return _unexpected(request, error)


def _unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """A fault of ours: everything to the log, nothing of it to the client."""
    request_id = request_id_of(request.scope)
    _log.error(
        Event.REQUEST_FAILED,
        request_id=request_id,
        method=request.scope["method"],
        path=request.scope["path"],
        exc_info=error,
    )
    return _response(internal(request.scope["path"], request_id))


def _response(answer: Answer) -> Response[bytes]:
    """The answer in the type that Litestar's exception handlers return."""
    headers = {name.decode(): value.decode() for name, value in answer.headers}
    return Response(answer.body, status_code=answer.status, media_type=answer.media_type.decode(), headers=headers)
