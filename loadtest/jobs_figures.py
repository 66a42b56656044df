"""What the benchmark found: figures, ratios against their targets, who was left out. Pure; prints nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from loadtest.jobs_statistics import Latencies, median


class CheckError(Exception):
    """A job was lost or done twice, or a count is wrong: nothing that this run measured is worth printing."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `what` says what one jobs/s or one latency is of; `note` has the chosen settings."""

    part: str
    contestant: str
    what: str
    jobs: int
    jobs_per_second: float | None = None
    latencies: Latencies | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure of ours over another; `at_least` or `at_most` where design or issue name a target."""

    part: str
    what: str
    figure: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def reached(self) -> bool | None:
        """None where nothing is demanded."""
        if self.at_least is not None:
            return self.figure >= self.at_least
        return None if self.at_most is None else self.figure <= self.at_most


@dataclass(slots=True)
class Findings:
    """Everything of one run, in the order of the parts."""

    environment: dict[str, str] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    checks: list[str] = field(default_factory=list)

    def rate(self, part: str, contestant: str, what: str) -> float | None:
        """The jobs/s of one line, None where it was not measured."""
        for figure in self.figures:
            if (figure.part, figure.contestant, figure.what) == (part, contestant, what):
                return figure.jobs_per_second
        return None

    def add_ratio(self, part: str, what: str, over: float | None, under: float | None, **target: float) -> None:
        """A ratio of two figures, where both were measured."""
        if over is not None and under:
            self.ratios.append(Ratio(part, what, over / under, **target))

    def as_document(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "environment": self.environment,
            "figures": [asdict(each) for each in self.figures],
            "ratios": [asdict(each) | {"reached": each.reached} for each in self.ratios],
            "left_out": self.left_out,
            "checks": self.checks,
        }


def demand(what: str, found: object, wanted: object) -> None:
    """One check; `CheckError` says what differs."""
    if found != wanted:
        raise CheckError(f"{what}: found {found}, and it must be {wanted}.")


def check_tally(who: str, jobs: int, sums: Mapping[str, Any]) -> None:
    """All of `jobs` were handled, and each once."""
    demand(f"{who}: jobs handled more than once", sums["repeated"], 0)
    demand(f"{who}: different jobs handled", sums["distinct"], jobs)
    demand(f"{who}: jobs handled", sums["handled"], jobs)


def middle(rates: Sequence[float]) -> tuple[float, str]:
    """The median of some rounds, and the words for their spread."""
    if len(rates) == 1:
        return rates[0], ""
    return median(rates), f"{len(rates)} rounds, {min(rates):,.0f} to {max(rates):,.0f}"
