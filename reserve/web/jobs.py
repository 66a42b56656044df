"""The calls on jobs: bytes in, answer out. Owns no rule of a job; see `reserve.jobs`."""

from collections.abc import Awaitable, Callable

from psycopg import AsyncConnection

from reserve.db.connection import Database
from reserve.errors import JobNotFound
from reserve.idempotency import Response
from reserve.idempotency.once import once
from reserve.jobs import managing
from reserve.jobs.enqueuing import enqueue_in
from reserve.jobs.finishing import finish_in
from reserve.jobs.leases import extend_in
from reserve.jobs.rows import Job, JobFilter, JobState
from reserve.web.answers import Answer, ok, outcome, renders
from reserve.web.cursors import decode_cursor, encode_cursor, read_job_id
from reserve.web.incoming import Incoming
from reserve.web.job_requests import (
    JobBody,
    JobCompleteBody,
    JobExtendBody,
    JobFailBody,
    JobReleaseBody,
    VerdictBody,
)
from reserve.web.job_shapes import held_job_shape, job_shape
from reserve.web.lanes import lane_name
from reserve.web.query import Parameters, refuse_query
from reserve.web.requests import EmptyBody
from reserve.web.shapes import list_shape

#: What a verb does to one job in a transaction of ours.
_Verb = Callable[[Database, AsyncConnection, int], Awaitable[Job]]


def job_path(job: Job) -> str:
    return f"/v1/jobs/{job.id}"


enqueued: Callable[[Job], Response] = renders(job_shape, 201, location=job_path)
_changed: Callable[[Job], Response] = renders(job_shape, 200)
_extended: Callable[[Job], Response] = renders(held_job_shape, 200)


def _job_id(incoming: Incoming) -> int:
    """The id of the path; what is no id is as unknown as an id that no job has."""
    text = incoming.segment("id")
    try:
        return read_job_id(text)
    except ValueError:
        raise JobNotFound(f"There is no job {text!r}.") from None


async def enqueue_job(database: Database, incoming: Incoming) -> Answer:
    """Enqueue; 201 with the job and its `Location`."""
    settings = database.settings
    key = incoming.idempotency_key(required=settings.idempotency_key_required)
    body, value = await incoming.read(JobBody, settings)
    wish = body.enqueue(lane_name(incoming))

    async def work(conn: AsyncConnection) -> Job:
        (job,) = await enqueue_in(conn, [wish], namespace=database.namespace, settings=settings)
        return job

    return outcome(await once(database, incoming.keyed(key, value), work, enqueued))


async def get_job(database: Database, incoming: Incoming) -> Answer:
    refuse_query(incoming.query)
    return ok(job_shape(await managing.get(database, _job_id(incoming))))


async def list_jobs(database: Database, incoming: Incoming) -> Answer:
    """Jobs, newest first, a page at a time."""
    query = Parameters(incoming.query, single=("lane", "state", "kind", "cursor", "limit"))
    chosen = JobFilter(lane=query.key("lane"), state=query.member("state", JobState), kind=query.key("kind"))
    after = decode_cursor("jobs", query.text("cursor"), read_job_id)
    page = await managing.find(database, chosen, after=after, limit=query.limit(database.settings))
    next_cursor = encode_cursor("jobs", page.items[-1].id) if page.more else None
    return ok(list_shape(map(job_shape, page.items), next_cursor))


async def complete_job(database: Database, incoming: Incoming) -> Answer:
    return await _finish(database, incoming, JobCompleteBody)


async def fail_job(database: Database, incoming: Incoming) -> Answer:
    return await _finish(database, incoming, JobFailBody)


async def release_job(database: Database, incoming: Incoming) -> Answer:
    return await _finish(database, incoming, JobReleaseBody)


async def _finish(database: Database, incoming: Incoming, model: type[VerdictBody]) -> Answer:
    """Finish by the holder's verdict; 200 with what the job has become."""
    key = incoming.idempotency_key(required=False)
    body, value = await incoming.read(model, database.settings)
    verdict = body.verdict(_job_id(incoming))

    async def work(conn: AsyncConnection) -> Job:
        await finish_in(database, conn, verdict)
        return await managing.get_in(database, conn, verdict.job_id)

    return outcome(await once(database, incoming.keyed(key, value), work, _changed))


async def extend_job(database: Database, incoming: Incoming) -> Answer:
    """Extend the lease; 200 with the job as its holder sees it."""
    key = incoming.idempotency_key(required=False)
    body, value = await incoming.read(JobExtendBody, database.settings)
    extend = body.extend(_job_id(incoming))

    async def work(conn: AsyncConnection) -> Job:
        await extend_in(database, conn, extend)
        return await managing.get_in(database, conn, extend.job_id)

    return outcome(await once(database, incoming.keyed(key, value), work, _extended))


async def cancel_job(database: Database, incoming: Incoming) -> Answer:
    return await _manage(database, incoming, managing.cancel_in)


async def retry_job(database: Database, incoming: Incoming) -> Answer:
    return await _manage(database, incoming, managing.retry_in)


async def discard_job(database: Database, incoming: Incoming) -> Answer:
    return await _manage(database, incoming, managing.discard_in)


async def _manage(database: Database, incoming: Incoming, verb: _Verb) -> Answer:
    """What needs no token; 200 with what the job has become."""
    key = incoming.idempotency_key(required=False)
    _, value = await incoming.read(EmptyBody, database.settings, empty=True)
    job_id = _job_id(incoming)
    keyed = incoming.keyed(key, value)
    return outcome(await once(database, keyed, lambda conn: verb(database, conn, job_id), _changed))
