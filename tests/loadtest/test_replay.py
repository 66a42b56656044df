"""Whole replays, from the command line to the exit status, against a live service."""

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from loadtest import replay, stack
from loadtest.carts import Run
from loadtest.client import Client

ROOT = Path(__file__).parent.parent.parent
ODD_FILE = str(ROOT / "tests" / "data" / "orders-odd.csv")
ORDERS_DIR = os.environ.get("RESERVE_TEST_ORDERS_DIR")


@pytest.fixture
def run(service_url, database_url, namespace, monkeypatch):
    """Replay against the live service of the test, with its audit; the exit status."""
    monkeypatch.setenv("RESERVE_NAMESPACE", namespace)
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments):
        return replay.main([*arguments, "--url", service_url, "--database-url", database_url, "--lapse-seconds", "1"])

    return run


def pools(service_url):
    with httpx2.Client(base_url=service_url, trust_env=False) as http:
        return http.get("/v1/pools?limit=1000").json()["items"]


@pytest.mark.parametrize("how", [(), ("--shuffle", "--seed", "2"), ("--share", "0.2"), ("--repeated", "1")], ids=str)
def test_the_odd_file_replays_clean(run, capsys, how):
    assert run(ODD_FILE, *how) == replay.CLEAN
    out = capsys.readouterr().out
    assert f"{ODD_FILE}:18: negative quantity outside a cancellation ('-10') — left out" in out
    assert f"{ODD_FILE}:15: came back, but was not sold in this run (7 of 7) — used" in out
    assert "Clean over HTTP" in out


def test_a_second_replay_against_the_same_service_starts_with_pools_of_its_own(run, service_url):
    assert run(ODD_FILE) == run(ODD_FILE) == replay.CLEAN
    keys = [pool["key"] for pool in pools(service_url)]
    assert len({key.partition("/")[0] for key in keys}) == 2
    assert len(keys) == len(set(keys)) == 2 * 11


def test_with_all_of_demand_in_stock_no_cart_is_refused(run, capsys, service_url):
    assert run(ODD_FILE, "--share", "1", "--paid", "1") == replay.CLEAN
    counts = dict(
        line.strip("│ ").rsplit("│", 1) for line in capsys.readouterr().out.splitlines() if line.count("│") == 3
    )
    figures = {name.strip(): value.strip() for name, value in counts.items()}
    assert (figures["carts read"], figures["placed"], figures["insufficient"]) == ("8", "8", "0")
    by_code = {pool["key"].partition("/")[2]: pool for pool in pools(service_url)}
    # 4880 were sold, 80 of them came back.
    assert (by_code["K101"]["confirmed"], by_code["K101"]["on_hand"]) == (4880, 4960)
    assert {code for code in by_code if code.casefold() == "k100a"} == {"K100A", "K100a"}


def test_pools_that_exist_already_are_not_used(run, capsys):
    assert run(ODD_FILE, "--prefix", "mine/") == replay.CLEAN
    assert run(ODD_FILE, "--prefix", "mine/") == replay.NOT_STARTED
    assert "cannot be made" in capsys.readouterr().out


def test_a_service_that_forgets_a_confirm_is_not_clean(run, capsys, monkeypatch):
    send = Client.send

    async def lie(self, method, path, body=None, key=None):
        """Release in the place of a confirm, and say that it was one."""
        if path.endswith("/confirm"):
            answer = await send(self, method, path.replace("/confirm", "/release"), body, key)
            return type(answer)(
                answer.status, answer.body.replace(b"released", b"confirmed"), answer.headers, replayed=True
            )
        return await send(self, method, path, body, key)

    monkeypatch.setattr(Client, "send", lie)
    assert run(ODD_FILE, "--paid", "1", "--repeated", "0") == replay.NOT_CLEAN
    out = capsys.readouterr().out
    assert "is released, but must be confirmed" in out
    assert "Not clean" in out


def test_an_audit_that_finds_something_makes_the_replay_not_clean(run, monkeypatch):
    monkeypatch.setattr(stack, "audit", lambda url: 1)
    assert run(ODD_FILE) == replay.NOT_CLEAN


def test_a_service_that_is_not_there_is_said_in_a_sentence(capsys, monkeypatch):
    monkeypatch.setattr("loadtest.client.ATTEMPTS_MAX", 1)
    assert replay.main([ODD_FILE, "--url", "http://127.0.0.1:9"]) == replay.NOT_STARTED
    assert "ConnectError" in capsys.readouterr().out


def test_a_file_without_a_cart_is_said_in_a_sentence(tmp_path, capsys):
    file = tmp_path / "orders.csv"
    file.write_text("InvoiceNo,StockCode,Quantity\nC1,A,-2\n")
    assert replay.main([str(file)]) == replay.NOT_STARTED
    assert replay.main([str(tmp_path / "no such file.csv")]) == replay.NOT_STARTED
    assert "not one cart" in capsys.readouterr().out


def test_ctrl_c_takes_no_new_carts_and_still_prints_the_table(run, capsys, monkeypatch):
    settle = Run._settle

    async def settle_and_interrupt(self, hold_id):
        self.stop.set()
        await settle(self, hold_id)

    monkeypatch.setattr(Run, "_settle", settle_and_interrupt)
    assert run(ODD_FILE, "--clients", "1", "--share", "1") == replay.INTERRUPTED
    out = capsys.readouterr().out
    assert "stopped before its end" in out
    assert "carts read" in out


@pytest.mark.parametrize("how", [["loadtest/replay.py"], ["-m", "loadtest.replay"]], ids=["script", "module"])
def test_it_runs_as_a_script_and_as_a_module(how):
    done = subprocess.run([sys.executable, *how, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--shuffle" in done.stdout


def test_without_a_url_it_starts_a_service_of_its_own_and_audits_it(capfd):
    assert replay.main([ODD_FILE, "--lapse-seconds", "1"]) == replay.CLEAN
    out = capfd.readouterr().out
    assert "Clean over HTTP" in out
    assert "no difference" in out


@pytest.mark.skipif(ORDERS_DIR is None, reason="RESERVE_TEST_ORDERS_DIR names no folder of real order files (*.csv)")
@pytest.mark.parametrize("how", [(), ("--shuffle",)], ids=["in order", "shuffled"])
def test_the_real_files_replay_clean(run, how):
    files = sorted(map(str, Path(ORDERS_DIR).glob("*.csv")))
    assert files, f"no *.csv in {ORDERS_DIR}"
    assert run(*files, *how) == replay.CLEAN
