"""The arithmetic of the benchmark: percentiles, medians, ratios. Pure; reads and prints nothing."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latencies:
    """Two percentiles of how long something took, in milliseconds."""

    p50_ms: float
    p99_ms: float
    count: int


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest measured value that at least `share` (0 to 1) of all do not exceed."""
    if not values:
        raise ValueError("no values, no percentile")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def latencies(microseconds: Sequence[float]) -> Latencies | None:
    """p50 and p99; None where nothing was measured."""
    if not microseconds:
        return None
    return Latencies(percentile(microseconds, 0.5) / 1000, percentile(microseconds, 0.99) / 1000, len(microseconds))


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def rate_between(samples: Sequence[tuple[float, int]], begin: float, end: float) -> float:
    """Jobs a second from `begin` to `end`, of samples (second, jobs so far), which are read between two by a line."""
    if end <= begin:
        raise ValueError("a rate needs some time")
    return (_count_at(samples, end) - _count_at(samples, begin)) / (end - begin)


def _count_at(samples: Sequence[tuple[float, int]], second: float) -> float:
    if not samples or not samples[0][0] <= second <= samples[-1][0]:
        raise ValueError(f"nothing was sampled around second {second}")
    earlier = samples[0]
    for later in samples:
        if later[0] >= second:
            span = later[0] - earlier[0]
            return later[1] if span == 0 else earlier[1] + (later[1] - earlier[1]) * (second - earlier[0]) / span
        earlier = later
    raise AssertionError("the last sample is not before the second")
