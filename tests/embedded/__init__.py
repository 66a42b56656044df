"""The embedded server: what its tests do with one."""

import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from reserve.db import embedded
from reserve.db.embedded import EmbeddedServer
from reserve.errors import EmbeddedServerError

#: A program that starts a server, says its process id, and waits to be ended.
STARTER = """
import sys, time
from pathlib import Path
from reserve.db.embedded import start, temporary
with start(Path(sys.argv[1]), durable=False) if sys.argv[1:] else temporary(durable=False) as server:
    print(server.pid, server.data_dir, flush=True)
    time.sleep(60)
"""


def start(data_dir, **options):
    return embedded.start(data_dir, **({"durable": False} | options))


def ask(server: EmbeddedServer, question: str):
    with psycopg.connect(server.url, autocommit=True) as conn:
        return conn.execute(question).fetchone()


def tell(server: EmbeddedServer, command: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as conn:
        conn.execute(command)


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE  # its new parent may be slow to notice
    except psutil.NoSuchProcess:
        return True


def run_starter(*data_dir: Path) -> tuple[subprocess.Popen, int, Path]:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, *map(str, data_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    with starter.stdout:
        pid, _, place = starter.stdout.readline().rstrip().partition(" ")
        return starter, int(pid), Path(place)


def marked(data_dir) -> Path:
    """A folder that looks as if `reserve` had used it before."""
    data_dir.mkdir()
    (data_dir / "reserve.lock").touch()
    return data_dir


def says(data_dir, pattern, **options):
    with pytest.raises(EmbeddedServerError, match=pattern) as raised, start(data_dir, **options):
        pass
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)
