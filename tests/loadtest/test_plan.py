"""What a replay decides from its seed."""

from collections import Counter
from fractions import Fraction

import pytest

from loadtest.options import parse
from loadtest.orders import Cancellation, Cart, OrderLine, Orders
from loadtest.plan import (
    Fate,
    Retry,
    Shares,
    backoff_seconds,
    choose_fate,
    choose_order,
    choose_retry,
    plan_stock,
)
from reserve.settings import QUANTITY_MAX


def invoice(name, **quantities):
    lines = tuple(
        OrderLine("f.csv", number, code, quantity) for number, (code, quantity) in enumerate(quantities.items(), 2)
    )
    return Cancellation(name, lines) if name.startswith("C") else Cart(name, lines)


def orders(*invoices):
    return Orders(sum(len(each.lines) for each in invoices), invoices, ())


def test_the_seed_decides_and_nothing_else():
    names = [str(number) for number in range(300)]
    fates = [choose_fate(7, name, Shares()) for name in names]
    assert fates == [choose_fate(7, name, Shares()) for name in names]
    assert fates != [choose_fate(8, name, Shares()) for name in names]
    retries = [choose_retry(7, name, Shares()) for name in names]
    assert retries == [choose_retry(7, name, Shares()) for name in names]


def test_every_fate_and_every_way_to_repeat_occurs():
    names = [str(number) for number in range(1000)]
    fates = Counter(choose_fate(1, name, Shares(paid=0.8)) for name in names)
    assert set(fates) == set(Fate)
    assert 750 < fates[Fate.PAY] < 850
    assert {choose_retry(1, name, Shares()) for name in names} == set(Retry)


def test_shares_of_none_and_of_all_are_exact():
    names = [str(number) for number in range(200)]
    assert {choose_fate(1, name, Shares(paid=1)) for name in names} == {Fate.PAY}
    assert {choose_fate(1, name, Shares(paid=0, lapsing=0)) for name in names} == {Fate.RELEASE}
    assert {choose_fate(1, name, Shares(paid=0, lapsing=1)) for name in names} == {Fate.LAPSE}
    assert {choose_retry(1, name, Shares(repeated=0)) for name in names} == {Retry.NONE}


def test_shuffling_keeps_every_invoice_and_follows_the_seed():
    read = orders(*(invoice(str(number), A=1) for number in range(50)))
    assert choose_order(1, read, shuffle=False) == list(read.invoices)
    shuffled = choose_order(1, read, shuffle=True)
    assert shuffled != list(read.invoices)
    assert sorted(shuffled, key=lambda each: each.invoice) == sorted(read.invoices, key=lambda each: each.invoice)
    assert shuffled == choose_order(1, read, shuffle=True)


def test_stock_is_a_share_of_demand_rounded_down_but_at_least_one():
    read = orders(invoice("1", A=10, B=1, C=3), invoice("2", A=5), invoice("C3", A=4, D=9))
    assert plan_stock(read, Fraction(4, 5)) == {"A": 12, "B": 1, "C": 2}
    assert plan_stock(read, Fraction(1)) == {"A": 15, "B": 1, "C": 3}
    assert plan_stock(read, Fraction(0)) == {"A": 1, "B": 1, "C": 1}


def test_a_share_is_exact_where_a_float_is_not():
    # 0.29 * 100 is 28.999999999999996 in floating point.
    assert plan_stock(orders(invoice("1", A=100)), Fraction("0.29")) == {"A": 29}


def test_stock_leaves_room_for_what_may_come_back():
    read = orders(invoice("1", A=QUANTITY_MAX), invoice("2", A=QUANTITY_MAX), invoice("C3", A=7))
    assert plan_stock(read, Fraction(1)) == {"A": QUANTITY_MAX - 7}


def test_the_backoff_grows_is_bounded_and_believes_the_service():
    assert backoff_seconds(1, None, 1) < backoff_seconds(2, None, 1) < backoff_seconds(3, None, 1)
    assert backoff_seconds(1000, None, 1) == 2
    assert backoff_seconds(1, None, 0) == backoff_seconds(1, None, 1) / 2
    assert backoff_seconds(1, 1, 0.5) == 1
    assert backoff_seconds(1, 86_400, 0.5) == 10


@pytest.mark.parametrize(
    "wrong",
    [
        ["--clients", "0"],
        ["--clients", "two"],
        ["--share", "-1"],
        ["--share", "1/0"],
        ["--paid", "1.1"],
        ["--lapse-seconds", "0"],
        ["--prefix", "a\nb"],
        ["--prefix", "x" * 101],
        ["--database-url", "postgresql://"],
    ],
)
def test_a_wrong_option_is_refused_before_anything_starts(wrong, capsys):
    with pytest.raises(SystemExit) as refused:
        parse(["f.csv", *wrong])
    assert refused.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_a_blank_at_the_end_of_a_prefix_counts():
    assert parse(["f.csv", "--prefix", "run 1 "]).prefix == "run 1 "
