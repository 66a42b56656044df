"""The clients of a replay: each takes an invoice, places its cart or returns its goods, and settles what it holds.

All belief goes into the ledger at once, from the answers only; `checks` compares it with the service at the end.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from loadtest.client import Answer, Client, NoAnswerError, pool_path
from loadtest.ledger import Believed, Count, Held, Ledger, Stock
from loadtest.odd import Odd, OddRow
from loadtest.orders import Cancellation, Cart, OrderLine
from loadtest.plan import Fate, Retry, Shares, choose_fate, choose_retry, sum_codes

#: Placed carts that a client has open before it settles the oldest, so that holds of many clients overlap.
OPEN_CARTS_MAX = 3

#: Paid and released carts never lapse meanwhile; those that shall lapse get a time to live of their own.
_TTL_SECONDS = 900


class NotFreshError(Exception):
    """A pool of this run exists already."""


@dataclass(slots=True)
class Run:
    """One replay. `name` is new for each run: it owns the holds and begins the idempotency keys."""

    client: Client
    ledger: Ledger
    name: str
    prefix: str
    seed: int
    shares: Shares
    lapse_seconds: int
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    #: Rows that came back before as much was sold; tried again at the end.
    early_returns: list[tuple[str, OrderLine, int]] = field(default_factory=list)
    unsold: list[OddRow] = field(default_factory=list)

    async def set_up(self, stock: Mapping[str, int], clients: int, done: Callable[[], object]) -> None:
        """Make a pool for each code; `NotFreshError` when one is there already."""
        rest = iter(stock.items())

        async def work() -> None:
            for code, quantity in rest:
                if self.stop.is_set():
                    return
                answer = await self.client.send("PUT", pool_path(self.prefix + code), {"on_hand": quantity})
                # A repeat after a lost answer changes nothing and is a 200 for the pool as it was made.
                lost = answer.status == 200 and self.ledger.counts[Count.RETRIED_CONNECTION]
                if answer.status != 201 and not lost:
                    raise NotFreshError(f"The pool {self.prefix + code!r} cannot be made: {answer}")
                self.ledger.stock[code] = Stock(quantity)
                done()

        await _together(work, clients)

    async def replay(self, invoices: Sequence[Cart | Cancellation], clients: int, done: Callable[[], object]) -> None:
        """Take all invoices, or those until `stop` is set, and then what came back too early once more."""
        rest = iter(invoices)
        try:
            await _together(lambda: self._work(rest, done), clients)
            for reason, line, quantity in self.early_returns:
                if not self.stop.is_set():
                    await self._return(reason, line, quantity, last=True)
        except NoAnswerError as error:
            self.ledger.fault(f"The service does not answer: {error}")
            self.stop.set()

    async def _work(self, invoices: Iterator[Cart | Cancellation], done: Callable[[], object]) -> None:
        opened: deque[str] = deque()
        for invoice in invoices:
            if self.stop.is_set():
                return
            if isinstance(invoice, Cart):
                opened.extend(await self._place(invoice))
            else:
                for line in invoice.lines:
                    await self._return(invoice.invoice, line, line.quantity)
            done()
            if len(opened) > OPEN_CARTS_MAX:
                await self._settle(opened.popleft())
        while opened and not self.stop.is_set():
            await self._settle(opened.popleft())

    async def _place(self, cart: Cart) -> list[str]:
        """Place the cart; its hold, or nothing where it was refused."""
        fate = choose_fate(self.seed, cart.invoice, self.shares)
        body = {
            "lines": [{"pool": self.prefix + line.code, "quantity": line.quantity} for line in cart.lines],
            "ttl_seconds": self.lapse_seconds if fate is Fate.LAPSE else _TTL_SECONDS,
            "owner": self.name,
            "reference": cart.invoice,
        }
        answer = await self.client.post(
            "/v1/holds", body, self._key("place", cart.invoice), self.retry_of(cart.invoice)
        )
        asked = sum_codes([cart])
        if answer.good:
            self._placed(cart, asked, answer)
            return [str(answer.document["id"])]
        self.ledger.lines["refused"] += len(cart.lines)
        match answer.status, answer.code:
            case 409, "insufficient-stock":
                self.ledger.counts[Count.INSUFFICIENT] += 1
                self._judge_shortfalls(cart, asked, answer)
            case (409, "contended") | (503, _):
                self.ledger.counts[Count.CONTENDED_CARTS] += 1
            case _:
                self.ledger.fault(f"{self.where(cart)}: the cart was refused for an unexpected reason: {answer}")
        return []

    def _placed(self, cart: Cart, asked: Mapping[str, int], answer: Answer) -> None:
        hold = answer.document
        lines = [{"pool": self.prefix + code, "quantity": quantity} for code, quantity in asked.items()]
        if (answer.status, hold["state"], hold["lines"]) != (201, "held", lines):
            self.ledger.fault(f"{self.where(cart)}: the hold is not what was asked: {answer}")
        self.ledger.place(str(hold["id"]), Held(cart.invoice, asked, hold["expires_at"]))
        self.ledger.counts[Count.PLACED] += 1
        self.ledger.lines["placed"] += len(cart.lines)

    def _judge_shortfalls(self, cart: Cart, asked: Mapping[str, int], answer: Answer) -> None:
        """A refusal must name lines of this cart, with what they asked, that ask more than there is."""
        shortfalls = answer.document.get("shortfalls", [])
        right = [
            asked.get(short["pool"].removeprefix(self.prefix)) == short["requested"] > short["available"] >= 0
            for short in shortfalls
        ]
        if not right or not all(right):
            self.ledger.fault(f"{self.where(cart)}: the refusal is not about this cart: {answer}")

    async def _settle(self, hold_id: str) -> None:
        """Pay or release the hold, as the seed decides; one that shall lapse is left alone."""
        invoice = self.ledger.holds[hold_id].invoice
        match choose_fate(self.seed, invoice, self.shares):
            case Fate.PAY:
                await self._finish(hold_id, "confirm", Believed.CONFIRMED)
            case Fate.RELEASE:
                await self._finish(hold_id, "release", Believed.RELEASED)
            case Fate.LAPSE:
                pass

    async def _finish(self, hold_id: str, verb: str, wanted: Believed) -> None:
        held = self.ledger.holds[hold_id]
        key = self._key(verb, held.invoice)
        retry = choose_retry(self.seed, f"{verb} {held.invoice}", self.shares)
        answer = await self.client.post(f"/v1/holds/{hold_id}/{verb}", None, key, retry)
        if answer.good and answer.document["state"] == wanted:
            self.ledger.settle(hold_id, wanted)
        elif answer.code == "contended" or answer.status == 503:
            self.ledger.counts[Count.CONTENDED_LATER] += 1  # stays held, and will lapse
        elif answer.code == "hold-expired" or (answer.good and answer.document["state"] == Believed.EXPIRED):
            await self.judge_expiry(hold_id)
            self.ledger.settle(hold_id, Believed.EXPIRED)
        else:
            self.ledger.fault(f"The {verb} of {held.invoice} was not answered by {wanted}: {answer}")

    async def judge_expiry(self, hold_id: str) -> None:
        """A hold that was just called expired must have lapsed by the database's clock, as a pool tells it."""
        held = self.ledger.holds[hold_id]
        now = await self.database_time()
        if now is not None and now < datetime.fromisoformat(held.expires_at):
            self.ledger.fault(f"The hold {hold_id} expired early: it lives until {held.expires_at}, and it is {now}.")

    async def database_time(self) -> datetime | None:
        """The database's clock; None when the pool that tells it cannot be read."""
        answer = await self.client.get(pool_path(self.prefix + next(iter(self.ledger.stock))))
        return datetime.fromisoformat(answer.document["as_of"]) if answer.good else None

    async def _return(self, invoice: str, line: OrderLine, quantity: int, *, last: bool = False) -> None:
        """Put goods back, not more than was sold in this run; the rest waits for the end, where it is reported."""
        taken = self.ledger.take_return(line.code, quantity)
        if taken:
            place = f"{invoice}:{line.file}:{line.line}" + (" rest" if last else "")
            answer = await self.client.post(
                f"{pool_path(self.prefix + line.code)}/adjustments",
                {"delta": taken, "reason": invoice},
                self._key("return", place),
                choose_retry(self.seed, f"return {place}", self.shares),
            )
            if answer.good:
                self.ledger.counts[Count.ADJUSTED] += 1
            else:
                self.ledger.undo_return(line.code, taken)
                if answer.code == "contended" or answer.status == 503:
                    self.ledger.counts[Count.CONTENDED_LATER] += 1
                else:
                    self.ledger.fault(f"{line.file}:{line.line}: the return was refused: {answer}")
        if quantity > taken and not last:
            self.early_returns.append((invoice, line, quantity - taken))
        elif quantity > taken:
            detail = f"{quantity - taken} of {line.quantity}"
            self.unsold.append(OddRow(line.file, line.line, Odd.NOT_SOLD, detail))

    def retry_of(self, invoice: str) -> Retry:
        """How the placing of this cart is repeated on purpose."""
        return choose_retry(self.seed, f"place {invoice}", self.shares)

    def where(self, cart: Cart) -> str:
        return f"{cart.lines[0].file}:{cart.lines[0].line}"

    def _key(self, verb: str, name: str) -> str:
        """An idempotency key; of invoices only a digest, as they may be longer than a key and not ASCII."""
        return f"{self.name}/{verb}/{hashlib.sha256(name.encode()).hexdigest()[:32]}"


async def _together(work: Callable[[], Coroutine[None, None, None]], clients: int) -> None:
    """Run `clients` of them at once; the first error of any ends all, and is raised as it was."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
