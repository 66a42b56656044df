"""`reserve dev`: everything on one machine, embedded PostgreSQL included, with something to try at once."""

import json
import secrets
from pathlib import Path

import typer

from reserve.cli.listening import Listener
from reserve.cli.running import first_of, stop_signals
from reserve.cli.serving import serving
from reserve.db.connection import Database
from reserve.db.embedded import EmbeddedServer
from reserve.db.migrate import migrate
from reserve.inventory import pools
from reserve.inventory.rows import PoolChange, PoolFilter, PoolState
from reserve.settings import Settings

#: What an empty namespace gets, so that there is something to hold.
_SAMPLES = {
    "tshirt-black-m": PoolChange(on_hand=120, metadata={"sample": True}),
    "poster-a2": PoolChange(on_hand=500, buffer=20, metadata={"sample": True}),
    "vinyl-numbered": PoolChange(on_hand=3, metadata={"sample": True}),
}


async def dev(settings: Settings, server: EmbeddedServer, listener: Listener) -> int:
    """Serve until a signal comes or the embedded server ends; the exit code."""
    await migrate(settings.require_database_url(), settings.namespace)
    async with Database.open(settings) as database:
        await add_samples(database)
        with stop_signals() as stop:
            async with serving(database, listener, stop):
                typer.echo(_welcome(server, listener.url, await _hold_line(database, listener.url)))
                await first_of(stop.wait(), server.watch())
            return stop.exit_code


async def add_samples(database: Database) -> None:
    """Add the sample pools to a namespace that has no pool yet."""
    for state in PoolState:
        if (await pools.find(database, PoolFilter(state=state), after=None, limit=1)).items:
            return
    for key, change in _SAMPLES.items():
        await pools.put(database, key, change)


async def _hold_line(database: Database, url: str) -> str:
    """One line that can be pasted as it stands: a hold on a sample pool that has something, else the list of pools."""
    found = await pools.find(database, PoolFilter(keys=tuple(_SAMPLES), state=PoolState.OPEN), after=None, limit=10)
    pool = max(found.items, key=lambda pool: pool.available, default=None)
    if pool is None or pool.available == 0:
        return f"curl -sS '{url}/v1/pools?limit=10'"
    return _curl_line(f"{url}/v1/holds", {"lines": [{"pool": pool.key, "quantity": 1}]})


def _curl_line(url: str, body: object) -> str:
    # A key of its own for each start; pasted twice, the line is a retry and gets the same answer again.
    return (
        f"curl -sS '{url}' -H 'Content-Type: application/json' "
        f"-H 'Idempotency-Key: try-{secrets.token_hex(4)}' -d '{json.dumps(body)}'"
    )


def _welcome(server: EmbeddedServer, url: str, hold_line: str) -> str:
    job_line = _curl_line(f"{url}/v1/lanes/default/jobs", {"kind": "hello", "payload": {"name": "world"}})
    return f"""\
reserve is running, for this machine only (loopback).

  API       {url}/v1/pools
  OpenAPI   {url}/schema
  Database  {server.url}
  Data      {_short(server.data_dir)}

Place a hold, enqueue a job (pasted again, it is a retry and changes nothing):

  {hold_line}

  {job_line}

Ctrl-C stops everything."""


def _short(folder: Path) -> str:
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)
