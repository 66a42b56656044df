"""When to look for jobs again, and how many to have ahead; pure. Times are given, never read."""

import math
from dataclasses import dataclass

#: How far ahead of its hands a worker claims, in time: some round trips, and little for other workers to wait for.
_AHEAD_SECONDS = 0.05

#: How fast an old rate of finished jobs is forgotten.
_MEMORY_SECONDS = 0.1


@dataclass(slots=True)
class Pace:
    """When one lane is looked at again: at once while it gives all that is asked, later and later while it is empty."""

    seconds_min: float
    seconds_max: float
    next_at: float = 0
    pause: float = 0

    def looked(self, now: float, *, found: int, wanted: int, jitter: float) -> None:
        """`jitter` is from 0 to 1: workers that were started together shall not stay in step."""
        if found >= wanted:
            self.pause = 0
        elif found:
            self.pause = self.seconds_min
        else:
            self.pause = min(self.seconds_max, max(self.seconds_min, self.pause * 2))
        self.next_at = now + self.pause * (0.8 + 0.4 * jitter)

    def wake(self) -> None:
        """There is something new: look at once."""
        self.pause = 0
        self.next_at = 0


@dataclass(slots=True)
class Ahead:
    """How many jobs are claimed ahead of free hands: as many as are finished in some milliseconds.

    With slow handlers that is none, so that nothing waits here which another worker could run at once.
    """

    least: int
    most: int
    rate: float = 0
    seen: int = 0
    seen_at: float = -math.inf

    def wanted(self, now: float, ended: int) -> int:
        """`ended` jobs have ended up to `now`."""
        took = now - self.seen_at
        if took > 0:
            weight = 1 - math.exp(-took / _MEMORY_SECONDS)
            self.rate += ((ended - self.seen) / took - self.rate) * weight
            self.seen, self.seen_at = ended, now
        return min(self.most, max(self.least, int(self.rate * _AHEAD_SECONDS)))
