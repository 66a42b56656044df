"""Random histories, one operation at a time: every answer is the model's, and after each step nothing is amiss."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

import pytest
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from reserve.idempotency import prune_keys
from reserve.inventory import adjustments, holds, pools
from reserve.inventory.holds import Verb
from reserve.inventory.rows import Adjustment, Hold, HoldState, Line, Place, PoolChange, PoolFilter, PoolState
from tests.model import wishes
from tests.model.explain import explain
from tests.model.operations import (
    AdjustPool,
    Audit,
    ChangeHold,
    ChangeHolds,
    Keyed,
    Operation,
    PlaceHold,
    PlaceHolds,
    PutPool,
    ReadHold,
    ReadPool,
    Record,
    SetPoolState,
    Sweep,
)
from tests.model.stock import Model
from tests.model.wishes import Fresh
from tests.model.world import EXAMPLES, World

#: No hold comes nearer to its end than this without lapsing, or it might end by itself between two looks.
_MARGIN = timedelta(seconds=120)

_which = st.integers(0, 15)
_verbs = st.sampled_from([Verb.CONFIRM, Verb.RELEASE, Verb.EXTEND])


class StepByStep(RuleBasedStateMachine):
    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.model = Model(world.database.settings)
        self.asked: list[Keyed] = []
        self.is_well = False
        world.run(world.observer.clear())
        self.seen = world.run(world.observer.see())

    def do(self, operation: Operation) -> list[Record]:
        records = self.world.do(operation)
        for record in records:
            note(str(record))
            if isinstance(record.operation, Keyed) and record.operation.key is not None:
                self.asked.append(record.operation)
        self.look(records)
        return records

    def look(self, records: Iterable[Record] = ()) -> None:
        """After each step: the answers are the model's, and what the database holds is what the model says."""
        self.is_well = False
        self.seen = self.world.run(self.world.observer.see())
        self.model = explain(self.model, list(records), self.seen, alone=True)
        self.is_well = True

    def teardown(self):
        if self.is_well:
            self.do(Audit())

    def key(self, drawn: Fresh | int | None) -> str | None:
        used = list(self.model.keys)
        if isinstance(drawn, int) and used:
            return used[-1 - drawn % len(used)]
        return None if drawn is None else f"k{len(self.asked)}"

    def hold_id(self, which: int) -> UUID:
        """Mostly one that is held, counted from the newest; sometimes any; rarely one that is not there."""
        held = [hold.id for hold in self._held()]
        known = held if held and which < 11 else list(self.model.holds)
        return known[-1 - which % len(known)] if known and which < 15 else uuid4()

    # --- pools ----------------------------------------------------------------------------------------------

    @initialize(
        on_hand=st.permutations([5, 18, 50]),
        buffer=st.integers(0, 3),
        wanted=st.lists(st.tuples(wishes.pools, st.integers(1, 4)), min_size=2, max_size=6),
    )
    def begin_with_pools_and_holds(self, on_hand, buffer, wanted):
        for pool, quantity in zip(wishes.POOLS, on_hand, strict=True):
            self.do(PutPool(pool, PoolChange(on_hand=quantity)))
        self.do(PutPool("ale", PoolChange(hold_ttl_seconds=3000)))
        self.do(PutPool("bolts", PoolChange(buffer=buffer, hold_ttl_seconds=700)))
        self.do(PlaceHolds(tuple(PlaceHold(Place([Line(*line)]), f"first {n}") for n, line in enumerate(wanted))))

    @rule(
        pool=wishes.pools,
        change=st.one_of(wishes.changes, st.sampled_from([PoolState.OPEN, PoolState.OPEN, PoolState.DRAINING])),
        matching=st.sampled_from([None, None, None, 0, 1]),
    )
    def change_pool(self, pool, change, matching):
        version = self.model.pools[pool].version if pool in self.model.pools else 1
        if isinstance(change, PoolState):
            self.do(SetPoolState(pool, change))
        else:
            self.do(PutPool(pool, change, None if matching is None else version + matching))

    @rule(
        pool=wishes.pools,
        delta=wishes.deltas,
        off=st.sampled_from([None, None, None, 0, 1]),
        allow_shortage=st.booleans(),
        key=wishes.keys,
    )
    def adjust(self, pool, delta, off, allow_shortage, key):
        delta = wishes.delta_of(self.model, pool, delta)
        on_hand = self.model.pools[pool].on_hand if pool in self.model.pools else 0
        expected = None if off is None else on_hand + off
        wish = wishes.adjust_of(delta, expected, allow_shortage=allow_shortage)
        self.do(AdjustPool(pool, wish, self.key(key)))

    # --- holds ----------------------------------------------------------------------------------------------

    @rule(lines=wishes.lines, rest=wishes.places, key=wishes.keys)
    def place(self, lines, rest, key):
        self.do(PlaceHold(wishes.place_of(self.model, lines, **rest), self.key(key)))

    @rule(pool=wishes.pools, quantity=st.integers(1, 5), key=wishes.keys)
    def place_one_line(self, pool, quantity, key):
        self.do(PlaceHold(Place([Line(pool, quantity)]), self.key(key)))

    @rule(
        items=st.lists(
            st.tuples(wishes.lines, wishes.places, st.one_of(wishes.keys, st.sampled_from(["x", "y"]))),
            min_size=1,
            max_size=4,
        )
    )
    def place_many(self, items):
        own = {"x": f"x{len(self.asked)}", "y": f"y{len(self.asked)}"}
        requests = [
            PlaceHold(wishes.place_of(self.model, lines, **rest), own.get(key) or self.key(key))
            for lines, rest, key in items
        ]
        self.do(PlaceHolds(tuple(requests)))

    @precondition(lambda self: self.model.holds)
    @rule(
        verb=_verbs,
        which=_which,
        ttl_seconds=st.sampled_from([1, 3000, 50_000, 86_400]),
        key=wishes.keys,
    )
    def change(self, verb, which, ttl_seconds, key):
        self.do(ChangeHold(verb, self.hold_id(which), self.key(key), ttl_seconds))

    @precondition(lambda self: self.model.holds)
    @rule(
        items=st.lists(
            st.tuples(_verbs, _which, wishes.keys),
            min_size=2,
            max_size=4,
        )
    )
    def change_many(self, items):
        self.do(ChangeHolds(tuple(ChangeHold(verb, self.hold_id(n), self.key(key), 3000) for verb, n, key in items)))

    @precondition(lambda self: self.asked)
    @rule(which=_which, changed=st.sampled_from([False, False, True]))
    def retry(self, which, changed):
        operation = self.asked[-1 - which % len(self.asked)]
        self.do(wishes.with_another_body(operation) if changed else operation)

    # --- time -----------------------------------------------------------------------------------------------

    @precondition(lambda self: self._held())
    @rule(seconds=st.sampled_from([60, 3000, 80_000]))
    def let_time_pass(self, seconds):
        """All that are held grow older; those that are near their end lapse."""
        for hold in self._held():
            self._age(hold, timedelta(seconds=seconds))
        self.look()

    @precondition(lambda self: self._held())
    @rule(which=st.lists(_which, min_size=1, max_size=4))
    def let_some_lapse(self, which):
        held = self._held()
        for number in {each % len(held) for each in which}:
            self._age(held[number], timedelta(days=2))
        self.look()

    def _age(self, hold: Hold, by: timedelta) -> None:
        left = hold.expires_at - self.world.run(self.world.observer.clock())
        lapse = left - by < _MARGIN
        by = max(by, left + timedelta(seconds=1)) if lapse else by
        note(f"{hold.id} is older by {by}" + (", has lapsed" if lapse else ""))
        self.world.run(self.world.observer.age_holds([hold.id], by))
        self.model.age([hold.id], by, lapse=lapse)

    def _held(self) -> list[Hold]:
        return [hold for hold in self.model.holds.values() if hold.state is HoldState.HELD]

    @precondition(lambda self: self.seen.unswept())
    @rule(limit=st.integers(1, 4))
    def sweep(self, limit):
        unswept = self.seen.unswept()
        [record] = self.do(Sweep(limit))
        assert record.answer == min(limit, len(unswept))
        assert self.seen.unswept() == unswept[limit:], "the oldest are swept first"

    @precondition(lambda self: self.model.keys)
    @rule(which=_which, prune=st.booleans())
    def forget_a_key(self, which, prune):
        key = list(self.model.keys)[-1 - which % len(self.model.keys)]
        del self.model.keys[key]
        self.world.run(self.world.observer.age_keys([key]))
        if prune:
            self.world.run(prune_keys(self.world.database, limit=10))
        self.look()

    # --- reading --------------------------------------------------------------------------------------------

    @rule(
        these_pools=wishes.pool_filters,
        these_holds=wishes.hold_filters,
        pool=st.sampled_from(wishes.POOLS),
        which=_which,
        limit=st.integers(1, 5),
    )
    def read(self, these_pools, these_holds, pool, which, limit):
        self.do(ReadPool(pool))
        self.do(ReadHold(self.hold_id(which)))
        self._find_pools(these_pools, limit)
        find = partial(holds.find, self.world.database, these_holds, limit=limit)
        assert self.world.run(_pages(find, limit, lambda hold: hold.id)) == self.model.holds_found(these_holds)
        self._find_adjustments(pool, limit)

    def _find_pools(self, chosen: PoolFilter, limit: int) -> None:
        find = partial(pools.find, self.world.database, chosen, limit=limit)
        found = self.world.run(_pages(find, limit, lambda pool: pools.PoolCursor(pool.key, pool.id)))
        assert [replace(pool, as_of=found[0].as_of) for pool in found] == [
            self.model.pool_as_read(key, found[0]) for key in self.model.pools_found(chosen)
        ]

    def _find_adjustments(self, pool: str, limit: int) -> None:
        find = partial(adjustments.find, self.world.database, pool, limit=limit)
        *found, created = self.world.run(_pages(find, limit, lambda adjustment: adjustment.id))
        expected = [each for each in reversed(self.model.adjustments) if each.pool == pool]
        assert found == expected
        on_hand = self.model.pools[pool].on_hand - sum(each.delta for each in expected)
        assert created == Adjustment(created.id, pool, on_hand, "created", on_hand, created.created_at)


async def _pages(find, limit, cursor):
    """All items, page by page; every page but the last is full, and none but the first is empty."""
    items = []
    after = None
    while True:
        page = await find(after=after)
        items += page.items
        if not page.more:
            assert (after is not None) <= len(page.items) <= limit
            return items
        assert len(page.items) == limit
        after = cursor(page.items[-1])


# Hypothesis makes a history that fails smaller for up to five minutes.
@pytest.mark.timeout(360 + 120 * EXAMPLES)
def test_every_history_agrees_with_the_model(world):
    run_state_machine_as_test(
        lambda: StepByStep(world),
        settings=settings(max_examples=max(1, round(50 * EXAMPLES)), stateful_step_count=30),
    )
