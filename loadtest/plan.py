"""What a replay will do with each cart, decided from the seed alone; pure.

The same seed decides the same for the same invoice, in whatever order and with however many clients it is run.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from loadtest.orders import Cancellation, Cart, Orders
from reserve.settings import QUANTITY_MAX


class Fate(StrEnum):
    """What becomes of a placed cart."""

    PAY = "pay"
    RELEASE = "release"
    LAPSE = "lapse"


class Retry(StrEnum):
    """How a client repeats a request with the same key although nothing went wrong."""

    NONE = "none"
    IGNORE = "ignore"  # the answer came, but the client has lost it
    ABORT = "abort"  # the client hung up before the answer
    TWICE = "twice"  # both at once, as a double click


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares from 0 to 1: of carts that are paid, of the other carts that lapse, of requests that are repeated."""

    paid: float = 0.8
    lapsing: float = 0.5
    repeated: float = 0.2


def choose_fate(seed: int, invoice: str, shares: Shares) -> Fate:
    chance = random.Random(f"{seed}/fate/{invoice}")
    if chance.random() < shares.paid:
        return Fate.PAY
    return Fate.LAPSE if chance.random() < shares.lapsing else Fate.RELEASE


def choose_retry(seed: int, request: str, shares: Shares) -> Retry:
    """How to repeat the request with this name, which is unique within the run."""
    chance = random.Random(f"{seed}/retry/{request}")
    if chance.random() >= shares.repeated:
        return Retry.NONE
    return chance.choice((Retry.IGNORE, Retry.ABORT, Retry.TWICE))


def choose_order(seed: int, orders: Orders, *, shuffle: bool) -> list[Cart | Cancellation]:
    """The invoices in the order in which clients take them."""
    invoices = list(orders.invoices)
    if shuffle:
        random.Random(f"{seed}/order").shuffle(invoices)
    return invoices


def sum_codes(invoices: Iterable[Cart | Cancellation]) -> dict[str, int]:
    """Units per code over all rows, codes in order of first mention."""
    sums: dict[str, int] = {}
    for invoice in invoices:
        for line in invoice.lines:
            sums[line.code] = sums.get(line.code, 0) + line.quantity
    return sums


def plan_stock(orders: Orders, share: Fraction) -> dict[str, int]:
    """What each code starts with: the share of its demand, rounded down, but at least 1.

    Codes that are only in cancellations have no demand and get no pool. What may come back has room below the
    service's bound on quantities.
    """
    coming_back = sum_codes(orders.cancellations)
    return {
        code: max(0, min(max(1, int(demand * share)), QUANTITY_MAX - coming_back.get(code, 0)))
        for code, demand in sum_codes(orders.carts).items()
    }


def backoff_seconds(attempt: int, retry_after: float | None, jitter: float) -> float:
    """The pause before the repeat that follows `attempt`, counted from 1; `jitter` is from 0 to 1.

    Doubles from 50 ms to 2 s, halved at most by jitter, and never below what the service asked for, of which
    10 s are believed.
    """
    own = min(2.0, 0.05 * 2.0 ** min(attempt - 1, 10)) * (0.5 + jitter / 2)
    return max(own, min(retry_after or 0.0, 10.0))
