"""What callers do at once: scripts for some of them, on the same few pools, holds and idempotency keys.

Chosen by a seed, and by what the callers were answered, so that the same seed on a busier machine may go another way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from uuid import UUID

from reserve.idempotency import Done
from reserve.inventory.holds import Verb
from reserve.inventory.rows import Adjust, Hold, HoldState, Line, Place, PoolChange, PoolState, sum_lines
from tests.model.operations import (
    AdjustPool,
    Audit,
    ChangeHold,
    ChangeHolds,
    Keyed,
    Occupy,
    Operation,
    PlaceHold,
    PlaceHolds,
    Prune,
    PutPool,
    ReadHold,
    ReadPool,
    SetPoolState,
    Sweep,
)
from tests.model.stock import Model
from tests.model.world import Script, Step

POOLS = ("ale", "bolts", "corks")

_VERBS = (Verb.CONFIRM, Verb.RELEASE, Verb.EXTEND)


@dataclass
class Crowd:
    """Callers of one moment. `name` is nobody else's: it makes their keys and references new."""

    random: Random
    model: Model
    name: str
    #: Holds that were there before or that any of them has placed by now.
    hold_ids: list[UUID] = field(default_factory=list)
    #: What more than one of them asks for under the same key: a double click, a proxy that retries, and what others
    #: asked for before.
    doubles: list[Keyed] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        live = [hold.id for hold in self.model.holds.values() if hold.state is HoldState.HELD]
        self.hold_ids = [*live[-8:], *list(self.model.holds)[-2:]]
        places = [self._place(key=self._new("key")) for _ in range(2)]
        changes = [replace(self._change(), key=self._new("key")) for _ in range(2)]
        # The same key for something else.
        other = replace(self._place(), key=places[0].key)
        self.doubles = [*self.doubles[-3:], *places, *changes, other]

    def script(self, length: int) -> Script:
        left = length

        def go_on(answer: Any) -> Step | None:
            nonlocal left
            self._learn(answer)
            left -= 1
            return None if left < 0 else self._step()

        return go_on

    def _learn(self, answer: Any) -> None:
        for each in answer if isinstance(answer, list) else [answer]:
            if isinstance(each, Done) and isinstance(each.value, Hold) and each.value.id not in self.hold_ids:
                self.hold_ids.append(each.value.id)

    def _step(self) -> Step:
        choices: dict[Callable[[], Operation], int] = {
            self._place: 8,
            self._change: 8,
            self._double: 4,
            self._place_many: 2,
            self._change_many: 2,
            self._adjust: 2,
            self._sweep: 2,
            self._read: 3,
            self._occupy: 2,
            self._put: 1,
            self._set_state: 1,
            self._prune: 1,
            Audit: 1,
        }
        [choice] = self.random.choices(list(choices), list(choices.values()))
        operation = choice()
        can_be_lost = isinstance(operation, PlaceHold) or (
            isinstance(operation, ChangeHold) and operation.verb is not Verb.EXTEND
        )
        if not can_be_lost or self.random.random() > 0.15:
            return Step(operation)
        if isinstance(operation, PlaceHold) and operation not in self.doubles:
            operation = replace(operation, place=replace(operation.place, reference=self._new("lost")))
        return Step(operation, patience=self.random.randrange(100))

    # --- what they do ---------------------------------------------------------------------------------------

    def _place(self, key: str | None = None) -> PlaceHold:
        lines = [Line(self._pool(), self._quantity()) for _ in range(self.random.choice([1, 1, 1, 2, 3]))]
        reference = None if key is None else self._new("order")
        place = Place(sum_lines(lines), ttl_seconds=self.random.choice([None, 600]), reference=reference)
        return PlaceHold(place, key or self._maybe_key())

    def _place_many(self) -> PlaceHolds:
        several = [self._place() for _ in range(self.random.randint(2, 4))]
        if self.random.random() < 0.5:
            several += self.random.sample(self._doubles_of(PlaceHold), 1)
        return PlaceHolds(tuple(several))

    def _change(self) -> ChangeHold:
        verb = self.random.choice(_VERBS)
        hold_id = self.random.choice(self.hold_ids) if self.hold_ids else UUID(int=0)
        return ChangeHold(verb, hold_id, self._maybe_key(), self.random.choice([60, 3000, 86_400]))

    def _change_many(self) -> ChangeHolds:
        return ChangeHolds(tuple(self._change() for _ in range(self.random.randint(2, 5))))

    def _double(self) -> Keyed:
        return self.random.choice(self.doubles)

    def _adjust(self) -> AdjustPool:
        delta = self.random.choice([-9, -4, -2, -1, 1, 2, 4, 9])
        return AdjustPool(self._pool(), Adjust(delta, "counted", None, self.random.random() < 0.3), self._maybe_key())

    def _put(self) -> PutPool:
        # Not the time to live: a place that read the old one may be done after, which nobody minds.
        return PutPool(self._pool(), PoolChange(on_hand=self.random.randrange(9), buffer=self.random.randrange(4)))

    def _set_state(self) -> SetPoolState:
        return SetPoolState(self._pool(), self.random.choice([PoolState.OPEN] * 3 + [PoolState.DRAINING]))

    def _sweep(self) -> Sweep:
        return Sweep(self.random.randint(1, 5))

    def _prune(self) -> Prune:
        return Prune(self.random.randint(1, 5))

    def _read(self) -> ReadPool | ReadHold:
        if self.hold_ids and self.random.random() < 0.5:
            return ReadHold(self.random.choice(self.hold_ids))
        return ReadPool(self._pool())

    def _occupy(self) -> Occupy:
        some = self.random.sample(self.hold_ids, min(len(self.hold_ids), self.random.randrange(3)))
        return Occupy(self._pool(), tuple(some), self.random.choice([1, 3, 10, 300]))

    # --- with what --------------------------------------------------------------------------------------------

    def _pool(self) -> str:
        return self.random.choice(POOLS)

    def _quantity(self) -> int:
        # Small ones share the slots, large ones need several, and some are near all there is.
        return self.random.choice([1, 1, 2, 3, 5, 7, max(1, self._available() + self.random.randint(-2, 1))])

    def _available(self) -> int:
        pools: Sequence[str] = [pool for pool in POOLS if pool in self.model.pools]
        return self.model.available(self.random.choice(pools)) if pools else 0

    def _maybe_key(self) -> str | None:
        return self._new("key") if self.random.random() < 0.4 else None

    def _new(self, what: str) -> str:
        self._count += 1
        return f"{what} {self.name}.{self._count}"

    def _doubles_of(self, kind: type[PlaceHold]) -> list[PlaceHold]:
        return [each for each in self.doubles if isinstance(each, kind)]
