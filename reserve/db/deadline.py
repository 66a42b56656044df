"""A deadline over all the waits for locks of one request, however many statements and transactions they are in."""

import time

from psycopg import AsyncConnection

from reserve.errors import Contended

#: A statement that took no longer than this has not waited for anybody, so what is left need not be told anew.
_WAITED_SECONDS = 0.01


class Deadline:
    """Counts down by the local clock, which bounds how long we wait and decides nothing about stock."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds
        self._told = seconds

    def left(self) -> float:
        """Seconds that are left, below 0 once it has passed."""
        return self._at - time.monotonic()

    async def limit(self, conn: AsyncConnection) -> None:
        """Give each statement that follows in this transaction what is left; `Contended` when nothing is.

        `statement_timeout` and not `lock_timeout`, which would count anew for each lock of a list.
        """
        self._told = self.left()
        if self._told <= 0:
            raise Contended
        milliseconds = max(1, round(self._told * 1000))
        await conn.execute("select set_config('statement_timeout', %s, true)", [str(milliseconds)])

    async def limit_after_wait(self, conn: AsyncConnection) -> None:
        """As `limit`, after a statement that may have waited: a round trip only where it did."""
        if self._told - self.left() > _WAITED_SECONDS:
            await self.limit(conn)
