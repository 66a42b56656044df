"""`reserve serve`: the API and its sweeps on a database that is there and migrated already."""

from reserve.cli.listening import Listener
from reserve.cli.running import stop_signals
from reserve.cli.serving import serving
from reserve.db.connection import Database
from reserve.settings import Settings


async def serve(settings: Settings, listener: Listener) -> int:
    """Serve until a signal comes; the exit code. Raises `NotMigrated`, which names the command to run."""
    async with Database.open(settings) as database:
        with stop_signals() as stop:
            async with serving(database, listener, stop):
                await stop.wait()
            return stop.exit_code
