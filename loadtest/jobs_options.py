"""The command line of the job benchmark: its options, their bounds and defaults."""

import argparse
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from platformdirs import user_cache_path

#: Every part, in the order in which they are measured: later ones are compared with earlier ones.
PARTS = ("floor", "library", "drain", "http", "enqueue", "latency", "claims", "snapshot")

PEERS = ("pgqueuer", "graphile-worker", "procrastinate")

#: What `--quick` sets where the command line says nothing: a look whether all works, no measurement.
_QUICK = {
    "jobs": 2000,
    "rounds": 1,
    "enqueue_seconds": 1.0,
    "latency_jobs": 20,
    "deep_jobs": 20_000,
    "claims": 50,
    "snapshot_seconds": 5.0,
}
_FULL = {
    "jobs": 100_000,
    "rounds": 3,
    "enqueue_seconds": 5.0,
    "latency_jobs": 300,
    "deep_jobs": 1_000_000,
    "claims": 2000,
    "snapshot_seconds": 300.0,
}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; ends the program with a sentence where one is wrong."""
    parser = argparse.ArgumentParser(
        prog="jobs.py",
        description="Measure our job queue, the floor below it and its peers, in one run on one embedded server.",
        epilog="Exit status: 0 measured, 1 a check failed (no figures), 2 could not start or go on, 130 Ctrl-C.",
    )
    add = parser.add_argument
    add("--only", type=_names(PARTS), default=PARTS, metavar="PART,…", help=f"of {', '.join(PARTS)} (default: all)")
    add("--peers", type=_names(PEERS), default=PEERS, metavar="NAME,…", help=f"none, or of {', '.join(PEERS)}")
    add("--peers-dir", type=Path, default=user_cache_path("reserve") / "peers", help="where peers are installed")
    add("--jobs", type=_whole(100, 10_000_000), help="jobs of the longest lane (default: 100000)")
    add("--rounds", type=_whole(1, 100), help="how often each is measured; the median counts (default: 3)")
    add("--enqueue-seconds", type=_seconds(3600), help="how long one at a time is enqueued (default: 5)")
    add("--latency-jobs", type=_whole(1, 100_000), help="jobs on the idle lane, over all rounds (default: 300)")
    add("--deep-jobs", type=_whole(1000, 100_000_000), help="ready jobs behind the deep claims (default: 1000000)")
    add("--claims", type=_whole(20, 1_000_000), help="claims of each kind (default: 2000)")
    add("--snapshot-seconds", type=_seconds(86_400), help="how long the snapshot is held (default: 300)")
    add("--quick", action="store_true", help="small numbers for all that is not given: seconds, and no measurement")
    add("--seed", type=int, default=1, help="decides the turns and the pauses (default: 1)")
    add("--json", type=Path, metavar="FILE", help="also write everything that was found there")
    options = parser.parse_args(arguments)
    for name, figure in (_QUICK if options.quick else _FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, figure)
    if options.json is not None and not options.json.parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")
    return options


def _names(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        if text == "none" and known is PEERS:
            return ()
        wanted = [name.strip() for name in text.split(",")]
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"must be of {', '.join(known)}, not {', '.join(map(repr, unknown))}")
        return tuple(name for name in known if name in wanted)

    return read


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {high}, not {text!r}")
        return int(text)

    return read


def _seconds(high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1
        if not 1 <= seconds <= high:
            raise argparse.ArgumentTypeError(f"must be a number of seconds from 1 to {high:g}, not {text!r}")
        return seconds

    return read
