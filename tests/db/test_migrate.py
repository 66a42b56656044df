"""Migrations on the real database: once each, from many processes at once, and never in another form."""

import asyncio
from dataclasses import replace

import pytest
from psycopg import conninfo

from reserve.db import migrate as module
from reserve.db.connection import Database
from reserve.db.migrate import migrate, migrations, require_migrated
from reserve.errors import NotMigrated, SchemaTooNew, SettingsError, Unavailable
from reserve.settings import load
from tests.steps import fetch

NAMES = [each.name for each in migrations()]


@pytest.fixture
async def fresh(conn):
    """A namespace that nobody has migrated yet, with a quote's worth of trouble in its name."""
    name = "test_never_migrated"
    yield name
    await conn.execute(f"drop schema if exists {name} cascade")


async def open_and_close(settings):
    async with Database.open(settings):
        pass


async def test_eight_at_once_apply_each_once(database_url, fresh, conn):
    applied = await asyncio.gather(*(migrate(database_url, fresh) for _ in range(8)))
    assert sorted(applied, key=len) == [[]] * 7 + [NAMES]
    assert await fetch(conn, f"select name from {fresh}.migration order by number") == [(name,) for name in NAMES]
    assert await migrate(database_url, fresh) == []
    await require_migrated(conn, fresh)


async def test_two_namespaces_at_once_do_not_wait_for_each_other(database_url, fresh, conn, namespace):
    """The lock is of the namespace: while somebody has one's, the other is migrated."""
    async with conn.transaction():
        await conn.execute("select pg_advisory_xact_lock(%s::int, hashtext(%s))", [module._LOCK_CLASS, namespace])
        assert await migrate(database_url, fresh) == NAMES


async def test_a_migration_that_fails_leaves_nothing(database_url, fresh, conn, monkeypatch):
    broken = (migrations()[0], replace(migrations()[1], text="create table {namespace}.oops (); select 1 / 0"))
    monkeypatch.setattr(module, "migrations", lambda: broken)
    with pytest.raises(Exception, match=r"division by zero|cannot be stored"):
        await migrate(database_url, fresh)
    assert await fetch(conn, "select to_regnamespace(%s)", fresh) == [(None,)]


async def test_what_is_missing_is_applied_and_what_is_there_is_kept(database_url, fresh, conn, monkeypatch):
    monkeypatch.setattr(module, "migrations", lambda: migrations()[:2])
    assert await migrate(database_url, fresh) == NAMES[:2]
    await fetch(conn, f"insert into {fresh}.pool (key, kind, created_at) values ('tea', 'stock', now()) returning id")
    monkeypatch.undo()
    with pytest.raises(
        NotMigrated,
        match=rf"\({len(NAMES) - 2} of {len(NAMES)} migrations missing\): run `reserve migrate`\.",
    ):
        await require_migrated(conn, fresh)
    assert await migrate(database_url, fresh) == NAMES[2:]
    assert await fetch(conn, f"select key from {fresh}.pool") == [("tea",)]


async def test_a_database_that_was_never_migrated_is_refused_with_the_command_to_run(settings, fresh, conn):
    with pytest.raises(NotMigrated, match=r"'test_never_migrated' is not migrated .*: run `reserve migrate`\."):
        await open_and_close(settings.model_copy(update={"namespace": fresh}))
    with pytest.raises(NotMigrated):
        await require_migrated(conn, fresh)


async def test_an_applied_migration_that_differs_is_refused(database_url, settings, namespace, conn):
    await conn.execute(f"update {namespace}.migration set checksum = 'another' where number = 2")
    for refused in (migrate(database_url, namespace), open_and_close(settings)):
        with pytest.raises(NotMigrated, match=f"Migration {NAMES[1]} was applied in another form .*RESERVE_NAMESPACE"):
            await refused


async def test_a_schema_of_a_newer_program_is_refused(database_url, settings, namespace, conn):
    await conn.execute(f"insert into {namespace}.migration values (99, '0099_later', 'x')")
    for refused in (migrate(database_url, namespace), open_and_close(settings)):
        with pytest.raises(SchemaTooNew, match=rf"has migration 99, this program knows {len(NAMES)}: upgrade"):
            await refused


async def test_an_old_server_is_refused(database_url, fresh, monkeypatch):
    monkeypatch.setattr(module, "_VERSION_MIN", 990_000)
    with pytest.raises(SettingsError, match="PostgreSQL 15 or newer is needed, the server is 1"):
        await migrate(database_url, fresh)


WRONG = [
    "postgres//me:secret@127.0.0.1/x",
    "http://me:secret@127.0.0.1/x",
    "postgresql://me:secret@127.0.0.1/x?nonsense=1",
    "postgresql://me:se%zzcret@127.0.0.1/x",
    "secret",
]


@pytest.mark.parametrize("url", WRONG)
async def test_a_wrong_url_is_one_sentence_without_its_password(url):
    for refused in (migrate(url, "test_none"), open_and_close(load(database_url=url, _env_file=None))):
        with pytest.raises(SettingsError) as raised:
            await refused
        assert str(raised.value) == "RESERVE_DATABASE_URL is not a PostgreSQL connection string or URL."
        # The words of libpq, which repeat the URL, are in no traceback either.
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__


async def test_nobody_there_and_no_such_database_say_what_the_system_says(database_url):
    nobody = "postgresql://me:secret@127.0.0.1:1/x"
    nowhere = conninfo.make_conninfo(database_url, dbname="test_no_such_database")
    for url, words in ((nobody, "refused"), (nowhere, '"test_no_such_database" does not exist')):
        for refused in (migrate(url, "test_none"), open_and_close(load(database_url=url, _env_file=None))):
            with pytest.raises(Unavailable, match=words) as raised:
                await refused
            assert "secret" not in str(raised.value)


async def test_a_missing_url_names_the_variable():
    with pytest.raises(SettingsError, match="RESERVE_DATABASE_URL is not set"):
        await open_and_close(load(_env_file=None))


def test_migrations_are_numbered_without_gaps_and_have_a_checksum_of_their_text():
    assert [each.number for each in migrations()] == list(range(1, len(NAMES) + 1))
    first = migrations()[0]
    assert replace(first, text=first.text + " ").checksum != first.checksum
