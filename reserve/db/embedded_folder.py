"""The data folder of an embedded server: who uses it, whose it is, and what a killed server left in it.

It holds `reserve.lock`, `server.log`, the cluster in `postgres/` and, where its path is short enough, the socket.
Changes the owner of the data folder when we are root; never the permissions of anything above it. Ends processes
only when they are PostgreSQL's and work in this very cluster.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from reserve.db.embedded_binaries import Account, can_enter
from reserve.errors import EmbeddedServerError

if sys.platform != "win32":
    import fcntl

LOCK = "reserve.lock"
LOG = "server.log"
CLUSTER = "postgres"
TEMPORARY = "temporary"

#: PostgreSQL's port is only part of the socket's name: nothing listens on TCP.
SOCKET_PORT = 5432
_SOCKET = f".s.PGSQL.{SOCKET_PORT}"

#: Longest path of a Unix socket in bytes: 103 on macOS, 107 on Linux; the smaller serves everywhere.
_SOCKET_PATH_BYTES_MAX = 103

#: How much of the log's end is looked through for the reason of a failure.
_LOG_TAIL_BYTES = 2**16

#: How a leftover server is asked to end, and for how long it may take each time: fast, immediate, unasked.
_END_SIGNALS = (("SIGINT", 20), ("SIGQUIT", 5), ("SIGKILL", 5))
_END_PAUSE_SECONDS = 0.05

_HINT = "give another folder with `--data-dir` or RESERVE_DATA_DIR"


@contextmanager
def locked(folder: Path, account: Account | None) -> Iterator[None]:
    """Make `folder` if it is new, hand it to `account`, and keep everybody else out while the context lasts.

    Raises `EmbeddedServerError` when it is in use, not a data folder of ours, or closed to us or `account`.
    """
    try:
        _make(folder, account)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise EmbeddedServerError(f"The data folder {folder} cannot be used ({error.strerror}): {_HINT}.") from error
    try:
        _lock(descriptor, folder, account)
        try:
            _hand_over(folder, account)
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)  # which unlocks; the file stays, because removing it would race with the next one's lock


def _make(folder: Path, account: Account | None) -> None:
    there = next((parent for parent in folder.parents if parent.exists()), folder)
    if account is not None and not can_enter(there, account):
        raise _closed(there, account, folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = {path.name for path in folder.iterdir()} - {"lost+found"}
    if "PG_VERSION" in found:
        raise EmbeddedServerError(f"{folder} belongs to a PostgreSQL that `reserve` did not make: {_HINT}.")
    if found and LOCK not in found:
        raise EmbeddedServerError(f"{folder} has other files than those of `reserve`: {_HINT}.")


def _closed(folder: Path, account: Account, data_dir: Path) -> EmbeddedServerError:
    closed = next(each for each in [*reversed(folder.parents), folder] if not can_enter(each, account))
    return EmbeddedServerError(
        f"PostgreSQL does not run as root, and the user {account.name} that it runs as cannot enter {closed} "
        f"to reach the data folder {data_dir}: {_HINT}."
    )


def _lock(descriptor: int, folder: Path, account: Account | None) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        process = f" (process {holder})" if holder.isdecimal() else ""  # it may be about to write it
        raise EmbeddedServerError(f"The data folder {folder} is in use by another `reserve`{process}.") from None
    except OSError as error:
        raise EmbeddedServerError(f"The data folder {folder} cannot be locked ({error.strerror}): {_HINT}.") from error


def _hand_over(folder: Path, account: Account | None) -> None:
    """Make `account` the owner of what is in `folder`, which root may have made or copied there."""
    if account is None:
        return
    try:
        # Only where root owned the folder: in another's, a file could be a second name of one that is not theirs.
        if folder.stat().st_uid == 0:
            for path in [folder, *folder.rglob("*")]:
                os.chown(path, account.uid, account.gid, follow_symlinks=False)
    except OSError as error:
        raise EmbeddedServerError(
            f"The data folder {folder} cannot be given to the user {account.name} ({error.strerror}): {_HINT}."
        ) from error
    if not can_enter(folder, account):
        raise _closed(folder, account, folder)


@contextmanager
def socket_folder(folder: Path, account: Account | None) -> Iterator[Path]:
    """Where the server's socket goes: `folder`, or a private folder of a short name while the context lasts."""
    if fits_socket(folder):
        for name in (_SOCKET, f"{_SOCKET}.lock"):
            # Left by a server that was killed; the number in it may be another process's by now.
            (folder / name).unlink(missing_ok=True)
        yield folder
    else:
        with temporary_folder(account) as private:
            yield private


