"""How a handler may end its job other than by returning: exceptions that it raises. Owns no verdict; see `verdicts`."""

import math


class Discard(Exception):
    """Raised by a handler: this job will never succeed. It is discarded, with `reason` as its error."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Retry(Exception):
    """Raised by a handler: this attempt failed; try again `in_seconds` from now, else after the lane's backoff.

    It counts as a failure: at the job's `max_attempts` it is discarded.
    """

    def __init__(self, in_seconds: float | None = None, reason: str = "The handler asked for another attempt.") -> None:
        super().__init__(reason)
        self.in_seconds = None if in_seconds is None else _seconds(in_seconds)
        self.reason = reason


class Release(Exception):
    """Raised by a handler: not now. The job is given back, ready after `delay_seconds`; that is no failure."""

    def __init__(self, delay_seconds: float = 0) -> None:
        super().__init__(f"for {delay_seconds} s")
        self.delay_seconds = _seconds(delay_seconds)


def _seconds(value: float) -> float:
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"must be a number of seconds from 0, is {value}")
    return value
