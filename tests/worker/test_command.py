"""`reserve work`: what it says when it cannot start, how it runs and stops, and what a kill leaves behind."""

import re
import signal
import sys
import textwrap
from collections import Counter

import pytest

from reserve.jobs import enqueuing
from reserve.jobs.rows import Enqueue
from tests.steps import until_gone


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module into the folder that commands run in; its name is new, so that no import is remembered."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    before = set(sys.modules)

    def write(text, name="shop_jobs"):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        return name

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("shop"):
            del sys.modules[name]


NOOP = """
    from reserve.worker import Registry

    jobs = Registry()
    empty = Registry()
    text = "text"

    @jobs.handler("noop")
    async def noop(job):
        print("ran", job.id, flush=True)
"""


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("shop_jobs", "'shop_jobs' is not MODULE:REGISTRY, for instance shop.jobs:jobs."),
        ("shop_jobs:", "'shop_jobs:' is not MODULE:REGISTRY"),
        (":jobs", "':jobs' is not MODULE:REGISTRY"),
        (".shop:jobs", "'.shop:jobs' is not MODULE:REGISTRY"),
        ("shop_none:jobs", "There is no module 'shop_none' in the current folder or among the installed packages."),
        ("shop_jobs.more:jobs", "There is no module 'shop_jobs.more' in the current folder"),
        ("shop_jobs:nobody", "The module 'shop_jobs' has no 'nobody'; it has the registry 'jobs'."),
        ("shop_jobs:text", "shop_jobs:text is no Registry, but str."),
        (
            "shop_jobs:empty",
            "The registry 'shop_jobs:empty' is empty: importing 'shop_jobs' has registered no handler.",
        ),
    ],
)
def test_a_registry_that_is_not_there_is_a_sentence(reserve, of_database, module, where, sentence):
    module(NOOP)
    done = reserve("work", where, **of_database)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"reserve: {sentence}")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import shop_missing", "ModuleNotFoundError: No module named 'shop_missing' ("),
        ("1 / 0", "ZeroDivisionError: division by zero ("),
        ("raise SystemExit(0)", "SystemExit: 0 ("),
        ("def", "SyntaxError: "),
        (
            "from reserve.worker import Registry\njobs = Registry()\nfor _ in 'ab': jobs.handler('a')(print)",
            "ValueError: The kind 'a' has a handler already",
        ),
    ],
)
def test_a_module_that_cannot_be_imported_is_a_sentence_with_the_place(reserve, of_database, module, text, sentence):
    name = module(text, "shop_broken")
    done = reserve("work", f"{name}:jobs", **of_database)
    assert done.code == 1
    assert done.err.startswith(f"reserve: The module 'shop_broken' cannot be imported: {sentence}")
    assert re.search(r"shop_broken\.py[:,]", done.err)
    assert done.err.count("\n") == 1


def test_wrong_options_are_a_sentence(reserve, of_database, module):
    name = module(NOOP)
    done = reserve("work", f"{name}:jobs", "--lanes", "a,,b", **of_database)
    assert (done.code, done.err) == (1, "reserve: --lanes 'a,,b': the name '' must not be empty.\n")
    done = reserve("work", f"{name}:jobs", "--concurrency", 100_000, **of_database)
    assert (done.code, done.err) == (1, "reserve: /concurrency: must be a whole number from 1 to 1000\n")
    assert reserve("work", f"{name}:jobs", "--concurrency", 0, **of_database).code == 2
    done = reserve("work", f"{name}:jobs")
    assert done.code == 1
    assert "RESERVE_DATABASE_URL is not set" in done.err


# --- running ------------------------------------------------------------------------------------------------


@pytest.fixture
def work(start, of_database):
    """A running `reserve work` on the test's namespace, ready."""

    def run(*words, **settings):
        quick = {"RESERVE_LOG_FORMAT": "keyvalue", "RESERVE_JOB_RESCUE_INTERVAL_SECONDS": "0.05"}
        process = start("work", *words, **(of_database | quick | settings))
        line = process.stderr.readline()
        assert "event=work.started" in line, line + process.stderr.read()
        process.started = line
        return process

    return run


def end(process, number):
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


