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
from tests.model.operations import Audit, Keyed, PutPool, Record
from tests.model.stock import Model
from tests.model.world import EXAMPLES, World, open_world

#: Short, so that who waits behind an occupied pool is sometimes answered `contended`.
_LOCK_WAIT_SECONDS = 0.15


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
        self.doubles: list[Keyed] = []
        self.is_well = False
        world.run(world.observer.clear())

    @initialize(on_hand=st.permutations([4, 16, 40]))
    def begin_with_pools(self, on_hand):
        for pool, quantity in zip(POOLS, on_hand, strict=True):
            self.look(self.world.do(PutPool(pool, PoolChange(on_hand=quantity))), alone=True)

    @rule(
        seed=st.integers(0, 2**32 - 1),
        callers=st.sampled_from([2, 4, 7]),
        length=st.sampled_from([1, 3, 5]),
        lapsing=st.sampled_from([0, 0.3, 0.7]),
    )
    def all_at_once(self, seed, callers, length, lapsing):
        self.crowds += 1
        # The number, because Hypothesis likes to draw the same seed again.
        random = Random(f"{seed} {self.crowds}")  # noqa: S311 -- repeatable, and no secret
        self._let_time_pass(random, lapsing)
        crowd = Crowd(random, self.model, str(self.crowds), doubles=self.doubles)
        self.doubles = crowd.doubles
        scripts = [crowd.script(length) for _ in range(callers)]
        self.look(self.world.run(self.world.perform(*scripts)))

    def _let_time_pass(self, random: Random, lapsing: float) -> None:
        """Some holds lapse and some keys are past their retention, by data; all are there when the crowd comes."""
        held = [hold for hold in self.model.holds.values() if hold.state is HoldState.HELD]
        for hold in random.sample(held, round(len(held) * lapsing)):
            by = hold.expires_at - hold.created_at + timedelta(seconds=1)
            self.world.run(self.world.observer.age_holds([hold.id], by))
            self.model.age([hold.id], by, lapse=True)
        keys = random.sample(list(self.model.keys), round(len(self.model.keys) * lapsing))
        self.world.run(self.world.observer.age_keys(keys))
        for key in keys:
            del self.model.keys[key]

    def teardown(self):
        if self.is_well:
            self.look(self.world.do(Audit()), alone=True)

    def look(self, records: list[Record], *, alone: bool = False) -> None:
        self.is_well = False
        self.model = explain(self.model, records, self.world.run(self.world.observer.see()), alone=alone)
        self.is_well = True


@pytest.mark.timeout(120 + 120 * EXAMPLES)
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
