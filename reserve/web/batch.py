"""Bodies of many independent items: which fault is whose. Pure; owns no call and no item."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import Field

from reserve.errors import Fault, InvalidRequest, ValidationFailed
from reserve.settings import Settings
from reserve.web.fields import Body
from reserve.web.incoming import Incoming
from reserve.web.requests import validated

BodyType = TypeVar("BodyType", bound=Body)

#: Faults listed for one item, so that an answer about many stays short; what is wrong beyond that is counted.
_ITEM_FAULTS_MAX = 10


class _Envelope(Body):
    """A body whose items are judged on their own."""

    items: list[Any] = Field()


@dataclass(frozen=True, slots=True)
class Item(Generic[BodyType]):
    """One item: what was read and the plain JSON of it, or the refusal that is this item's alone."""

    read: BodyType | ValidationFailed
    value: object


def refuse_key(key: str | None) -> None:
    """`InvalidRequest` where a batch comes with an `Idempotency-Key`: its items have their own."""
    if key is not None:
        raise InvalidRequest("A batch takes no Idempotency-Key header: each of its items has an idempotency_key.")


async def read_items(
    incoming: Incoming, model: type[BodyType], settings: Settings, *, items_max: int
) -> list[Item[BodyType]]:
    """The items of the body, each as `model` or with its refusal, whose pointers lead into the whole body.

    Raises what `Incoming.read` raises, for what is wrong with the body itself.
    """
    value, faults = await incoming.read_json(settings)
    by_item, rest = _shared_out(faults)
    envelope = validated(_Envelope, value, rest, settings)
    if not 1 <= len(envelope.items) <= items_max:
        raise ValidationFailed([Fault("/items", f"must have 1 to {items_max} items, has {len(envelope.items)}")])
    return [
        Item(_read(model, item, number, by_item.get(number, []), settings), item)
        for number, item in enumerate(envelope.items)
    ]


def of_item(number: int, faults: Sequence[Fault]) -> ValidationFailed:
    """The refusal of an item, from pointers into it."""
    return ValidationFailed([Fault(f"/items/{number}{fault.pointer}", fault.detail) for fault in faults])


def _read(
    model: type[BodyType], item: object, number: int, faults: list[Fault], settings: Settings
) -> BodyType | ValidationFailed:
    try:
        return validated(model, item, faults, settings, faults_max=_ITEM_FAULTS_MAX)
    except ValidationFailed as error:
        return of_item(number, error.faults)


def _shared_out(faults: list[Fault]) -> tuple[dict[int, list[Fault]], list[Fault]]:
    """The faults of each item, with pointers into it, and those of no item."""
    by_item: dict[int, list[Fault]] = {}
    rest: list[Fault] = []
    for fault in faults:
        head, items, tail = fault.pointer.partition("/items/")
        number, slash, inner = tail.partition("/")
        if head == "" and items and number.isdigit():
            by_item.setdefault(int(number), []).append(Fault(slash + inner, fault.detail))
        else:
            rest.append(fault)
    return by_item, rest
