"""Random crowds: several callers at once, whose answers must make sense in some order, one after the other."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from reserve.inventory.rows import HoldState, PoolChange
from tests.model.crowd import POOLS, Crowd
from tests.model.explain import explain
from tests.model.operations import PutPool, Record
from tests.model.stock import Model
from tests.model.world import EXAMPLES, World, open_world

#: Short, so that who waits behind an occupied pool is sometimes answered `contended`.
_LOCK_WAIT_SECONDS = 0.15

_seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def world(database_url):
    with open_world(database_url, lock_wait_seconds=_LOCK_WAIT_SECONDS) as world:
        yield world


class AtOnce(RuleBasedStateMachine):
    """No precondition and no draw looks at the model, which the machine's other load has a say in."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.model = Model(world.database.settings)
        self.crowds = 0
        world.run(world.observer.clear())

    @initialize(on_hand=st.tuples(*[st.integers(0, 30)] * len(POOLS)))
    def begin_with_pools(self, on_hand):
        for pool, quantity in zip(POOLS, on_hand, strict=True):
            self.look(self.world.do(PutPool(pool, PoolChange(on_hand=quantity))), alone=True)

    @rule(seed=_seeds, callers=st.integers(2, 7), length=st.integers(1, 5))
    def all_at_once(self, seed, callers, length):
        self.crowds += 1
        crowd = Crowd(Random(seed), self.model, str(self.crowds))  # noqa: S311 -- repeatable, and no secret
        scripts = [crowd.script(length) for _ in range(callers)]
        self.look(self.world.run(self.world.perform(*scripts)))

    @rule(seed=_seeds)
    def some_lapse(self, seed):
        random = Random(seed)  # noqa: S311 -- repeatable, and no secret
        held = [hold for hold in self.model.holds.values() if hold.state is HoldState.HELD]
        for hold in random.sample(held, (len(held) + 1) // 2):
            by = hold.expires_at - hold.created_at + timedelta(seconds=1)
            self.world.run(self.world.observer.age_holds([hold.id], by))
            self.model.age([hold.id], by, lapse=True)
        self.look([])

    def look(self, records: list[Record], *, alone: bool = False) -> None:
        self.model = explain(self.model, records, self.world.run(self.world.observer.see()), alone=alone)


@pytest.mark.timeout(120 * max(1, EXAMPLES))
def test_what_is_done_at_once_could_have_been_done_in_turn(world):
    run_state_machine_as_test(
        lambda: AtOnce(world),
        settings=settings(
            max_examples=max(1, round(20 * EXAMPLES)),
            stateful_step_count=8,
            # What depends on the moment cannot be made smaller by trying again.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
