"""What the clients of a replay believe: quantities per code, holds by state, counts, and what was wrong.

Knows no HTTP. Everything runs in one event loop and no method awaits, so each is atomic.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

#: Faults that are kept in words; more are only counted.
FAULTS_MAX = 50


class Believed(StrEnum):
    """The state that a hold must be in, by the answers so far; the service's own words."""

    HELD = "held"
    CONFIRMED = "confirmed"
    RELEASED = "released"
    EXPIRED = "expired"


class Count(StrEnum):
    """What is counted, in the words of the table."""

    PLACED = "placed"
    INSUFFICIENT = "insufficient"
    CONTENDED_CARTS = "contended or unavailable to the end"
    RETRIED_CONTENDED = "retried: contended"
    RETRIED_UNAVAILABLE = "retried: unavailable"
    RETRIED_CONNECTION = "retried: connection"
    REPEATED = "repeated on purpose"
    REPLAYED = "replayed byte for byte"
    LATE = "placed after the client hung up"
    ADJUSTED = "adjustments"
    CONTENDED_LATER = "confirms, releases, adjustments given up"


@dataclass(slots=True)
class Stock:
    """One code: what it began with, what came back, and what holds have of it."""

    initial: int
    returned: int = 0
    held: int = 0
    confirmed: int = 0

    @property
    def on_hand(self) -> int:
        return self.initial + self.returned

    @property
    def available(self) -> int:
        return self.on_hand - self.held - self.confirmed


@dataclass(slots=True)
class Held:
    """One hold; `expires_at` is the service's text."""

    invoice: str
    quantities: Mapping[str, int]
    expires_at: str
    state: Believed = Believed.HELD


@dataclass(slots=True)
class Ledger:
    """The belief of all clients together. `units` counts units by what happened to them."""

    stock: dict[str, Stock] = field(default_factory=dict)
    holds: dict[str, Held] = field(default_factory=dict)
    counts: Counter[Count] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    faults_count: int = 0

    def fault(self, sentence: str) -> None:
        """Note something that must not happen; the run is not clean any more."""
        self.faults_count += 1
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(sentence)

    def place(self, hold_id: str, held: Held) -> None:
        if hold_id in self.holds:
            self.fault(f"The hold {hold_id} was answered to {held.invoice} and to {self.holds[hold_id].invoice}.")
            return
        self.holds[hold_id] = held
        for code, quantity in held.quantities.items():
            self.stock[code].held += quantity
            self.units["held"] += quantity

    def settle(self, hold_id: str, state: Believed) -> None:
        """The hold has left `held` for `state`."""
        held = self.holds[hold_id]
        assert held.state is Believed.HELD, "each hold is settled once"
        held.state = state
        for code, quantity in held.quantities.items():
            self.stock[code].held -= quantity
            self.units[state.value] += quantity
            if state is Believed.CONFIRMED:
                self.stock[code].confirmed += quantity

    def take_return(self, code: str, quantity: int) -> int:
        """How much of `quantity` may come back now: not more than was sold here and has not come back yet."""
        stock = self.stock.get(code)
        if stock is None:
            return 0
        taken = min(quantity, stock.confirmed - stock.returned)
        stock.returned += taken
        self.units["returned"] += taken
        return taken

    def undo_return(self, code: str, quantity: int) -> None:
        """The service refused what `take_return` allowed."""
        self.stock[code].returned -= quantity
        self.units["returned"] -= quantity
