"""Who gets what: decides a batch of requests against what was claimed. Pure, in arrival order; no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reserve.errors import Shortfall


@dataclass(frozen=True, slots=True)
class Wish:
    """One request of a batch: `number` is its place in the batch, `lines` are (pool, quantity), each pool once."""

    number: int
    lines: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Claimed:
    """What is known of a pool while a batch is decided.

    `shares` are (slot, quantity) that this transaction may give out: claimed, or free under its locks. `free` and
    `lapsed` are one snapshot's figures, `free` below 0 where the pool is short; both are 0 for a pool whose whole
    need was claimed, since nobody of the batch is refused there.
    """

    shares: tuple[tuple[int, int], ...]
    free: int = 0
    lapsed: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line: `quantity` of `pool` out of one slot; `line` counts from 1."""

    line: int
    pool: str
    slot_id: int
    quantity: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """What was decided: each wish is in exactly one of the three, by its number."""

    granted: Mapping[int, tuple[Piece, ...]]
    refused: Mapping[int, tuple[Shortfall, ...]]
    undecided: tuple[int, ...]


def allocate(wishes: Sequence[Wish], claimed: Mapping[str, Claimed]) -> Allocation:
    """Decide `wishes` in order; every pool they name must be in `claimed`.

    Granted: every line is covered by shares. Refused: for each line named, the pool's free and lapsed quantity,
    less what earlier wishes of the batch got, is below what is asked. Undecided: there is enough, but not in our
    hands. Nobody later in the batch gets what an undecided wish is waiting for.
    """
    left = {pool: dict(known.shares) for pool, known in claimed.items()}
    given = dict.fromkeys(claimed, 0)
    waited_for: set[str] = set()
    granted: dict[int, tuple[Piece, ...]] = {}
    refused: dict[int, tuple[Shortfall, ...]] = {}
    undecided: list[int] = []
    for wish in wishes:
        lacking = [
            (pool, quantity)
            for pool, quantity in wish.lines
            if pool in waited_for or sum(left[pool].values()) < quantity
        ]
        if not lacking:
            granted[wish.number] = _take(wish, left)
            for pool, quantity in wish.lines:
                given[pool] += quantity
            continue
        shortfalls = []
        for pool, quantity in lacking:
            reachable = claimed[pool].free + claimed[pool].lapsed - given[pool]
            if reachable < quantity:
                shortfalls.append(Shortfall(pool, quantity, max(0, reachable)))
        if shortfalls:
            refused[wish.number] = tuple(shortfalls)
        else:
            undecided.append(wish.number)
            waited_for.update(pool for pool, _ in lacking)
    return Allocation(granted, refused, tuple(undecided))


def _take(wish: Wish, left: dict[str, dict[int, int]]) -> tuple[Piece, ...]:
    """Take the wish's quantities out of `left`: from one slot where one has enough, else from the fullest on."""
    pieces = []
    for line, (pool, quantity) in enumerate(wish.lines, start=1):
        slots = left[pool]
        enough = [slot for slot, rest in slots.items() if rest >= quantity]
        # The smallest that suffices leaves the large ones for large wishes; the slot number breaks ties.
        order = [min(enough, key=lambda slot: (slots[slot], slot))] if enough else _fullest_first(slots)
        wanted = quantity
        for slot in order:
            part = min(wanted, slots[slot])
            if part:
                pieces.append(Piece(line, pool, slot, part))
                slots[slot] -= part
                wanted -= part
        assert wanted == 0, "a wish is only taken when its lines are covered"
    return tuple(pieces)


def _fullest_first(slots: Mapping[int, int]) -> list[int]:
    return sorted(slots, key=lambda slot: (-slots[slot], slot))
