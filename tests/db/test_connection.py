"""Connections on the real server: what a transaction does when it meets trouble, and how a session is bound."""

import asyncio

import psycopg
import pytest
from psycopg import errors as pg

from reserve.db.connection import Database, RollBack, RunAgain
from reserve.errors import Contended, InvalidRequest, NotMigrated, Overloaded, SchemaTooNew, Unavailable
from tests.db.sessions import add_pool, count, end, pids
from tests.steps import fetch, until_gone

# --- running again ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [RunAgain("raced"), pg.DeadlockDetected(), pg.SerializationFailure()])
async def test_what_may_pass_is_rolled_back_and_run_again_a_bounded_number_of_times(
    open_database, conn, namespace, trouble
):
    database = await open_database(transaction_retries_max=2)
    tries = []

    async def work(its_conn, *, succeed_at):
        tries.append(its_conn)
        await its_conn.execute(add_pool(namespace))
        if len(tries) < succeed_at:
            raise trouble
        return "done"

    assert await database.transact(lambda its_conn: work(its_conn, succeed_at=3)) == "done"
    assert len(tries) == 3
    assert await count(conn, namespace) == 1
    await conn.execute(f"delete from {namespace}.pool")
    tries.clear()
    with pytest.raises(Contended) as raised:
        await database.transact(lambda its_conn: work(its_conn, succeed_at=9))
    assert raised.value.__cause__ is trouble
    assert len(tries) == 3
    assert await count(conn, namespace) == 0


async def test_a_real_deadlock_is_run_again(open_database, conn, namespace):
    database = await open_database(lock_wait_seconds=30)
    await conn.execute(add_pool(namespace, "a"))
    await conn.execute(add_pool(namespace, "b"))
    barrier = asyncio.Barrier(2)
    tries = []

    async def work(its_conn, keys):
        tries.append(keys)
        for number, key in enumerate(keys):
            await its_conn.execute(f"update {namespace}.pool set version = version + 1 where key = %s", [key])
            if number == 0 and len(tries) <= 2:
                await barrier.wait()

    await asyncio.gather(
        *(database.transact(lambda its_conn, keys=keys: work(its_conn, keys)) for keys in ("ab", "ba"))
    )
    assert len(tries) == 3
    assert await fetch(conn, f"select distinct version from {namespace}.pool") == [(3,)]


async def test_an_answer_may_roll_back(database, conn, namespace):
    async def work(its_conn):
        await its_conn.execute(add_pool(namespace))
        raise RollBack("refused")

    assert await database.transact(work) == "refused"
    assert await count(conn, namespace) == 0


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), Contended(), pg.CheckViolation("must not be"), asyncio.CancelledError()]
)
async def test_any_other_error_rolls_back_and_is_raised_at_once(database, conn, namespace, error):
    tries = []

    async def work(its_conn):
        tries.append(its_conn)
        await its_conn.execute(add_pool(namespace))
        raise error

    with pytest.raises(type(error)) as raised:
        await database.transact(work)
    assert raised.value is error
    assert len(tries) == 1
    assert await count(conn, namespace) == 0


# --- sessions that end --------------------------------------------------------------------------------------


async def test_sessions_that_were_ended_while_idle_are_replaced_unnoticed(open_database, conn):
    """Fails where the first dead one does not make the pool look after the others (`pool.check` left out)."""
    database = await open_database(transaction_retries_max=0)
    ended = await pids(database, 10)
    await end(conn, ended)
    await database.check()
    assert not {pid for _ in range(3) for pid in await pids(database, 10)} & set(ended)


async def test_a_session_that_ends_in_a_transaction_is_not_run_again(database, conn, namespace):
    """It may have been committing."""
    tries = []

    async def work(its_conn):
        tries.append(its_conn)
        await its_conn.execute(add_pool(namespace))
        await end(conn, [its_conn.info.backend_pid])
        await its_conn.execute("select 1")

    with pytest.raises(Unavailable):
        await database.transact(work)
    assert len(tries) == 1
    assert await count(conn, namespace) == 0
    await database.check()


async def test_a_session_that_stalled_in_a_transaction_is_ended_and_said_to_be_unavailable(
    open_database, conn, namespace
):
    database = await open_database(idle_in_transaction_seconds=0.1)

    async def work(its_conn):
        await its_conn.execute(add_pool(namespace))
        await until_gone(conn, its_conn.info.backend_pid)

    with pytest.raises(Unavailable):
        await database.transact(work)
    assert await count(conn, namespace) == 0


