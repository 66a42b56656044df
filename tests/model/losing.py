"""What may have become of an operation whose caller gave up: nothing, or all of it, told by what the database holds."""

from collections.abc import Iterator
from dataclasses import replace

from reserve.idempotency import Done, Response
from reserve.inventory.holds import Verb
from reserve.inventory.rows import Hold, HoldState
from tests.model.operations import ChangeHold, Keyed, PlaceHold, Record, Unknown
from tests.model.seen import Seen
from tests.model.stock import Model


def possibilities(model: Model, record: Record, seen: Seen) -> Iterator[Record]:
    """The record as it is; of one that was lost, also as it is if the operation was done."""
    yield record
    operation = record.operation
    if record.answer is not Unknown.LOST:
        return
    match operation:
        case PlaceHold(place):
            # Lost wishes have a reference of their own.
            found = [hold for hold in seen.holds_as_read().values() if hold.reference == place.reference]
        case ChangeHold(hold_id=hold_id) if hold_id in model.holds:
            found = _changed(operation, model.holds[hold_id], seen)
        case _:
            found = []
    for hold in found:
        yield replace(record, answer=Done(hold, _response(operation, seen)))


def _changed(operation: ChangeHold, before: Hold, seen: Seen) -> list[Hold]:
    if before.state is not HoldState.HELD:
        return [before]
    now = seen.holds_as_read()[before.id]
    state = HoldState.CONFIRMED if operation.verb is Verb.CONFIRM else HoldState.RELEASED
    after = replace(before, state=state, finalized_at=now.finalized_at, version=before.version + 1)
    return [after] if now == after else []


def _response(operation: Keyed, seen: Seen) -> Response:
    for row in seen.keys:
        if row["key"] == operation.key:
            return Response(row["status"], row["body"], row["location"], row["etag"])
    return Response(200, b"")
