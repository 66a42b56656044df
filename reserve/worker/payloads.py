"""Payloads as the types that handlers ask for: reading at the edge, and a sentence for what does not fit; pure."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from reserve.jobs.rows import Json

P = TypeVar("P")

#: Faults of one payload that its error names; more help nobody.
_FAULTS_MAX = 10


class Misfit(Exception):
    """A payload is not what its handler asks for, and never will be; the message names each field."""


def reader(wanted: type[P]) -> Callable[[Json], P]:
    """What turns a payload into `wanted` (a pydantic model, a dataclass, whatever pydantic reads), or raises `Misfit`.

    Read as JSON, not as Python: a strict model takes a time from a text then, and a tuple from an array.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(wanted)

    def read(payload: Json) -> P:
        try:
            value: P = adapter.validate_json(json.dumps(payload, ensure_ascii=False))
        except ValidationError as error:
            raise Misfit(_sentence(error)) from None
        return value

    return read


def _sentence(error: ValidationError) -> str:
    # The values are not repeated: they may be secret, and the payload is stored beside the error anyway.
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{_pointer(fault['loc'])}: {fault['msg']}" for fault in faults[:_FAULTS_MAX]]
    more = f"; and {len(faults) - _FAULTS_MAX} more" if len(faults) > _FAULTS_MAX else ""
    return f"The payload does not fit: {'; '.join(named)}{more}."


def _pointer(location: tuple[int | str, ...]) -> str:
    """The place as a JSON pointer; / for the payload as a whole."""
    return "/" + "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in location)
