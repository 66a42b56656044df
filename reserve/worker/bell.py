"""A bell: one task waits for it, anybody rings. Owns no time but the one it is told to wait."""

import asyncio


class Bell:
    """Rung while nobody waits, it is heard by the next wait. Cheaper than an event with a timeout around it."""

    __slots__ = ("_rung", "_waiter")

    def __init__(self) -> None:
        self._rung = False
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        if self._waiter is None:
            self._rung = True
        elif not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until it rings, for `seconds` at most; for ever without."""
        assert self._waiter is None, "a bell has one listener"
        if self._rung:
            self._rung = False
            return
        if seconds is not None and seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        alarm = None if seconds is None else loop.call_later(seconds, self.ring)
        try:
            await waiter
        finally:
            self._waiter = None
            if alarm is not None:
                alarm.cancel()
