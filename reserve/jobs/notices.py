"""Notifications of new jobs: which channel, and how often. Optional for being right: every worker polls as well.

`NOTIFY` serialises commits of the whole database, so a process sends at most one for a lane in an interval. Who was
woken a moment ago is awake still and finds what comes after it.
"""

import asyncio
from collections.abc import Iterable

#: Lanes whose last notification is remembered; forgetting one costs a notification.
_LANES_MAX = 10_000


def channel(namespace: str) -> str:
    """The channel to `listen` on; what a notification carries is the name of a lane."""
    return f"{namespace}_jobs"


class Notices:
    """When this process has last notified of each lane."""

    def __init__(self, interval_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self._told_at: dict[str, float] = {}

    def due(self, lanes: Iterable[str]) -> list[str]:
        """Those lanes that may be notified of now; they count as told. Sorted, each once."""
        now = asyncio.get_running_loop().time()
        told = []
        for lane in sorted(set(lanes)):
            if now - self._told_at.get(lane, -self._interval_seconds) >= self._interval_seconds:
                self._told_at[lane] = now
                told.append(lane)
        if len(self._told_at) > _LANES_MAX:
            self._told_at = dict.fromkeys(told, now)
        return told
