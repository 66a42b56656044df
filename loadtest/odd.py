"""What can be odd about a row of an order file, and how it is reported; pure."""

from dataclasses import dataclass
from enum import StrEnum


class OrderFileError(Exception):
    """A file that cannot be read as orders at all; the message names it."""


class Odd(StrEnum):
    """Why a row is reported."""

    EMPTY_ROW = "empty row"
    QUOTING = "broken quoting"
    SHORT_ROW = "too few columns"
    LONG_ROW = "too many columns"
    HEADER_AGAIN = "header in the middle"
    NO_INVOICE = "no invoice number"
    INVOICE = "impossible invoice number"
    NO_CODE = "no stock code"
    CODE = "impossible stock code"
    NOT_WHOLE = "quantity is not a whole number"
    ZERO = "quantity is zero"
    NEGATIVE = "negative quantity outside a cancellation"
    POSITIVE = "positive quantity in a cancellation"
    TOO_MUCH = "quantity over the bound"
    CART_LINES = "cart over the bound of lines"
    CART_QUANTITY = "cart over the bound of one code"
    NOT_UTF8 = "not UTF-8, read as Latin-1"
    PRICE = "price is not a number"
    NOT_SOLD = "came back, but was not sold in this run"

    @property
    def refused(self) -> bool:
        """Whether the row was left out; otherwise it was used all the same."""
        return self not in {Odd.NOT_UTF8, Odd.PRICE, Odd.NOT_SOLD}


@dataclass(frozen=True, slots=True)
class OddRow:
    """A reported row, by the line it starts on. `rows` is above 1 where a whole cart was left out."""

    file: str
    line: int
    reason: Odd
    detail: str
    rows: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason} ({self.detail})"
