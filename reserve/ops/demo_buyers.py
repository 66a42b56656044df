"""The buyers of `reserve demo`: who comes when and does what, from the seed alone; pure."""

import random
from dataclasses import dataclass
from enum import StrEnum

#: Bounds of the options: so many buyers still have a task each, and so many units a readable display.
BUYERS_MAX = 100_000
UNITS_MAX = 1_000_000

#: Time to live of holds that nobody confirms in time; short, so that later buyers get these units.
SHORT_TTL_SECONDS = 2
#: Time to live of all other holds; longer than any demo, so that none of them lapses.
LONG_TTL_SECONDS = 600

#: Buyers come during this time, a smaller crowd during less: most of them at once, and the last ones find what others
#: have given back.
_ARRIVAL_SECONDS_MAX = 10.0
_ARRIVALS_PER_SECOND = 200
#: From the click on the product to the click on the button.
_THINKING_SECONDS_MAX = 1.0
#: How long a sold-out buyer who does not give up waits before asking again, and how often that happens.
_RETURN_SECONDS = 2.0
_TRIES_MAX = 3


class Manner(StrEnum):
    """What a buyer is like."""

    CONFIRM = "confirms"
    ABANDON = "abandons"
    RELEASE = "releases"
    RETRY = "retries after a lost answer"
    DOUBLE_CLICK = "double-clicks"
    DAWDLE = "confirms at the last moment or too late"


#: How many of a hundred buyers are of each manner. The last three confirm as well.
_PERCENT = {
    Manner.CONFIRM: 30,
    Manner.ABANDON: 20,
    Manner.RELEASE: 10,
    Manner.RETRY: 15,
    Manner.DOUBLE_CLICK: 15,
    Manner.DAWDLE: 10,
}


@dataclass(frozen=True)  # without slots, which would hide the defaults from the command line
class Options:
    """How large the sale is. The seed decides the buyers; in which order their requests arrive it cannot."""

    buyers: int = 2000
    units: int = 100
    seed: int = 1
    requests_at_once: int = 100

    def __post_init__(self) -> None:
        assert 1 <= self.buyers <= BUYERS_MAX, "the command line checks the bound"
        assert 1 <= self.units <= UNITS_MAX, "the command line checks the bound"
        assert self.requests_at_once >= 1, "somebody must be able to ask"


@dataclass(frozen=True, slots=True)
class Buyer:
    """One buyer, who wants one unit. Times are seconds: since the sale opened, since the hold was answered."""

    number: int
    manner: Manner
    arrives_after_seconds: float
    thinks_seconds: float
    #: A `RETRY` buyer's connection goes this long after the request, mostly before the answer.
    hangs_up_after_seconds: float
    #: How often the buyer asks before taking *sold out* for an answer.
    tries: int

    @property
    def name(self) -> str:
        return f"buyer-{self.number}"

    @property
    def ttl_seconds(self) -> int:
        return SHORT_TTL_SECONDS if self.manner in {Manner.ABANDON, Manner.DAWDLE} else LONG_TTL_SECONDS

    @property
    def returns_after_seconds(self) -> float:
        return _RETURN_SECONDS


def plan_buyers(options: Options) -> list[Buyer]:
    """All buyers, in the order of their arrival; the same for the same options."""
    seconds = min(_ARRIVAL_SECONDS_MAX, options.buyers / _ARRIVALS_PER_SECOND)
    return sorted(
        (_plan_buyer(options.seed, number, seconds) for number in range(1, options.buyers + 1)),
        key=lambda buyer: (buyer.arrives_after_seconds, buyer.number),
    )


def _plan_buyer(seed: int, number: int, arrival_seconds: float) -> Buyer:
    chance = random.Random(f"{seed}/{number}")  # noqa: S311 -- a demo that can be repeated, no secret
    manner = chance.choices(list(_PERCENT), list(_PERCENT.values()))[0]
    if manner is Manner.DAWDLE:
        # Around the expiry, so that some are just in time and some just too late.
        thinks = SHORT_TTL_SECONDS * chance.uniform(0.8, 1.2)
    else:
        thinks = chance.uniform(0, _THINKING_SECONDS_MAX)
    return Buyer(
        number,
        manner,
        # Cubed: half of all come in the first eighth of the time.
        arrives_after_seconds=arrival_seconds * chance.random() ** 3,
        thinks_seconds=thinks,
        hangs_up_after_seconds=chance.uniform(0, 0.05),
        tries=_TRIES_MAX if chance.random() < 0.1 else 1,
    )
