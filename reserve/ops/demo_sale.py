"""The flash sale of `reserve demo` as its buyers see it: requests over HTTP, and what their answers promised.

Owns what the buyers believe and every fault that shows in an answer; `demo` compares the belief with the service at
the end. Everything runs in one event loop, so counting needs no lock.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from reserve.ops.demo_buyers import Buyer, Manner

if TYPE_CHECKING:
    import httpx2

POOL = "flash-sale"

#: A request is sent at most so often before its last answer is taken for the final one.
_ATTEMPTS_MAX = 8

#: Faults that are kept in words; a broken service would have one for every buyer.
_FAULTS_MAX = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, with what a replay must repeat: status, body and both headers."""

    status: int
    body: bytes
    headers: tuple[str | None, str | None]
    replayed: bool
    retry_after_seconds: float

    @property
    def good(self) -> bool:
        return self.status in {200, 201}

    @property
    def document(self) -> Any:
        """The JSON; an empty object where there is none, as when a server fails below the service."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @property
    def code(self) -> str:
        """The code of the problem, if it has one; empty for a success."""
        return "" if self.good else str(self.document.get("code", "without a code"))

    @property
    def transient(self) -> bool:
        return self.status == 503 or self.code == "contended"

    def repeats(self, other: "Answer") -> bool:
        return (self.status, self.headers, self.body) == (other.status, other.headers, other.body)


@dataclass(slots=True)
class Tally:
    """What has happened so far, by the answers. `holds` are the live and the past ones, each by its id."""

    arrived: int = 0
    placed: int = 0
    confirmed: int = 0
    released: int = 0
    insufficient: int = 0
    contended: int = 0
    retried: int = 0
    replayed: int = 0
    holds: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    faults_more: int = 0

    def fault(self, sentence: str) -> None:
        """Note something that must not happen."""
        if len(self.faults) < _FAULTS_MAX:
            self.faults.append(sentence)
        else:
            self.faults_more += 1


class Sale:
    """The buyers' side of one sale on the pool `POOL`."""

    def __init__(self, http: "httpx2.AsyncClient", transport_error: type[Exception], *, requests_at_once: int) -> None:
        self.tally = Tally()
        self._http = http
        self._transport_error = transport_error
        self._asking = asyncio.Semaphore(requests_at_once)

    async def visit(self, buyer: Buyer) -> None:
        """All that one buyer does, from arriving to leaving."""
        self.tally.arrived += 1
        try:
            await self._shop(buyer)
        except self._transport_error as error:
            self.tally.fault(f"{buyer.name} got no answer: {error!r}")

    async def _shop(self, buyer: Buyer) -> None:
        tally = self.tally
        answer = await self._place(buyer)
        for _ in range(buyer.tries - 1):
            if answer.code != "insufficient-stock":
                break
            await asyncio.sleep(buyer.returns_after_seconds)
            # With the same key: a refusal is not stored under it, so it is judged anew.
            answer = await self._place(buyer)
        if answer.good:
            await self._decide(buyer, answer)
        elif answer.code == "insufficient-stock":
            tally.insufficient += 1
        elif answer.transient:
            tally.contended += 1
        else:
            tally.fault(f"{buyer.name} was refused for an unexpected reason: {answer.status} {answer.code}.")

    async def _place(self, buyer: Buyer) -> Answer:
        """Ask for one unit, in the buyer's manner; the answer that counts."""
        body = {
            "lines": [{"pool": POOL, "quantity": 1}],
            "ttl_seconds": buyer.ttl_seconds,
            "owner": buyer.name,
            "reference": buyer.name,
        }
        if buyer.manner is Manner.DOUBLE_CLICK:
            first, second = await asyncio.gather(
                self.post("/v1/holds", body, buyer.name), self.post("/v1/holds", body, buyer.name)
            )
            if not first.good:
                first, second = second, first
            if first.good and second.good and not first.replayed and not second.replayed:
                self.tally.fault(f"Both clicks of {buyer.name} had an effect of their own.")
            return self._same(buyer, first, second) if second.good else first
        if buyer.manner is Manner.RETRY:
            await self._hang_up(body, buyer)
            first = await self.post("/v1/holds", body, buyer.name)
            return self._same(buyer, first, await self.post("/v1/holds", body, buyer.name)) if first.good else first
        return await self.post("/v1/holds", body, buyer.name)

    def _same(self, buyer: Buyer, first: Answer, second: Answer) -> Answer:
        """Both answers to one key must be the same, byte for byte; the one that counts."""
        if first.repeats(second) and (first.replayed or second.replayed):
            self.tally.replayed += 1
        else:
            self.tally.fault(f"One key of {buyer.name} got two answers: {first.body!r} and {second.body!r}.")
        return first

    async def _hang_up(self, body: object, buyer: Buyer) -> None:
        """Ask and lose the connection, most often before the answer has come."""
        request = asyncio.ensure_future(self.post("/v1/holds", body, buyer.name))
        await asyncio.wait([request], timeout=buyer.hangs_up_after_seconds)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)

    async def _decide(self, buyer: Buyer, answer: Answer) -> None:
        """What the buyer does with the hold, after thinking about it."""
        hold = answer.document
        if hold["id"] in self.tally.holds:
            self.tally.fault(f"The hold {hold['id']} was given to {buyer.name} and to somebody else.")
        self.tally.holds[hold["id"]] = hold
        self.tally.placed += 1
        if buyer.manner is Manner.ABANDON:
            return
        await asyncio.sleep(buyer.thinks_seconds)
        verb = "release" if buyer.manner is Manner.RELEASE else "confirm"
        done = await self.post(f"/v1/holds/{hold['id']}/{verb}", None, f"{buyer.name}/{verb}")
        if done.good and done.document["state"] == "confirmed":
            self.tally.confirmed += 1
            if _time(done.document["finalized_at"]) >= _time(hold["expires_at"]):
                self.tally.fault(f"The hold {hold['id']} was confirmed after it had expired.")
        elif done.good and done.document["state"] == "released":
            self.tally.released += 1
        elif done.code == "hold-expired" or done.good:
            await self._judge_expiry(buyer, hold)
        elif done.transient:
            self.tally.contended += 1
        else:
            self.tally.fault(f"The {verb} of {buyer.name} was refused: {done.status} {done.code}.")

    async def _judge_expiry(self, buyer: Buyer, hold: Mapping[str, Any]) -> None:
        """Whether a hold that was just called expired has lapsed by the database's clock, which a pool tells."""
        pool = await self.pool()
        if pool is not None and _time(pool["as_of"]) < _time(hold["expires_at"]):
            self.tally.fault(
                f"The hold of {buyer.name} expired early: it lives until {hold['expires_at']}, at {pool['as_of']}."
            )

    async def pool(self) -> dict[str, Any] | None:
        """The pool of the sale, as the service sees it now; None, which is a fault, when it does not say."""
        answer = await self.ask("GET", f"/v1/pools/{POOL}")
        if not answer.good:
            self.tally.fault(f"The pool cannot be read: {answer.status} {answer.code}.")
            return None
        document: dict[str, Any] = answer.document
        return document

    async def post(self, path: str, body: object, key: str) -> Answer:
        return await self.ask("POST", path, body, key)

    async def ask(self, method: str, path: str, body: object = None, key: str | None = None) -> Answer:
        """One request, sent again while the answer is transient or lost; never for ever."""
        headers = {} if key is None else {"Idempotency-Key": key}
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            pause = min(0.05 * 2.0**attempt, 1)
            try:
                # Only who wants a hold queues: whoever has one must not wait behind the crowd until it lapses.
                async with self._asking if path == "/v1/holds" else nullcontext():
                    response = await self._http.request(method, path, headers=headers, json=body)
            except self._transport_error:
                if attempt == _ATTEMPTS_MAX:
                    raise
            else:
                answer = _answer(response)
                if not answer.transient or attempt == _ATTEMPTS_MAX:
                    return answer
                pause = max(pause, answer.retry_after_seconds)
            self.tally.retried += 1
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


def _answer(response: "httpx2.Response") -> Answer:
    got = response.headers
    retry_after = got.get("Retry-After", "0")
    return Answer(
        response.status_code,
        response.content,
        (got.get("Location"), got.get("ETag")),
        got.get("Idempotent-Replayed") == "true",
        float(retry_after) if retry_after.isdigit() else 0,
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