async def test_a_cancelled_statement_is_contended(database, conn):
    async def work(its_conn):
        await its_conn.execute("select set_config('statement_timeout', '1', true)")
        await its_conn.execute("select count(*) from generate_series(1, 100000000)")

    with pytest.raises(Contended):
        await database.transact(work)


# --- bounds -------------------------------------------------------------------------------------------------


async def test_too_many_at_once_are_told_so_while_the_database_answers(open_database):
    database = await open_database(connections_max=2, connection_wait_seconds=0.1)
    all_busy, done = asyncio.Barrier(3), asyncio.Event()

    async def work(_):
        await all_busy.wait()
        await done.wait()

    busy = [asyncio.create_task(database.transact(work)) for _ in range(2)]
    await all_busy.wait()
    with pytest.raises(Overloaded):
        await database.check()
    done.set()
    await asyncio.gather(*busy)
    await database.check()


async def test_a_session_is_bound_as_the_settings_say(open_database):
    database = await open_database(
        statement_timeout_seconds=7, lock_wait_seconds=3, idle_in_transaction_seconds=4, connections_max=2
    )

    async def read(its_conn):
        rows = await fetch(its_conn, "select name, setting from pg_settings")
        return dict(rows)

    found = await database.transact(read)
    expected = {
        "statement_timeout": "7000",
        "lock_timeout": "3000",
        "idle_in_transaction_session_timeout": "4000",
        "transaction_isolation": "read committed",
        "application_name": "reserve",
        "enable_seqscan": "off",
        "plan_cache_mode": "force_generic_plan",
    }
    assert {name: found[name] for name in expected} == expected


async def test_a_role_with_another_isolation_gets_read_committed_here(database_url, settings, conn):
    """A default of the database or the role does not change what our transactions mean."""
    ((name,),) = await fetch(conn, "select current_database()")
    await conn.execute(f"alter database {name} set default_transaction_isolation = 'serializable'")
    try:
        async with Database.open(settings) as database:
            isolation = await database.transact(lambda its_conn: fetch(its_conn, "show transaction_isolation"))
        assert isolation == [("read committed",)]
    finally:
        await conn.execute(f"alter database {name} reset default_transaction_isolation")


@pytest.mark.parametrize(
    ("value", "text"), [("\ud800", "lone surrogate"), ("a\0b", "cannot be stored"), (2**70, "cannot be stored")]
)
async def test_a_value_that_cannot_be_stored_is_the_requests_fault(database, value, text):
    async def work(its_conn):
        await its_conn.execute("select %s::text" if isinstance(value, str) else "select %s::bigint", [value])

    with pytest.raises(InvalidRequest, match=text):
        await database.transact(work)
    await database.check()


# --- readiness ----------------------------------------------------------------------------------------------


async def test_readiness_notices_what_happened_to_the_schema(database, conn, namespace):
    await database.check()
    await conn.execute(f"insert into {namespace}.migration values (99, '0099_later', 'x')")
    with pytest.raises(SchemaTooNew):
        await database.check()
    await conn.execute(f"drop table {namespace}.migration")
    with pytest.raises(NotMigrated):
        await database.check()


async def test_a_database_that_has_gone_away_is_unavailable_not_overloaded(database_url, settings, conn):
    """Nobody may connect to it any more: the pool waits in vain, and a look of its own says why."""
    ((name,),) = await fetch(conn, "select current_database()")
    short = settings.model_copy(update={"connection_wait_seconds": 0.2})
    async with Database.open(short) as database:
        await database.check()
        async with await psycopg.AsyncConnection.connect(
            psycopg.conninfo.make_conninfo(database_url, dbname="postgres"), autocommit=True
        ) as elsewhere:
            await elsewhere.execute(f"alter database {name} allow_connections false")
            try:
                own = await fetch(
                    conn,
                    "select pid from pg_stat_activity "
                    "where datname = current_database() and application_name = 'reserve'",
                )
                await end(conn, [pid for (pid,) in own])
                with pytest.raises(Unavailable):
                    await database.check()
            finally:
                await elsewhere.execute(f"alter database {name} allow_connections true")
