"""Listens for notifications of new jobs, on a connection of its own. Nothing depends on it: lanes are polled as well.

Whatever ends the connection, another one is made after a pause; that is no line in the log, since polling goes on.
"""

import asyncio
from collections.abc import Callable

from psycopg import AsyncConnection, sql

from reserve.db.connection import Database, session_options
from reserve.jobs.notices import channel
from reserve.worker.outage import doubled_pause

#: How long a connection may take.
_CONNECT_SECONDS = 10


class Listener:
    """Calls `heard` with the lane of each notification; with None when some may have been missed."""

    def __init__(self, database: Database, heard: Callable[[str | None], None]) -> None:
        self._settings = database.settings
        self._channel = channel(database.namespace)
        self._heard = heard

    async def run(self) -> None:
        """Listen until cancelled."""
        failures = 0
        while True:
            try:
                async with await self._connect() as conn:
                    await conn.execute(sql.SQL("listen {}").format(sql.Identifier(self._channel)))
                    failures = 0
                    self._heard(None)
                    async for notification in conn.notifies():
                        self._heard(notification.payload)
            except Exception:  # noqa: BLE001 -- the parts that need the database say what is wrong with it
                failures += 1
            await asyncio.sleep(doubled_pause(failures, self._settings.work_reconnect_seconds_max))

    async def _connect(self) -> AsyncConnection:
        return await AsyncConnection.connect(
            self._settings.require_database_url(),
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            **session_options(self._settings),
        )
