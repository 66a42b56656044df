"""The flusher: sends verdicts to the database, together. Owns each verdict from the handler's end to its commit.

No timer: while one batch is in the database the next one gathers. While the database is away the verdicts wait, and
are sent again; they are fenced by their tokens, and the same one twice has the same answer.
"""

import asyncio
from collections.abc import Iterable
from typing import assert_never

from reserve.db.connection import Database
from reserve.errors import ReserveError
from reserve.events import Event
from reserve.jobs import finishing
from reserve.jobs.finishing import Finished
from reserve.jobs.rows import Complete, Fail, JobState, Release, Verdict
from reserve.worker.bell import Bell
from reserve.worker.holding import Held
from reserve.worker.keeper import Keeper
from reserve.worker.outage import Outage, Patience
from reserve.worker.tally import Tally
from reserve.worker.verdicts import of_refusal

#: Verdicts of one transaction.
_BATCH_MAX = 1000

_Given = tuple[Held, Verdict]


class Flusher:
    def __init__(self, database: Database, keeper: Keeper, outage: Outage, tally: Tally) -> None:
        self._database = database
        self._keeper = keeper
        self._tally = tally
        self._log = outage.log
        self._patience = Patience("flush", outage)
        self._given: list[_Given] = []
        self._bell = Bell()
        self._closing = False
        self._singly = 0

    def give(self, held: Held, verdict: Verdict) -> None:
        """Send the verdict with the next batch."""
        held.done = True
        self._given.append((held, verdict))
        if len(self._given) == 1:
            self._bell.ring()

    def give_back(self, jobs: Iterable[Held]) -> None:
        """Release jobs, at once and without a failure."""
        for held in jobs:
            if not held.done:
                self.give(held, Release(held.id, held.token))

    def close(self) -> None:
        """Send what is there, then end."""
        self._closing = True
        self._bell.ring()

    async def run(self) -> None:
        """Send verdicts until closed and empty."""
        while True:
            if self._given:
                await self.run_once()
            elif self._closing:
                return
            else:
                await self._bell.wait()

    async def run_once(self) -> int:
        """Send one batch; how many verdicts that was. Waits after a failure, and keeps them."""
        size = 1 if self._singly else _BATCH_MAX
        batch, self._given = self._given[:size], self._given[size:]
        try:
            answers = await finishing.finish_many(self._database, [verdict for _, verdict in batch])
        except Exception as error:  # noqa: BLE001 -- a worker outlives whatever one batch meets
            pause = self._patience.failed(error)
            if isinstance(error, ReserveError):
                self._given[:0] = batch
                await asyncio.sleep(pause)
            else:
                self._spoilt(batch)
            return 0
        if self._singly:
            self._singly -= 1
        self._patience.succeeded()
        for given, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Finished):
                self._count(given, answer)
            else:
                self._refused(given, answer)
        return len(batch)

    def _spoilt(self, batch: list[_Given]) -> None:
        """By a fault of ours: find the verdict that meets it by sending each alone, and leave its job to be rescued."""
        if len(batch) > 1:
            self._given[:0] = batch
            self._singly = len(batch)
            return
        self._singly = max(0, self._singly - 1)
        ((held, _),) = batch
        self._keeper.drop(held)

    def _count(self, given: _Given, answer: Finished) -> None:
        held, verdict = given
        self._keeper.drop(held)
        match answer.state:
            case JobState.SUCCEEDED:
                self._tally.succeeded += 1
            case JobState.CANCELLED:
                self._tally.cancelled += 1
            case JobState.DISCARDED:
                self._tally.discarded += 1
                job = held.claimed
                self._log.warning(Event.JOB_DISCARDED, job=job.id, lane=job.lane, kind=job.kind, attempt=job.attempt)
            case JobState.READY | JobState.SCHEDULED | JobState.RUNNING:
                match verdict:
                    case Fail():
                        self._tally.failed += 1
                    case Release() | Complete():
                        self._tally.released += 1
                    case _:
                        assert_never(verdict)
            case _:
                assert_never(answer.state)

    def _refused(self, given: _Given, error: ReserveError) -> None:
        held, verdict = given
        if error.transient:
            self._given.append(given)
            return
        self._log.warning(
            Event.JOB_VERDICT_REFUSED,
            job=held.id,
            lane=held.claimed.lane,
            kind=held.claimed.kind,
            error=str(error),
            code=error.code,
        )
        if error.code in {"invalid-request", "validation-failed"} and not _replaced(verdict):
            self._given.append((held, of_refusal(verdict, error, self._database.settings)))
            return
        self._tally.lost += 1
        self._keeper.drop(held)


def _replaced(verdict: Verdict) -> bool:
    """Whether this is what already stands in for a verdict that could not be stored."""
    return isinstance(verdict, Fail) and verdict.retry_in_seconds is None
