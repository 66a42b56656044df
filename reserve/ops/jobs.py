"""The upkeep of the job lane: due jobs become ready, and jobs whose lease has lapsed are taken back.

Works of all lanes, whoever works on them. Workers and waiting claims do the same for their own lanes meanwhile; any
number of them at once is fine, since each job is claimed for it.
"""

from reserve.db.connection import Database
from reserve.events import Event
from reserve.jobs.claiming import RescueScan, make_due_ready, rescue
from reserve.ops.service import Outcome, Service


class Due(Service):
    """Makes up to `sweep_batch_size` scheduled jobs ready a turn, those whose time has come."""

    name = "due"
    done = Event.JOBS_MADE_READY

    def __init__(self, database: Database) -> None:
        super().__init__(database.settings, interval_seconds=database.settings.job_due_interval_seconds)
        self._database = database

    async def run_once(self) -> Outcome:
        limit = self._database.settings.sweep_batch_size
        made = await make_due_ready(self._database, limit=limit)
        return Outcome(made, full=made >= limit)


class Rescue(Service):
    """Takes back up to `sweep_batch_size` jobs of each lane a turn, those whose lease has lapsed."""

    name = "rescue"
    done = Event.JOBS_RESCUED

    def __init__(self, database: Database) -> None:
        super().__init__(database.settings, interval_seconds=database.settings.job_rescue_interval_seconds)
        self._database = database
        self._scan = RescueScan()

    async def run_once(self) -> Outcome:
        limit = self._database.settings.sweep_batch_size
        rescued = await rescue(self._database, limit=limit, scan=self._scan)
        return Outcome(rescued.total, full=rescued.total >= limit)
