"""What commands run in: the event loop, the first of several waits, the wish to stop, the socket, the log."""

import asyncio
import json
import logging
import os
import signal
import socket

import pytest
import structlog

from reserve.cli.listening import listening
from reserve.cli.logs import configure_logs
from reserve.cli.running import Stop, first_of, run, stop_signals
from reserve.errors import SettingsError, Unavailable
from reserve.settings import load


async def forever(ended):
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("cancelled")


async def fail(error):
    raise error


async def done(answer):
    return answer


async def test_the_first_that_is_done_is_the_answer_and_the_others_are_cancelled():
    ended = []
    assert await first_of(forever(ended), done(5)) == 5
    assert ended == ["cancelled"]


async def test_the_first_that_fails_is_the_failure():
    ended = []
    with pytest.raises(Unavailable):
        await first_of(forever(ended), fail(Unavailable("away")))
    assert ended == ["cancelled"]


def test_a_group_of_errors_is_raised_as_its_first():
    async def grouped():
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(Unavailable("away")))

    with pytest.raises(Unavailable, match="away"):
        run(grouped())


def test_an_error_outside_of_a_group_is_itself():
    with pytest.raises(Unavailable, match="away"):
        run(fail(Unavailable("away")))


async def test_a_first_signal_asks_for_an_orderly_stop_and_a_second_for_a_hurried_one():
    stop, hurried = Stop(), []
    stop.when_repeated(lambda: hurried.append(True))
    waiting = asyncio.create_task(stop.wait())
    stop.ask(signal.SIGINT)
    await waiting
    assert (stop.exit_code, hurried) == (0, [])
    stop.ask(signal.SIGTERM)
    assert (stop.exit_code, hurried) == (143, [True])


async def test_signals_ask_while_the_context_lasts_and_are_given_back_after_it():
    before = signal.getsignal(signal.SIGTERM)
    kept = []
    signal.signal(signal.SIGTERM, lambda number, _: kept.append(number))
    try:
        with stop_signals() as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            await stop.wait()
            assert stop.signal == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGTERM)
        assert kept == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


# --- listening ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost"])
def test_a_free_port_is_found_and_is_in_the_url(host):
    with listening(host, 0, port_option="--port") as listener:
        port = listener.socket.getsockname()[1]
        assert listener.url == f"http://{host}:{port}"
        socket.create_connection(listener.socket.getsockname(), timeout=5).close()


def test_an_ipv6_host_is_in_brackets():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with listening("::1", 0, port_option="--port") as listener:
        assert listener.url == f"http://[::1]:{listener.socket.getsockname()[1]}"


def test_the_second_on_a_port_is_told_even_before_the_first_serves():
    with listening("127.0.0.1", 0, port_option="--port") as first:
        port = first.socket.getsockname()[1]
        with (
            pytest.raises(SettingsError, match=f"Port {port} of 127.0.0.1 is taken: choose another with RESERVE_PORT"),
            listening("127.0.0.1", port, port_option="RESERVE_PORT"),
        ):
            pass


@pytest.mark.parametrize("host", ["", "not a host", "\udcff", "x" * 300])
def test_what_is_no_address_is_a_sentence(host):
    with pytest.raises(SettingsError, match="RESERVE_HOST"), listening(host, 0, port_option="--port"):
        pass


# --- the log ------------------------------------------------------------------------------------------------


@pytest.fixture
def log(capsys):
    """Set the log up by settings; its lines."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]

    def lines(write, *, least=None, **settings):
        configure_logs(load(_env_file=None, **settings), least=least)
        write()
        return capsys.readouterr().err.splitlines()

    yield lines
    structlog.reset_defaults()
    root.setLevel(level)
    root.handlers[:] = handlers


def check(password):
    raise LookupError(f"a password of {len(password)} letters")


def log_a_fault_with_a_secret():
    try:
        check("hunter" + str(2))
    except LookupError as error:
        structlog.get_logger("x").error("request.failed", exc_info=error)


def test_lines_are_key_value_where_there_is_no_terminal(log):
    (line,) = log(lambda: structlog.get_logger("x").info("holds.expired", count=3))
    assert line.startswith("timestamp=20")
    assert line.endswith(" level=info event=holds.expired count=3")


@pytest.mark.parametrize("form", ["console", "keyvalue", "json"])
def test_a_stack_is_shown_without_the_values_of_variables(log, form):
    text = "\n".join(log(log_a_fault_with_a_secret, log_format=form))
    assert "a password of 7 letters" in text
    assert "check" in text
    assert "hunter2" not in text


def test_a_line_of_a_library_looks_like_our_own(log):
    (line,) = log(lambda: logging.getLogger("some.library").warning("x is %s", 5), log_format="json")
    assert json.loads(line) | {"timestamp": ""} == {"event": "x is 5", "level": "warning", "timestamp": ""}


def test_libraries_that_tell_what_our_events_tell_are_quiet(log):
    assert log(lambda: logging.getLogger("psycopg.pool").warning("error connecting")) == []


def test_the_level_is_the_setting_or_what_the_command_needs_at_least(log):
    def write():
        logger = structlog.get_logger("x")
        logger.debug("a")
        logger.info("b")
        logger.warning("c")

    assert len(log(write, log_level="debug")) == 3
    assert len(log(write)) == 2
    assert len(log(write, least="warning")) == 1
    assert len(log(write, log_level="error", least="warning")) == 0
