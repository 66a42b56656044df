"""The command line of a replay: its options, their bounds and defaults."""

import argparse
from collections.abc import Callable, Sequence
from fractions import Fraction

from loadtest.orders import LINES_MAX
from reserve.names import normalise_key

#: Room for the codes in a pool key of 200 characters.
_PREFIX_LENGTH_MAX = 100


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; ends the program with a sentence where one is wrong."""
    parser = argparse.ArgumentParser(
        prog="replay.py",
        description="Replay order files against a running service, then check that nothing was oversold or lost.",
        epilog="Exit status: 0 clean, 1 not clean, 2 could not start, 130 stopped by Ctrl-C.",
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="CSV with InvoiceNo, StockCode, Quantity and more")
    add("--url", help="the service; without it, one of our own is started on a temporary database")
    add("--database-url", help="its database, for the audit (default: RESERVE_DATABASE_URL)")
    add("--clients", type=_whole(1, 1000), default=32, help="how many place carts at once (default: 32)")
    add("--share", type=_share, default=Fraction(4, 5), help="stock at the start, as a share of demand (default: 0.8)")
    add("--seed", type=int, default=1, help="decides what happens to each cart (default: 1)")
    add("--shuffle", action="store_true", help="take the invoices in an order that the seed decides")
    add("--prefix", type=_prefix, default="", help="begins the pool keys (default: a new one for each run)")
    add("--paid", type=_chance, default=0.8, help="share of placed carts that are confirmed (default: 0.8)")
    add("--lapsing", type=_chance, default=0.5, help="share of the others that lapse, not released (default: 0.5)")
    add("--lapse-seconds", type=_whole(1, 3600), default=5, help="time to live of those (default: 5)")
    add("--repeated", type=_chance, default=0.2, help="share of requests sent again with the same key (default: 0.2)")
    add("--lines-max", type=_whole(1, 10_000), default=LINES_MAX, help="the service's bound on lines (default: 1000)")
    add("--odd-rows", type=_whole(0, 10**9), default=100, help="how many odd rows are printed (default: 100)")
    options = parser.parse_args(arguments)
    if options.database_url and not options.url:
        parser.error("--database-url is the database behind --url, and there is no --url")
    return options


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {high}, not {text!r}")
        return int(text)

    return read


def _share(text: str) -> Fraction:
    # Exact, so that a share of 0.8 of 5 units is 4 on every machine.
    try:
        share = Fraction(text)
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 <= share <= 1000:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1000, not {text!r}")
    return share


def _chance(text: str) -> float:
    share = _share(text)
    if share > 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return float(share)


def _prefix(text: str) -> str:
    # A blank at its end counts, as the code comes after it.
    try:
        key = normalise_key(text + ".").removesuffix(".")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if len(key) > _PREFIX_LENGTH_MAX:
        raise argparse.ArgumentTypeError(f"must have at most {_PREFIX_LENGTH_MAX} characters")
    return key
