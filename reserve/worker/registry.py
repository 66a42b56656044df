"""The registry: which function handles which kind of job. Filled when the application's modules are imported.

Decides nothing about running; see `hands`. A mistake in a registration is raised where it is written.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, overload

from reserve.jobs.rows import Json
from reserve.names import normalise_key
from reserve.worker.context import Job
from reserve.worker.payloads import reader

P = TypeVar("P")
R = TypeVar("R")


class Registration(Protocol[P]):
    """What `Registry.handler` gives: a decorator that leaves the function as it is."""

    def __call__(self, function: Callable[[Job[P]], R]) -> Callable[[Job[P]], R]: ...


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered function. `read` makes its payload's type of JSON, None where it takes JSON as it is."""

    kind: str
    call: Callable[[Job[Any]], Any]
    read: Callable[[Json], Any] | None
    timeout_seconds: float | None
    threaded: bool

    @property
    def name(self) -> str:
        return f"{getattr(self.call, '__module__', '?')}.{getattr(self.call, '__qualname__', repr(self.call))}"


class Registry:
    """The handlers of an application, one for each kind of job.

    jobs = Registry()

    @jobs.handler("mail.send", payload=Mail, timeout_seconds=30)
    async def send(job: Job[Mail]) -> None: ...
    """

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    @overload
    def handler(self, kind: str, *, timeout_seconds: float | None = None) -> Registration[Any]: ...
    @overload
    def handler(self, kind: str, *, payload: type[P], timeout_seconds: float | None = None) -> Registration[P]: ...
    def handler(
        self, kind: str, *, payload: type[Any] | None = None, timeout_seconds: float | None = None
    ) -> Registration[Any]:
        """Register the decorated function for jobs of `kind`.

        An `async` function runs in the worker's event loop, any other in a thread. What it returns (JSON or None) is
        the job's output. `payload` is a pydantic model, a dataclass or any type that pydantic reads; a job whose
        payload does not fit is discarded. `timeout_seconds` bounds one attempt. Raises `ValueError` and `TypeError`.
        """
        known_as = normalise_key(kind)
        if timeout_seconds is not None and not timeout_seconds > 0:
            raise ValueError(f"timeout_seconds must be above 0, is {timeout_seconds}")
        read = None if payload is None else reader(payload)

        def register(function: Callable[[Job[Any]], R]) -> Callable[[Job[Any]], R]:
            handler = Handler(known_as, function, read, timeout_seconds, threaded=not _is_async(function))
            if (before := self._handlers.get(known_as)) is not None:
                raise ValueError(f"The kind {known_as!r} has a handler already: {before.name}.")
            self._handlers[known_as] = handler
            return function

        return register

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by kind; read only."""
        return MappingProxyType(self._handlers)


def _is_async(function: object) -> bool:
    if not callable(function) or inspect.isclass(function):
        raise TypeError(f"A handler must be a function, not {function!r}.")
    # Of an object that can be called, its method says what it is.
    calls = (function, type(function).__call__)
    if any(inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call) for call in calls):
        raise TypeError("A handler must not yield: what it returns is the job's output.")
    return any(inspect.iscoroutinefunction(call) for call in calls)
