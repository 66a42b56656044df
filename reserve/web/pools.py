"""The calls on pools: bytes in, answer out. Owns no rule of a pool; see `inventory.pools`."""

from reserve.db.connection import Database
from reserve.errors import Fault, PoolNotFound, ValidationFailed, VersionMismatch
from reserve.inventory import pools
from reserve.inventory.rows import PoolFilter, PoolKind, PoolState
from reserve.names import normalise_key
from reserve.web.answers import Answer, ok
from reserve.web.cursors import decode_cursor, encode_cursor, read_pool_cursor
from reserve.web.headers import ANY_VERSION
from reserve.web.incoming import Incoming
from reserve.web.query import Parameters, refuse_query
from reserve.web.requests import PoolBody
from reserve.web.shapes import list_shape, pool_shape


def known_key(incoming: Incoming) -> str:
    """The pool key of the path; no pool can have an impossible one, so it is as unknown as any other."""
    text = incoming.segment("key")
    try:
        return normalise_key(text)
    except ValueError:
        raise PoolNotFound([text]) from None


async def put_pool(database: Database, incoming: Incoming) -> Answer:
    """Create or change; 201 or 200. `If-Match: *` changes only a pool that exists."""
    if_match = incoming.if_match()
    body, _ = await incoming.read(PoolBody, database.settings)
    try:
        key = normalise_key(incoming.segment("key"))
    except ValueError as error:
        raise ValidationFailed([Fault("/key", str(error))]) from None
    if isinstance(if_match, str):
        assert if_match == ANY_VERSION, "the only text that If-Match becomes"
        await _require_pool(database, key)
        if_match = None
    pool, created = await pools.put(database, key, body.change(), if_match=if_match)
    return ok(pool_shape(pool), status=201 if created else 200, version=pool.version)


async def _require_pool(database: Database, key: str) -> None:
    try:
        await pools.get(database, key)
    except PoolNotFound:
        raise VersionMismatch(f"If-Match: * needs a pool, and there is none with the key {key!r}.") from None


async def get_pool(database: Database, incoming: Incoming) -> Answer:
    refuse_query(incoming.query)
    pool = await pools.get(database, known_key(incoming))
    return ok(pool_shape(pool), version=pool.version)


async def list_pools(database: Database, incoming: Incoming) -> Answer:
    """Pools by key, a page at a time; archived ones only when asked for by `state`."""
    query = Parameters(incoming.query, single=("prefix", "kind", "state", "cursor", "limit"), many=("key",))
    wanted = PoolFilter(
        keys=tuple(query.keys("key")),
        prefix=query.prefix("prefix"),
        kind=query.member("kind", PoolKind),
        state=query.member("state", PoolState),
    )
    after = decode_cursor("pools", query.text("cursor"), read_pool_cursor)
    page = await pools.find(database, wanted, after=after, limit=query.limit(database.settings))
    last = page.items[-1] if page.more else None
    next_cursor = None if last is None else encode_cursor("pools", f"{last.id} {last.key}")
    return ok(list_shape(map(pool_shape, page.items), next_cursor))
