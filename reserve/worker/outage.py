"""Trouble with the database: how long each part of a worker waits, and one line when it begins and one at its end.

Tries nothing itself. A single failure is no trouble yet: what ended one connection is over at the next try.
"""

import asyncio
import random
from typing import Any

import structlog

from reserve.errors import ReserveError, Unavailable
from reserve.events import Event

#: First pause after a failure; doubles with each in a row.
_PAUSE_SECONDS = 0.05


class Outage:
    """Whether the database is away, as all parts of one worker together know it."""

    def __init__(self, seconds_max: float) -> None:
        self.seconds_max = seconds_max
        self.log: Any = structlog.get_logger("reserve.worker")
        self._since: float | None = None
        #: How many there were that are over.
        self.over = 0

    @property
    def lasts(self) -> bool:
        return self._since is not None

    def begin(self, error: Unavailable) -> None:
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
            self.log.warning(Event.WORK_DATABASE_AWAY, error=str(error))

    def end(self) -> None:
        if self._since is not None:
            away = asyncio.get_running_loop().time() - self._since
            self._since = None
            self.over += 1
            self.log.info(Event.WORK_DATABASE_BACK, seconds=round(away, 1))


class Patience:
    """The failures in a row of one part of a worker. Says how long to wait; logs each kind of error once."""

    def __init__(self, part: str, outage: Outage) -> None:
        self._part = part
        self._outage = outage
        self._failures = 0
        self._over = 0
        self._logged: set[type[Exception]] = set()

    def failed(self, error: Exception) -> float:
        """Seconds to pause before the next try."""
        if self._over != self._outage.over:
            self._over = self._outage.over
            self._failures = 0
        self._failures += 1
        if isinstance(error, Unavailable):
            if self._failures > 1:
                self._outage.begin(error)
        elif self._outage.lasts and isinstance(error, ReserveError) and error.transient:
            pass  # of a pool that has not noticed yet that it may connect again
        elif type(error) not in self._logged and (self._failures > 1 or not isinstance(error, ReserveError)):
            self._logged.add(type(error))
            unexpected = None if isinstance(error, ReserveError) else error
            self._outage.log.error(Event.WORK_PART_FAILED, part=self._part, error=str(error), exc_info=unexpected)
        return doubled_pause(self._failures, self._outage.seconds_max)

    def succeeded(self) -> None:
        if self._failures:
            self._failures = 0
            if self._logged:
                self._logged.clear()
                self._outage.log.info(Event.WORK_PART_RECOVERED, part=self._part)
        if self._outage.lasts:
            self._outage.end()


def doubled_pause(failures: int, seconds_max: float) -> float:
    """Seconds to wait after so many failures in a row, with jitter."""
    # The exponent is bounded because a float is.
    pause: float = min(seconds_max, _PAUSE_SECONDS * 2 ** min(max(0, failures - 1), 32))
    return pause * random.uniform(0.5, 1)  # noqa: S311 -- no secret
