"""The records of an order file: encoding, delimiter, header and quoting; pure, knows no rule of an order.

A broken quote must not swallow the rows after it, which is what a lenient CSV reader lets it do: the reader is
strict here, and after a fault it starts again on the next line of the file.
"""

import codecs
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loadtest.odd import Odd, OrderFileError

#: Names of each column that occur in this family of files, without case, blanks and punctuation.
_COLUMNS: Mapping[str, frozenset[str]] = {
    "invoice": frozenset({"invoiceno", "invoice", "invoicenumber"}),
    "code": frozenset({"stockcode", "code"}),
    "quantity": frozenset({"quantity", "qty"}),
    "price": frozenset({"unitprice", "price"}),
}
_REQUIRED = ("invoice", "code", "quantity")

#: Spreadsheets of some countries write semicolons, and copy with tabs.
_DELIMITERS = ",;\t"

_BYTES = range(0xDC80, 0xDD00)  # where Python's "surrogateescape" puts a byte that is not UTF-8


@dataclass(frozen=True, slots=True)
class Record:
    """A row, by the line it starts on, counted from 1; with a `fault` it has no fields.

    `fields` are trimmed; `foreign` is the first field that was not UTF-8, read as Latin-1.
    """

    line: int
    fields: Mapping[str, str] = field(default_factory=dict)
    foreign: str | None = None
    fault: tuple[Odd, str] | None = None


def records(name: str, content: bytes) -> Iterator[Record]:
    """Every row under the header of the file `name`; `OrderFileError` when it has no header of orders."""
    # Not splitlines(), which would cut at form feeds and other characters that a description may contain.
    lines = list(io.StringIO(_decode(name, content), newline=""))
    delimiter, header = _header(name, lines)
    columns = _columns(name, header)
    for line, row in _rows(lines, delimiter, len(header)):
        yield _record(line, row, header, columns)


def _decode(name: str, content: bytes) -> str:
    """The text; a byte that is not UTF-8 becomes a lone surrogate, so that only its own row is read otherwise."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            raise OrderFileError(f"{name}: starts like UTF-16, but is none.") from None
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def _header(name: str, lines: Sequence[str]) -> tuple[str, list[str]]:
    if not lines:
        raise OrderFileError(f"{name}: is empty.")
    for delimiter in _DELIMITERS:
        header = next(csv.reader(lines[:1], delimiter=delimiter))
        if {"invoice", "quantity"} <= set(map(_column, header)):
            return delimiter, header
    raise OrderFileError(
        f"{name}: line 1 is no header of orders (InvoiceNo, StockCode, Quantity, …): {lines[0].strip()[:80]!r}."
    )


def _column(title: str) -> str | None:
    plain = "".join(filter(str.isalnum, title)).casefold()
    return next((column for column, titles in _COLUMNS.items() if plain in titles), None)


def _columns(name: str, header: Sequence[str]) -> dict[str, int]:
    columns: dict[str, int] = {}
    for number, title in enumerate(header):
        column = _column(title)
        if column in columns:
            raise OrderFileError(f"{name}: two columns of the header are the {column}.")
        if column is not None:
            columns[column] = number
    for column in _REQUIRED:
        if column not in columns:
            raise OrderFileError(f"{name}: the header has no column for the {column}.")
    return columns


def _rows(lines: Sequence[str], delimiter: str, width: int) -> Iterator[tuple[int, list[str] | str]]:
    """Each row with its line number, as its fields or as what is wrong with its quoting."""
    start = 1
    while start < len(lines):
        base = start
        reader = csv.reader((lines[number] for number in range(base, len(lines))), delimiter=delimiter, strict=True)
        while True:
            start = base + reader.line_num
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield start + 1, str(error)
                break
            more = lines[start + 1 : base + reader.line_num]
            # A field may run over lines; one that contains a whole row was opened by a stray quote.
            if more and (len(row) != width or any(line.count(delimiter) >= width - 1 for line in more)):
                yield start + 1, f"a quote that runs over {len(more) + 1} lines"
                break
            yield start + 1, row
        start += 1


def _record(line: int, row: list[str] | str, header: Sequence[str], columns: Mapping[str, int]) -> Record:
    if isinstance(row, str):
        return Record(line, fault=(Odd.QUOTING, row))
    texts = [text.strip() for text in row]
    if not any(texts):
        return Record(line, fault=(Odd.EMPTY_ROW, "nothing in it"))
    if texts == [title.strip() for title in header]:
        return Record(line, fault=(Odd.HEADER_AGAIN, "not an order"))
    if len(texts) < len(header):
        return Record(line, fault=(Odd.SHORT_ROW, f"{len(texts)} of {len(header)}"))
    if any(texts[len(header) :]):
        return Record(line, fault=(Odd.LONG_ROW, f"{len(texts)}, not {len(header)}"))
    foreign = next((text for text in texts if _is_foreign(text)), None)
    fields = {column: _latin1(texts[number]) for column, number in columns.items()}
    return Record(line, fields, None if foreign is None else _latin1(foreign))


def _is_foreign(text: str) -> bool:
    return not text.isascii() and any(ord(character) in _BYTES for character in text)


def _latin1(text: str) -> str:
    """A field with bytes that are not UTF-8 as Latin-1, which has a character for every byte."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1").strip() if _is_foreign(text) else text
