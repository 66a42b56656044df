"""A crowd that does everything at once, on few slots, in any order: nobody ever waits in a circle."""

import asyncio
import random
from contextlib import suppress

import pytest

from reserve.errors import ReserveError
from reserve.idempotency import Done
from reserve.inventory import holds
from reserve.inventory.holds import Change, PlaceRequest, Verb
from tests.inventory.shop import answer, key, wish
from tests.steps import until_gone

POOLS = ("tea", "milk", "sugar")
ROUNDS = 200
CROWD = 8

DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
END_SESSIONS = """
select pid, pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and application_name = 'reserve'
"""


class Crowd:
    """What each of them may do, at random; a refusal is an answer like any other."""

    def __init__(self, shop, chance):
        self.shop = shop
        self.chance = chance
        self.live = []

    def cart(self):
        pools = self.chance.sample(POOLS, self.chance.randint(1, 3))
        return [(pool, self.chance.randint(1, 3)) for pool in pools]

    async def act(self):
        act = self.chance.choice(
            [self.place, self.place, self.place_many, self.release, self.release, self.lapse, self.sweep, self.count]
        )
        with suppress(ReserveError):
            await act()

    async def place(self):
        self.live.append(await self.shop.place(*self.cart()))

    async def place_many(self):
        cart = self.cart()
        requests = [PlaceRequest(wish(*cart)), PlaceRequest(wish(*reversed(cart)), key(str(self.chance.random())))]
        answers = await holds.place_many(self.shop.database, requests, answer)
        self.live += [each.value for each in answers if isinstance(each, Done)]

    async def release(self):
        chosen = [self.live.pop(self.chance.randrange(len(self.live))) for _ in range(min(3, len(self.live)))]
        await holds.change_many(self.shop.database, [Change(hold.id, Verb.RELEASE) for hold in chosen], answer)

    async def lapse(self):
        if self.live:
            await self.shop.lapse(self.chance.choice(self.live))

    async def sweep(self):
        await self.shop.sweep()

    async def count(self):
        await self.shop.adjust(self.chance.choice([-3, 3]), self.chance.choice(POOLS), allow_shortage=True)


@pytest.mark.timeout(60)
async def test_many_at_once_in_any_order_never_deadlock(open_shop):
    """Fails where any statement locks slots in another order than the rest (`order by s.id desc` in one of them)."""
    shop = await open_shop(slot_capacity_min=1, slots_per_pool_max=2, transaction_retries_max=0, lock_wait_seconds=5)
    for pool in POOLS:
        await shop.stock(pool, 8)
    crowd = Crowd(shop, random.Random(20))  # noqa: S311 -- a repeatable mix, not a secret
    before = await shop.fetch(DEADLOCKS)
    for _ in range(ROUNDS):
        await asyncio.gather(*(crowd.act() for _ in range(CROWD)))
    # Sessions report what they have met when they end.
    for pid, _ in await shop.fetch(END_SESSIONS):
        await until_gone(shop.conn, pid)
    assert await shop.fetch(DEADLOCKS) == before
