"""How on-hand stock is spread over slots; pure."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserve.inventory.slots import Slot, slot_count, spread

EMPTY = Slot(0, 1, 0, 1, True, False, 0, 0, 0, 0, 0, 0)


def slots_with(*promised, **rest):
    return [
        replace(EMPTY, id=number, number=number, held=held, confirmed=confirmed, withheld=withheld, **rest)
        for number, (held, confirmed, withheld) in enumerate(promised, start=1)
    ]


def test_free_stock_is_shared_evenly_and_what_is_promised_stays():
    spread_out = spread(slots_with((3, 0, 0), (0, 1, 0), (0, 0, 0)), on_hand=14, buffer=2)
    assert [(slot.capacity, slot.held, slot.confirmed, slot.buffer, slot.free) for slot in spread_out] == [
        (7, 3, 0, 1, 3),
        (5, 0, 1, 1, 3),
        (2, 0, 0, 0, 2),
    ]
    assert not any(slot.short or slot.shortage for slot in spread_out)


def test_what_is_lacking_becomes_shortage_and_every_slot_is_short():
    spread_out = spread(slots_with((3, 0, 0), (2, 0, 0), (0, 0, 0)), on_hand=1, buffer=0)
    assert [(slot.capacity, slot.shortage, slot.short) for slot in spread_out] == [
        (0, 3, True),
        (1, 1, True),
        (0, 0, True),
    ]


def test_a_short_pool_whose_shortage_is_paid_is_short_no_more():
    short = spread(slots_with((5, 0, 0), (5, 0, 0)), on_hand=4, buffer=0)
    paid = spread([replace(slot, held=2) for slot in short], on_hand=4, buffer=0)
    assert [(slot.capacity, slot.shortage, slot.short) for slot in paid] == [(2, 0, False), (2, 0, False)]


@pytest.mark.parametrize(
    ("on_hand", "count"),
    [(0, 1), (1, 1), (255, 1), (256, 1), (511, 1), (512, 2), (4095, 15), (4096, 16), (10**12, 16)],
)
def test_a_pool_has_a_slot_for_each_full_share_within_bounds(on_hand, count):
    assert slot_count(on_hand, capacity_min=256, slots_max=16) == count


amounts = st.one_of(st.just(0), st.integers(0, 9), st.integers(0, 10**12))
pools = st.lists(st.tuples(amounts, amounts, amounts), min_size=1, max_size=16).map(lambda rows: slots_with(*rows))


@given(pools, amounts, amounts)
def test_sums_are_kept_and_nothing_promised_moves(slots, on_hand, buffer):
    after = spread(slots, on_hand=on_hand, buffer=buffer)
    assert sum(slot.capacity for slot in after) == on_hand
    assert sum(slot.buffer for slot in after) == buffer
    kept = [(slot.id, slot.number, slot.open, slot.held, slot.confirmed, slot.withheld) for slot in slots]
    assert kept == [(slot.id, slot.number, slot.open, slot.held, slot.confirmed, slot.withheld) for slot in after]


@given(pools, amounts, amounts)
def test_every_slot_passes_the_checks_of_its_table(slots, on_hand, buffer):
    after = spread(slots, on_hand=on_hand, buffer=buffer)
    for slot in after:
        assert slot.promised <= slot.capacity + slot.shortage
        assert min(slot.capacity, slot.buffer, slot.shortage) >= 0
        assert slot.short or not slot.shortage
    free = on_hand - sum(slot.promised for slot in after)
    assert sum(slot.shortage for slot in after) == max(0, -free)
    assert {slot.short for slot in after} == {free < 0}


@given(pools, amounts, amounts)
def test_free_capacity_and_buffer_are_even_to_one_piece(slots, on_hand, buffer):
    after = spread(slots, on_hand=on_hand, buffer=buffer)
    free = [slot.free for slot in after]
    if not after[0].short:
        assert max(free) - min(free) <= 1
    buffers = [slot.buffer for slot in after]
    assert max(buffers) - min(buffers) <= 1


@given(pools, amounts, amounts)
def test_spreading_again_changes_nothing(slots, on_hand, buffer):
    once = spread(slots, on_hand=on_hand, buffer=buffer)
    assert spread(once, on_hand=on_hand, buffer=buffer) == once


@given(pools, amounts, st.data())
def test_what_comes_back_to_a_short_pool_is_free_only_beyond_the_shortage(slots, on_hand, data):
    before = spread(slots, on_hand=on_hand, buffer=0)
    back = [replace(slot, held=slot.held - data.draw(st.integers(0, slot.held))) for slot in before]
    after = spread(back, on_hand=on_hand, buffer=0)
    promised = sum(slot.promised for slot in back)
    assert sum(max(0, slot.free) for slot in after) == max(0, on_hand - promised)
