"""Migrations: forward-only `schema/NNNN_what.sql`, applied once each, in order, under an advisory lock.

Owns the table `migration` of a namespace. Safe to run from many processes at once: all wait for the first, then
find nothing to do. A file that was applied must never change; its checksum is kept and compared.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import psycopg
from psycopg import AsyncConnection, sql

from reserve.db.sqlstate import as_connect_error
from reserve.errors import NotMigrated, SchemaTooNew, SettingsError

#: One number for all namespaces of a database would make tenants wait for one another; the pair (this, hash) does not.
_LOCK_CLASS = 0x7265_7376  # "resv"

_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")

#: Versions of PostgreSQL that are tested.
_VERSION_MIN = 150_000


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations of this program, in order; from the wheel, or from the checkout it runs in."""
    packaged = resources.files("reserve") / "schema"
    folder = packaged if packaged.is_dir() else Path(__file__).parents[2] / "schema"
    found = [
        Migration(int(match[1]), file.name.removesuffix(".sql"), file.read_text("utf-8"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if (match := _NAME.fullmatch(file.name))
    ]
    assert [each.number for each in found] == list(range(1, len(found) + 1)), "migrations are numbered without gaps"
    return tuple(found)


async def migrate(url: str, namespace: str) -> list[str]:
    """Bring `namespace` up to date; the names of the migrations applied now. One transaction: all or none.

    Raises `SettingsError` (wrong URL, too old a server), `SchemaTooNew`, `NotMigrated` when an applied migration
    differs from this program's, and `Unavailable`.
    """
    try:
        async with await AsyncConnection.connect(url, connect_timeout=10, autocommit=True) as conn:
            if conn.info.server_version < _VERSION_MIN:
                raise SettingsError(
                    f"PostgreSQL 15 or newer is needed, the server is {conn.info.server_version // 10000}."
                )
            async with conn.transaction():
                return await _migrate(conn, namespace)
    except psycopg.Error as error:
        # Not `from error`: what libpq says of a URL that it cannot read repeats the password in it.
        raise as_connect_error(error) or error from None


async def _migrate(conn: AsyncConnection, namespace: str) -> list[str]:
    schema = sql.Identifier(namespace)
    await conn.execute("select pg_advisory_xact_lock(%s::int, hashtext(%s))", [_LOCK_CLASS, namespace])
    # Asked first, because `if not exists` needs the privilege to create even when there is nothing to create.
    if await _applied(conn, namespace) is None:
        await conn.execute(sql.SQL("create schema if not exists {}").format(schema))
        await conn.execute(
            sql.SQL(
                "create table {}.migration (number int primary key, name text not null unique, "
                "checksum text not null, applied_at timestamptz not null default clock_timestamp())"
            ).format(schema)
        )
    applied = await _applied(conn, namespace) or {}
    _compare(applied)
    fresh = [each for each in migrations() if each.number not in applied]
    for each in fresh:
        await conn.execute(each.text.replace("{namespace}", schema.as_string(conn)).encode())
        await conn.execute(
            sql.SQL("insert into {}.migration (number, name, checksum) values (%s, %s, %s)").format(schema),
            [each.number, each.name, each.checksum],
        )
    return [each.name for each in fresh]


async def require_migrated(conn: AsyncConnection, namespace: str) -> None:
    """Raise `NotMigrated` or `SchemaTooNew`, each naming the command to run, unless the schema fits this program."""
    applied = await _applied(conn, namespace) or {}
    _compare(applied)
    missing = [each.name for each in migrations() if each.number not in applied]
    if missing:
        raise NotMigrated(
            f"The namespace {namespace!r} is not migrated ({len(missing)} of {len(migrations())} migrations "
            "missing): run `reserve migrate`."
        )


async def _applied(conn: AsyncConnection, namespace: str) -> dict[int, str] | None:
    """Number and checksum of what was applied; None when the namespace was never migrated."""
    found = await (
        await conn.execute("select to_regclass(quote_ident(%s) || '.migration') is not null", [namespace])
    ).fetchone()
    assert found is not None, "a select without a table answers one row"
    if not found[0]:
        return None
    cursor = await conn.execute(
        sql.SQL("select number, checksum from {}.migration order by number").format(sql.Identifier(namespace))
    )
    return dict(await cursor.fetchall())


def _compare(applied: dict[int, str]) -> None:
    known = {each.number: each for each in migrations()}
    for number, checksum in applied.items():
        if number not in known:
            raise SchemaTooNew(
                f"The database has migration {number}, this program knows {len(known)}: upgrade this program."
            )
        if checksum != known[number].checksum:
            raise NotMigrated(
                f"Migration {known[number].name} was applied in another form than this program has: "
                "restore the file, or use another RESERVE_NAMESPACE."
            )
