"""Idempotency: what is stored under a key so that a retry gets the first answer, byte for byte.

Owns the fingerprint, the stored response and the pruning of old keys; this floor knows neither holds nor HTTP.
A key is written in the transaction of the effect, last in the lock order.
"""

from reserve.idempotency.keys import Done, IdempotencyKey, Replay, Response, fingerprint
from reserve.idempotency.once import once
from reserve.idempotency.prune import prune_keys
from reserve.idempotency.store import find_stored, judge_stored, write_stored

__all__ = [
    "Done",
    "IdempotencyKey",
    "Replay",
    "Response",
    "find_stored",
    "fingerprint",
    "judge_stored",
    "once",
    "prune_keys",
    "write_stored",
]
