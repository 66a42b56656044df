"""A service of the replay's own: a temporary embedded PostgreSQL and `reserve serve` on it; and the audit.

Runs the same commands that a user runs, as processes of their own, and ends what it started.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from reserve.db import embedded

_START_SECONDS_MAX = 60
_STOP_SECONDS_MAX = 20

#: `reserve` of the same environment, also where its scripts are not on the path.
_RESERVE = (sys.executable, "-c", "from reserve.cli import main; main()")


class StackError(Exception):
    """The service of our own does not start; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running service; without `database_url` there is no audit."""

    url: str
    database_url: str | None


@contextmanager
def start() -> Iterator[Stack]:
    """A migrated, empty service on a free port of the loopback address, gone with the context."""
    with embedded.temporary() as server, tempfile.TemporaryDirectory() as folder:
        environment = _environment(server.url)
        migrated = subprocess.run([*_RESERVE, "migrate"], env=environment, capture_output=True, text=True, check=False)
        if migrated.returncode:
            raise StackError(f"`reserve migrate` failed: {(migrated.stdout + migrated.stderr)[-2000:]}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        log = Path(folder) / "serve.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*_RESERVE, "serve"],
                env=environment | {"RESERVE_HOST": "127.0.0.1", "RESERVE_PORT": str(port)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C is for the clients; the service goes on until they have their answers.
                start_new_session=True,
            )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(process, url, log)
            yield Stack(url, server.url)
        finally:
            _stop(process)


def audit(database_url: str) -> int:
    """Run `reserve audit` in this terminal; its exit status."""
    return subprocess.run([*_RESERVE, "audit"], env=_environment(database_url), check=False).returncode


def _environment(database_url: str) -> dict[str, str]:
    return os.environ | {"RESERVE_DATABASE_URL": database_url}


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS_MAX
    with httpx2.Client(trust_env=False, timeout=5) as http:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                if http.get(f"{url}/health/ready").status_code == 200:
                    return
            except httpx2.TransportError:
                pass  # not listening yet
            time.sleep(0.05)
    raise StackError(f"`reserve serve` does not get ready: {log.read_text(errors='replace')[-2000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
