"""Who gets what of a batch, decided in arrival order; pure."""

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from reserve.errors import Shortfall
from reserve.inventory.allocation import Allocation, Claimed, Piece, Wish, allocate

POOLS = ("tea", "milk", "sugar")


def wishes_of(*carts):
    return [Wish(number, tuple(cart.items())) for number, cart in enumerate(carts)]


# --- examples -----------------------------------------------------------------------------------------------


def test_what_is_in_our_hands_is_granted_in_order_and_the_rest_refused_with_what_is_left():
    claimed = {"tea": Claimed(((7, 5),), free=5)}
    decided = allocate(wishes_of({"tea": 3}, {"tea": 3}, {"tea": 2}), claimed)
    assert decided == Allocation(
        granted={0: (Piece(1, "tea", 7, 3),), 2: (Piece(1, "tea", 7, 2),)},
        refused={1: (Shortfall("tea", 3, 2),)},
        undecided=(),
    )


def test_what_has_lapsed_or_is_locked_leaves_a_wish_undecided():
    assert allocate(wishes_of({"tea": 3}), {"tea": Claimed((), free=1, lapsed=2)}).undecided == (0,)
    assert allocate(wishes_of({"tea": 3}), {"tea": Claimed((), free=3)}).undecided == (0,)


def test_a_short_pool_refuses_with_zero_left_never_with_less():
    decided = allocate(wishes_of({"tea": 1}), {"tea": Claimed((), free=-4, lapsed=1)})
    assert decided.refused == {0: (Shortfall("tea", 1, 0),)}


def test_nobody_later_gets_what_an_undecided_wish_waits_for():
    """3 are free in our hands and 2 have lapsed: the first wish waits for all 5, so the second waits behind it."""
    claimed = {"tea": Claimed(((1, 3),), free=3, lapsed=2), "milk": Claimed(((2, 1),), free=1)}
    decided = allocate(wishes_of({"tea": 5}, {"tea": 1}, {"milk": 1}), claimed)
    assert decided.undecided == (0, 1)
    assert set(decided.granted) == {2}


def test_a_refused_wish_takes_nothing_and_holds_nobody_up():
    claimed = {"tea": Claimed(((1, 2),), free=2), "milk": Claimed((), free=0)}
    decided = allocate(wishes_of({"tea": 2, "milk": 1}, {"tea": 2}), claimed)
    assert decided.refused == {0: (Shortfall("milk", 1, 0),)}
    assert set(decided.granted) == {1}


def test_all_short_lines_are_named_in_their_order():
    claimed = {"tea": Claimed((), free=1), "milk": Claimed((), free=9), "sugar": Claimed((), free=0)}
    decided = allocate(wishes_of({"sugar": 2, "milk": 1, "tea": 3}), claimed)
    assert decided.refused == {0: (Shortfall("sugar", 2, 0), Shortfall("tea", 3, 1))}


def test_a_line_comes_from_the_smallest_slot_that_suffices_else_from_the_fullest_on():
    claimed = {"tea": Claimed(((1, 4), (2, 9), (3, 5)), free=18)}
    decided = allocate(wishes_of({"tea": 5}, {"tea": 12}), claimed)
    assert decided.granted == {
        0: (Piece(1, "tea", 3, 5),),
        1: (Piece(1, "tea", 2, 9), Piece(1, "tea", 1, 3)),
    }


def test_a_pool_that_was_claimed_refuses_nobody_although_its_figures_are_not_known():
    assert set(allocate(wishes_of({"tea": 2}, {"tea": 3}), {"tea": Claimed(((1, 5),))}).granted) == {0, 1}


# --- properties ---------------------------------------------------------------------------------------------

quantities = st.integers(1, 12)
carts = st.lists(st.dictionaries(st.sampled_from(POOLS), quantities, min_size=1), max_size=8)


@st.composite
def stock(draw):
    """A pool as one snapshot may show it: some of what is free is in our hands, some has lapsed, it may be short."""
    shares = draw(st.lists(st.integers(1, 10), max_size=4))
    numbers = draw(st.permutations(range(1, len(shares) + 1)))
    elsewhere = draw(st.integers(-8 if not shares else 0, 8))
    return Claimed(tuple(zip(numbers, shares, strict=True)), sum(shares) + elsewhere, draw(st.integers(0, 10)))


