"""The calls about the service itself: whether it lives and is ready, and what its problem types mean."""

from reserve.db.connection import Database
from reserve.errors import NotFound
from reserve.web.answers import Answer, ok
from reserve.web.incoming import Incoming
from reserve.web.problems import kind_shape
from reserve.web.query import refuse_query


async def live(_database: Database, incoming: Incoming) -> Answer:
    """200 as long as requests are answered at all; does not ask the database."""
    refuse_query(incoming.query)
    return ok({"status": "live"})


async def ready(database: Database, incoming: Incoming) -> Answer:
    """200 when the database answers and has the schema of this program, else 503."""
    refuse_query(incoming.query)
    await database.check()
    return ok({"status": "ready"})


async def problem_kind(_database: Database, incoming: Incoming) -> Answer:
    """What a problem document's `type` leads to."""
    refuse_query(incoming.query)
    code = incoming.segment("code")
    shape = kind_shape(code)
    if shape is None:
        raise NotFound(f"There is no problem type {code!r}.")
    return ok(shape)
