"""`dev` and `serve` start, serve, and stop everything they have started, in order, on one signal."""

import asyncio
import json
import re
import shlex
import signal
import socket
import subprocess
from contextlib import asynccontextmanager, suppress

import httpx2
import psutil
import psycopg
import pytest

from tests.steps import LOOKS_MAX, until_waiting


def read_until(stream, pattern):
    """The lines up to the one that fits, and what of it fits."""
    lines = []
    for line in stream:
        lines.append(line)
        if match := re.search(pattern, line):
            return "".join(lines), match
    raise AssertionError(f"ended without {pattern!r}: {''.join(lines)}")


@pytest.fixture
def dev(start, folder):
    """A running `reserve dev` on a new folder: the process, what it said, its URL."""

    def run(**settings):
        process = start("dev", "--port", "0", "--data-dir", folder / "data", **settings)
        said, _ = read_until(process.stdout, "Ctrl-C stops everything")
        return process, said, re.search(r"http://127.0.0.1:\d+", said)[0]

    return run


def end(process, number):
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_dev_serves_sample_pools_and_prints_lines_that_work_as_pasted_and_again(dev):
    process, said, url = dev()
    listed = httpx2.get(f"{url}/v1/pools").json()["items"]
    assert {pool["key"] for pool in listed} == {"tshirt-black-m", "poster-a2", "vinyl-numbered"}
    assert httpx2.get(f"{url}/schema").status_code == 200
    for line, state in zip(re.findall(r"curl .*", said), ("held", "ready"), strict=True):
        first, second = (subprocess.run(shlex.split(line), capture_output=True, check=True).stdout for _ in range(2))
        assert json.loads(first)["state"] == state
        assert first == second, "pasted again it is a retry"
    assert [job["lane"] for job in httpx2.get(f"{url}/v1/jobs").json()["items"]] == ["default"]
    response = httpx2.get(f"{url}/health/ready")
    assert response.status_code == 200
    assert "date" in response.headers
    assert "server" not in response.headers
    code, out, err = end(process, signal.SIGINT)
    assert (code, out) == (0, "Stopped.\n"), err
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything_and_the_data_survives(dev, number):
    process, _, url = dev()
    assert httpx2.put(f"{url}/v1/pools/mine", json={"on_hand": 7}).status_code == 201
    children = psutil.Process(process.pid).children(recursive=True)
    assert children, "PostgreSQL"
    code, out, err = end(process, number)
    assert (code, out) == (0, "Stopped.\n"), err
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
    process, _, url = dev()
    assert httpx2.get(f"{url}/v1/pools/mine").json()["on_hand"] == 7
    assert len(httpx2.get(f"{url}/v1/pools").json()["items"]) == 4, "samples come to an empty namespace only"
    assert end(process, number)[0] == 0


def test_everything_is_stopped_in_order(dev):
    process, _, _ = dev(RESERVE_LOG_FORMAT="keyvalue")
    _, _, err = end(process, signal.SIGTERM)
    events = re.findall(r" event=(\S+)", err)
    assert events[-6:] == ["serve.stopping", *["service.stopped"] * 4, "serve.stopped"]


def test_a_second_dev_on_the_same_folder_is_told_who_has_it(dev, reserve, folder):
    process, _, _ = dev()
    done = reserve("dev", "--port", "0", "--data-dir", folder / "data")
    assert done.code == 1
    assert f"is in use by another `reserve` (process {process.pid})" in done.err
    assert done.err.count("\n") == 1


def test_a_server_that_dies_ends_dev_with_a_sentence(dev):
    process, _, _ = dev()
    (postmaster,) = psutil.Process(process.pid).children()
    postmaster.kill()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Stopped." not in out
    assert err.splitlines()[-1].startswith("reserve: The embedded PostgreSQL ended by itself")
    assert "Traceback" not in err


def test_a_port_that_is_taken_is_a_sentence_before_anything_is_started(reserve, folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = reserve("dev", "--port", port, "--data-dir", folder / "data")
        assert done.code == 1
        assert done.err == (f"reserve: Port {port} of 127.0.0.1 is taken: choose another with --port, or 0 for any.\n")
        assert not (folder / "data").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 -- to be refused
def test_an_address_that_others_can_reach_is_refused(reserve, of_database, host):
    for done in (reserve("dev", "--host", host), reserve("serve", RESERVE_HOST=host, **of_database)):
        assert done.code == 1
        assert "is not a loopback address; until there are credentials" in done.err
        assert done.err.count("\n") == 1


# --- serve --------------------------------------------------------------------------------------------------


@pytest.fixture
def serve(start, of_database):
    """A running `reserve serve` on the test's namespace: the process and its URL."""

    def run(**settings):
        process = start("serve", RESERVE_PORT="0", RESERVE_LOG_FORMAT="keyvalue", **(of_database | settings))
        _, match = read_until(process.stderr, r"event=serve.started url=(\S+) access=\"loopback only")
        return process, match[1]

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_says_that_it_listens_on_loopback_only_and_stops_on_a_signal(serve, number):
    process, url = serve()
    assert httpx2.get(f"{url}/health/ready").json() == {"status": "ready"}
    code, out, err = end(process, number)
    assert (code, out) == (0, "")
    assert "event=serve.stopped" in err


@asynccontextmanager
async def waiting(url, database_url, namespace, conn):
    """A change of a pool that waits for a lock of ours: the request as a task, and what lets it go on."""
    async with httpx2.AsyncClient(base_url=url, timeout=30) as http:
        assert (await http.put("/v1/pools/a", json={"on_hand": 7})).status_code == 201
        with psycopg.connect(database_url) as holder:
            holder.execute(f"select from {namespace}.pool for no key update")
            asked = asyncio.create_task(http.put("/v1/pools/a", json={"buffer": 2}))
            await until_waiting(conn)
            yield asked, holder.rollback


def refuses_connections(url):
    try:
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=5).close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it was in the backlog that was just closed
        return True
    return False


