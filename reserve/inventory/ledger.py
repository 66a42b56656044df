"""What each kind of movement does to the quantities of its pool. Pure; the one place that says it.

Applied to all movements of a pool it gives every quantity anew, which is what the audit compares.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class MovementKind(StrEnum):
    PLACED = "placed"
    CONFIRMED = "confirmed"
    RELEASED = "released"
    EXPIRED = "expired"
    FULFILLED = "fulfilled"
    RETURNED = "returned"
    ADJUSTED = "adjusted"
    BUFFERED = "buffered"
    WITHHELD = "withheld"
    OFFERED = "offered"


@dataclass(frozen=True, slots=True)
class Effect:
    """By how many times a movement's `quantity` each quantity of the pool grows: 1, 0 or -1."""

    on_hand: int = 0
    buffer: int = 0
    withheld: int = 0
    held: int = 0
    confirmed: int = 0


#: `adjusted` and `buffered` carry the signed change, all others how much. What is fulfilled has left the house.
EFFECTS: Mapping[MovementKind, Effect] = MappingProxyType(
    {
        MovementKind.PLACED: Effect(held=1),
        MovementKind.CONFIRMED: Effect(held=-1, confirmed=1),
        MovementKind.RELEASED: Effect(held=-1),
        MovementKind.EXPIRED: Effect(held=-1),
        MovementKind.FULFILLED: Effect(on_hand=-1, confirmed=-1),
        MovementKind.RETURNED: Effect(confirmed=-1),
        MovementKind.ADJUSTED: Effect(on_hand=1),
        MovementKind.BUFFERED: Effect(buffer=1),
        MovementKind.WITHHELD: Effect(withheld=1),
        MovementKind.OFFERED: Effect(withheld=-1),
    }
)


def effect_parameters() -> dict[str, list[str] | list[int]]:
    """`EFFECTS` as columns, for statements that sum movements."""
    return {
        "kinds": [kind.value for kind in EFFECTS],
        "on_hand_effects": [effect.on_hand for effect in EFFECTS.values()],
        "buffer_effects": [effect.buffer for effect in EFFECTS.values()],
        "withheld_effects": [effect.withheld for effect in EFFECTS.values()],
        "held_effects": [effect.held for effect in EFFECTS.values()],
        "confirmed_effects": [effect.confirmed for effect in EFFECTS.values()],
    }
