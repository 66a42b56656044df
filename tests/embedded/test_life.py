"""Who uses the data folder, what a killed program or server leaves, and how a server ends."""

import asyncio
import os
import re
import signal
from contextlib import suppress

import pytest

from reserve.errors import EmbeddedServerError
from tests.embedded import ask, has_ended, marked, run_starter, start, tell


def test_two_at_once_are_told_who_uses_the_folder(data_dir):
    sentence = f"The data folder {data_dir} is in use by another `reserve` (process {os.getpid()})."
    with start(data_dir) as server:
        with pytest.raises(EmbeddedServerError, match=re.escape(sentence)), start(data_dir):
            pass
        assert ask(server, "select 1") == (1,)


def test_a_server_that_is_killed_is_recovered_with_its_data(data_dir):
    with start(data_dir, durable=True) as server:
        tell(server, "create table kept as select 42 as answer")
        os.kill(server.pid, signal.SIGKILL)
        assert server.ended.result(10) == -signal.SIGKILL
    assert (data_dir / "postgres" / "postmaster.pid").exists()
    with start(data_dir) as again:
        assert ask(again, "select answer from kept") == (42,)


def test_a_server_whose_starter_was_killed_is_stopped_and_its_folder_recovered(data_dir):
    starter, left, _ = run_starter(data_dir)
    starter.kill()
    starter.wait()
    assert not has_ended(left)
    with start(data_dir) as server:
        assert has_ended(left)
        assert server.pid != left
        assert ask(server, "select 1") == (1,)


def test_a_pid_file_that_names_some_other_process_is_removed_and_that_process_left_alone(folder):
    with start(folder / "first") as first:
        with start(folder / "second"):
            pass
        pid_file = folder / "second" / "postgres" / "postmaster.pid"
        # The worst case: the number belongs to a PostgreSQL by now, but to one of another folder.
        pid_file.write_text(f"{first.pid}\n{pid_file.parent}\n")
        (folder / "second" / ".s.PGSQL.5432.lock").write_text(f"{first.pid}\n")
        with start(folder / "second") as second:
            assert ask(second, "select 1") == (1,)
        assert ask(first, "select 1") == (1,)


def test_a_set_up_that_was_killed_half_way_is_begun_anew(data_dir):
    half = marked(data_dir) / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    with start(data_dir) as server:
        assert ask(server, "select 1") == (1,)
    assert not half.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_to_the_program_and_its_terminal_stop_the_server_in_good_order(data_dir, number):
    starter, pid, _ = run_starter(data_dir)
    os.killpg(starter.pid, number)  # as a terminal does: to every process in the foreground
    starter.wait(30)
    assert has_ended(pid)
    log = (data_dir / "server.log").read_text()
    assert "received fast shutdown request" in log
    assert "database system is shut down" in log
    assert not (data_dir / "postgres" / "postmaster.pid").exists()


async def test_cancelling_the_task_that_started_it_stops_it(data_dir):
    started = asyncio.get_running_loop().create_future()

    async def serve():
        with start(data_dir) as server:
            started.set_result(server)
            await asyncio.Event().wait()

    task = asyncio.create_task(serve())
    server = await started
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert server.ended.done()


async def test_a_caller_learns_that_it_ended_by_itself(data_dir):
    with start(data_dir) as server:
        watching = asyncio.create_task(server.watch())
        await asyncio.sleep(0)
        assert not watching.done()
        os.kill(server.pid, signal.SIGTERM)
        with pytest.raises(EmbeddedServerError, match=rf"ended by itself .*; the log {data_dir}/server\.log ends in: "):
            await watching


async def test_a_cancelled_watch_leaves_the_server_alone(data_dir):
    with start(data_dir) as server:
        watching = asyncio.create_task(server.watch())
        await asyncio.sleep(0)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        assert ask(server, "select 1") == (1,)
    assert server.ended.result(0) == 0


def test_an_error_of_the_caller_passes_and_its_signal_handlers_come_back(data_dir):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(LookupError), start(data_dir) as server:
        raise LookupError
    assert has_ended(server.pid)
    assert signal.getsignal(signal.SIGTERM) == before
