"""The hands: tasks that run the handlers of claimed jobs, one job each at a time. Own the jobs that wait for a hand.

A task for each hand and not for each job: a handler that does nothing costs a few function calls. Whatever a handler
does to the task that it runs in, the hand goes on.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from reserve.jobs.rows import Verdict
from reserve.worker.holding import CancelReason, Held
from reserve.worker.keeper import Keeper
from reserve.worker.runner import Runner
from reserve.worker.tally import Tally

#: Jobs that one hand runs in a row before others have their turn: handlers that never wait would let nobody else.
_STRAIGHT_MAX = 100


class Hands:
    """`hungry` is called when the jobs that wait are few enough for a claim; `give` takes each verdict."""

    def __init__(
        self,
        count: int,
        runner: Runner,
        keeper: Keeper,
        tally: Tally,
        *,
        hungry: Callable[[], None],
        give: Callable[[Held, Verdict], None],
    ) -> None:
        self.count = count
        self._runner = runner
        self._keeper = keeper
        self._tally = tally
        self._hungry = hungry
        self._give = give
        self._queue: deque[Held] = deque()
        self._running: list[Held | None] = [None] * count
        self._idle: deque[asyncio.Future[None]] = deque()
        self._closing = False
        self._tasks: list[asyncio.Task[None]] = []
        #: How many jobs may still wait when more are to be claimed.
        self.low = 0
        #: Jobs whose handler has ended.
        self.ended = 0

    def open(self) -> None:
        self._tasks = [asyncio.create_task(self._hand(number), name=f"hand {number}") for number in range(self.count)]

    async def watch(self) -> None:
        """Wait until all hands have ended; raises what ended one that should not have."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    @property
    def waiting(self) -> int:
        """Jobs that wait for a hand."""
        return len(self._queue)

    @property
    def busy(self) -> list[Held]:
        """Jobs whose handler runs."""
        return [held for held in self._running if held is not None]

    def room(self, ahead: int) -> int:
        """How many jobs to claim, so that `ahead` wait while every hand is busy; 0 while enough wait."""
        self.low = ahead // 2
        waiting = len(self._queue)
        if waiting > self.low:
            return 0
        free = self.count - sum(held is not None for held in self._running)
        return max(0, free + ahead - waiting)

    def take(self, batch: Sequence[Held]) -> None:
        """Run these, in order, as soon as there are hands."""
        self._queue.extend(batch)
        for _ in range(min(len(batch), len(self._idle))):
            self._wake()

    def close(self) -> None:
        """Begin no more jobs."""
        self._closing = True
        while self._idle:
            self._wake()

    def give_back(self) -> list[Held]:
        """The jobs that nobody has begun; they are no longer ours."""
        unbegun = list(self._queue)
        self._queue.clear()
        return unbegun

    async def ended_within(self, seconds: float) -> bool:
        """Wait for the running handlers of closed hands, at most so long; whether all have ended."""
        _, pending = await asyncio.wait(self._tasks, timeout=seconds)
        return not pending

    async def end(self, seconds: float) -> bool:
        """Cancel what still runs and wait for it, at most so long; whether all have ended."""
        self.close()
        for held in self.busy:
            held.reason = held.reason or CancelReason.STOPPING
        for task in self._tasks:
            task.cancel()
        return not self._tasks or await self.ended_within(seconds)

    def _wake(self) -> None:
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _hand(self, number: int) -> None:
        task = asyncio.current_task()
        assert task is not None, "this is a task"
        while not self._closing:
            try:
                await self._work(number, task)
            except asyncio.CancelledError:
                # A handler may have cancelled the task that it ran in, which is ours, without waiting for it.
                task.uncancel()

    async def _work(self, number: int, task: asyncio.Task[None]) -> None:
        queue, running, loop = self._queue, self._running, asyncio.get_running_loop()
        straight = 0
        while not self._closing:
            if not queue:
                self._hungry()
                waiter = loop.create_future()
                self._idle.append(waiter)
                await waiter
                straight = 0
                continue
            if straight == _STRAIGHT_MAX:
                straight = 0
                await asyncio.sleep(0)
                continue
            straight += 1
            held = queue.popleft()
            if len(queue) <= self.low:
                self._hungry()
            running[number] = held
            verdict = await self._runner.run(held, task, loop.time())
            running[number] = None
            self.ended += 1
            while task.cancelling():
                task.uncancel()
            self._judged(held, verdict)

    def _judged(self, held: Held, verdict: Verdict | None) -> None:
        if verdict is not None:
            # Unless it was given back meanwhile, since its handler did not end in time.
            if not held.done:
                self._give(held, verdict)
        elif held.completed:
            self._tally.succeeded += 1
        elif not held.done:
            self._tally.lost += 1
            self._keeper.drop(held)