def fits_socket(folder: Path) -> bool:
    """Whether a socket in `folder` can be named; a comma would make libpq read the path as two hosts."""
    return len(os.fsencode(folder / _SOCKET)) <= _SOCKET_PATH_BYTES_MAX and "," not in str(folder)


@contextmanager
def temporary_folder(account: Account | None) -> Iterator[Path]:
    """A new private folder of `account`, with room for a socket, removed at the end."""
    usable = (
        place for place in _temporary_places() if fits_socket(place / "reserve-12345678") and can_enter(place, account)
    )
    place = next(usable, None)
    if place is None:
        raise EmbeddedServerError("No temporary folder is open to the user that PostgreSQL runs as: set TMPDIR.")
    private = Path(tempfile.mkdtemp(prefix="reserve-", dir=place))
    try:
        if account is not None:
            os.chown(private, account.uid, account.gid)
        yield private
    finally:
        # Nothing depends on its being gone, and an error here would hide the one that is being raised.
        shutil.rmtree(private, ignore_errors=True)


def _temporary_places() -> tuple[Path, ...]:
    # Root's own temporary folder may be closed to others, and a user's may have a long name.
    return tuple(Path(place).resolve() for place in (tempfile.gettempdir(), "/tmp", "/var/tmp"))  # noqa: S108 -- mkdtemp


def remove_abandoned(account: Account | None) -> None:
    """End the temporary servers of `account` whose programs were killed, and remove their folders.

    Such a folder bears the mark `temporary`, which it gets under its lock: who gets the lock of a marked one is alone.
    """
    owner = os.geteuid() if account is None else account.uid
    for mark in [mark for place in _temporary_places() for mark in place.glob(f"reserve-*/{TEMPORARY}")]:
        folder = mark.parent
        # In use, or ended by itself meanwhile, or not ours to remove: none of that keeps a new server from starting.
        with suppress(OSError, EmbeddedServerError):
            if not folder.is_symlink() and folder.stat().st_uid == owner:
                with locked(folder, account):
                    clear_leftovers(folder / CLUSTER)
                    shutil.rmtree(folder)


def clear_leftovers(cluster: Path) -> None:
    """End what a killed command or a killed server left running in `cluster`, and remove its pid file.

    Called under the folder's lock, so whatever still runs there has lost its starter.
    """
    pid_file = cluster / "postmaster.pid"
    if not pid_file.exists():
        return
    first = pid_file.read_text("utf-8", "replace").partition("\n")[0].strip()
    left = _processes(cluster)
    for name, seconds in _END_SIGNALS:
        # The postmaster ends its children; without it each has to be told.
        chiefs = [process for process in left if str(process.pid) == first]
        for process in chiefs or left:
            with suppress(OSError, _psutil().Error):  # it has just ended by itself
                process.send_signal(signal.Signals[name])
        deadline = time.monotonic() + seconds
        while (left := _processes(cluster)) and time.monotonic() < deadline:
            time.sleep(_END_PAUSE_SECONDS)
        if not left:
            break
    if left:
        raise EmbeddedServerError(
            f"A PostgreSQL (process {left[0].pid}) works in the data folder {cluster.parent} and does not end."
        )
    # PostgreSQL would refuse to start if the number in it were some other process's by now.
    pid_file.unlink(missing_ok=True)


def _processes(cluster: Path) -> list[Any]:
    """PostgreSQL's processes that work in `cluster`, which each of them makes its working directory."""
    psutil = _psutil()
    found = []
    for process in psutil.process_iter():
        # Processes that end meanwhile, or that we may not look into: those are not of our user, so not ours.
        with suppress(OSError, psutil.Error):
            if process.name() == "postgres" and Path(process.cwd()).samefile(cluster):
                found.append(process)
    return found


def _psutil() -> Any:
    # Only the extra `embedded` has it; `find_binaries` has said so by now if it is missing.
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 -- psutil ships no types

    return psutil


@contextmanager
def new_log(folder: Path, account: Account | None) -> Iterator[int]:
    """A descriptor that writes the log of this start; the log of the one before is kept in `server.log.1`."""
    log = folder / LOG
    if log.exists():
        log.replace(log.with_name(f"{LOG}.1"))
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
        yield descriptor
    finally:
        os.close(descriptor)


def last_words(folder: Path) -> str:
    """Where the log is and what it said last: its last fatal line if it has one, else its last line."""
    log = folder / LOG
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
        lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = [line for line in lines if "FATAL" in line or "PANIC" in line]
    return f"the log {log} " + (f"ends in: {(fatal or lines)[-1]}" if lines else "is empty")