async def put(database, count, kind, lane="default"):
    wishes = [Enqueue(lane, kind, {"n": number}) for number in range(count)]
    return [job.id for job in await enqueuing.enqueue_many(database, wishes)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_says_what_it_works_on_and_stops_on_a_signal(work, module, database, yard, number):
    name = module(NOOP)
    (job_id,) = await put(database, 1, "noop", "mail")
    process = work(f"{name}:jobs", "--lanes", "mail, default", "--concurrency", "3")
    assert "lanes=mail,default kinds=noop concurrency=3 " in process.started.replace('"', "")
    assert process.stdout.readline() == f"ran {job_id}\n"
    code, _, err = end(process, number)
    assert (code, await yard.states()) == (0, {"succeeded": 1})
    assert re.findall(r" event=(\S+)", err) == ["work.stopping", "work.stopped"]
    assert "Traceback" not in err


STUBBORN = """
    import asyncio, threading

    from reserve.worker import Registry

    jobs = Registry()

    @jobs.handler("long")
    async def long(job):
        print("begun", flush=True)
        await asyncio.Event().wait()

    @jobs.handler("stubborn")
    async def stubborn(job):
        print("begun", flush=True)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

    @jobs.handler("thread")
    def thread(job):
        print("begun", flush=True)
        threading.Event().wait()
"""


@pytest.mark.parametrize("kind", ["long", "stubborn", "thread"])
async def test_a_second_signal_gives_back_at_once_whatever_the_handler_does(work, module, database, yard, kind):
    name = module(STUBBORN)
    await put(database, 1, kind)
    process = work(f"{name}:jobs")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    assert "event=work.stopping" in process.stderr.readline()
    assert end(process, signal.SIGTERM)[0] == 128 + signal.SIGTERM
    assert await yard.states() == {"ready": 1}


@pytest.mark.parametrize("kind", ["stubborn", "thread"])
async def test_after_the_grace_it_ends_whatever_the_handler_does(work, module, database, yard, kind):
    name = module(STUBBORN)
    await put(database, 1, kind)
    process = work(f"{name}:jobs", RESERVE_WORK_GRACE_SECONDS="0", RESERVE_WORK_CANCEL_SECONDS="0.1")
    assert process.stdout.readline() == "begun\n"
    assert end(process, signal.SIGTERM)[0] == 0
    assert await yard.states() == {"ready": 1}


KILLED = """
    import asyncio, os

    from reserve.worker import Registry

    jobs = Registry()
    namespace = os.environ["RESERVE_NAMESPACE"]

    @jobs.handler("charge")
    async def charge(job):
        number = job.payload["n"]
        halts = number >= int(os.environ["HALT_AT"])
        if halts and number % 3 == 0:
            await asyncio.Event().wait()  # nothing has happened
        with open("outside.txt", "a") as outside:
            outside.write(f"{job.id} {job.idempotency_key}\\n")
        async with job.transaction() as conn:
            await conn.execute(f"insert into {namespace}.effect (job_id) values (%s)", [job.id])
            if halts and number % 3 == 1:
                await asyncio.Event().wait()  # everything has happened, and nothing is committed
        if halts:
            await asyncio.Event().wait()  # all is done, and the worker does not know
"""


async def test_a_worker_killed_in_the_middle_of_200_jobs_loses_none_and_repeats_no_effect(
    work, module, database, yard, conn, namespace, tmp_path
):
    await conn.execute(f"create table {namespace}.effect (job_id bigint not null)")
    name = module(KILLED)
    ids = await put(database, 200, "charge")

    async def effects():
        cursor = await conn.execute(f"select job_id from {namespace}.effect")
        return Counter(job_id for (job_id,) in await cursor.fetchall())

    process = work(f"{name}:jobs", HALT_AT="100")
    # All ten hands halt: at three places, and some of their jobs have committed.
    while (await yard.states()).get("running", 0) < 10 or len(await effects()) < 100:
        assert process.poll() is None
    process.kill()
    process.wait()
    cursor = await conn.execute(
        "select pid from pg_stat_activity where datname = current_database() and application_name = 'reserve'"
        " and state like 'idle in transaction%%' and query like %s",
        [f"%{namespace}.effect%"],
    )
    for (pid,) in await cursor.fetchall():
        await until_gone(conn, pid)
    killed = await effects()
    assert 100 <= len(killed) < 200
    left = await yard.states()
    assert left["running"] > 0
    await conn.execute(
        f"update {namespace}.job set lease_expires_at = now() - interval '1 hour' where state = 'running'"
    )

    process = work(f"{name}:jobs", HALT_AT="1000")
    while await yard.states() != {"succeeded": 200}:
        assert process.poll() is None
    assert end(process, signal.SIGTERM)[0] == 0
    assert await effects() == Counter(ids), "each effect in the database exactly once"
    lines = Counter((tmp_path / "outside.txt").read_text().splitlines())
    keys = dict(line.split() for line in lines)
    assert set(keys) == {str(job_id) for job_id in ids}, "each effect outside at least once"
    assert len(lines) == len(set(keys.values())) == 200, "with one key for a job, whoever ran it"
    assert max(lines.values()) == 2, "and some of them twice, which is what the key is for"
    jobs = [await yard.read(job_id) for job_id in ids]
    assert {(job["attempt"], job["failures"]) for job in jobs} == {(1, 0)}, "a rescue is no failure"
    assert sum(job["rescues"] for job in jobs) == left["running"]
