"""The worker: runs the handlers of a registry on claimed jobs. Owns no statement; see `reserve.jobs`.

What an application imports is here; everything else in this package is the worker's own.
"""

from reserve.jobs.rows import Json
from reserve.worker.context import Job
from reserve.worker.endings import Discard, Release, Retry
from reserve.worker.holding import CancelReason
from reserve.worker.registry import Registry
from reserve.worker.tally import Tally
from reserve.worker.worker import Worker

__all__ = ["CancelReason", "Discard", "Job", "Json", "Registry", "Release", "Retry", "Tally", "Worker"]
