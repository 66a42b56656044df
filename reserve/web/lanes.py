"""The calls on lanes: bytes in, answer out. Owns no rule of a lane; see `jobs.lanes`."""

from psycopg import AsyncConnection

from reserve.db.connection import Database
from reserve.errors import Fault, LaneNotFound, ValidationFailed
from reserve.idempotency.once import once
from reserve.jobs import lanes
from reserve.jobs.managing import retry_discarded_in
from reserve.names import normalise_key
from reserve.web.answers import Answer, ok, outcome, renders
from reserve.web.cursors import decode_cursor, encode_cursor, read_name
from reserve.web.incoming import Incoming
from reserve.web.job_requests import LaneBody, RetryDiscardedBody
from reserve.web.job_shapes import lane_shape, retried_shape
from reserve.web.query import Parameters, refuse_query
from reserve.web.shapes import list_shape

_retried = renders(retried_shape, 200)


def lane_name(incoming: Incoming) -> str:
    """The lane of the path, which may come to be by this request; `ValidationFailed` for an impossible name."""
    try:
        return normalise_key(incoming.segment("lane"))
    except ValueError as error:
        raise ValidationFailed([Fault("/lane", str(error))]) from None


def known_lane(incoming: Incoming) -> str:
    """The lane of the path; no lane can have an impossible name, so it is as unknown as any other."""
    text = incoming.segment("lane")
    try:
        return normalise_key(text)
    except ValueError:
        raise LaneNotFound(f"There is no lane {text!r}.") from None


async def put_lane(database: Database, incoming: Incoming) -> Answer:
    """Create or change; 201 or 200."""
    body, _ = await incoming.read(LaneBody, database.settings)
    lane, created = await lanes.put(database, lane_name(incoming), body.change())
    return ok(lane_shape(lane), status=201 if created else 200)


async def get_lane(database: Database, incoming: Incoming) -> Answer:
    refuse_query(incoming.query)
    return ok(lane_shape(await lanes.get(database, known_lane(incoming))))


async def list_lanes(database: Database, incoming: Incoming) -> Answer:
    """Lanes by name, a page at a time."""
    query = Parameters(incoming.query, single=("cursor", "limit"))
    after = decode_cursor("lanes", query.text("cursor"), read_name)
    page = await lanes.find(database, after=after, limit=query.limit(database.settings))
    next_cursor = encode_cursor("lanes", page.items[-1].name) if page.more else None
    return ok(list_shape(map(lane_shape, page.items), next_cursor))


async def retry_discarded(database: Database, incoming: Incoming) -> Answer:
    """Make discarded jobs of a lane ready again; 200 with their number."""
    key = incoming.idempotency_key(required=False)
    body, value = await incoming.read(RetryDiscardedBody, database.settings)
    lane = known_lane(incoming)

    async def work(conn: AsyncConnection) -> int:
        return await retry_discarded_in(database, conn, lane, kind=body.kind, limit=body.limit)

    return outcome(await once(database, incoming.keyed(key, value), work, _retried))
