"""The API and its services on one database, as long as a context lasts. Owns their order of start and stop."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from socket import socket

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reserve.cli.listening import BACKLOG, Listener
from reserve.cli.running import Stop
from reserve.db.connection import Database
from reserve.events import Event
from reserve.ops.jobs import Due, Rescue
from reserve.ops.prune import Prune
from reserve.ops.sweep import Sweep
from reserve.web.app import create_app
from reserve.web.polls import Polls
from reserve.web.problems import unparsed

_log = structlog.get_logger("reserve.cli")


class _Protocol(HttpToolsProtocol):
    """uvicorn's HTTP, but what its parser refuses is answered with a problem document as well."""

    def send_400_response(self, msg: str) -> None:
        answer = unparsed(msg)
        head = [
            b"HTTP/1.1 400 Bad Request",
            *(name + b": " + value for name, value in self.server_state.default_headers),
            b"content-type: " + answer.media_type,
            b"content-length: %d" % len(answer.body),
            b"connection: close",
        ]
        self.transport.write(b"\r\n".join(head) + b"\r\n\r\n" + answer.body)
        self.transport.close()


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, and with a word when it accepts requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepting = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals are `running`'s: uvicorn would end the process by them, and the rest has to be stopped as well.
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        self.accepting.set()

    def hurry(self) -> None:
        self.force_exit = True


@asynccontextmanager
async def serving(database: Database, listener: Listener, stop: Stop) -> AsyncIterator[None]:
    """Answer requests on `listener`, sweep and look after jobs while the context lasts.

    Requests are accepted when it begins. At its end: no new connections, claims that wait for jobs are answered,
    running requests finish (for `stop_seconds_max` at most), then the services end. If the API or a service fails,
    the context is cancelled and raises their error.
    """
    async with asyncio.TaskGroup() as group:
        polls = Polls(database)
        server = _Server(_config(database, polls))
        services = [
            group.create_task(service(database).run(), name=service.name) for service in (Sweep, Prune, Due, Rescue)
        ]

        def hurry() -> None:
            server.hurry()
            for task in services:
                task.cancel()

        stop.when_repeated(hurry)
        api = group.create_task(server.serve(sockets=[listener.socket]), name="api")
        await server.accepting.wait()
        _log.info(Event.SERVE_STARTED, url=listener.url, access="loopback only, until there are credentials")
        try:
            yield
        finally:
            _log.info(Event.SERVE_STOPPING)
            polls.end()
            server.should_exit = True
            # Not cancelled by what cancels us: a request that has committed shall have its answer.
            await asyncio.shield(api)
            for task in services:
                task.cancel()
    _log.info(Event.SERVE_STOPPED)


def _config(database: Database, polls: Polls) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(database, polls),
        http=_Protocol,
        # The event loop is made by `running`, the application has nothing to start, and there are no websockets.
        loop="none",
        lifespan="off",
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        # What a proxy says of a client is believed by nobody here.
        proxy_headers=False,
        timeout_graceful_shutdown=round(database.settings.stop_seconds_max),
    )
