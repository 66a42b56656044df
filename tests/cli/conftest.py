"""The command line, in this process where it ends by itself, else as a process of its own."""

import io
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

from reserve.cli import logs, program


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def reserve(monkeypatch, tmp_path, capsys):
    """Run a command to its end: `reserve("audit", RESERVE_…=…)`, in an empty folder and a thread of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    root, quiet = logging.getLogger(), {name: logging.getLogger(name).level for name in logs._QUIET}
    level, handlers = root.level, root.handlers[:]

    def run(*words, stdin=b"", **settings):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["reserve", *map(str, words)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            for name, value in settings.items():
                patch.setenv(name, value)
            with ThreadPoolExecutor(1) as thread, pytest.raises(SystemExit) as end:
                thread.submit(program.main).result()
        said = capsys.readouterr()
        return Ended(end.value.code or 0, said.out, said.err)

    yield run
    structlog.reset_defaults()
    root.setLevel(level)
    root.handlers[:] = handlers
    for name, before in quiet.items():
        logging.getLogger(name).setLevel(before)


@pytest.fixture
def of_database(database_url, namespace):
    """The settings that lead a command to the test's namespace."""
    return {"RESERVE_DATABASE_URL": database_url, "RESERVE_NAMESPACE": namespace}


@pytest.fixture
def start(tmp_path):
    """Start a command as a process; killed at the end of the test if it is still there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RESERVE_")}
    started = []

    def run(*words, **settings):
        process = subprocess.Popen(
            [sys.executable, "-c", "from reserve.cli import main; main()", *map(str, words)],
            env=kept | settings,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def folder():
    """A folder that the embedded server's user can reach when we are root, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="reserve-test-")).resolve()
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)
