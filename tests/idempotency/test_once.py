"""Once: an effect and the answer under its key in one transaction, whatever comes at the same time."""

import asyncio

import pytest

from reserve.errors import IdempotencyKeyReused, JobFinished, JobNotFound
from reserve.idempotency import Done, IdempotencyKey, Replay, Response, find_stored
from reserve.idempotency.once import once
from tests.steps import fetch, until_waiting_for


def key(name="k", fingerprint=b"1"):
    return IdempotencyKey(name, fingerprint * 32)


def render(value):
    return Response(201, str(value).encode(), f"/things/{value}")


@pytest.fixture
async def things(conn, namespace):
    """A table to have an effect on."""
    await conn.execute(f"create table {namespace}.thing (id bigint generated always as identity, by text)")

    async def read():
        return [by for (by,) in await fetch(conn, f"select by from {namespace}.thing order by id")]

    return read


def adding(namespace, by="anna", refusal=None):
    async def work(conn):
        cursor = await conn.execute(f"insert into {namespace}.thing (by) values (%s) returning id", [by])
        if refusal is not None:
            raise refusal
        return (await cursor.fetchone())[0]

    return work


async def stored(database, which):
    return await database.transact(lambda conn: find_stored(database, conn, [which]))


async def test_the_effect_and_its_answer_are_stored_together_and_replayed(database, things, namespace):
    first = await once(database, key(), adding(namespace), render)
    assert first == Done(1, Response(201, b"1", "/things/1"))
    again = await once(database, key(), adding(namespace, "ben"), render)
    assert again == Replay(first.response)
    assert await things() == ["anna"]


async def test_without_a_key_it_just_happens(database, things, namespace):
    assert (await once(database, None, adding(namespace), render)).value == 1
    assert (await once(database, None, adding(namespace), render)).value == 2
    assert await things() == ["anna", "anna"]


async def test_the_key_of_another_request_is_refused_before_anything_happens(database, things, namespace):
    await once(database, key(), adding(namespace), render)
    with pytest.raises(IdempotencyKeyReused):
        await once(database, key(fingerprint=b"2"), adding(namespace, "ben"), render)
    assert await things() == ["anna"]


async def test_a_refusal_writes_nothing_and_is_judged_anew(database, things, namespace):
    for _ in range(2):
        with pytest.raises(JobFinished):
            await once(database, key(), adding(namespace, refusal=JobFinished("done")), render)
    assert await things() == []
    assert await stored(database, key()) == {}
    assert (await once(database, key(), adding(namespace), render)).value > 0
    assert await things() == ["anna"]


async def test_an_error_in_work_or_in_rendering_leaves_neither_effect_nor_key(database, things, namespace):
    with pytest.raises(ZeroDivisionError):
        await once(database, key(), adding(namespace, refusal=ZeroDivisionError()), render)
    with pytest.raises(ZeroDivisionError):
        await once(database, key(), adding(namespace), lambda _: 1 / 0)
    assert await things() == []
    assert await stored(database, key()) == {}


async def test_of_two_at_once_the_second_replays_what_the_first_has_done(database, conn, things, namespace):
    """The second waits for the key, finds it used, and is rolled back with its effect."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(its_conn):
        value = await adding(namespace, "first")(its_conn)
        begun.set()
        await go_on.wait()
        return value

    first = asyncio.create_task(once(database, key(), slowly, render))
    await begun.wait()
    second_begun, second_go_on = asyncio.Event(), asyncio.Event()

    async def second_work(its_conn):
        value = await adding(namespace, "second")(its_conn)
        second_begun.set()
        await second_go_on.wait()
        return value

    second = asyncio.create_task(once(database, key(), second_work, render))
    await second_begun.wait()
    go_on.set()
    done = await first
    second_go_on.set()
    assert await second == Replay(done.response)
    assert await things() == ["first"]


@pytest.mark.parametrize("fingerprint", [b"1", b"2"])
async def test_a_refusal_after_a_wait_looks_for_the_key_again(database, conn, things, namespace, fingerprint):
    """Who held the lock has done just this under the same key: the answer is that, and no refusal.

    Fails where the refusal is raised at once; and what was written before it must not stay.
    """
    await conn.execute(f"insert into {namespace}.thing (by) values ('locked')")

    async def finish(its_conn):
        await its_conn.execute(f"insert into {namespace}.thing (by) values ('before the refusal')")
        cursor = await its_conn.execute(f"update {namespace}.thing set by = 'finished' where by = 'locked'")
        if cursor.rowcount == 0:
            raise JobNotFound("it has finished already")
        return 1

    locked, go_on = asyncio.Event(), asyncio.Event()
    pids = []

    async def first_work(its_conn):
        await its_conn.execute(f"update {namespace}.thing set by = 'finished' where by = 'locked'")
        pids.append(its_conn.info.backend_pid)
        locked.set()
        await go_on.wait()
        return 1

    first = asyncio.create_task(once(database, key(), first_work, render))
    await locked.wait()
    second = asyncio.create_task(once(database, key(fingerprint=fingerprint), finish, render))
    await until_waiting_for(conn, pids[0])
    go_on.set()
    done = await first
    if fingerprint == b"1":
        assert await second == Replay(done.response)
    else:
        with pytest.raises(IdempotencyKeyReused):
            await second
    assert await things() == ["finished"]
