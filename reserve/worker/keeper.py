"""The keeper: knows every job in this worker's hands, renews their leases together and carries their progress.

One statement at a time, for all that are due; what comes up meanwhile goes with the next. Ends no job: a lost or
cancelled one's handler is told, and what it does then is its own affair.
"""

import asyncio
from collections.abc import Callable, Sequence

from reserve.db.connection import Database
from reserve.errors import JobFinished, JobNotFound, LeaseLost, ReserveError
from reserve.events import Event
from reserve.jobs import leases
from reserve.jobs.rows import Extend, Json, Lease
from reserve.unset import UNSET
from reserve.worker.bell import Bell
from reserve.worker.holding import CancelReason, Held
from reserve.worker.outage import Outage, Patience

#: Jobs of one renewal.
_BATCH_MAX = 1000

#: A lease is renewed this much of it before its third is over, where others are due: they go together.
_EARLY = 1 / 12

_LOST = (LeaseLost, JobFinished, JobNotFound)


class _Report:
    """The progress of a job that is still to be stored, and who waits for that."""

    __slots__ = ("held", "stored", "value")

    def __init__(self, held: Held, value: Json) -> None:
        self.held = held
        self.value = value
        self.stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Keeper:
    """`when_empty` is called each time that the last job has left this worker's hands."""

    def __init__(self, database: Database, outage: Outage, when_empty: Callable[[], None]) -> None:
        self._database = database
        self._log = outage.log
        self._patience = Patience("keep", outage)
        self._when_empty = when_empty
        self._held: dict[int, Held] = {}
        self._reports: dict[int, list[_Report]] = {}
        self._bell = Bell()
        self._next_at = float("inf")

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, batch: Sequence[Held]) -> None:
        """From now on these are in our hands."""
        held = self._held
        for each in batch:
            if each.id in held:
                # Its lease had lapsed, it was rescued, and now we have it a second time.
                self._lose(held[each.id])
            held[each.id] = each
        if batch[0].renew_at < self._next_at:
            self._next_at = batch[0].renew_at
            self._bell.ring()

    def drop(self, job: Held) -> None:
        """The job has left our hands: its verdict is committed, or its lease is lost."""
        if self._held.get(job.id) is job:
            del self._held[job.id]
            if not self._held:
                self._when_empty()

    def report(self, job: Held, value: Json) -> asyncio.Future[None]:
        """Store `value` as the job's progress with the next renewal, which is now unless one is under way."""
        report = _Report(job, value)
        self._reports.setdefault(job.id, []).append(report)
        self._bell.ring()
        return report.stored

    async def run(self) -> None:
        """Renew until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._reports:
                await self._bell.wait(None if not self._held else max(0, self._next_at - loop.time()))
            await self.run_once()

    async def run_once(self) -> int:
        """Renew what is due and store what was reported; how many jobs that was. Waits after a failure."""
        now = asyncio.get_running_loop().time()
        due = self._due(now)
        reports, self._reports = self._reports, {}
        chosen = {job.id: job for job in due} | {job_id: told[-1].held for job_id, told in reports.items()}
        jobs = list(chosen.values())
        for start in range(0, len(jobs), _BATCH_MAX):
            batch = jobs[start : start + _BATCH_MAX]
            try:
                answers = await leases.extend_many(self._database, [_wish(job, reports) for job in batch])
            except Exception as error:  # noqa: BLE001 -- a worker outlives whatever one renewal meets
                pause = self._patience.failed(error)
                self._keep_reports(reports)
                await asyncio.sleep(pause)
                break
            self._patience.succeeded()
            for job, answer in zip(batch, answers, strict=True):
                self._answered(job, answer, now, reports.pop(job.id, []))
        self._next_at = min((job.renew_at for job in self._held.values()), default=float("inf"))
        return len(jobs)

    def _due(self, now: float) -> list[Held]:
        if now < self._next_at:
            return []
        return [job for job in self._held.values() if job.renew_at - job.lease_seconds * _EARLY <= now]

    def _keep_reports(self, reports: dict[int, list[_Report]]) -> None:
        """Those of a renewal that failed go with the next one, older ones first."""
        for job_id, told in reports.items():
            self._reports[job_id] = told + self._reports.get(job_id, [])

    def _answered(self, job: Held, answer: Lease | ReserveError, asked_at: float, told: Sequence[_Report]) -> None:
        stored = [report.stored for report in told if not report.stored.done()]
        if isinstance(answer, Lease):
            job.leased(asked_at)
            # Before the handler is told: that cancels what it waits for.
            for each in stored:
                each.set_result(None)
            if answer.cancel_requested and not job.done and job.reason is None:
                job.tell(CancelReason.CANCELLED)
            return
        for each in stored:
            each.set_exception(answer)
        # Of a job whose verdict is on its way, the lease may end at any moment, and should.
        if not job.done and isinstance(answer, _LOST):
            self._lose(job)
            self.drop(job)
        else:
            job.renew_at = asked_at + 1

    def _lose(self, job: Held) -> None:
        if not job.done:
            self._log.warning(Event.JOB_LEASE_LOST, job=job.id, lane=job.claimed.lane, kind=job.claimed.kind)
            job.tell(CancelReason.LEASE_LOST)


def _wish(job: Held, reports: dict[int, list[_Report]]) -> Extend:
    told = reports.get(job.id)
    return Extend(job.id, job.token, job.lease_seconds, progress=told[-1].value if told else UNSET)
