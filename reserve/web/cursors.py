"""Opaque cursors of lists: where the next page starts, in a form that only this service reads; pure.

A cursor names its list and a format version, so that one of another list or of an older release is refused.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from reserve.errors import InvalidRequest
from reserve.inventory.pools import PoolCursor
from reserve.names import normalise_key

Position = TypeVar("Position")

_VERSION = 1
#: Longer than the cursor of the longest key.
_LENGTH_MAX = 2000
_JOB_ID = re.compile(r"[1-9][0-9]{0,18}\Z")
#: The largest `bigint`.
_JOB_ID_MAX = 2**63 - 1


def encode_cursor(listed: str, position: object) -> str:
    """The cursor for the items after `position` in the list that is called `listed`."""
    text = json.dumps([listed, _VERSION, str(position)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(listed: str, cursor: str | None, read: Callable[[str], Position]) -> Position | None:
    """The position in a cursor of `listed`, or None without one; `InvalidRequest` for anything else."""
    if cursor is None:
        return None
    try:
        return read(_position(listed, cursor))
    except (ValueError, TypeError, RecursionError):
        raise InvalidRequest(
            "The query parameter 'cursor' must be the next_cursor of an earlier page of this list."
        ) from None


def _position(listed: str, cursor: str) -> str:
    if len(cursor) > _LENGTH_MAX:
        raise ValueError(cursor)
    # binascii.Error, and what json raises for broken text, are ValueErrors too.
    text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    name, version, position = json.loads(text)
    if (name, version) != (listed, _VERSION) or not isinstance(position, str):
        raise ValueError(cursor)
    return position


def read_pool_cursor(text: str) -> PoolCursor:
    """The id and key of the last pool; a stored key is in its only spelling."""
    number, _, key = text.partition(" ")
    if normalise_key(key) != key:
        raise ValueError(text)
    return PoolCursor(key, read_row_id(number))


def read_row_id(text: str) -> int:
    """An identity column's value."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0
    if number < 1:
        raise ValueError(text)
    return number


def read_hold_id(text: str) -> UUID:
    """A hold's id in its usual spelling; `UUID` alone would also take braces and URNs."""
    if len(text) != 36 or not text.isascii():
        raise ValueError(text)
    hold_id = UUID(text)
    if str(hold_id) != text.lower():
        raise ValueError(text)
    return hold_id


def read_job_id(text: str) -> int:
    """A job's id in its only spelling."""
    number = int(text) if _JOB_ID.match(text) else 0
    if not 1 <= number <= _JOB_ID_MAX:
        raise ValueError(text)
    return number


def read_name(text: str) -> str:
    """The name of the last item; a stored name is in its only spelling."""
    if normalise_key(text) != text:
        raise ValueError(text)
    return text
