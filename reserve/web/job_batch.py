"""The call that enqueues many jobs at once: each item is answered on its own, all that can be go in together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psycopg import AsyncConnection

from reserve.db.connection import Database
from reserve.errors import Fault, IdempotencyKeyReused, ReserveError, ValidationFailed
from reserve.idempotency import IdempotencyKey, Replay, Response, find_stored, fingerprint, write_stored
from reserve.jobs.enqueuing import enqueue_in
from reserve.jobs.rows import Enqueue
from reserve.web.answers import NO_STORE, Answer, encode
from reserve.web.batch import Item, of_item, read_items, refuse_key
from reserve.web.incoming import Incoming
from reserve.web.job_requests import JobItemBody
from reserve.web.jobs import enqueued
from reserve.web.lanes import lane_name
from reserve.web.problems import PROBLEMS, document

_Told = Response | ReserveError


@dataclass(frozen=True, slots=True)
class _Wish:
    """An item that can be read: its place in the batch, its job, its key if it has one."""

    number: int
    job: Enqueue
    key: IdempotencyKey | None


async def enqueue_jobs(database: Database, incoming: Incoming) -> Answer:
    """Enqueue each item; 200 with a status and a job or a problem for each, in order."""
    settings = database.settings
    refuse_key(incoming.idempotency_key(required=False))
    items = await read_items(incoming, JobItemBody, settings, items_max=settings.job_batch_max)
    lane = lane_name(incoming)
    told: dict[int, _Told] = {}
    wishes: list[_Wish] = []
    for number, item in enumerate(items):
        if isinstance(item.read, ValidationFailed):
            told[number] = item.read
        else:
            wishes.append(_Wish(number, item.read.enqueue(lane), _key(incoming, item.read, item)))
    while wishes:
        try:
            told |= await _enqueue(database, wishes)
            break
        except _Refused as refused:
            # What only the job lane can judge, such as a time too far away: the others go in without it.
            told |= refused.told
            wishes = [wish for wish in wishes if wish.number not in told]
    answers = b",".join(_item_answer(told[number], incoming.path) for number in range(len(items)))
    return Answer(200, b'{"items":[' + answers + b"]}", headers=(NO_STORE,))


class _Refused(Exception):
    """Some wishes were refused, and so nothing was enqueued yet."""

    def __init__(self, told: dict[int, _Told]) -> None:
        super().__init__()
        self.told = told


def _key(incoming: Incoming, body: JobItemBody, item: Item[JobItemBody]) -> IdempotencyKey | None:
    """The item's key, with the fingerprint of the single call that it stands for: either replays the other."""
    if body.idempotency_key is None:
        return None
    assert isinstance(item.value, dict), "what was read as an item is an object"
    job = {name: value for name, value in item.value.items() if name != "idempotency_key"}
    return IdempotencyKey(body.idempotency_key, fingerprint(incoming.method, incoming.path.removesuffix("/batch"), job))


async def _enqueue(database: Database, wishes: Sequence[_Wish]) -> dict[int, _Told]:
    """Enqueue in one transaction; the answer by the place in the batch. Raises `_Refused`, then nothing is done."""
    first: dict[str, _Wish] = {}
    for wish in wishes:
        if wish.key is not None:
            first.setdefault(wish.key.key, wish)
    keys = [wish.key for wish in first.values() if wish.key is not None]

    async def work(conn: AsyncConnection) -> dict[int, _Told]:
        found = {key: answer for (_, key), answer in (await find_stored(database, conn, keys)).items()}
        fresh = [
            wish for wish in wishes if wish.key is None or (first[wish.key.key] is wish and wish.key.key not in found)
        ]
        made = await _make(database, conn, fresh)
        await write_stored(database, conn, {wish.key: made[wish.number] for wish in fresh if wish.key is not None})
        told: dict[int, _Told] = {**made}
        for wish in wishes:
            if wish.number not in made and wish.key is not None:
                told[wish.number] = _judge(wish.key, first[wish.key.key], found, made)
        return told

    return await database.transact(work)


async def _make(database: Database, conn: AsyncConnection, fresh: Sequence[_Wish]) -> dict[int, Response]:
    jobs = [wish.job for wish in fresh]
    try:
        made = await enqueue_in(conn, jobs, namespace=database.namespace, settings=database.settings) if jobs else []
    except ValidationFailed as error:
        raise _Refused(_by_wish(error, fresh)) from error
    return {wish.number: enqueued(job) for wish, job in zip(fresh, made, strict=True)}


def _by_wish(error: ValidationFailed, fresh: Sequence[_Wish]) -> dict[int, _Told]:
    """The refusal of each wish, from pointers into their list."""
    if len(fresh) == 1:
        # Of one job, the pointers lead into the job itself.
        return {fresh[0].number: of_item(fresh[0].number, error.faults)}
    faults: dict[int, list[Fault]] = {}
    for fault in error.faults:
        position, slash, inner = fault.pointer.removeprefix("/").partition("/")
        faults.setdefault(fresh[int(position)].number, []).append(Fault(slash + inner, fault.detail))
    return {number: of_item(number, found) for number, found in faults.items()}


def _judge(
    key: IdempotencyKey,
    first: _Wish,
    found: Mapping[str, Replay | IdempotencyKeyReused],
    made: Mapping[int, Response],
) -> _Told:
    """The answer for a wish whose key was used before: in an earlier request, or by the `first` that has it here."""
    if key != first.key:
        return IdempotencyKeyReused(
            f"The idempotency key {key.key!r} stands in this batch with another job; use a new key for it."
        )
    answer = found.get(key.key)
    if answer is None:
        return made[first.number]
    return answer.response if isinstance(answer, Replay) else answer


def _item_answer(told: _Told, path: str) -> bytes:
    if isinstance(told, Response):
        return b'{"status":%d,"job":%s}' % (told.status, told.body)
    return encode({"status": PROBLEMS[type(told)].status, "problem": document(told, path)})