PATIENT = {"RESERVE_LOCK_WAIT_SECONDS": "30", "RESERVE_STATEMENT_TIMEOUT_SECONDS": "30"}


async def test_a_request_that_is_running_gets_its_answer_before_the_stop(serve, database_url, namespace, conn):
    process, url = serve(**PATIENT)
    async with waiting(url, database_url, namespace, conn) as (asked, go_on):
        process.send_signal(signal.SIGTERM)
        read_until(process.stderr, "event=serve.stopping")
        # The listening socket is the first thing that a stop closes.
        while not refuses_connections(url):
            assert process.poll() is None
        assert not asked.done()
        go_on()
        answer = await asked
    assert (answer.status_code, answer.json()["buffer"]) == (200, 2)
    assert end(process, 0)[0] == 0


async def test_a_second_signal_waits_for_nothing_and_nothing_is_half_done(serve, database_url, namespace, conn):
    process, url = serve(**PATIENT)
    async with waiting(url, database_url, namespace, conn) as (asked, _):
        process.send_signal(signal.SIGTERM)
        read_until(process.stderr, "event=serve.stopping")
        assert end(process, signal.SIGTERM)[0] == 128 + signal.SIGTERM
        with suppress(httpx2.TransportError):  # its connection may have ended as well
            assert (await asked).status_code >= 500
    cursor = await conn.execute(f"select sum(buffer) from {namespace}.slot")
    assert await cursor.fetchone() == (0,)


def test_serve_sweeps(serve, of_database, database_url, namespace):
    process, url = serve(RESERVE_SWEEP_INTERVAL_SECONDS="0.05")
    httpx2.put(f"{url}/v1/pools/a", json={"on_hand": 7})
    hold = httpx2.post(
        f"{url}/v1/holds",
        json={"lines": [{"pool": "a", "quantity": 1}], "ttl_seconds": 1},
        headers={"Idempotency-Key": "k"},
    )
    assert hold.status_code == 201
    read_until(process.stderr, "event=holds.expired service=sweep count=1")
    assert end(process, signal.SIGTERM)[0] == 0


def test_serve_looks_after_jobs_that_nobody_works_on(serve):
    process, url = serve(RESERVE_JOB_DUE_INTERVAL_SECONDS="0.05", RESERVE_JOB_RESCUE_INTERVAL_SECONDS="0.05")
    headers = {"Idempotency-Key": "k"}
    later = {"kind": "greet", "payload": {}, "delay_seconds": 0.2}
    job = httpx2.post(f"{url}/v1/lanes/a/jobs", json=later, headers=headers).json()
    assert job["state"] == "scheduled"
    read_until(process.stderr, "event=jobs.made_ready service=due count=1")
    claim = {"worker": "w", "lease_seconds": 1}
    assert [each["id"] for each in httpx2.post(f"{url}/v1/lanes/a/claims", json=claim).json()["jobs"]] == [job["id"]]
    read_until(process.stderr, "event=jobs.rescued service=rescue count=1")
    job = httpx2.get(f"{url}/v1/jobs/{job['id']}").json()
    assert (job["state"], job["failures"], job["rescues"]) == ("ready", 0, 1)
    assert end(process, signal.SIGTERM)[0] == 0


async def until_looking_for_jobs(conn, namespace):
    """Wait until a session's last statement was the look of claims that wait."""
    for _ in range(LOOKS_MAX):
        cursor = await conn.execute(
            "select count(*) from pg_stat_activity where starts_with(query, '/* reserve:job_look */') and query ~ %s",
            [namespace],
        )
        if await cursor.fetchone() != (0,):
            return
        await asyncio.sleep(0)
    raise AssertionError("a claim should wait")


async def test_a_claim_that_waits_for_a_job_does_not_keep_a_stop_waiting(serve, conn, namespace):
    # Longer than the test may take, so that only the stop can end the wait.
    process, url = serve(RESERVE_JOB_CLAIM_WAIT_SECONDS_MAX="300", RESERVE_STOP_SECONDS_MAX="300")
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        claim = {"worker": "w", "wait_seconds": 300}
        asked = asyncio.create_task(http.post("/v1/lanes/a/claims", json=claim))
        await until_looking_for_jobs(conn, namespace)
        process.send_signal(signal.SIGTERM)
        answer = await asked
    assert (answer.status_code, answer.json()) == (200, {"jobs": []})
    assert end(process, 0)[0] == 0


def test_the_log_can_be_json(start, of_database):
    process = start("serve", RESERVE_PORT="0", RESERVE_LOG_FORMAT="json", **of_database)
    _, match = read_until(process.stderr, r"^.*serve\.started.*$")
    line = json.loads(match[0])
    assert line["event"] == "serve.started"
    assert line["level"] == "info"
    assert line["url"].startswith("http://127.0.0.1:")


def test_bytes_that_are_no_http_are_refused_with_a_problem_document(serve):
    process, url = serve()
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=10) as raw:
        raw.sendall(b"GET /v1/pools HTTP/9.9\r\n\r\n")
        head, _, body = b"".join(iter(lambda: raw.recv(4096), b"")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["code"] == "invalid-request"
    assert end(process, signal.SIGTERM)[0] == 0
