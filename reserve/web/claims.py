"""The call that claims jobs: waits for a first one without a connection, and claims nothing for a client that left."""

import asyncio

from psycopg import AsyncConnection

from reserve.db.connection import Database, RollBack
from reserve.idempotency import Done, IdempotencyKey, Replay
from reserve.idempotency.once import once
from reserve.jobs.claiming import claim_in
from reserve.jobs.finishing import finish_many
from reserve.jobs.rows import Claimed, Release
from reserve.web.answers import Answer, ok, outcome, renders
from reserve.web.incoming import Incoming
from reserve.web.job_requests import ClaimBody
from reserve.web.job_shapes import claim_shape
from reserve.web.lanes import lane_name
from reserve.web.polls import Client, Polls

_claimed = renders(claim_shape, 200)


async def claim_jobs(database: Database, incoming: Incoming) -> Answer:
    """Claim; 200 with the jobs, none when there was none in time."""
    key = incoming.idempotency_key(required=False)
    body, value = await incoming.read(ClaimBody, database.settings)
    lane = lane_name(incoming)
    keyed = incoming.keyed(key, value)
    async with incoming.polls.client(incoming.receive) as client:
        if keyed is not None:
            return outcome(await _claim_once(database, keyed, lane, body, client, incoming.polls))
        jobs = await incoming.polls.waits.claim(
            lane,
            body.worker,
            limit=body.limit,
            lease_seconds=body.lease_seconds,
            wait_seconds=body.wait_seconds,
            gone=client.over,
        )
        if jobs and client.left:
            # It left while they were claimed, and nobody will ever know their tokens.
            await finish_many(database, [Release(job.id, job.token) for job in jobs])
            jobs = []
    return ok(claim_shape(jobs))


async def _claim_once(
    database: Database, key: IdempotencyKey, lane: str, body: ClaimBody, client: Client, polls: Polls
) -> Done[list[Claimed]] | Replay:
    """A claim that is stored under its key in its own transaction, so that a client that lost the answer gets it again.

    Raises `Overloaded` where too many wait. What was found for a client that has left stays
    claimed: it may come back with its key.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + body.wait_seconds

    async def work(conn: AsyncConnection) -> list[Claimed]:
        jobs = await claim_in(database, conn, lane, body.worker, limit=body.limit, lease_seconds=body.lease_seconds)
        if not jobs:
            # Not to be stored: asked again, there may be some.
            raise RollBack(Done(jobs, _claimed(jobs)))
        return jobs

    while True:
        answer = await once(database, key, work, _claimed)
        left = until - loop.time()
        if isinstance(answer, Replay) or answer.value or left <= 0 or client.over.is_set():
            return answer
        await polls.waits.wait(lane, left, client.over)
