"""Named steps: what a race is written with. Connections beside the service's, and who waits for whom.

That a transaction waits is known because the server says so, never because time has passed. Time is moved by data: by
the rows of a hold, or by the namespace's clock.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

from psycopg import AsyncConnection

#: Looks at the server before a test that waits in vain is failed: some seconds of them.
LOOKS_MAX = 20_000

_WAITING = """
select pid from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and application_name = 'reserve'
order by pid
"""
_ALL = """
select pid, state, wait_event_type, wait_event, pg_blocking_pids(pid), left(query, 100)
from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""


async def until_waiting(conn: AsyncConnection, count: int = 1) -> list[int]:
    """Wait until `count` of the service's sessions wait for a lock; their process ids."""
    for _ in range(LOOKS_MAX):
        pids = [row[0] for row in await (await conn.execute(_WAITING)).fetchall()]
        if len(pids) >= count:
            return pids
        await asyncio.sleep(0)
    raise AssertionError(f"{count} should wait for a lock: {await (await conn.execute(_ALL)).fetchall()}")


async def until_waiting_for(conn: AsyncConnection, pid: int) -> int:
    """Wait until a session waits for what the server process `pid` has; its process id."""
    for _ in range(LOOKS_MAX):
        cursor = await conn.execute(
            "select pid from pg_stat_activity where wait_event_type = 'Lock' and %s = any (pg_blocking_pids(pid))",
            [pid],
        )
        if row := await cursor.fetchone():
            return row[0]
        await asyncio.sleep(0)
    raise AssertionError(f"one should wait for {pid}: {await (await conn.execute(_ALL)).fetchall()}")


async def until_gone(conn: AsyncConnection, pid: int) -> None:
    """Wait until the server process `pid` has ended."""
    for _ in range(LOOKS_MAX):
        cursor = await conn.execute("select count(*) from pg_stat_activity where pid = %s", [pid])
        if await cursor.fetchone() == (0,):
            return
        await asyncio.sleep(0)
    raise AssertionError(f"the server process {pid} should have ended")


class Asked(Mapping[str, bytes]):
    """The named statements of a database, with the names of those that were asked for, in order."""

    def __init__(self, queries: Mapping[str, bytes]) -> None:
        self._queries = queries
        self.names: list[str] = []

    def __getitem__(self, name: str) -> bytes:
        self.names.append(name)
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


class MovableClock:
    """The namespace's clock, replaced by one that can be moved on, and stopped for one of the named statements.

    A statement that reads a stopped clock waits there, with its snapshot taken and its locks had, until it goes on.
    """

    def __init__(self, conn: AsyncConnection, namespace: str, key: int) -> None:
        self._conn = conn
        self._namespace = namespace
        self._key = key

    @classmethod
    async def install(cls, conn: AsyncConnection, namespace: str) -> Self:
        ((key,),) = await fetch(conn, "select hashtext(%s)", namespace)
        await conn.execute(f"create table {namespace}.moved_clock as select interval '0' as by, '' as stopped")
        await conn.execute(f"""
            create or replace function {namespace}.clock() returns timestamptz language plpgsql volatile as $$
            begin
              if strpos(current_query(), (select stopped from {namespace}.moved_clock)) = 1 then
                perform pg_advisory_lock_shared({key}), pg_advisory_unlock_shared({key});
              end if;
              return clock_timestamp() + (select by from {namespace}.moved_clock);
            end $$
        """)
        return cls(conn, namespace, key)

    async def forward(self, seconds: float) -> None:
        """Move the clock on, for all who read it from now on."""
        await self._conn.execute(
            f"update {self._namespace}.moved_clock set by = by + make_interval(secs => %s)", [seconds]
        )

    @asynccontextmanager
    async def stopped_for(self, statement: str) -> AsyncIterator[None]:
        """Whoever runs the named statement waits at its first look at the clock until this context ends."""
        await self._conn.execute("select pg_advisory_lock(%s)", [self._key])
        await self._conn.execute(
            f"update {self._namespace}.moved_clock set stopped = %s", [f"/* reserve:{statement} */"]
        )
        try:
            yield
        finally:
            await self._conn.execute("select pg_advisory_unlock(%s)", [self._key])


async def fetch(conn: AsyncConnection, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    return await (await conn.execute(text, parameters)).fetchall()
