"""A worker outlasts its database: nothing is lost, each verdict arrives, and the log has one line for each turn."""

import asyncio
from contextlib import asynccontextmanager

import psycopg
import pytest
from psycopg import conninfo, sql
from structlog.testing import capture_logs

from reserve.db.connection import Database
from reserve.errors import Contended, Unavailable
from reserve.events import Event
from reserve.worker import Tally
from reserve.worker.outage import Outage, Patience, doubled_pause
from tests.worker.yard import until


@pytest.fixture
def settings(settings):
    return settings.model_copy(update={"connection_wait_seconds": 0.3, "work_reconnect_seconds_max": 0.05})


async def terminate(conn):
    """End all of the service's connections to this database; how many there were."""
    cursor = await conn.execute(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        " where datname = current_database() and application_name = 'reserve'"
    )
    return (await cursor.fetchone())[0]


@asynccontextmanager
async def away(server_url, database_url, conn):
    """The database lets nobody in while this lasts."""
    name = sql.Identifier(conninfo.conninfo_to_dict(database_url)["dbname"])
    async with await psycopg.AsyncConnection.connect(server_url, autocommit=True) as admin:
        await admin.execute(sql.SQL("alter database {} allow_connections false").format(name))
        try:
            await terminate(conn)
            yield
        finally:
            await admin.execute(sql.SQL("alter database {} allow_connections true").format(name))


async def test_connections_that_end_are_replaced_and_no_job_is_lost(yard, jobs, conn):
    jobs.handler("noop")(lambda job: None)

    @jobs.handler("terminate")
    async def ends_connections(job):
        assert await terminate(conn) > 0

    for number in range(60):
        await yard.put("terminate" if number % 20 == 10 else "noop")
    async with yard.working() as worker:
        # What a claim had taken whose answer was cut off comes back as any job of a lost worker does.
        while (await yard.states()).get("succeeded", 0) < 60:
            await conn.execute(
                f"update {yard.namespace}.job set lease_expires_at = now() - interval '1 hour'"
                " where state = 'running' and not id = any (%s)",
                [list(worker._crew._keeper._held)],
            )
    assert await yard.states() == {"succeeded": 60}


async def test_while_the_database_is_away_verdicts_wait_and_two_lines_are_logged(
    yard, jobs, conn, server_url, database_url
):
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @jobs.handler("long")
    async def long(job):
        begun.set()
        await go_on.wait()
        ended.set()
        return "kept"

    job_id = await yard.put("long")
    with capture_logs() as logs:
        async with yard.working() as worker:
            await begun.wait()
            outage = worker._crew._flusher._patience._outage
            async with away(server_url, database_url, conn):
                go_on.set()
                await ended.wait()
                await until(lambda: outage.lasts)
            job = await yard.until_state(job_id, "succeeded")
            await until(lambda: not outage.lasts)
            worker.stop()
            assert await worker.ended == Tally(succeeded=1)
    assert (job["output"], job["attempt"]) == ("kept", 1)
    events = [line["event"] for line in logs]
    assert events.count(Event.WORK_DATABASE_AWAY) == events.count(Event.WORK_DATABASE_BACK) == 1
    assert [line for line in logs if line["event"] == Event.WORK_PART_FAILED] == []


async def test_a_drain_from_a_database_that_is_away_says_so(yard, jobs, conn, server_url, database_url):
    jobs.handler("noop")(lambda job: None)
    async with away(server_url, database_url, conn):
        with pytest.raises(Unavailable):
            await yard.drain()


async def test_a_worker_stops_while_the_database_is_away(settings, yard, jobs, conn, server_url, database_url):
    begun = asyncio.Event()

    @jobs.handler("long")
    async def long(job):
        begun.set()
        await asyncio.Event().wait()

    await yard.put("long")
    short = settings.model_copy(update={"stop_seconds_max": 0.1})
    async with Database.open(short) as database, yard.working(database) as worker:
        await begun.wait()
        async with away(server_url, database_url, conn):
            worker.stop_now()
            assert (await worker.ended).total == 0
    assert await yard.states() == {"running": 1}, "until its lease has lapsed"


# --- pauses and lines ---------------------------------------------------------------------------------------


def test_pauses_double_up_to_a_bound():
    assert all(0.025 <= doubled_pause(1, 5) <= 0.05 for _ in range(100))
    assert all(0.1 <= doubled_pause(3, 5) <= 0.2 for _ in range(100))
    assert all(2.5 <= doubled_pause(10_000, 5) <= 5 for _ in range(100))


async def test_a_single_failure_is_no_line_and_a_fault_of_ours_is_one_at_once():
    with capture_logs() as logs:
        part = Patience("flush", Outage(5))
        for error in (Unavailable("gone"), Contended()):
            part.failed(error)
            part.succeeded()
        assert logs == []
        part.failed(AssertionError("impossible"))
        part.failed(AssertionError("impossible"))
        part.failed(Contended("locked"))
        part.succeeded()
        part.succeeded()
    assert [(line["event"], line.get("error")) for line in logs] == [
        (Event.WORK_PART_FAILED, "impossible"),
        (Event.WORK_PART_FAILED, "locked"),
        (Event.WORK_PART_RECOVERED, None),
    ]


async def test_all_parts_together_tell_of_an_outage_once():
    with capture_logs() as logs:
        outage = Outage(5)
        parts = [Patience(name, outage) for name in ("fetch", "flush", "keep")]
        for _ in range(3):
            for part in parts:
                part.failed(Unavailable("gone"))
        for part in parts:
            part.succeeded()
    assert [line["event"] for line in logs] == [Event.WORK_DATABASE_AWAY, Event.WORK_DATABASE_BACK]
