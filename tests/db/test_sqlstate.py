"""What PostgreSQL says, as errors of ours; pure."""

import psycopg
import pytest
from psycopg import errors as pg
from psycopg_pool import PoolTimeout, TooManyRequests

from reserve.db.sqlstate import RETRYABLE, as_connect_error, as_reserve_error
from reserve.errors import Contended, InvalidRequest, NotMigrated, Overloaded, SettingsError, Unavailable

MAP = {
    Contended: [pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable, pg.QueryCanceled],
    Overloaded: [PoolTimeout, TooManyRequests],
    NotMigrated: [pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.InvalidSchemaName],
    SettingsError: [
        pg.InsufficientPrivilege,
        pg.InvalidPassword,
        pg.InvalidAuthorizationSpecification,
        pg.InvalidCatalogName,
    ],
    InvalidRequest: [
        psycopg.DataError,
        pg.UntranslatableCharacter,
        pg.NumericValueOutOfRange,
        pg.CharacterNotInRepertoire,
        pg.InvalidTextRepresentation,
    ],
    Unavailable: [
        psycopg.OperationalError,
        psycopg.InterfaceError,
        pg.AdminShutdown,
        pg.CrashShutdown,
        pg.CannotConnectNow,
        pg.ConnectionFailure,
        pg.TooManyConnections,
        pg.DiskFull,
        pg.IdleInTransactionSessionTimeout,
        pg.TransactionTimeout,
        pg.ReadOnlySqlTransaction,
    ],
}


@pytest.mark.parametrize(
    ("error", "expected"), [(error, expected) for expected, errors in MAP.items() for error in errors]
)
def test_what_may_happen_has_its_error(error, expected):
    assert type(as_reserve_error(error("words"))) is expected


@pytest.mark.parametrize(
    "error",
    [
        pg.CheckViolation,
        pg.UniqueViolation,
        pg.ForeignKeyViolation,
        pg.NotNullViolation,
        pg.SyntaxError,
        pg.InternalError_,
    ],
)
def test_what_must_not_happen_has_none(error):
    assert as_reserve_error(error("words")) is None


def test_a_text_that_cannot_be_encoded_is_the_requests_fault():
    with pytest.raises(UnicodeEncodeError) as raised:
        "\ud800".encode()
    assert isinstance(as_reserve_error(raised.value), InvalidRequest)


def test_what_is_run_again_says_contended_when_it_does_not_help():
    for error in RETRYABLE:
        assert as_reserve_error(error()).transient


def test_words_of_the_server_are_not_repeated_to_clients():
    for errors in MAP.values():
        for error in errors:
            assert "secret" not in str(as_reserve_error(error("the secret words")))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            'connection failed: connection to server at "127.0.0.1", port 1 failed: Connection refused\n\tIs it?',
            "The database does not answer: Connection refused.",
        ),
        (
            'connection failed: connection to server on socket "/x" failed: FATAL:  database "x" does not exist',
            'The database does not answer: database "x" does not exist.',
        ),
        ("failed to resolve host 'secret': Name or service not known", "The database does not answer; try again."),
        ("", "The database does not answer; try again."),
        (" failed: \n", "The database does not answer; try again."),
    ],
)
def test_a_first_connection_says_what_the_server_says_and_nothing_of_the_url(words, sentence):
    assert str(as_connect_error(psycopg.OperationalError(words))) == sentence


def test_a_url_that_cannot_be_read_is_a_setting():
    error = as_connect_error(psycopg.ProgrammingError('missing "=" after "postgres//me:secret@x"'))
    assert isinstance(error, SettingsError)
    assert "secret" not in str(error)


def test_a_missing_table_is_not_taken_for_a_wrong_url():
    assert isinstance(as_connect_error(pg.UndefinedTable("words")), NotMigrated)
