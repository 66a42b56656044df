"""The sweep: expires holds that have lapsed, so that their stock is not found out one wish at a time.

Nothing depends on it for being right: a lapsed hold reads expired and cannot be confirmed, swept or not.
"""

from reserve.db.connection import Database
from reserve.events import Event
from reserve.inventory import holds
from reserve.ops.service import Outcome, Service


class Sweep(Service):
    """Expires up to `sweep_batch_size` lapsed holds a turn, oldest first."""

    name = "sweep"
    done = Event.HOLDS_EXPIRED

    def __init__(self, database: Database) -> None:
        super().__init__(database.settings, interval_seconds=database.settings.sweep_interval_seconds)
        self._database = database

    async def run_once(self) -> Outcome:
        limit = self._database.settings.sweep_batch_size
        expired = await holds.expire_lapsed(self._database, limit=limit)
        return Outcome(expired, full=expired >= limit)
