"""Connections to one namespace: the pool, the transaction, the limits that every session has.

Owns when a transaction is tried again; does not know what happens inside one. READ COMMITTED throughout.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.types.json import set_json_loads
from psycopg.types.numeric import Int8Dumper
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from reserve.db.migrate import require_migrated
from reserve.db.query import Queries
from reserve.db.sqlstate import RETRYABLE, as_connect_error, as_reserve_error
from reserve.errors import Contended, ReserveError, SettingsError, Unavailable
from reserve.settings import Settings

T = TypeVar("T")

#: For statements that are not ours, of which nobody knows that each has its index.
_FOR_OTHERS = """
select
  set_config('idle_in_transaction_session_timeout', %s, true),
  set_config('enable_seqscan', 'on', true),
  set_config('plan_cache_mode', 'auto', true)
"""

_decode_json = json.JSONDecoder().decode

#: First pause before a transaction runs again; doubles each time, with full jitter.
_RETRY_PAUSE_SECONDS = 0.002

#: How many dead connections in a row one call replaces; the first finds them all, so a third means trouble.
_DEAD_CONNECTIONS_MAX = 2

#: How long a first connection may take at start, before the database counts as away.
_OPEN_WAIT_SECONDS = 10


class RunAgain(Exception):
    """Raised by work that met a race it cannot decide: the transaction is rolled back and run again, bounded."""


class RollBack(Exception, Generic[T]):
    """Raised by work that has its answer and wants nothing written; `transact` rolls back and returns `answer`."""

    def __init__(self, answer: T) -> None:
        super().__init__()
        self.answer = answer


def session_options(settings: Settings) -> dict[str, Any]:
    """Connection parameters that bound what a session of ours can do to others.

    A process that stalls inside a transaction loses it after `idle_in_transaction_seconds`; one whose machine is
    gone is noticed by keepalives in about half a minute.
    """
    server = {
        "statement_timeout": round(settings.statement_timeout_seconds * 1000),
        # One lock; where a statement waits for many, a `Deadline` bounds the whole wait.
        "lock_timeout": round(settings.lock_wait_seconds * 1000),
        "idle_in_transaction_session_timeout": round(settings.idle_in_transaction_seconds * 1000),
        "default_transaction_isolation": "read\\ committed",
        # Every statement of ours has its index. A plan made while a table was small would otherwise stay a
        # sequential scan over all dead versions once somebody holds an old snapshot.
        "enable_seqscan": "off",
        # Compiling a plan costs more than any statement here takes to run.
        "jit": "off",
        # Planning a statement for its parameters cost as much as running it, and `tests/db/test_plans` shows that the
        # plan without them finds its rows by its index. Lists, which have filters, call `plan_anew`.
        "plan_cache_mode": "force_generic_plan",
        "tcp_keepalives_idle": 10,
        "tcp_keepalives_interval": 5,
        "tcp_keepalives_count": 3,
    }
    return {
        "application_name": "reserve",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        # A host that vanished in the middle of a statement: keepalives do not run while data waits to be acknowledged.
        "tcp_user_timeout": 30_000,
        "options": " ".join(f"-c {name}={value}" for name, value in server.items()),
    }


class Database:
    """A pool of connections and the named statements of one namespace. Made by `open`."""

    def __init__(self, settings: Settings, pool: AsyncConnectionPool[AsyncConnection]) -> None:
        self.settings = settings
        self.namespace = settings.namespace
        self.queries = Queries(settings.namespace)
        self._pool = pool

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["Database"]:
        """Connect and check the schema; raises `SettingsError`, `Unavailable`, `NotMigrated` or `SchemaTooNew`."""
        url = settings.require_database_url()
        await _try_once(url, settings)
        pool = AsyncConnectionPool(
            url,
            kwargs={"autocommit": True, **session_options(settings)},
            configure=_configure,
            min_size=1,
            max_size=settings.connections_max,
            timeout=settings.connection_wait_seconds,
            # The pause between its attempts doubles until then; after that whoever asks next starts a new series, so
            # that a database that was away for long is found soon after it is back.
            reconnect_timeout=settings.connection_wait_seconds,
            open=False,
            name="reserve",
        )
        async with pool:
            yield cls(settings, pool)

    async def transact(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in one transaction and commit; the commit is done when this returns.

        Deadlocks, serialization errors and `RunAgain` roll back and run `work` again, at most
        `transaction_retries_max` times. Raises `Contended`, `Overloaded` or `Unavailable` for what passes,
        `InvalidRequest` for a value that PostgreSQL cannot store, and what `work` raises, after rolling back.
        """
        return await self._run(work, _block)

    async def _run(
        self,
        work: Callable[[AsyncConnection], Awaitable[T]],
        block: Callable[[AsyncConnection], AbstractAsyncContextManager[object]],
    ) -> T:
        retries = 0
        died = 0
        while True:
            begun = False
            try:
                async with self._pool.connection() as conn, block(conn):
                    begun = True
                    return await work(conn)
            except RollBack as decided:
                answer: T = decided.answer
                return answer
            except (RunAgain, *RETRYABLE) as error:
                if retries == self.settings.transaction_retries_max:
                    raise Contended from error
                retries += 1
            except PoolTimeout as error:
                raise await self._judge_timeout(error) from error
            except (psycopg.Error, UnicodeEncodeError) as error:
                # A pooled connection that had died before anything began: running again is safe.
                if begun or not isinstance(error, psycopg.OperationalError) or died == _DEAD_CONNECTIONS_MAX:
                    raise as_reserve_error(error) or error from error
                died += 1
                # What ended this one has often ended all of them.
                await self._pool.check()
                continue
            await asyncio.sleep(random.random() * _RETRY_PAUSE_SECONDS * 2**retries)  # noqa: S311 -- jitter

    async def transact_once(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work`, which is a single statement, outside of a transaction block: one round trip instead of three.

        The statement is its own transaction, committed when this returns. Refused as in `transact`; but whether a
        connection had died before or after the statement began is not known here, so that it is not run again then.
        """
        try:
            return await self._run(work, _no_block)
        except Unavailable:
            # What ended this connection has often ended all of them.
            await self._pool.check()
            raise

    @asynccontextmanager
    async def transaction(self, *, idle_seconds: float | None = None) -> AsyncIterator[AsyncConnection]:
        """A transaction for the caller's own code: committed when the context ends, rolled back when it raises.

        Never run again. Statements are planned as PostgreSQL plans by default. The caller may let it idle for
        `idle_seconds`, else `idle_in_transaction_seconds`. Raises as `transact`, and what the caller raises.
        """
        try:
            async with self._pool.connection() as conn, conn.transaction():
                seconds = self.settings.idle_in_transaction_seconds if idle_seconds is None else idle_seconds
                await conn.execute(_FOR_OTHERS, [str(max(1, round(seconds * 1000)))])
                yield conn
        except PoolTimeout as error:
            raise await self._judge_timeout(error) from error
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise as_reserve_error(error) or error from error

    async def limit_statement(self, conn: AsyncConnection, seconds: float) -> None:
        """Give the statements that follow in this transaction at most `seconds` each (at least a millisecond).

        `statement_timeout` and not `lock_timeout`, which would count anew for each lock of a list.
        """
        await conn.execute("select set_config('statement_timeout', %s, true)", [str(max(1, round(seconds * 1000)))])

    async def plan_anew(self, conn: AsyncConnection) -> None:
        """Plan the statements that follow in this transaction for their parameters: for lists, which have filters."""
        await conn.execute("set local plan_cache_mode = force_custom_plan")

    async def check(self) -> None:
        """One round trip for readiness; raises `Unavailable`, `Overloaded`, `NotMigrated` or `SchemaTooNew`."""

        async def work(conn: AsyncConnection) -> None:
            await require_migrated(conn, self.namespace)

        await self.transact(work)

    async def _judge_timeout(self, error: PoolTimeout) -> ReserveError:
        """Whether no connection became free because all are busy, or because the database is away."""
        if self._pool.get_stats().get("pool_available", 0) == 0 and not await self._answers():
            return Unavailable("The database does not answer; try again.")
        known = as_reserve_error(error)
        assert known is not None, "a timeout of the pool has its error"
        return known

    async def _answers(self) -> bool:
        try:
            await _try_once(self.settings.require_database_url(), self.settings)
        except (Unavailable, SettingsError):
            return False
        return True


def _block(conn: AsyncConnection) -> AbstractAsyncContextManager[object]:
    return conn.transaction()


def _no_block(_: AsyncConnection) -> AbstractAsyncContextManager[object]:
    return nullcontext()


def _json_loads(text: str | bytes) -> Any:
    return _decode_json(text.decode() if isinstance(text, bytes) else text)


async def _configure(conn: AsyncConnection) -> None:
    # One width for all integers: psycopg would pick the narrowest for each value, and each mix of widths would be
    # a prepared statement of its own.
    conn.adapters.register_dumper(int, Int8Dumper)
    # PostgreSQL speaks UTF-8 to us; `json.loads` would guess at the encoding of each text.
    set_json_loads(_json_loads, conn)


async def _try_once(url: str, settings: Settings) -> None:
    """Connect once without the pool, which would only log and try again; a wrong URL is a sentence at start."""
    try:
        async with await AsyncConnection.connect(
            url, connect_timeout=_OPEN_WAIT_SECONDS, autocommit=True, **session_options(settings)
        ) as conn:
            await require_migrated(conn, settings.namespace)
    except psycopg.Error as error:
        # Not `from error`: what libpq says of a URL that it cannot read repeats the password in it.
        raise as_connect_error(error) or error from None
