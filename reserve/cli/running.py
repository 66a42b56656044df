"""How the program runs and stops: the one event loop, and the signals that ask for an end.

SIGINT, SIGTERM and SIGHUP ask once for an orderly stop; asked again, nothing is waited for.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

try:
    import uvloop
except ImportError:  # there is none for this platform
    _new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    _new_event_loop = uvloop.new_event_loop

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in an event loop of its own; a group with one error inside raises that error."""
    try:
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            return runner.run(main)
    except BaseExceptionGroup as group:
        # Of several, the first is the cause and the others are its consequences.
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from error.__cause__


async def first_of(*waits: Coroutine[Any, Any, T]) -> T:
    """The result, or error, of whichever is done first; the others are cancelled."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Stop:
    """The wish to stop, as signals bring it."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        #: The signal that asked last.
        self.signal = 0
        self._times = 0
        self._when_repeated: Callable[[], None] = lambda: None

    def ask(self, number: int) -> None:
        self._times += 1
        self.signal = number
        self._asked.set()
        if self._times > 1:
            self._when_repeated()

    def when_repeated(self, hurry: Callable[[], None]) -> None:
        """Call `hurry` each time that somebody asks again."""
        self._when_repeated = hurry

    async def wait(self) -> None:
        await self._asked.wait()

    @property
    def exit_code(self) -> int:
        """0 after an orderly stop, which was asked for; after a hurried one 128 and the signal, as shells do."""
        return 128 + self.signal if self._times > 1 else 0


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """Turn the signals into a `Stop` while the context lasts. A signal that is ignored (`nohup`) stays ignored."""
    loop = asyncio.get_running_loop()
    stop = Stop()
    # Given back by hand: a loop leaves the default, by which a later signal would orphan an embedded server.
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in handled:
        loop.add_signal_handler(number, stop.ask, number)
    try:
        yield stop
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])
