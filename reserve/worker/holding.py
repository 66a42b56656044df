"""A job in this worker's hands, and what its handler has been told. Owns no statement and no task."""

import asyncio
from collections.abc import Sequence
from enum import StrEnum

from reserve.jobs.rows import Claimed


class CancelReason(StrEnum):
    """Why a handler should stop."""

    CANCELLED = "cancelled"
    LEASE_LOST = "lease_lost"
    TIMED_OUT = "timed_out"
    STOPPING = "stopping"


class Held:
    """A claimed job until its verdict is committed. Times are the event loop's.

    `done`: its verdict has been given, so that nobody gives another. `completed`: its handler has committed it.
    `task` runs its handler in the event loop at this moment, and nothing else.
    """

    __slots__ = (
        "claimed",
        "completed",
        "done",
        "expires_at",
        "id",
        "lease_seconds",
        "reason",
        "renew_at",
        "task",
        "token",
    )

    def __init__(self, claimed: Claimed, lease_seconds: int, asked_at: float) -> None:
        self.claimed = claimed
        self.id = claimed.id
        self.token = claimed.token
        self.lease_seconds = lease_seconds
        self.done = False
        self.completed = False
        self.reason: CancelReason | None = None
        self.task: asyncio.Task[None] | None = None
        self.leased(asked_at)

    def leased(self, asked_at: float) -> None:
        """The lease runs from `asked_at`, which is before the database has counted from."""
        self.renew_at = asked_at + self.lease_seconds / 3
        self.expires_at = asked_at + self.lease_seconds

    def tell(self, reason: CancelReason) -> None:
        """Tell the handler to stop: a coroutine by cancelling it, also when it was told before; a thread by asking.

        A lost lease outweighs every other reason: then there is no verdict to give.
        """
        if self.reason is None or reason is CancelReason.LEASE_LOST:
            self.reason = reason
        if self.task is not None:
            self.task.cancel()


def hold_all(claimed: Sequence[Claimed], asked_at: float) -> list[Held]:
    """The jobs of one claim, which have one lease."""
    lease = claimed[0].lease_expires_at - claimed[0].started_at
    seconds = max(1, round(lease.total_seconds()))
    return [Held(job, seconds, asked_at) for job in claimed]
