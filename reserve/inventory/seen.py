"""Turns rows of the views `hold_as_read` and `pool_as_read` into a `Hold` and a `Pool`. Pure.

A hold that has lapsed already reads expired in its view, so nothing here looks at a clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncCursor
from psycopg.rows import RowMaker

from reserve.inventory.rows import Hold, HoldState, LateConfirm, Line, Pool, PoolKind, PoolState


@dataclass(frozen=True, slots=True)
class HoldSeen:
    """A hold with the clock of the statement that read it; `unswept` when it has lapsed but is not written so."""

    hold: Hold
    unswept: bool
    now: datetime


def as_hold(row: Mapping[str, Any]) -> Hold:
    """The hold of a row of `hold_as_read`; columns that a hold has not are passed over."""
    return Hold(
        id=row["id"],
        state=HoldState(row["state"]),
        lines=tuple(Line(pool, quantity) for pool, quantity in zip(row["pools"], row["quantities"], strict=True)),
        owner=row["owner"],
        reference=row["reference"],
        metadata=row["metadata"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        finalized_at=row["finalized_at"],
        version=row["version"],
    )


def as_pool(row: Mapping[str, Any]) -> Pool:
    """The pool of a row of `pool_as_read`, its words checked against the closed sets."""
    words = {
        "kind": PoolKind(row["kind"]),
        "state": PoolState(row["state"]),
        "late_confirm": LateConfirm(row["late_confirm"]),
    }
    return Pool(**{**row, **words})


def _columns(cursor: AsyncCursor[Any]) -> list[str]:
    return [column.name for column in cursor.description or ()]


def hold_row(cursor: AsyncCursor[Any]) -> RowMaker[Hold]:
    """Row factory of `Hold`."""
    names = _columns(cursor)
    return lambda values: as_hold(dict(zip(names, values, strict=True)))


def hold_seen_row(cursor: AsyncCursor[Any]) -> RowMaker[HoldSeen]:
    """Row factory of `HoldSeen`."""
    names = _columns(cursor)

    def make(values: Any) -> HoldSeen:
        row = dict(zip(names, values, strict=True))
        return HoldSeen(as_hold(row), row["unswept"], row["now"])

    return make


def pool_row(cursor: AsyncCursor[Any]) -> RowMaker[Pool]:
    """Row factory of `Pool`."""
    names = _columns(cursor)
    return lambda values: as_pool(dict(zip(names, values, strict=True)))
