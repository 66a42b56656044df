"""The request headers that mean something here, read strictly; pure."""

import re
from collections.abc import Iterable

from reserve.errors import IdempotencyKeyMissing, InvalidRequest

#: Longest idempotency key, and the width of its column.
IDEMPOTENCY_KEY_LENGTH_MAX = 255

#: What a request may say once only: of two different values, either reading would be a guess.
_SINGLE = (b"content-type", b"content-length", b"content-encoding", b"idempotency-key", b"if-match")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"\Z')
_ENTITY_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e]*)"\Z')
_VERSION = re.compile(r"[1-9][0-9]{0,17}\Z")


def single_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers by lower-case name; `InvalidRequest` when one that must be single is repeated."""
    pairs = list(raw)
    headers = dict(pairs)
    if len(headers) != len(pairs):
        names = [name for name, _ in pairs]
        for name in _SINGLE:
            if names.count(name) > 1:
                raise InvalidRequest(f"The header {name.decode().title()} is given more than once.")
    return headers


def idempotency_key(headers: dict[bytes, bytes], *, required: bool) -> str | None:
    """The `Idempotency-Key`, bare or as a quoted string: 1 to 255 printable ASCII characters.

    `"abc"` and `abc` are the same key. Raises `IdempotencyKeyMissing` when it is required and absent.
    """
    value = headers.get(b"idempotency-key")
    if value is None:
        if required:
            raise IdempotencyKeyMissing("This call needs an Idempotency-Key header, so that a retry is safe.")
        return None
    text = value.decode("latin-1").strip(" \t")
    if text.startswith('"'):
        quoted = _QUOTED.match(text)
        if quoted is None:
            raise InvalidRequest("The Idempotency-Key starts like a quoted string, but does not end like one.")
        text = re.sub(r'\\(["\\])', r"\1", quoted[1])
    if not 1 <= len(text) <= IDEMPOTENCY_KEY_LENGTH_MAX:
        raise InvalidRequest(f"The Idempotency-Key must have 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} characters.")
    if not (text.isascii() and text.isprintable()):
        raise InvalidRequest("The Idempotency-Key must be printable ASCII.")
    return text


#: `If-Match: *`: any version, but the pool must exist.
ANY_VERSION = "*"


def if_match(headers: dict[bytes, bytes]) -> int | str | None:
    """The version that `If-Match` asks for, `ANY_VERSION`, or None without the header.

    A weak or foreign entity tag is well formed but names no version of ours: 0, which no row has.
    """
    value = headers.get(b"if-match")
    if value is None:
        return None
    text = value.decode("latin-1").strip(" \t")
    if text == ANY_VERSION:
        return ANY_VERSION
    tag = _ENTITY_TAG.match(text)
    if tag is None:
        raise InvalidRequest('If-Match must be * or one entity tag, such as "3".')
    weak, opaque = tag.groups()
    return int(opaque) if weak is None and _VERSION.match(opaque) else 0
