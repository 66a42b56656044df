"""Turns what PostgreSQL says into errors of ours, in one place. The only reader of SQLSTATEs."""

import psycopg
from psycopg import errors as pg
from psycopg_pool import PoolTimeout, TooManyRequests

from reserve.errors import Contended, InvalidRequest, NotMigrated, Overloaded, ReserveError, SettingsError, Unavailable

#: A transaction that met one of these did nothing and may simply run again.
RETRYABLE = (pg.DeadlockDetected, pg.SerializationFailure)

#: A lock or the statement took longer than its limit: the answer is `contended`, never a guess about stock.
_TIMED_OUT = (pg.LockNotAvailable, pg.QueryCanceled)

_NOT_MIGRATED = (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.InvalidSchemaName)
_NO_ENTRY = (pg.InvalidPassword, pg.InvalidAuthorizationSpecification, pg.InvalidCatalogName)


#: The session was ended while we stalled, or has become one that cannot write: another one may do.
_SESSION_LOST = (pg.IdleInTransactionSessionTimeout, pg.TransactionTimeout, pg.ReadOnlySqlTransaction)


def as_reserve_error(error: psycopg.Error | UnicodeEncodeError) -> ReserveError | None:
    """The expected error that `error` stands for; None for one that must not happen, which the caller re-raises."""
    match error:
        case UnicodeEncodeError():
            return InvalidRequest("A text of this request has a lone surrogate, which PostgreSQL cannot store.")
        case TooManyRequests():
            return Overloaded("Too many requests wait for the database; try again.")
        case PoolTimeout():
            return Overloaded("No database connection became free in time; try again.")
        case pg.InsufficientPrivilege():
            return SettingsError("The database user of RESERVE_DATABASE_URL lacks a privilege that this needs.")
        case _ if isinstance(error, RETRYABLE + _TIMED_OUT):
            return Contended()
        case _ if isinstance(error, _NOT_MIGRATED):
            return NotMigrated("The database is not migrated for this program: run `reserve migrate`.")
        case _ if isinstance(error, _NO_ENTRY):
            return SettingsError("The database refuses the user, password or database name of RESERVE_DATABASE_URL.")
        case psycopg.DataError():
            # The edge refuses what it knows; this is for callers of the library and SQL functions.
            return InvalidRequest("A value of this request cannot be stored by PostgreSQL.")
        case _ if isinstance(error, (*_SESSION_LOST, psycopg.OperationalError, psycopg.InterfaceError)):
            return Unavailable("The database does not answer; try again.")
        case _:
            return None


def as_connect_error(error: psycopg.Error) -> ReserveError | None:
    """As `as_reserve_error`, of an error met by a first connection: of those libpq has words, and no SQLSTATE."""
    if error.sqlstate is not None:
        return as_reserve_error(error)
    if isinstance(error, psycopg.ProgrammingError):
        return SettingsError("RESERVE_DATABASE_URL is not a PostgreSQL connection string or URL.")
    # Only what follows is the server's or the system's word; before it stand parts of the URL.
    _, cut, words = str(error).rpartition(" failed: ")
    first_line = words.strip().partition("\n")[0].removeprefix("FATAL:").strip()
    if cut and first_line:
        return Unavailable(f"The database does not answer: {first_line}.")
    return as_reserve_error(error)
