"""Finds an order in which operations that ran at once make sense: one after the other, as the model would do them."""

from collections.abc import Sequence

from tests.model.agreement import complaints
from tests.model.following import Disagreement, follow
from tests.model.losing import possibilities
from tests.model.operations import Record, told_its_effect
from tests.model.seen import Seen
from tests.model.stock import Model

#: An order is mostly found within some dozens of looks; where there is none, looking at all would take hours.
_STATES_MAX = 10_000


def explain(model: Model, records: Sequence[Record], seen: Seen, *, alone: bool = False) -> Model:
    """The model after the records in some order that explains all answers and what was `seen` after them.

    What ended before another began comes first. `Disagreement` if there is no such order; it tells how far the longest
    explanation came. With `alone`, nothing else ran meanwhile.
    """
    search = _Search(records, seen, alone=alone)
    found = search.go(model, frozenset(range(len(records))), [])
    if found is None:
        history = [f"{number}: {record}" for number, record in enumerate(records)]
        raise Disagreement("\n".join(["no order explains these:", *history, "the longest that does:", *search.longest]))
    return found


class _Search:
    """Depth first over what may come next. What was reached by another way already is not looked at twice."""

    def __init__(self, records: Sequence[Record], seen: Seen, *, alone: bool) -> None:
        self._records = records
        self._seen = seen
        self._alone = alone
        self._visited: set[int] = set()
        self._reached = -1
        self.longest: list[str] = []

    def go(self, model: Model, left: frozenset[int], order: list[int]) -> Model | None:
        if not left:
            objections = complaints(self._seen, model)
            self._remember(order, ["and then:", *objections])
            return None if objections else model
        state = hash((left, model.digest()))
        if state in self._visited or len(self._visited) > _STATES_MAX:
            return None
        self._visited.add(state)
        effects: list[tuple[int, Model]] = []
        objections = []
        for number in self._next(left):
            certain, *others = possibilities(model, self._records[number], self._seen)
            for record in (certain, *others):
                after = model.copy()
                try:
                    follow(after, record, alone=self._alone)
                except Disagreement as objection:
                    objections.append(f"not {number}: {objection}")
                    continue
                if not others and told_its_effect(record) and after.digest() == model.digest():
                    # Right now, and without effect: nothing that comes later needs it to come later too.
                    return self.go(after, left - {number}, [*order, number])
                effects.append((number, after))
        for number, after in effects:
            if found := self.go(after, left - {number}, [*order, number]):
                return found
        self._remember(order, objections)
        return None

    def _next(self, left: frozenset[int]) -> list[int]:
        """What may come next, in the most likely order, which is that of the ends."""
        waiting = sorted(left, key=lambda number: self._records[number].ended)
        first_end = self._records[waiting[0]].ended
        return [number for number in waiting if self._records[number].begun <= first_end]

    def _remember(self, order: Sequence[int], objections: Sequence[str]) -> None:
        if len(order) > self._reached:
            self._reached = len(order)
            self.longest = [f"order: {order}", *objections]
