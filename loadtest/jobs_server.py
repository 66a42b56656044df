"""The server of the benchmark: one embedded PostgreSQL for everybody, durable, a database of its own for each.

Reached over its Unix socket only, and gone with the context. Looks that nothing is faster for being less safe.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import AsyncConnection, conninfo, sql

from loadtest.jobs_figures import CheckError, demand
from reserve.db import embedded

#: More memory and fewer checkpoints than by default, so that no contestant pays for another's pages; for all alike.
_SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min", "max_connections": "200"}

#: What makes a commit durable; and what the reader of the table should know.
_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
_TOLD = ("server_version", *_DURABLE, "shared_buffers", "max_wal_size")

#: Between two looks whether the last completion is committed: the error of a draining time.
_LOOK_SECONDS = 0.002


class NotDoneError(CheckError):
    """A contestant did not finish what it was given."""


@dataclass(frozen=True, slots=True)
class Place:
    """A database: how drivers (`connection`, of plain names) and `reserve` itself (`url`) reach it."""

    connection: dict[str, Any]
    url: str


class Server:
    """The running server; made by `start`."""

    def __init__(self, running: embedded.EmbeddedServer) -> None:
        self._url = running.url
        self.bin_dir: Path = running.bin_dir

    def place(self, database: str) -> Place:
        url = conninfo.make_conninfo(self._url, dbname=database)
        return Place({**conninfo.conninfo_to_dict(url), "port": int(conninfo.conninfo_to_dict(url)["port"])}, url)

    async def make_database(self, name: str, template: str = "template1") -> Place:
        """A new database, as `template` is; gone with the server."""
        create = sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template))
        async with await AsyncConnection.connect(self._url, autocommit=True) as admin:
            await admin.execute(create)
        return self.place(name)

    @asynccontextmanager
    async def database(self, name: str, template: str = "template1") -> AsyncIterator[Place]:
        """A new database, dropped with the context: what is left of one must not be vacuumed under the next."""
        place = await self.make_database(name, template)
        try:
            yield place
        finally:
            drop = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
            async with await AsyncConnection.connect(self._url, autocommit=True) as admin:
                await admin.execute(drop)

    async def told(self) -> dict[str, str]:
        """The settings that a reader should know; `CheckError` when a commit is not durable."""
        settings: dict[str, str] = {}
        async with await AsyncConnection.connect(self._url, autocommit=True) as conn:
            for name in _TOLD:
                row = await (await conn.execute(sql.SQL("show {}").format(sql.Identifier(name)))).fetchone()
                assert row is not None, "every setting has a value"
                settings[name] = row[0]
        for name in _DURABLE:
            demand(f"server setting {name}", settings[name], "on")
        return settings


@contextmanager
def start() -> Iterator[Server]:
    """A fresh server on a temporary folder."""
    with embedded.temporary(durable=True, extra=_SETTINGS) as running:
        yield Server(running)


async def settle(place: Place) -> None:
    """After a bulk load: statistics and visibility as on a database in use, and the load's pages written."""
    async with await AsyncConnection.connect(place.url, autocommit=True) as conn:
        await conn.execute("vacuum (analyze)")
        await conn.execute("checkpoint")


async def wait_until_finished(place: Place, unfinished: str, seconds: float) -> int:
    """Wait until nothing is left to do; when that was seen, by the clock of the wall, in nanoseconds."""
    deadline = time.monotonic() + seconds
    query = sql.SQL(f"select {unfinished}")
    async with await AsyncConnection.connect(place.url, autocommit=True) as conn:
        while True:
            row = await (await conn.execute(query)).fetchone()
            now = time.time_ns()
            if row is not None and not row[0]:
                return now
            if time.monotonic() > deadline:
                raise NotDoneError(f"After {seconds:.0f} seconds there are still unfinished jobs.")
            await asyncio.sleep(_LOOK_SECONDS)


async def read(place: Place, expression: str) -> Any:
    """The value of one expression."""
    async with await AsyncConnection.connect(place.url, autocommit=True) as conn:
        row = await (await conn.execute(sql.SQL(f"select {expression}"))).fetchone()
        assert row is not None, "a select without a table has one row"
        return row[0]


@asynccontextmanager
async def snapshot(place: Place) -> AsyncIterator[None]:
    """Another session that took a snapshot and idles in its transaction while the context lasts."""
    async with await AsyncConnection.connect(place.url, autocommit=True) as conn:
        await conn.execute("begin isolation level repeatable read")
        await conn.execute("select 1")
        yield
        demand("transaction that held the snapshot", conn.info.transaction_status, psycopg.pq.TransactionStatus.INTRANS)
