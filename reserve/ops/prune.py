"""Pruning: deletes idempotency keys that are past their retention. An expired key counts as not stored meanwhile."""

from reserve.db.connection import Database
from reserve.events import Event
from reserve.idempotency import prune_keys
from reserve.ops.service import Outcome, Service


class Prune(Service):
    """Deletes up to `sweep_batch_size` expired idempotency keys a turn."""

    name = "prune"
    done = Event.IDEMPOTENCY_KEYS_PRUNED

    def __init__(self, database: Database) -> None:
        super().__init__(database.settings, interval_seconds=database.settings.prune_interval_seconds)
        self._database = database

    async def run_once(self) -> Outcome:
        limit = self._database.settings.sweep_batch_size
        pruned = await prune_keys(self._database, limit=limit)
        return Outcome(pruned, full=pruned >= limit)
