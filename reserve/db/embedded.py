"""An embedded PostgreSQL: starts a server on a data folder, and stops it with the context that started it.

Owns the server's process, which is reached over a Unix socket only, by its own user only. Knows nothing of
namespaces or migrations; the machine's side is in `embedded_binaries`, the folder's in `embedded_folder`.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Never
from urllib.parse import quote

import psycopg

from reserve.db.embedded_binaries import Account, Binaries, account_for, find_binaries, run_as
from reserve.db.embedded_folder import (
    CLUSTER,
    SOCKET_PORT,
    TEMPORARY,
    clear_leftovers,
    last_words,
    locked,
    new_log,
    remove_abandoned,
    socket_folder,
    temporary_folder,
)
from reserve.errors import EmbeddedServerError

#: A server that was killed replays its log before it accepts connections, at most some gigabytes of it.
_START_SECONDS_MAX = 120
_INITDB_SECONDS_MAX = 120

#: Pause between two looks whether the server accepts connections; a start takes about ten of them.
_START_PAUSE_SECONDS = 0.02

#: How the server is asked to stop, and how long it may take each time: fast (ends sessions, writes a
#: checkpoint), immediate (recovers at the next start), and then without asking.
_STOP_SIGNALS = (("SIGINT", 30), ("SIGQUIT", 5), ("SIGKILL", 5))

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "port": str(SOCKET_PORT),
    "cluster_name": "reserve",
    "logging_collector": "off",
}

#: What a server gives up whose data nobody needs after a crash of the machine.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

_NO_EXTRA: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A running server. `ended` is done, with the exit status, once the server has ended, wanted or not."""

    url: str
    data_dir: Path
    bin_dir: Path
    pid: int
    ended: Future[int]

    async def watch(self) -> Never:
        """Wait until the server ends, then raise `EmbeddedServerError`; cancel it before a wanted stop."""
        status = await asyncio.wrap_future(self.ended)
        raise EmbeddedServerError(
            f"The embedded PostgreSQL ended by itself (exit status {status}); {last_words(self.data_dir)}."
        )


@contextmanager
def start(data_dir: Path, *, durable: bool = True, extra: Mapping[str, str] = _NO_EXTRA) -> Iterator[EmbeddedServer]:
    """A server on `data_dir`, which is made if it is new; it accepts connections, and stops with the context.

    `durable=False` is for data that need not survive a crash of the machine. `extra` are server settings. While
    the context lasts, SIGTERM and SIGHUP end the program by `SystemExit` unless somebody handles them. Raises
    `EmbeddedServerError`, one sentence, when the server cannot run here, the folder is in use or not fit, or
    the server does not start.
    """
    _require_platform()
    folder = Path(os.path.realpath(data_dir.expanduser()))
    account = account_for(folder)
    binaries = find_binaries(account)
    cluster = folder / CLUSTER
    settings = _SETTINGS | ({} if durable else _NOT_DURABLE) | dict(extra)
    with _ending_on_signals(), locked(folder, account):
        clear_leftovers(cluster)
        with new_log(folder, account) as log, socket_folder(folder, account) as sockets:
            if not cluster.exists():
                _make_cluster(cluster, binaries, account, log, durable=durable)
            _require_major(cluster, binaries)
            settings["unix_socket_directories"] = '"' + str(sockets).replace('"', '""') + '"'
            options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
            command: list[str | Path] = [binaries.bin_dir / "postgres", "-D", cluster, *options]
            with _process(command, account, log) as (process, ended):
                server = EmbeddedServer(_url(sockets), folder, binaries.bin_dir, process.pid, ended)
                _wait_until_ready(server)
                yield server


@contextmanager
def temporary(*, durable: bool = True, extra: Mapping[str, str] = _NO_EXTRA) -> Iterator[EmbeddedServer]:
    """As `start`, on a new folder that is removed when the context ends, or by the next call if that is killed."""
    _require_platform()
    account = account_for(None)
    find_binaries(account)  # says what is missing before anything is done
    remove_abandoned(account)
    with (
        _ending_on_signals(),
        temporary_folder(account) as folder,
        start(folder, durable=durable, extra=extra) as server,
    ):
        (folder / TEMPORARY).touch()
        yield server


