"""Stored answers on the real database: written last, replayed byte for byte, pruned, taken over when they are old."""

import asyncio

import pytest

from reserve.db.connection import RunAgain
from reserve.errors import Contended, IdempotencyKeyReused
from reserve.idempotency import IdempotencyKey, Replay, Response, find_stored, prune_keys, write_stored
from tests.steps import fetch, until_waiting, until_waiting_for

HOUR = 3600


def key(name, fingerprint=b"1", principal_id=0):
    return IdempotencyKey(name, fingerprint * 32, principal_id)


async def write(database, answers):
    return await database.transact(lambda conn: write_stored(database, conn, answers))


async def find(database, *keys):
    return await database.transact(lambda conn: find_stored(database, conn, keys))


async def age(conn, namespace, seconds, *names):
    """Let these keys have been stored longer ago, by their rows."""
    await fetch(
        conn,
        f"update {namespace}.idempotency_key set created_at = created_at - make_interval(secs => %s), "
        "expires_at = expires_at - make_interval(secs => %s) where key = any (%s) returning 1",
        seconds,
        seconds,
        list(names),
    )


@pytest.mark.parametrize(
    "response",
    [
        Response(200, b""),
        Response(201, b'{"a": "\\u0000"}', "/v1/holds/1", '"1"'),
        Response(299, bytes(range(256)) * 100, "", ""),
    ],
)
async def test_an_answer_comes_back_byte_for_byte(database, response):
    await write(database, {key("k"): response})
    assert await find(database, key("k")) == {(0, "k"): Replay(response)}


async def test_the_same_key_of_two_principals_is_two_keys(database):
    await write(database, {key("k"): Response(200, b"zero"), key("k", principal_id=7): Response(200, b"seven")})
    found = await find(database, key("k", principal_id=7), key("k"), key("unknown"))
    assert {which: replay.response.body for which, replay in found.items()} == {(0, "k"): b"zero", (7, "k"): b"seven"}


async def test_nothing_asked_and_nothing_written_take_no_statement(database):
    assert await find_stored(database, None, []) == {}
    assert await write_stored(database, None, {}) is None


async def test_keys_are_told_apart_by_case_accent_and_length(database):
    names = ["k", "K", "ḱ", " k", "k ", "k" * 255, "🍵"]
    await write(database, {key(name): Response(200, name.encode()) for name in names})
    found = await find(database, *map(key, names))
    assert {which[1]: replay.response.body.decode() for which, replay in found.items()} == dict(
        zip(names, names, strict=True)
    )


async def test_another_request_is_told_that_the_key_was_used(database):
    await write(database, {key("k"): Response(200, b"")})
    assert isinstance((await find(database, key("k", b"2")))[0, "k"], IdempotencyKeyReused)


async def test_a_key_that_is_stored_already_makes_the_writer_run_again(database):
    await write(database, {key("b"): Response(200, b"first")})
    tries = []

    async def work(conn):
        tries.append(conn)
        await write_stored(database, conn, {key("a"): Response(200, b""), key("b"): Response(200, b"second")})

    with pytest.raises(Contended) as raised:
        await database.transact(work)
    assert isinstance(raised.value.__cause__, RunAgain)
    assert len(tries) == 1 + database.settings.transaction_retries_max
    assert set(await find(database, key("a"), key("b"))) == {(0, "b")}


async def test_a_key_past_its_retention_counts_as_not_stored_and_is_taken_over(database, conn, namespace):
    await write(database, {key("k"): Response(200, b"old")})
    await age(conn, namespace, 25 * HOUR, "k")
    assert await find(database, key("k")) == {}
    await write(database, {key("k", b"2"): Response(201, b"new", "/there", '"2"')})
    assert await find(database, key("k", b"2")) == {(0, "k"): Replay(Response(201, b"new", "/there", '"2"'))}


async def test_two_that_take_over_one_old_key_at_once_are_one_and_a_retry(database, conn, namespace):
    await write(database, {key("k"): Response(200, b"old")})
    await age(conn, namespace, 25 * HOUR, "k")
    go_on, written, tries = asyncio.Event(), asyncio.Event(), []

    async def first(its_conn):
        await write_stored(database, its_conn, {key("k"): Response(200, b"first")})
        written.set()
        await go_on.wait()

    async def second(its_conn):
        tries.append(await find_stored(database, its_conn, [key("k")]))
        if not tries[-1]:
            await write_stored(database, its_conn, {key("k"): Response(200, b"second")})

    one = asyncio.create_task(database.transact(first))
    await written.wait()
    other = asyncio.create_task(database.transact(second))
    await until_waiting(conn)
    go_on.set()
    await asyncio.gather(one, other)
    assert tries == [{}, {(0, "k"): Replay(Response(200, b"first"))}]


async def test_pruning_deletes_the_oldest_first_and_only_what_is_past_its_retention(database, conn, namespace):
    await write(database, {key(name): Response(200, b"") for name in "abcd"})
    await age(conn, namespace, 25 * HOUR, "a", "c")
    await age(conn, namespace, 26 * HOUR, "b")
    assert await prune_keys(database, limit=1) == 1
    assert await fetch(conn, f"select key from {namespace}.idempotency_key order by key") == [("a",), ("c",), ("d",)]
    assert await prune_keys(database, limit=10) == 2
    assert await prune_keys(database, limit=10) == 0
    assert await fetch(conn, f"select key from {namespace}.idempotency_key order by key") == [("d",)]


async def test_pruning_waits_for_a_key_that_is_being_taken_over_and_leaves_it(database, conn, namespace):
    await write(database, {key("k"): Response(200, b"old")})
    await age(conn, namespace, 25 * HOUR, "k")
    go_on, written = asyncio.Event(), asyncio.Event()

    async def take_over(its_conn):
        await write_stored(database, its_conn, {key("k"): Response(200, b"new")})
        written.set()
        await go_on.wait()

    taking = asyncio.create_task(database.transact(take_over))
    await written.wait()
    pruning = asyncio.create_task(prune_keys(database, limit=10))
    await until_waiting(conn)
    go_on.set()
    await taking
    assert await pruning == 0
    assert (await find(database, key("k")))[0, "k"].response.body == b"new"


async def test_pruning_locks_in_the_order_of_keys_as_writing_does(database, conn, namespace, database_url):
    """Fails where a delete along `expires_at` locks as it goes: writer and pruner then wait for each other."""
    await write(database, {key(name): Response(200, b"") for name in "ab"})
    await age(conn, namespace, 26 * HOUR, "b")
    await age(conn, namespace, 25 * HOUR, "a")
    other = await type(conn).connect(database_url)
    await other.execute(f"select from {namespace}.idempotency_key where key = 'b' for update")
    pruning = asyncio.create_task(prune_keys(database, limit=10))
    pid = await until_waiting_for(conn, other.info.backend_pid)
    writing = asyncio.create_task(write(database, {key(name): Response(200, b"new") for name in "ab"}))
    # The pruner is at "b" with "a" in its hands, so the writer is still before "a".
    await until_waiting_for(conn, pid)
    await other.rollback()
    await other.close()
    assert await pruning == 2
    await writing
    assert {replay.response.body for replay in (await find(database, key("a"), key("b"))).values()} == {b"new"}
