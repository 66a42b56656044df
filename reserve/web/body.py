"""Request bodies: bytes to strictly read JSON, in bounds. Owns what is unreadable (400, 413, 415), no field.

Stricter than `json.loads`: no duplicate names, no NaN or Infinity, no byte-order mark, bounded depth. Text
and numbers that JSON can write but PostgreSQL cannot store are faults with a pointer, for every field alike.
"""

import asyncio
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from litestar.types import Receive

from reserve.errors import BodyTooLarge, Fault, InvalidRequest, UnsupportedMediaType

#: Every number with more digits is beyond a double; Python refuses to parse some thousands of them at all.
_DIGITS_MAX = 400
#: How much of a client's own text a refusal repeats.
QUOTE_LENGTH_MAX = 100

#: Only a body that matches can hold unstorable text or a number beyond a double, so the others need no walk:
#: raw NULs are not JSON and raw surrogates not UTF-8, and 199 digits times ten to the 99th is still a double.
_SUSPICIOUS = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])|[0-9]{200}|[eE]\+?0*[1-9][0-9]{2}")
_CHARSET = re.compile(r'charset="?utf-8"?\Z', re.IGNORECASE)


async def read(receive: Receive, headers: Mapping[bytes, bytes], *, bytes_max: int, seconds_max: float) -> bytes:
    """The whole body; `BodyTooLarge` as soon as it is known to be larger, whatever Content-Length says.

    `InvalidRequest` when it takes longer than `seconds_max` to arrive: a stalled client keeps nothing for long.
    """
    try:
        async with asyncio.timeout(seconds_max):
            return await _read(receive, headers, bytes_max)
    except TimeoutError as error:
        raise InvalidRequest(f"The body did not arrive within {seconds_max:g} seconds.") from error


async def _read(receive: Receive, headers: Mapping[bytes, bytes], bytes_max: int) -> bytes:
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and (len(declared) > 18 or int(declared) > bytes_max):
        raise BodyTooLarge(f"The body may have at most {bytes_max} bytes.")
    chunks: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            # Nobody reads this answer; raising it ends the request before anything has happened.
            raise InvalidRequest("The connection ended before the body did.")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > bytes_max:
            raise BodyTooLarge(f"The body may have at most {bytes_max} bytes.")
        chunks.append(chunk)
        more = message.get("more_body", False)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def require_json(headers: Mapping[bytes, bytes]) -> None:
    """`UnsupportedMediaType` unless the body is declared as JSON in UTF-8 and is not compressed."""
    declared = headers.get(b"content-type", b"")
    if declared != b"application/json":
        media_type, *parameters = (part.strip() for part in declared.decode("latin-1").split(";"))
        charsets = [part for part in parameters if part.lower().startswith("charset")]
        if media_type.lower() != "application/json" or not all(map(_CHARSET.match, charsets)):
            raise UnsupportedMediaType("The body must be sent as Content-Type: application/json, in UTF-8.")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise UnsupportedMediaType("The body must be sent without a Content-Encoding.")


def parse(raw: bytes, depth_max: int) -> object:
    """The value of a JSON body; `InvalidRequest` says what cannot be read. Does not judge the value."""
    if raw.startswith(b"\xef\xbb\xbf"):
        raise InvalidRequest("The body starts with a byte-order mark; send JSON without one.")
    try:
        value = _decode(raw.decode())
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The body is not UTF-8: the byte at position {error.start} fits nowhere.") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"The body is not JSON: {error.msg.removesuffix(' at')} at line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise InvalidRequest(f"The body is nested deeper than {depth_max} levels.") from None
    # Few brackets cannot nest deeply; counting them is much cheaper than a walk.
    if raw.count(b"[") + raw.count(b"{") > depth_max and _deeper(value, depth_max):
        raise InvalidRequest(f"The body is nested deeper than {depth_max} levels.")
    return value


def unstorable(raw: bytes, value: object) -> list[Fault]:
    """Every text and number in `value`, parsed from `raw`, that PostgreSQL cannot store, names included."""
    return list(_unstorable(value, "")) if _SUSPICIOUS.search(raw) else []


def pointer_token(name: object) -> str:
    """One step of a JSON pointer, escaped after RFC 6901."""
    return "/" + str(name).replace("~", "~0").replace("/", "~1")


def quoted(text: str) -> str:
    """A client's own text for a sentence, cut to a sensible length."""
    return repr(text if len(text) <= QUOTE_LENGTH_MAX else text[: QUOTE_LENGTH_MAX - 1] + "…")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidRequest(f"The name {quoted(name)} appears twice in one object of the body.")
    return members


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS_MAX else math.inf


def _constant(name: str) -> NoReturn:
    raise InvalidRequest(f"The body is not JSON: {name} is not a JSON number.")


_decode = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_integer, parse_constant=_constant).decode


def _members(value: object) -> Iterator[tuple[object, object]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _deeper(value: object, depth_max: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth_max):
        level = [child for parent in level for _, child in _members(parent) if isinstance(child, dict | list)]
    return bool(level)


def _unstorable(value: object, pointer: str) -> Iterator[Fault]:
    match value:
        case str():
            if character := _unstorable_character(value):
                yield Fault(pointer, f"must not contain the character U+{ord(character):04X}")
        case int() | float():
            if abs(value) > sys.float_info.max:
                yield Fault(pointer, "must be a number between -1.8e308 and 1.8e308")
        case dict() | list():
            for name, member in _members(value):
                step = pointer + pointer_token(name)
                if isinstance(name, str) and (character := _unstorable_character(name)):
                    yield Fault(step, f"must not have the character U+{ord(character):04X} in its name")
                yield from _unstorable(member, step)
        case _:
            pass


def _unstorable_character(text: str) -> str | None:
    return next((character for character in text if character == "\0" or "\ud800" <= character <= "\udfff"), None)