def _require_platform() -> None:
    # Its binaries are there, but neither Unix users nor a socket that only one of them can open.
    if sys.platform == "win32":
        raise EmbeddedServerError(
            "The embedded PostgreSQL does not run on Windows: set RESERVE_DATABASE_URL to a PostgreSQL server."
        )


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP, which would end us and leave the server running, into `SystemExit`."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 -- the signature of a handler
        raise SystemExit(128 + number)

    # Only the main thread may set handlers; one that is set already belongs to a caller who knows what to do.
    in_main_thread = threading.current_thread() is threading.main_thread()
    signals = [
        each for each in (signal.SIGTERM, signal.SIGHUP) if in_main_thread and signal.getsignal(each) is signal.SIG_DFL
    ]
    for each in signals:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in signals:
            if signal.getsignal(each) is end:
                signal.signal(each, signal.SIG_DFL)


def _environment() -> dict[str, str]:
    """Ours, without what would change the server's settings (PGPORT, PGDATA), its locale or time zone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}


def _make_cluster(cluster: Path, binaries: Binaries, account: Account | None, log: int, *, durable: bool) -> None:
    # Made beside its place and renamed: a kill in the middle leaves nothing that looks like a cluster.
    fresh = cluster.with_name(f"{CLUSTER}.new")
    shutil.rmtree(fresh, ignore_errors=True)  # of a kill in the middle; initdb says so if it cannot go
    command: list[str | Path] = [
        binaries.bin_dir / "initdb",
        f"--pgdata={fresh}",
        "--username=postgres",
        "--encoding=UTF8",
        # PostgreSQL's own C.UTF-8 sorts and folds alike on every platform, whatever locales the machine has.
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        # Safe because only this user can open the socket, and nothing listens on TCP.
        "--auth-local=trust",
        "--auth-host=reject",
        "--no-instructions",
        *([] if durable else ["--no-sync"]),
    ]
    try:
        with _process(command, account, log) as (_, ended):
            status = ended.result(_INITDB_SECONDS_MAX)
    except TimeoutError:
        status = None
    if status != 0:
        raise EmbeddedServerError(f"The data folder {cluster.parent} cannot be set up; {last_words(cluster.parent)}.")
    fresh.rename(cluster)


def _require_major(cluster: Path, binaries: Binaries) -> None:
    try:
        major = (cluster / "PG_VERSION").read_text("ascii").strip()
    except (OSError, ValueError):
        major = "an unknown version"
    if major != binaries.major:
        raise EmbeddedServerError(
            f"The data folder {cluster.parent} was made by PostgreSQL {major} and the embedded one is "
            f"{binaries.major}: move it away to start anew, or serve it with its own version and set "
            "RESERVE_DATABASE_URL."
        )


def _url(sockets: Path) -> str:
    # With the port, which PGPORT would change otherwise.
    return f"postgresql://postgres@/postgres?host={quote(os.fsencode(sockets), safe='')}&port={SOCKET_PORT}"


@contextmanager
def _process(
    command: Sequence[str | Path], account: Account | None, log: int
) -> Iterator[tuple[subprocess.Popen[bytes], Future[int]]]:
    """A program of PostgreSQL's, its end as a future; ended with the context."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd="/",
        env=_environment(),
        # In a session of its own: Ctrl-C is for us, and the server stops when its users are done with it.
        start_new_session=True,
        **run_as(account),
    )
    ended: Future[int] = Future()
    ended.set_running_or_notify_cancel()  # from here on, cancelling `watch` does not cancel this
    threading.Thread(target=lambda: ended.set_result(process.wait()), name="embedded-server", daemon=True).start()
    try:
        yield process, ended
    finally:
        _stop(process, ended)


def _stop(process: subprocess.Popen[bytes], ended: Future[int]) -> None:
    try:
        for name, seconds in _STOP_SIGNALS:
            if not ended.done():
                process.send_signal(signal.Signals[name])
            with suppress(TimeoutError):
                ended.result(seconds)
                return
    except BaseException:
        # A second Ctrl-C: whoever waits has no patience for a checkpoint.
        process.send_signal(signal.SIGQUIT)
        raise


def _wait_until_ready(server: EmbeddedServer) -> None:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while True:
        if server.ended.done():
            raise EmbeddedServerError(f"The embedded PostgreSQL did not start; {last_words(server.data_dir)}.")
        try:
            psycopg.connect(server.url, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"The embedded PostgreSQL accepted no connection within {_START_SECONDS_MAX} seconds; "
                    f"{last_words(server.data_dir)}."
                ) from error
            time.sleep(_START_PAUSE_SECONDS)
        else:
            return
