"""Sessions of the pool, to find and to end; and an effect that a test can count."""

import asyncio

from tests.steps import fetch, until_gone


async def pids(database, count):
    """The process ids of `count` sessions of the pool, all in use at once."""
    barrier = asyncio.Barrier(count)

    async def work(conn):
        await barrier.wait()
        return conn.info.backend_pid

    return await asyncio.gather(*(database.transact(work) for _ in range(count)))


async def end(conn, ended):
    await fetch(conn, "select pg_terminate_backend(pid) from unnest(%s::int[]) pid", ended)
    for pid in ended:
        await until_gone(conn, pid)


async def count(conn, namespace):
    return (await fetch(conn, f"select count(*) from {namespace}.pool"))[0][0]


def add_pool(namespace, key="tea"):
    return f"insert into {namespace}.pool (key, kind, created_at) values ('{key}', 'stock', now())"
