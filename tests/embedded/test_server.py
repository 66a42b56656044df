"""What an embedded server is: where it runs, what it keeps, how its address serves others."""

import re
import stat
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

from reserve.db import embedded
from tests.embedded import ask, has_ended, run_starter, start, tell


def test_a_new_folder_becomes_a_server_in_utf_8_with_checksums(data_dir):
    with start(data_dir) as server:
        assert ask(server, "select current_setting('server_encoding'), current_setting('data_checksums')") == (
            "UTF8",
            "on",
        )
        assert ask(server, "select upper('ä'), current_setting('TimeZone')") == ("Ä", "UTC")
        assert server.data_dir == data_dir


def test_only_its_own_user_reaches_it_and_only_through_the_socket(data_dir):
    with start(data_dir) as server:
        assert ask(server, "show listen_addresses") == ("",)
        socket = data_dir / ".s.PGSQL.5432"
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
        assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700


def test_its_url_serves_postgresqls_own_programs_whatever_the_environment_says(data_dir, monkeypatch):
    monkeypatch.setenv("PGPORT", "9")
    monkeypatch.setenv("PGDATA", "/nowhere")
    with start(data_dir) as server:
        command = [server.bin_dir / "pgbench", "--initialize", "--quiet", server.url]
        subprocess.run(command, check=True, capture_output=True)
        assert ask(server, "select count(*) from pgbench_accounts") == (100_000,)


def test_it_is_durable_unless_told_otherwise_and_takes_extra_settings(data_dir):
    durability = (
        "select current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')"
    )
    with embedded.start(data_dir) as server:
        assert ask(server, durability) == ("on", "on", "on")
    with start(data_dir, extra={"shared_preload_libraries": "pg_stat_statements", "work_mem": "5MB"}) as server:
        assert ask(server, durability) == ("off", "off", "off")
        assert ask(server, "select current_setting('shared_preload_libraries'), current_setting('work_mem')") == (
            "pg_stat_statements",
            "5MB",
        )


def test_data_survive_a_restart(data_dir):
    with start(data_dir) as server:
        tell(server, "create table kept as select 42 as answer")
    assert has_ended(server.pid)
    with start(data_dir) as server:
        assert ask(server, "select answer from kept") == (42,)


@pytest.mark.parametrize("name", ["x" * 60 + "/" + "y" * 60, "a comma, in it"])
def test_a_path_that_no_socket_can_have_gets_a_private_socket_folder_for_as_long(folder, name):
    with start(folder / name) as server:
        sockets = Path(unquote(re.search("host=([^&]*)", server.url)[1]))
        assert sockets != server.data_dir
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert ask(server, "select 1") == (1,)
    assert not sockets.exists()


def test_a_path_may_have_quotes_spaces_and_foreign_letters(folder):
    with start(folder / """it's "mine" مخزن %20""") as server:
        assert (server.data_dir / ".s.PGSQL.5432").exists()
        assert ask(server, "select 1") == (1,)


def test_a_temporary_server_leaves_nothing():
    with embedded.temporary(durable=False) as server:
        assert ask(server, "select 1") == (1,)
    assert has_ended(server.pid)
    assert not server.data_dir.exists()


def test_a_temporary_server_whose_program_was_killed_is_ended_and_removed_by_the_next():
    starter, left, place = run_starter()
    with embedded.temporary(durable=False):
        assert not has_ended(left), "its program still runs"
    starter.kill()
    starter.wait()
    with embedded.temporary(durable=False) as server:
        assert has_ended(left)
        assert not place.exists()
        assert ask(server, "select 1") == (1,)
