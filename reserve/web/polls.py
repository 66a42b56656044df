"""Claims that wait for a first job: whether their client is still there, and what ends a wait. Owns no claim.

One `Polls` for each application. While it waits, a request holds no connection to the database.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from litestar.types import Receive

from reserve.db.connection import Database
from reserve.jobs.waiting import Waits


class Client:
    """The client of one request: `over` is set when its wait shall end, `left` when it has gone."""

    __slots__ = ("left", "over")

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.left = False


class Polls:
    """What the waiting requests of one application share."""

    def __init__(self, database: Database) -> None:
        self.waits = Waits(database)
        self._clients: set[Client] = set()
        self._ended = False

    def end(self) -> None:
        """Let every wait end at once, with what it has, and no other begin: the service is about to stop."""
        self._ended = True
        for client in self._clients:
            client.over.set()

    @asynccontextmanager
    async def client(self, receive: Receive) -> AsyncIterator[Client]:
        """Watch the client whose request has been read to its end, as long as the context lasts."""
        client = Client()
        if self._ended:
            client.over.set()
        self._clients.add(client)
        watch = asyncio.create_task(_watch(client, receive))
        try:
            yield client
        finally:
            self._clients.discard(client)
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch


async def _watch(client: Client, receive: Receive) -> None:
    # After the whole body, there is only one thing left to hear.
    if (await receive())["type"] == "http.disconnect":
        client.left = True
        client.over.set()
