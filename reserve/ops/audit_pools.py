"""Judges the figures of pools: as stored in slots, as their movements have them, as their lines have them. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from reserve.ops.differences import Difference, What

_QUANTITIES = (What.ON_HAND, What.BUFFER, What.WITHHELD, What.HELD, What.CONFIRMED)


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """A row of `audit_pool`: a slot with what its lines have; without `slot`, what the movements of a window have.

    All but the pool is None for a pool that has neither slots nor movements.
    """

    pool_id: int
    pool: str
    kind: str
    window_id: int | None
    slot: int | None
    on_hand: Decimal | None
    buffer: Decimal | None
    withheld: Decimal | None
    held: Decimal | None
    confirmed: Decimal | None
    shortage: Decimal | None
    short: bool | None
    held_by_lines: Decimal | None
    confirmed_by_lines: Decimal | None
    movements: Decimal | None

    def quantity(self, name: str) -> int:
        return int(getattr(self, name) or 0)

    @property
    def promised(self) -> int:
        return sum(self.quantity(name) for name in ("held", "confirmed", "buffer", "withheld"))


def judge_pools(rows: Sequence[PoolFigures]) -> Iterator[Difference]:
    """The differences of whole pools; `rows` come sorted by pool and window."""
    for (_, pool, kind), own in groupby(rows, key=lambda row: (row.pool_id, row.pool, row.kind)):
        figures = list(own)
        if kind == "stock" and not any(row.slot is not None for row in figures):
            yield Difference(pool, What.SLOTS, "0", "at least 1")
        for window_id, part in groupby(figures, key=lambda row: row.window_id):
            if window_id is not None:
                window = list(part)
                yield from _judge_window(pool, window_id, window)


def _judge_window(pool: str, window_id: int, rows: Sequence[PoolFigures]) -> Iterator[Difference]:
    slots = [row for row in rows if row.slot is not None]
    ledger = [row for row in rows if row.slot is None]
    for name in _QUANTITIES:
        stored, recomputed = _total(slots, name), _total(ledger, name)
        if stored != recomputed:
            yield Difference(pool, name, str(stored), str(recomputed), window_id)
    on_hand, shortage = _total(slots, "on_hand"), _total(slots, "shortage")
    promised = sum(slot.promised for slot in slots)
    lacking = max(0, promised - on_hand)
    if shortage != lacking:
        yield Difference(pool, What.SHORTAGE, str(shortage), str(lacking), window_id)
    if any(bool(slot.short) is not bool(shortage) for slot in slots):
        marked = sum(bool(slot.short) for slot in slots)
        yield Difference(
            pool,
            What.SHORT,
            f"on {marked} of {len(slots)} slots",
            f"on {len(slots) if shortage else 0}",
            window_id,
        )
    # By the slots or by the movements, whichever is more: a lost update hides what was promised from the slots.
    most = max(promised, sum(row.promised for row in ledger))
    covered = min(on_hand, _total(ledger, "on_hand")) + shortage
    if most > covered:
        yield Difference(pool, What.OVERSOLD, str(most), f"at most {covered}", window_id)
    for slot in slots:
        yield from _judge_slot(pool, window_id, slot)


def _judge_slot(pool: str, window_id: int, slot: PoolFigures) -> Iterator[Difference]:
    for what, name in ((What.SLOT_HELD, "held"), (What.SLOT_CONFIRMED, "confirmed")):
        stored, recomputed = slot.quantity(name), slot.quantity(f"{name}_by_lines")
        if stored != recomputed:
            yield Difference(pool, what, str(stored), str(recomputed), window_id, slot.slot)
    covered = slot.quantity("on_hand") + slot.quantity("shortage")
    if slot.promised > covered:
        yield Difference(pool, What.SLOT_OVERSOLD, str(slot.promised), f"at most {covered}", window_id, slot.slot)


def _total(rows: Iterable[PoolFigures], name: str) -> int:
    return sum(row.quantity(name) for row in rows)
