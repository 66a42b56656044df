"""The calls on a pool's adjustments: bytes in, answer out. Owns no rule; see `inventory.adjustments`."""

from reserve.db.connection import Database
from reserve.inventory import adjustments
from reserve.web.answers import Answer, ok, outcome, renders
from reserve.web.cursors import decode_cursor, encode_cursor, read_row_id
from reserve.web.incoming import Incoming
from reserve.web.pools import known_key
from reserve.web.query import Parameters
from reserve.web.requests import AdjustmentBody
from reserve.web.shapes import adjustment_shape, list_shape

_adjusted = renders(adjustment_shape, 201)


async def adjust_pool(database: Database, incoming: Incoming) -> Answer:
    """Change `on_hand`; 201 with the adjustment."""
    settings = database.settings
    key = incoming.idempotency_key(required=settings.idempotency_key_required)
    body, value = await incoming.read(AdjustmentBody, settings)
    pool = known_key(incoming)
    return outcome(await adjustments.adjust(database, pool, body.adjust(), incoming.keyed(key, value), _adjusted))


async def list_adjustments(database: Database, incoming: Incoming) -> Answer:
    """A pool's adjustments, newest first, a page at a time."""
    query = Parameters(incoming.query, single=("cursor", "limit"))
    after = decode_cursor("adjustments", query.text("cursor"), read_row_id)
    limit = query.limit(database.settings)
    page = await adjustments.find(database, known_key(incoming), after=after, limit=limit)
    next_cursor = encode_cursor("adjustments", page.items[-1].id) if page.more else None
    return ok(list_shape(map(adjustment_shape, page.items), next_cursor))
