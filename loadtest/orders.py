"""Reading order files into carts and cancellations; pure, and nothing in a file is dropped without a report.

A file is a CSV with the columns of the UCI set *Online Retail*; only the invoice, the code, the quantity and
the price are looked at. Stock depends on nothing else, so an empty customer or description is as good as any.
Every row ends in a cart, in a cancellation or in a report that names its file and line.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loadtest.odd import Odd, OddRow
from loadtest.records import Record, records
from reserve.names import KEY_LENGTH_MAX, normalise_key
from reserve.settings import QUANTITY_MAX

#: The service's own bound on the lines of one hold, unless its setting was changed.
LINES_MAX = 1000

#: A whole number, also as a spreadsheet or data frame writes one that it took for a fraction.
_WHOLE = re.compile(r"([+-]?[0-9]+)(?:\.0*)?\Z")
_PRICE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")

#: More digits than any quantity has; a number of a million digits is not even parsed.
_DIGITS_MAX = 20


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One usable row; `quantity` is at least 1, in a cancellation too."""

    file: str
    line: int
    code: str
    quantity: int


@dataclass(frozen=True, slots=True)
class Cart:
    """The rows of an ordinary invoice, as they stand in the file: a code may occur in several."""

    invoice: str
    lines: tuple[OrderLine, ...]


@dataclass(frozen=True, slots=True)
class Cancellation:
    """The rows of an invoice that starts with `C`: goods that came back."""

    invoice: str
    lines: tuple[OrderLine, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """What the files say. `rows` counts every row under a header; `invoices` are in order of first mention."""

    rows: int
    invoices: tuple[Cart | Cancellation, ...]
    odd: tuple[OddRow, ...]

    @property
    def carts(self) -> tuple[Cart, ...]:
        return tuple(each for each in self.invoices if isinstance(each, Cart))

    @property
    def cancellations(self) -> tuple[Cancellation, ...]:
        return tuple(each for each in self.invoices if isinstance(each, Cancellation))


def is_cancellation(invoice: str) -> bool:
    return invoice[:1] in {"C", "c"}


def read_orders(
    files: Iterable[tuple[str, bytes]], *, lines_max: int = LINES_MAX, code_length_max: int = KEY_LENGTH_MAX
) -> Orders:
    """The orders of `files`, given as name and content; `OrderFileError` when one is no order file.

    An invoice is one cart wherever its rows stand, in one file or in several. Codes that differ in case are
    different codes; blanks around them do not count.
    """
    rows = 0
    odd: list[OddRow] = []
    invoices: dict[str, list[OrderLine]] = {}
    for name, content in files:
        for record in records(name, content):
            rows += 1
            row = _read_row(record, code_length_max)
            odd.extend(OddRow(name, record.line, reason, detail) for reason, detail in row.odd)
            if row.code:
                invoices.setdefault(row.invoice, []).append(OrderLine(name, record.line, row.code, row.quantity))
    made: list[Cart | Cancellation] = []
    for invoice, lines in invoices.items():
        if is_cancellation(invoice):
            made.append(Cancellation(invoice, tuple(lines)))
        elif too_big := _too_big(lines, lines_max):
            reason, detail = too_big
            odd.append(OddRow(lines[0].file, lines[0].line, reason, f"{invoice}: {detail}", rows=len(lines)))
        else:
            made.append(Cart(invoice, tuple(lines)))
    return Orders(rows, tuple(made), tuple(odd))


def _too_big(lines: Sequence[OrderLine], lines_max: int) -> tuple[Odd, str] | None:
    if len(lines) > lines_max:
        return Odd.CART_LINES, f"{len(lines)} lines, at most {lines_max}"
    sums: dict[str, int] = {}
    for line in lines:
        sums[line.code] = sums.get(line.code, 0) + line.quantity
    for code, quantity in sums.items():
        if quantity > QUANTITY_MAX:
            return Odd.CART_QUANTITY, f"{quantity} of {code!r}, at most {QUANTITY_MAX}"
    return None


@dataclass(frozen=True, slots=True)
class _Row:
    """What a row says; without `code` it is left out, for the last reason in `odd`."""

    invoice: str
    code: str
    quantity: int
    odd: tuple[tuple[Odd, str], ...]


def _read_row(record: Record, code_length_max: int) -> _Row:
    if record.fault:
        return _Row("", "", 0, (record.fault,))
    noted = [] if record.foreign is None else [(Odd.NOT_UTF8, _quoted(record.foreign))]
    try:
        invoice = _key(record.fields["invoice"], Odd.NO_INVOICE, Odd.INVOICE, KEY_LENGTH_MAX)
        code = _key(record.fields["code"], Odd.NO_CODE, Odd.CODE, code_length_max)
        quantity = _quantity(record.fields["quantity"], cancelled=is_cancellation(invoice))
    except _RefusedError as refused:
        return _Row("", "", 0, (*noted, (refused.reason, refused.detail)))
    price = record.fields.get("price")
    if price is not None and not _PRICE.match(price):
        noted.append((Odd.PRICE, _quoted(price)))
    return _Row(invoice, code, quantity, tuple(noted))


class _RefusedError(Exception):
    def __init__(self, reason: Odd, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def _key(text: str, missing: Odd, impossible: Odd, length_max: int) -> str:
    if not text:
        raise _RefusedError(missing, "empty")
    try:
        key = normalise_key(text)
    except ValueError as error:
        raise _RefusedError(impossible, f"{_quoted(text)} {error}") from None
    if len(key) > length_max:
        raise _RefusedError(impossible, f"{_quoted(text)} has more than {length_max} characters")
    return key


def _quantity(text: str, *, cancelled: bool) -> int:
    """How many units the row is about; the sign only says whether it fits its invoice."""
    match = _WHOLE.match(text)
    if match is None:
        raise _RefusedError(Odd.NOT_WHOLE, _quoted(text))
    if len(match[1]) > _DIGITS_MAX or abs(int(match[1])) > QUANTITY_MAX:
        raise _RefusedError(Odd.TOO_MUCH, _quoted(text))
    quantity = int(match[1])
    if quantity == 0:
        raise _RefusedError(Odd.ZERO, _quoted(text))
    if (quantity < 0) is not cancelled:
        raise _RefusedError(Odd.POSITIVE if cancelled else Odd.NEGATIVE, _quoted(text))
    return abs(quantity)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