def claim_whole(carts_):
    """What the claim gives where it got everything: the summed need in one slot, and no figures."""
    need = Counter()
    for cart in carts_:
        need.update(cart)
    return {pool: Claimed(((number, need[pool]),)) for number, pool in enumerate(need, start=1)}


stocks = st.fixed_dictionaries({pool: stock() for pool in POOLS})


@given(carts, stocks)
def test_each_wish_is_in_exactly_one_outcome(carts, claimed):
    decided = allocate(wishes_of(*carts), claimed)
    assert sorted([*decided.granted, *decided.refused, *decided.undecided]) == list(range(len(carts)))


@given(carts, stocks)
def test_a_granted_wish_gets_its_lines_whole_and_in_order(carts, claimed):
    for number, pieces in allocate(wishes_of(*carts), claimed).granted.items():
        got = defaultdict(int)
        for piece in pieces:
            assert piece.quantity > 0
            got[piece.line, piece.pool] += piece.quantity
        assert got == {(line, pool): asked for line, (pool, asked) in enumerate(carts[number].items(), start=1)}
        assert [piece.line for piece in pieces] == sorted(piece.line for piece in pieces)
        assert len({(piece.pool, piece.slot_id) for piece in pieces}) == len(pieces)


@given(carts, stocks)
def test_no_more_is_given_than_the_shares(carts, claimed):
    taken = Counter()
    for pieces in allocate(wishes_of(*carts), claimed).granted.values():
        for piece in pieces:
            taken[piece.pool, piece.slot_id] += piece.quantity
    shares = {(pool, slot): quantity for pool, known in claimed.items() for slot, quantity in known.shares}
    assert all(quantity <= shares[where] for where, quantity in taken.items())


@given(carts, stocks)
def test_a_wish_is_refused_if_and_only_if_less_is_reachable_than_a_line_asks(carts, claimed):
    """Reachable is what is free or has lapsed, less what earlier wishes of the batch were given."""
    decided = allocate(wishes_of(*carts), claimed)
    given_away = Counter()
    for number, cart in enumerate(carts):
        reachable = {pool: claimed[pool].free + claimed[pool].lapsed - given_away[pool] for pool in cart}
        short = tuple(
            Shortfall(pool, asked, max(0, reachable[pool])) for pool, asked in cart.items() if reachable[pool] < asked
        )
        assert decided.refused.get(number, ()) == short
        if number in decided.granted:
            given_away.update(cart)


@given(carts, stocks)
def test_nobody_overtakes_an_undecided_wish_where_it_waits(carts, claimed):
    decided = allocate(wishes_of(*carts), claimed)
    left = {pool: sum(quantity for _, quantity in known.shares) for pool, known in claimed.items()}
    waited_for = set()
    for number, cart in enumerate(carts):
        if number in decided.granted:
            assert waited_for.isdisjoint(cart)
            for pool, asked in cart.items():
                left[pool] -= asked
        elif number in decided.undecided:
            lacking = {pool for pool, asked in cart.items() if pool in waited_for or left[pool] < asked}
            assert lacking, "what could be granted was left undecided"
            waited_for |= lacking


@given(carts)
def test_where_everything_was_claimed_everybody_is_granted(carts):
    decided = allocate(wishes_of(*carts), claim_whole(carts))
    assert set(decided.granted) == set(range(len(carts)))


@given(carts, stocks)
def test_who_comes_later_never_changes_what_came_before(carts, claimed):
    whole = allocate(wishes_of(*carts), claimed)
    for count in range(len(carts)):
        part = allocate(wishes_of(*carts[:count]), claimed)
        assert part.granted == {number: pieces for number, pieces in whole.granted.items() if number < count}
        assert part.refused == {number: short for number, short in whole.refused.items() if number < count}
        assert part.undecided == tuple(number for number in whole.undecided if number < count)
