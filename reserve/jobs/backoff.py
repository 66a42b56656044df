"""How long a job waits before it is tried again; pure but for the jitter, which is given."""

from reserve.jobs.rows import Backoff

#: Beyond this a float would overflow, and every bound has been passed long before.
_DOUBLINGS_MAX = 60


def backoff_seconds(backoff: Backoff, failures: int, *, jitter: float) -> float:
    """The pause after failure number `failures` (from 1): doubled for each, bounded; `jitter` from 0 to 1.

    From a half to the whole of it, so that jobs that failed together do not come back together.
    """
    assert failures >= 1, "there is no pause before a first failure"
    whole: float = min(backoff.seconds_max, backoff.first_seconds * 2 ** min(failures - 1, _DOUBLINGS_MAX))
    return whole * (0.5 + jitter / 2)
