"""The HTTP side of a replay: one request until it has a final answer, and repeats with the same key on purpose.

Knows no carts. Counts what it retried and notes replays that differ from the first answer.
"""

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx2

from loadtest.ledger import Count, Ledger
from loadtest.plan import Retry, backoff_seconds

#: Sent again at most so often before the last answer is taken for the final one.
ATTEMPTS_MAX = 8

#: A client that hangs up does so within this time of asking, about when the service is at work.
_HANG_UP_SECONDS_MAX = 0.03


class NoAnswerError(Exception):
    """The service could not be reached, however often it was tried."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `headers` are those that a replay must repeat."""

    status: int
    body: bytes
    headers: tuple[str | None, str | None] = (None, None)
    replayed: bool = False
    retry_after: float | None = None

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def document(self) -> Any:
        """The JSON; an empty object when there is none, as from a proxy in between."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @property
    def code(self) -> str:
        """The problem's code, or the status where there is no problem document."""
        document = self.document
        return str(document.get("code", self.status)) if isinstance(document, dict) else str(self.status)

    def __str__(self) -> str:
        return f"{self.status} {self.body[:300].decode('utf-8', 'replace')}"


def pool_path(key: str) -> str:
    return f"/v1/pools/{quote(key, safe='')}"


@dataclass(slots=True)
class Client:
    """Sends requests of one run; safe to share between its tasks."""

    http: httpx2.AsyncClient
    ledger: Ledger
    chance: random.Random = field(default_factory=random.Random)

    async def get(self, path: str) -> Answer:
        return await self.send("GET", path)

    async def post(self, path: str, body: object, key: str, retry: Retry = Retry.NONE) -> Answer:
        """POST with an idempotency key, repeated as `retry` says; the answer that counts."""
        counts = self.ledger.counts
        if retry is Retry.NONE:
            return await self.send("POST", path, body, key)
        counts[Count.REPEATED] += 1
        if retry is Retry.TWICE:
            both = await asyncio.gather(self.send("POST", path, body, key), self.send("POST", path, body, key))
            first = both[0] if both[0].good else both[1]
            if all(answer.good for answer in both):
                if not both[0].replayed and not both[1].replayed:
                    self.ledger.fault(f"Two requests at once with the key {key} both had an effect of their own.")
                self._compare(key, *both)
                return first
        else:
            if retry is Retry.ABORT:
                await self._hang_up(path, body, key)
            first = await self.send("POST", path, body, key)
        # A refusal is not stored, so a repeat is judged anew; only a success must come back as it was.
        if not first.good:
            return first if retry is Retry.TWICE else await self.send("POST", path, body, key)
        second = await self.send("POST", path, body, key)
        if second.good and not second.replayed:
            self.ledger.fault(f"A repeat with the key {key} was not marked as a replay.")
        self._compare(key, first, second)
        return first

    def _compare(self, key: str, first: Answer, second: Answer) -> None:
        if (first.status, first.headers, first.body) != (second.status, second.headers, second.body):
            self.ledger.fault(f"A repeat with the key {key} got another answer: {first}, then {second}.")
        else:
            self.ledger.counts[Count.REPLAYED] += 1

    async def _hang_up(self, path: str, body: object, key: str) -> None:
        """Ask and close the connection, most often before the answer has come."""
        request = asyncio.ensure_future(self._once("POST", path, body, key))
        await asyncio.wait([request], timeout=self.chance.random() * _HANG_UP_SECONDS_MAX)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)

    async def send(self, method: str, path: str, body: object = None, key: str | None = None) -> Answer:
        """One request, tried again while it is contended or the service away; `NoAnswerError` in the end."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                answer = await self._once(method, path, body, key)
            except httpx2.TransportError as error:
                if attempt == ATTEMPTS_MAX:
                    raise NoAnswerError(f"{method} {path}: {error!r}") from error
                self.ledger.counts[Count.RETRIED_CONNECTION] += 1
                retry_after = None
            else:
                if answer.status == 503:
                    again = Count.RETRIED_UNAVAILABLE
                elif answer.status == 409 and answer.code == "contended":
                    again = Count.RETRIED_CONTENDED
                else:
                    return answer
                if attempt == ATTEMPTS_MAX:
                    return answer
                self.ledger.counts[again] += 1
                retry_after = answer.retry_after
            await asyncio.sleep(backoff_seconds(attempt, retry_after, self.chance.random()))
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, method: str, path: str, body: object, key: str | None) -> Answer:
        headers = {} if key is None else {"Idempotency-Key": key}
        response = await self.http.request(method, path, headers=headers, json=body)
        got = response.headers
        return Answer(
            response.status_code,
            response.content,
            (got.get("Location"), got.get("ETag")),
            got.get("Idempotent-Replayed") == "true",
            _seconds(got.get("Retry-After")),
        )


def _seconds(retry_after: str | None) -> float | None:
    """Seconds of a Retry-After; its other form, a date, is left to the client's own backoff."""
    return float(retry_after) if retry_after is not None and retry_after.isascii() and retry_after.isdigit() else None
