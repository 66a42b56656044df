"""The base of services, which do a batch of work again and again: sweeps, pruning.

Owns when a turn comes, what is logged of it, what happens when it fails and how it ends; not what it does. A
service runs as a task of the caller's task group; cancelling that task is the only way to stop it.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Never

import structlog

from reserve.errors import ReserveError
from reserve.events import Event
from reserve.settings import Settings

#: By how much a pause may differ, so that processes that were started together do not stay in step.
_JITTER = 0.2

#: While batches stay full there is a line for what was done at most this often.
_REPORT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one turn did. `full`: as much as a batch may hold, so there may be more and the next turn is now."""

    handled: int
    full: bool


class Service(ABC):
    """Work that is done in turns, for ever. A turn that fails is logged once and tried again, later and later.

    Any number of processes may run the same service at once: that is for `run_once` to see to.
    """

    #: What it is called in the log.
    name: ClassVar[str]
    #: What it did, with the number of rows.
    done: ClassVar[Event]

    def __init__(self, settings: Settings, *, interval_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self._pause_seconds_max = settings.service_pause_seconds_max
        self._drain_seconds = settings.stop_seconds_max
        self._log = structlog.get_logger("reserve.ops").bind(service=self.name)
        self._handled = 0
        self._handled_since = 0.0
        self._failures = 0
        self._failing_since = 0.0
        self._failures_logged: set[type[Exception]] = set()

    @abstractmethod
    async def run_once(self) -> Outcome:
        """Do one batch in transactions of its own."""

    async def run(self) -> Never:
        """Take turns until cancelled. A turn that runs then has `stop_seconds_max` to finish, else it rolls back."""
        self._log.info(Event.SERVICE_STARTED, interval_seconds=self._interval_seconds)
        try:
            while True:  # noqa: ASYNC110 -- waits for time, not for something to happen
                await asyncio.sleep(await self._drained_turn())
        finally:
            self._report()
            self._log.info(Event.SERVICE_STOPPED)

    async def turn(self) -> float:
        """Run once, and log what deserves a line; how many seconds to pause before the next turn. Raises nothing."""
        try:
            outcome = await self.run_once()
        except Exception as error:  # noqa: BLE001 -- a service outlives whatever one turn meets
            return self._failed(error)
        self._succeeded()
        now = asyncio.get_running_loop().time()
        if not self._handled:
            self._handled_since = now
        self._handled += outcome.handled
        if not outcome.full or now - self._handled_since >= _REPORT_SECONDS:
            self._report()
        return 0 if outcome.full else self._interval_seconds * _jitter()

    async def _drained_turn(self) -> float:
        turn = asyncio.create_task(self.turn(), name=f"{self.name} turn")
        try:
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            # Its transaction is nearly always milliseconds from its end; what takes longer rolls back by the cancel.
            await asyncio.wait({turn}, timeout=self._drain_seconds)
            raise
        finally:
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)

    def _report(self) -> None:
        if self._handled:
            self._log.info(self.done, count=self._handled)
            self._handled = 0

    def _failed(self, error: Exception) -> float:
        self._failures += 1
        if self._failures == 1:
            self._failing_since = asyncio.get_running_loop().time()
        # Once for each kind of error until it recovers: an outage of an hour is one line, and hides no second fault.
        if type(error) not in self._failures_logged:
            self._failures_logged.add(type(error))
            if isinstance(error, ReserveError):
                self._log.warning(Event.SERVICE_FAILED, error=str(error), code=error.code)
            else:
                self._log.error(Event.SERVICE_FAILED, error=str(error), exc_info=error)
        # Doubled for each failure in a row; the exponent is bounded because a float is.
        pause: float = self._interval_seconds * 2 ** min(self._failures, 32)
        return min(self._pause_seconds_max, pause) * _jitter()

    def _succeeded(self) -> None:
        if not self._failures:
            return
        away = asyncio.get_running_loop().time() - self._failing_since
        self._log.info(Event.SERVICE_RECOVERED, failures=self._failures, seconds=round(away, 1))
        self._failures = 0
        self._failures_logged.clear()


def _jitter() -> float:
    return random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 -- no secret
