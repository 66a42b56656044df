"""Root runs the embedded server as somebody else, and takes nothing from anybody."""

import os
import pwd
import stat
from pathlib import Path

import psutil
import pytest

from reserve.db import embedded_binaries
from reserve.settings import load
from tests.embedded import ask, says, start, tell

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


def test_root_runs_it_as_an_unprivileged_user_who_owns_the_folder_and_nothing_above(data_dir):
    above = [(path, path.stat().st_mode, path.stat().st_uid) for path in data_dir.parents]
    with start(data_dir) as server:
        user = psutil.Process(server.pid).uids()
        assert user.real == user.effective == data_dir.stat().st_uid != 0
        assert psutil.Process(server.pid).gids().effective != 0
    assert above == [(path, path.stat().st_mode, path.stat().st_uid) for path in data_dir.parents]


def test_the_default_data_folder_of_root_is_none_of_the_folders_that_only_root_can_enter():
    assert load(_env_file=None).data_dir == Path("/var/lib/reserve")


def test_root_leaves_the_folder_of_an_ordinary_user_theirs(data_dir):
    owner = pwd.getpwnam("daemon")
    data_dir.mkdir()
    os.chown(data_dir, owner.pw_uid, owner.pw_gid)
    with start(data_dir) as server:
        assert psutil.Process(server.pid).uids().effective == owner.pw_uid
    assert {path.stat().st_uid for path in data_dir.rglob("*")} == {owner.pw_uid}


def test_root_is_told_which_folder_the_servers_user_cannot_enter(folder):
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    says(closed / "data", rf"cannot enter {closed} to reach the data folder {closed}/data: .*--data-dir")
    assert list(closed.iterdir()) == []
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_root_takes_data_back_that_were_copied_as_root(data_dir):
    with start(data_dir) as server:
        tell(server, "create table kept as select 42 as answer")
    for path in [data_dir, *data_dir.rglob("*")]:
        os.chown(path, 0, 0)
    with start(data_dir) as server:
        assert ask(server, "select answer from kept") == (42,)


def test_binaries_below_a_closed_folder_are_copied_once_to_where_the_servers_user_runs_them(
    data_dir, folder, monkeypatch
):
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    packages = closed / "packages"
    packages.symlink_to(embedded_binaries._find_packages())
    monkeypatch.setattr(embedded_binaries, "_find_packages", lambda: packages)
    monkeypatch.setattr(embedded_binaries, "site_cache_path", lambda name: folder / "cache" / name)
    with start(data_dir) as server:
        assert server.bin_dir.is_relative_to(folder / "cache" / "reserve")
        assert ask(server, "select 1") == (1,)
    (copy,) = (folder / "cache" / "reserve").iterdir()
    made = copy.stat().st_mtime_ns
    with start(data_dir):
        pass
    assert [path.stat().st_mtime_ns for path in (folder / "cache" / "reserve").iterdir()] == [made]


def test_root_on_a_machine_without_an_unprivileged_user_is_told_so(data_dir, monkeypatch):
    monkeypatch.setattr(embedded_binaries, "_UNPRIVILEGED", ("nobody-by-this-name",))
    says(data_dir, "does not run as root, and here is no user nobody-by-this-name")
