"""Pools from a CSV file with the columns `pool,on_hand[,buffer]`: reading is pure, importing is one transaction.

A wrong row is named by its line, as an editor counts them, and then the whole file changes nothing.
"""

import csv
import io
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reserve.db.connection import Database
from reserve.errors import Fault, InvalidRequest, ValidationFailed
from reserve.inventory.importing import Imported, PoolImport, put_many
from reserve.names import normalise_key

_REQUIRED = ("pool", "on_hand")
_COLUMNS = (*_REQUIRED, "buffer")

#: Wrong rows that are told; the rest of a file that has more is wrong for the same reason.
_FAULTS_MAX = 20

#: Bytes of one row: a key of 200 characters of 4 bytes and two numbers, with room for quotes and blanks.
_ROW_BYTES_MAX = 1024

_INTEGER = re.compile(r"[0-9]{1,30}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """A row that can be imported, with the line it begins on."""

    line: int
    pool: PoolImport


def read_pools(text: bytes, *, rows_max: int, quantity_max: int) -> list[Row]:
    """The rows of a file, in order. UTF-8 with or without a byte order mark, any line ends, blank lines passed over.

    Raises `InvalidRequest` for what is no such file, `ValidationFailed` naming the lines of the wrong rows.
    """
    records = _records(_decode(text))
    heading = next(records, None)
    if heading is None:
        raise InvalidRequest("The file is empty; its first line must be the heading pool,on_hand[,buffer].")
    columns = _columns(*heading)
    rows: list[Row] = []
    faults: list[Fault] = []
    lines: dict[str, int] = {}
    for count, (line, cells) in enumerate(records, start=1):
        if count > rows_max:
            raise InvalidRequest(
                f"Line {line}: the file has more than {rows_max} pools, the most that one import takes; split it, or "
                "raise RESERVE_IMPORT_ROWS_MAX."
            )
        try:
            pool = _read_row(columns, cells, quantity_max)
        except ValueError as error:
            faults.append(Fault(f"line {line}", str(error)))
            continue
        if pool.key in lines:
            faults.append(Fault(f"line {line}", f"the pool {pool.key!r} is on line {lines[pool.key]} already"))
        lines.setdefault(pool.key, line)
        rows.append(Row(line, pool))
    if faults:
        raise _refusal(faults)
    return rows


def read_file(path: Path, *, rows_max: int) -> bytes:
    """All of a file, or of standard input for `-`; `InvalidRequest` when it cannot be read or is far too long."""
    most = (rows_max + 1) * _ROW_BYTES_MAX
    try:
        if str(path) == "-":
            text = sys.stdin.buffer.read(most + 1)
        else:
            with path.open("rb") as file:
                text = file.read(most + 1)
    except OSError as error:
        raise InvalidRequest(f"The file cannot be read ({error.strerror or error}).") from error
    if len(text) > most:
        raise InvalidRequest(f"The file has more than {most} bytes, which no {rows_max} pools need.")
    return text


async def import_pools(
    database: Database, text: bytes, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> Imported:
    """Read `text` and make its pools as it says, all or none; importing the same file again changes nothing.

    A new pool is created. An existing one must have the same `on_hand`, which only adjustments change; its buffer
    is set where the file gives one. `progress` gets how many are done of how many. Raises what `read_pools` and
    `put_many` raise, by lines.
    """
    settings = database.settings
    rows = read_pools(text, rows_max=settings.import_rows_max, quantity_max=settings.quantity_max)
    try:
        return await put_many(database, [row.pool for row in rows], lambda done: progress(done, len(rows)))
    except ValidationFailed as error:
        raise _refusal(
            [Fault(f"line {rows[int(fault.pointer.split('/')[1])].line}", fault.detail) for fault in error.faults]
        ) from error


def _decode(text: bytes) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(f"Line {line}: the file is not UTF-8; save it as UTF-8 and import it again.") from None


def _records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not blank with the line it begins on; a quoted cell may go over several lines."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidRequest(f"Line {line}: this is not CSV ({error}).") from None
        cells = [cell.strip() for cell in cells]
        if any(cells):
            yield line, cells


def _columns(line: int, cells: list[str]) -> list[str]:
    wrong = [cell for cell in cells if cell not in _COLUMNS]
    if wrong or any(name not in cells for name in _REQUIRED) or len(set(cells)) < len(cells):
        shown = ",".join(cells)
        shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
        raise InvalidRequest(f"Line {line}: the heading must be pool,on_hand[,buffer] with commas, and is {shown!r}.")
    return cells


def _read_row(columns: list[str], cells: list[str], quantity_max: int) -> PoolImport:
    """The row's pool; `ValueError` says what is wrong with it."""
    if len(cells) != len(columns):
        raise ValueError(f"there are {len(cells)} cells where the heading has {len(columns)}")
    named = dict(zip(columns, cells, strict=True))
    try:
        key = normalise_key(named["pool"])
    except ValueError as error:
        raise ValueError(f"pool {error}") from None
    on_hand = _quantity("on_hand", named["on_hand"], quantity_max)
    if not named.get("buffer"):
        return PoolImport(key, on_hand)
    buffer = _quantity("buffer", named["buffer"], quantity_max)
    if buffer > on_hand:
        raise ValueError(f"a buffer of {buffer} needs as much on hand, and on_hand is {on_hand}")
    return PoolImport(key, on_hand, buffer)


def _quantity(name: str, cell: str, most: int) -> int:
    if not _INTEGER.fullmatch(cell) or int(cell) > most:
        shown = cell if len(cell) <= 40 else f"{cell[:40]}…"
        raise ValueError(f"{name} must be a whole number from 0 to {most}, and is {shown!r}")
    return int(cell)


def _refusal(faults: list[Fault]) -> ValidationFailed:
    if len(faults) > _FAULTS_MAX:
        more = Fault(f"and {len(faults) - _FAULTS_MAX} more lines", "not shown")
        return ValidationFailed([*faults[:_FAULTS_MAX], more])
    return ValidationFailed(faults)
