"""The calls on holds: bytes in, answer out. Owns no rule of a hold; see `inventory.holds`.

Placing, confirming, releasing and extending are the hot path: nothing of a framework works between reading
the bytes and calling the inventory.
"""

from collections.abc import Callable
from operator import attrgetter
from uuid import UUID

from reserve.db.connection import Database
from reserve.errors import HoldNotFound
from reserve.idempotency import Response
from reserve.inventory import holds
from reserve.inventory.rows import Hold, HoldFilter, HoldState
from reserve.web.answers import Answer, ok, outcome, renders
from reserve.web.cursors import decode_cursor, encode_cursor, read_hold_id
from reserve.web.incoming import Incoming
from reserve.web.query import Parameters, refuse_query
from reserve.web.requests import EmptyBody, ExtendBody, HoldBody
from reserve.web.shapes import hold_shape, list_shape

_version: Callable[[Hold], int] = attrgetter("version")
_settled: Callable[[Hold], Response] = renders(hold_shape, 200, version=_version)


def hold_path(hold: Hold) -> str:
    return f"/v1/holds/{hold.id}"


_placed: Callable[[Hold], Response] = renders(hold_shape, 201, location=hold_path, version=_version)


def _hold_id(incoming: Incoming) -> UUID:
    """The id of the path; what is no id is as unknown as an id that nobody has."""
    text = incoming.segment("id")
    try:
        return read_hold_id(text)
    except ValueError:
        raise HoldNotFound(f"There is no hold {text!r}.") from None


async def place_hold(database: Database, incoming: Incoming) -> Answer:
    """Place; 201 with the hold, its `Location` and `ETag`."""
    settings = database.settings
    key = incoming.idempotency_key(required=settings.idempotency_key_required)
    body, value = await incoming.read(HoldBody, settings)
    return outcome(await holds.place(database, body.place(), incoming.keyed(key, value), _placed))


async def confirm_hold(database: Database, incoming: Incoming) -> Answer:
    key = incoming.idempotency_key(required=False)
    _, value = await incoming.read(EmptyBody, database.settings, empty=True)
    return outcome(await holds.confirm(database, _hold_id(incoming), incoming.keyed(key, value), _settled))


async def release_hold(database: Database, incoming: Incoming) -> Answer:
    key = incoming.idempotency_key(required=False)
    _, value = await incoming.read(EmptyBody, database.settings, empty=True)
    return outcome(await holds.release(database, _hold_id(incoming), incoming.keyed(key, value), _settled))


async def extend_hold(database: Database, incoming: Incoming) -> Answer:
    key = incoming.idempotency_key(required=False)
    body, value = await incoming.read(ExtendBody, database.settings)
    hold_id = _hold_id(incoming)
    return outcome(await holds.extend(database, hold_id, body.ttl_seconds, incoming.keyed(key, value), _settled))


async def get_hold(database: Database, incoming: Incoming) -> Answer:
    refuse_query(incoming.query)
    hold = await holds.get(database, _hold_id(incoming))
    return ok(hold_shape(hold), version=hold.version)


async def list_holds(database: Database, incoming: Incoming) -> Answer:
    """Holds, newest first, a page at a time."""
    query = Parameters(incoming.query, single=("owner", "reference", "state", "pool", "cursor", "limit"))
    wanted = HoldFilter(
        owner=query.key("owner"),
        reference=query.key("reference"),
        state=query.member("state", HoldState),
        pool=query.key("pool"),
    )
    after = decode_cursor("holds", query.text("cursor"), read_hold_id)
    page = await holds.find(database, wanted, after=after, limit=query.limit(database.settings))
    next_cursor = encode_cursor("holds", page.items[-1].id) if page.more else None
    return ok(list_shape(map(hold_shape, page.items), next_cursor))
