"""The vocabulary of idempotency; pure, owns no statement."""

import hashlib
import json
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's key with the fingerprint of the request it came with.

    `key` has 1 to 255 characters; `principal_id` is 0 until there are credentials.
    """

    key: str
    fingerprint: bytes
    principal_id: int = 0


@dataclass(frozen=True, slots=True)
class Response:
    """An answer as it is stored and replayed: status, body bytes and the two headers that belong to it."""

    status: int
    body: bytes
    location: str | None = None
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The effect happened now; `response` is what was stored for it."""

    value: T
    response: Response


@dataclass(frozen=True, slots=True)
class Replay:
    """The key was stored before: nothing happened now, `response` is the first answer."""

    response: Response


def fingerprint(method: str, path: str, body: object) -> bytes:
    """SHA-256 over method, path and the parsed body, so that spacing and the order of names do not matter."""
    canonical = json.dumps(body, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{method} {path}\n{canonical}".encode("utf-8", "surrogatepass")).digest()
