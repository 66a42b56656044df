"""Each command says what it did on standard output, what is wrong in one sentence on standard error, and a code."""

import json
from importlib.metadata import version

import pytest

from reserve.cli import program
from reserve.inventory import pools
from reserve.inventory.rows import PoolChange


def refused(done, sentence):
    """Exit code 1, one line on standard error, nothing else."""
    assert (done.code, done.out, done.err) == (1, "", f"reserve: {sentence}\n")


def test_version(reserve):
    done = reserve("--version")
    assert (done.code, done.out) == (0, f"reserve {version('reserve')}\n")


def test_help_names_every_command_and_what_exit_codes_mean(reserve):
    text = reserve("--help").out
    for command in ("dev", "demo", "serve", "migrate", "audit", "pools", "openapi"):
        assert command in text
    assert "Exit codes" in text
    assert "RESERVE_DEBUG=1" in text


@pytest.mark.parametrize(
    "words",
    [["sell"], ["dev", "--port", "65536"], ["dev", "--port", "x"], ["demo", "--units", "0"], ["pools", "import"]],
)
def test_wrong_usage_is_exit_code_2(reserve, words):
    done = reserve(*words)
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err


@pytest.mark.parametrize("words", [["serve"], ["migrate"], ["audit"]])
def test_what_needs_a_database_says_which_setting_is_missing(reserve, words):
    refused(
        reserve(*words),
        "RESERVE_DATABASE_URL is not set: give a PostgreSQL URL, or use `reserve dev` for an embedded server.",
    )


def test_a_wrong_setting_is_named_and_its_value_is_not_repeated(reserve):
    done = reserve("audit", RESERVE_CONNECTIONS_MAX="hunter2")
    assert done.code == 1
    assert done.err.startswith("reserve: RESERVE_CONNECTIONS_MAX: ")
    assert "hunter2" not in done.err


def test_a_wrong_url_and_a_database_that_is_away_are_sentences_without_the_password(reserve):
    refused(
        reserve("audit", RESERVE_DATABASE_URL="nonsense hunter2"),
        "RESERVE_DATABASE_URL is not a PostgreSQL connection string or URL.",
    )
    done = reserve("audit", RESERVE_DATABASE_URL="postgresql://u:hunter2@127.0.0.1:1/x", RESERVE_DEBUG="1")
    assert done.code == 1
    assert done.err.startswith("reserve: The database does not answer")
    assert done.err.count("\n") == 1
    assert "hunter2" not in done.err


def test_migrate_says_what_it_applied_and_a_second_time_that_there_is_nothing_to_do(reserve, of_database, conn):
    fresh = of_database | {"RESERVE_NAMESPACE": of_database["RESERVE_NAMESPACE"] + "_fresh"}
    first = reserve("migrate", **fresh)
    again = reserve("migrate", **fresh)
    reserve("migrate", **fresh)
    lines = first.out.splitlines()
    assert first.code == again.code == 0
    assert lines[0] == "applied 0001_pool"
    assert lines[-1] == again.out.strip()
    assert "is up to date" in lines[-1]


@pytest.mark.parametrize("words", [["serve"], ["audit"], ["pools", "import", "-"]])
def test_a_database_that_is_not_migrated_is_refused_with_the_command_to_run(reserve, of_database, words):
    other = of_database | {"RESERVE_NAMESPACE": "never_migrated", "RESERVE_PORT": "0"}
    done = reserve(*words, stdin=b"pool,on_hand\n", **other)
    assert done.code == 1
    assert "run `reserve migrate`" in done.err
    assert done.err.count("\n") == 1


async def test_audit_exits_0_when_all_is_true_and_1_with_every_difference_on_a_line(
    reserve, of_database, database, conn, namespace
):
    await pools.put(database, "a", PoolChange(on_hand=3))
    clean = reserve("audit", **of_database)
    assert clean.code == 0
    assert clean.out == "Audited 1 pools (1 slots), 0 holds (0 lines), 1 movements and 0 jobs: no difference.\n"
    await conn.execute(f"update {namespace}.slot set capacity = 4")
    found = reserve("audit", **of_database)
    assert found.code == 1
    assert found.out.splitlines()[1:] == ["pool 'a': on_hand: stored 4, recomputed 3"]


async def test_pools_are_imported_from_a_file_and_from_standard_input(reserve, of_database, database, tmp_path):
    file = tmp_path / "pools.csv"
    file.write_text("pool,on_hand,buffer\nmug,10,1\n")
    done = reserve("pools", "import", file, **of_database)
    assert (done.code, done.out) == (0, "1 created, 0 changed, 0 unchanged.\n")
    done = reserve("pools", "import", "-", stdin=b"pool,on_hand\nmug,10\nposter,2\n", **of_database)
    assert (done.code, done.out) == (0, "1 created, 0 changed, 1 unchanged.\n")
    assert (await pools.get(database, "poster")).on_hand == 2


async def test_a_wrong_row_is_named_with_file_and_line(reserve, of_database, tmp_path):
    file = tmp_path / "pools.csv"
    file.write_text("pool,on_hand\nmug,10\nposter,many\n")
    refused(
        reserve("pools", "import", file, **of_database),
        f"{file}: line 3: on_hand must be a whole number from 0 to 1000000000000, and is 'many'. Nothing was imported.",
    )


def test_a_file_that_is_not_there_is_a_sentence(reserve, of_database):
    refused(
        reserve("pools", "import", "none.csv", **of_database),
        "none.csv: The file cannot be read (No such file or directory). Nothing was imported.",
    )


def test_openapi_prints_the_document(reserve):
    done = reserve("openapi")
    assert done.code == 0
    document = json.loads(done.out)
    assert document["openapi"].startswith("3.1")
    assert "/v1/holds" in document["paths"]


def test_a_small_sale_ends_well(start):
    process = start("demo", "--buyers", "20", "--units", "5", "--seed", "3")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    assert "no difference" in out
    assert "Nothing was oversold, lost or expired early" in out


def test_an_unexpected_error_is_a_sentence_and_shows_its_stack_only_on_request(monkeypatch, capsys):
    def fail():
        raise LookupError("the fact that was impossible")

    monkeypatch.setattr(program, "app", fail)
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code == 1
    sentence = "reserve: Unexpected LookupError: the fact that was impossible. RESERVE_DEBUG=1 shows where.\n"
    assert capsys.readouterr().err == sentence
    monkeypatch.setenv("RESERVE_DEBUG", "1")
    with pytest.raises(SystemExit):
        program.main()
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.endswith(sentence)
