"""Coalescing: while a batch is in the database, new requests gather, and the next batch takes them all.

Knows nothing of what is asked. There is no timer, so a lone request is not delayed. A batch is in order of arrival and
bounded; what a caller that was cancelled has asked for is done all the same, once its batch has begun.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from reserve.errors import Overloaded

Q = TypeVar("Q")
A = TypeVar("A")


class Coalescer(Generic[Q, A]):
    """Calls `work` with batches of at most `batch_max` requests, at most `batches_max` of them at once.

    `work` answers each request of its batch, in order, an error of the request among the answers; what it raises is
    everybody's answer. More than `waiting_max` requests that wait are refused with `Overloaded`.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]],
        *,
        batch_max: int,
        batches_max: int,
        waiting_max: int,
    ) -> None:
        self._work = work
        self._batch_max = batch_max
        self._batches_max = batches_max
        self._waiting_max = waiting_max
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._batches: set[asyncio.Task[None]] = set()

    async def ask(self, request: Q) -> A:
        """The answer to `request`, which shares a batch with whatever else is asked meanwhile."""
        if len(self._waiting) >= self._waiting_max:
            raise Overloaded("Too many requests wait for the database; try again.")
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        self._begin()
        return await answer

    async def drain(self) -> None:
        """Wait until everything that was asked is answered."""
        while self._batches:
            await asyncio.wait(self._batches)

    def _begin(self) -> None:
        if self._waiting and len(self._batches) < self._batches_max:
            batch = asyncio.create_task(self._run(), name="coalesced batch")
            self._batches.add(batch)
            batch.add_done_callback(self._ended)

    def _ended(self, batch: asyncio.Task[None]) -> None:
        self._batches.discard(batch)
        self._begin()

    async def _run(self) -> None:
        batch = self._take()
        if not batch:
            return
        try:
            answers = await self._work([request for request, _ in batch])
            assert len(answers) == len(batch), "each request of a batch has its answer"
        except BaseException as error:
            for _, answer in batch:
                _refuse(answer, error)
            if not isinstance(error, Exception):
                raise
            return
        for (_, answer), given in zip(batch, answers, strict=True):
            if isinstance(given, Exception):
                _refuse(answer, given)
            elif not answer.done():
                answer.set_result(given)

    def _take(self) -> list[tuple[Q, asyncio.Future[A]]]:
        """What waits by now: more than when the batch's task was made, since who asks comes in the same turn."""
        batch: list[tuple[Q, asyncio.Future[A]]] = []
        while self._waiting and len(batch) < self._batch_max:
            request, answer = self._waiting.popleft()
            # Whoever has gone before anything was done wants nothing done.
            if not answer.done():
                batch.append((request, answer))
        return batch


def _refuse(answer: asyncio.Future[A], error: BaseException) -> None:
    if answer.done():
        return
    if isinstance(error, asyncio.CancelledError):
        answer.cancel()
    else:
        answer.set_exception(error)
