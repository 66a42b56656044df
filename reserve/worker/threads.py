"""Threads for handlers that are no coroutines: a bounded number, started when needed. Knows nothing of jobs.

The standard pool would be waited for when the process ends, and a handler that hangs would keep a worker from ending
that has given its job back long ago. These threads end with the process.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

#: What a call came to: its result, or what it raised.
Outcome = tuple[Any, BaseException | None]

_Task = tuple[Callable[[], Any], asyncio.Future[Outcome]]


class Threads:
    """At most `count` calls at a time."""

    def __init__(self, count: int) -> None:
        self._started = 0
        self._used = 0
        self._free = asyncio.Semaphore(count)
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()

    async def reserve_one(self) -> None:
        """Wait until a thread is free; it is kept for the `start` that follows."""
        await self._free.acquire()
        self._used += 1

    def give_up(self) -> None:
        """Let go of a thread that was kept."""
        self._used -= 1
        self._free.release()

    def start(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Outcome]:
        """Call in the thread that was kept, in a copy of this context. Nothing stops it; its result may be ignored."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        context = contextvars.copy_context()
        self._tasks.put((lambda: context.run(function, *arguments), future))
        # Those that run no call now take this one before another is needed.
        if self._started < self._used:
            self._started += 1
            threading.Thread(target=self._run, name=f"handler-{self._started}", daemon=True).start()
        return future

    def close(self) -> None:
        """Let each thread end after its call."""
        for _ in range(self._started):
            self._tasks.put(None)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            call, future = task
            outcome: Outcome
            try:
                outcome = (call(), None)
            except BaseException as error:  # noqa: BLE001 -- SystemExit in a thread ends neither it nor the worker
                outcome = (None, error)
            try:
                self._loop.call_soon_threadsafe(self._ended, future, outcome)
            except RuntimeError:
                return  # the loop has closed: nobody waits for this any more
            del task, call, future, outcome

    def _ended(self, future: asyncio.Future[Outcome], outcome: Outcome) -> None:
        self.give_up()
        if not future.done():
            future.set_result(outcome)
