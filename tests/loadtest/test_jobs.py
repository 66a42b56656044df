"""Whole runs of the job benchmark, small, on a server of their own: from the command line to the exit status."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from loadtest import jobs
from loadtest.jobs_figures import CheckError
from loadtest.jobs_process import DriverError, driving

ROOT = Path(__file__).parent.parent.parent

#: Few jobs: whether it works, not how fast.
SMALL = (
    "--quick",
    *("--peers", "none", "--jobs", "200", "--claims", "20", "--deep-jobs", "2000", "--latency-jobs", "5"),
    *("--enqueue-seconds", "1", "--snapshot-seconds", "1"),
)


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize(
    ("parts", "ratio"),
    [
        ("floor,library,drain", "no-op jobs, lane of 200 ÷ floor"),
        ("http,enqueue,latency", None),
        ("claims,snapshot", "snapshot held ÷ without, whole"),
    ],
)
def test_our_own_parts_run_to_the_end_and_are_checked(parts, ratio, tmp_path, capsys):
    file = tmp_path / "figures.json"
    assert jobs.main([*SMALL, "--only", parts, "--json", str(file)]) == jobs.MEASURED
    out = capsys.readouterr().out
    document = json.loads(file.read_text())
    assert {figure["part"] for figure in document["figures"]} == set(parts.split(","))
    assert len(document["checks"]) == len(parts.split(","))
    assert all(figure["jobs_per_second"] or figure["latencies"] for figure in document["figures"])
    assert document["environment"]["synchronous_commit"] == document["environment"]["fsync"] == "on"
    assert "a quick look, not a measurement" in out
    assert (ratio or "checked: ") in out


def test_a_failed_check_prints_no_figures(capsys, monkeypatch):
    async def lose(bench):
        bench.findings.add_ratio("floor", "made up", 1.0, 1.0)
        raise CheckError("worker: jobs handled: found 999, and it must be 1000.")

    monkeypatch.setitem(jobs.PARTS, "floor", lose)
    assert jobs.main([*SMALL, "--only", "floor"]) == jobs.NOT_CHECKED
    out = capsys.readouterr().out
    assert "found 999, and it must be 1000" in out
    assert "made up" not in out


def test_a_peer_that_is_not_installed_is_left_out_with_its_reason(tmp_path, capsys):
    (tmp_path / "file").touch()
    status = jobs.main(["--quick", "--only", "enqueue", "--peers", "pgqueuer", "--peers-dir", str(tmp_path / "file")])
    assert status == jobs.MEASURED
    assert "left out: pgqueuer 1.6.0: its environment" in capsys.readouterr().out


@pytest.mark.parametrize("how", [["loadtest/jobs.py"], ["-m", "loadtest.jobs"]], ids=["script", "module"])
def test_it_runs_as_a_script_and_as_a_module(how):
    done = subprocess.run([sys.executable, *how, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--snapshot-seconds" in done.stdout


def test_ctrl_c_ends_the_server_and_every_process():
    with subprocess.Popen(
        [sys.executable, "loadtest/jobs.py", *SMALL, "--jobs", "100000", "--only", "library"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert "peers: done" in process.stdout.readline()
            assert "batches of 100" in process.stdout.readline()
            children = psutil.Process(process.pid).children(recursive=True)
            assert children
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == jobs.INTERRUPTED
    assert "Stopped" in rest
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


def script(tmp_path, text):
    file = tmp_path / "driver.py"
    file.write_text(text)
    return [sys.executable, str(file)]


async def test_a_driver_that_fails_is_named_with_its_last_words(tmp_path):
    command = script(tmp_path, "raise SystemExit('no such role')")
    async with driving("pgqueuer (work)", command, {}, tmp_path / "log") as driver:
        with pytest.raises(DriverError, match=r"pgqueuer \(work\) ended \(exit status 1\): no such role"):
            await driver.wait_for("ready", 60)


async def test_a_driver_that_says_something_else_is_an_error_but_progress_is_not(tmp_path):
    command = script(
        tmp_path, """print('{"event": "progress"}\\n{"event": "ready"}\\n{"event": "done"}', flush=True)"""
    )
    async with driving("pgqueuer (work)", command, {}, tmp_path / "log") as driver:
        await driver.wait_for("ready", 60)
        with pytest.raises(DriverError, match="where 'stopped' was due"):
            await driver.wait_for("stopped", 60)


async def test_a_driver_that_does_not_end_when_asked_is_ended(tmp_path):
    text = """import signal, threading
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('{"event": "ready"}', flush=True)
threading.Event().wait()
"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("loadtest.jobs_process._END_SECONDS", 0.1)
        patch.setattr("loadtest.jobs_process._END_UNASKED_SECONDS", 0.1)
        async with driving("deaf", script(tmp_path, text), {}, tmp_path / "log") as driver:
            await driver.wait_for("ready", 60)
            pid = driver.pid
    assert not psutil.pid_exists(pid)
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
