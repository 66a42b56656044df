"""Runs one job's handler and says what its verdict is. Owns what stands between a claimed job and a handler's code.

Whatever a handler raises ends here: it is a verdict on its job and nothing else.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from reserve.events import Event
from reserve.jobs.rows import Complete, Fail, Release, Verdict
from reserve.worker.context import Job, Surroundings
from reserve.worker.holding import CancelReason, Held
from reserve.worker.registry import Handler
from reserve.worker.threads import Threads
from reserve.worker.verdicts import TimedOut, UnknownKind, of_error, of_output, summarise


class Runner:
    def __init__(self, handlers: Mapping[str, Handler], around: Surroundings, threads: Threads) -> None:
        self._handlers = handlers
        self._around = around
        self._threads = threads
        self._settings = around.database.settings
        self._log: Any = structlog.get_logger("reserve.worker")

    async def run(self, held: Held, task: asyncio.Task[None], now: float) -> Verdict | None:
        """Run the handler of `held` in `task`, the current one; None where there is no verdict to give (any more)."""
        if held.reason is not None or now >= held.expires_at:
            return self._unstarted(held)
        try:
            handler = self._find(held.claimed.kind)
            payload = held.claimed.payload
            job: Job[Any] = Job(held, payload if handler.read is None else handler.read(payload), self._around)
            if handler.threaded:
                output = await self._in_thread(handler, job, held)
            else:
                held.task = task
                if handler.timeout_seconds is None:
                    output = await handler.call(job)
                else:
                    output = await self._within(handler.timeout_seconds, handler, job)
        except BaseException as error:  # SystemExit of a handler is an error of its own, too
            held.task = None
            if isinstance(error, GeneratorExit) and not task.get_loop().is_running():
                raise  # the loop is gone, and so are we
            return self._failed(held, error)
        held.task = None
        if held.done or held.reason is CancelReason.LEASE_LOST:
            return None
        # A handler that returns nothing is by far the most usual one.
        return Complete(held.id, held.token) if output is None else self._returned(held, output)

    def _find(self, kind: str) -> Handler:
        try:
            return self._handlers[kind]
        except KeyError:
            raise UnknownKind(kind) from None

    def _unstarted(self, held: Held) -> Verdict | None:
        """Lost, cancelled or lapsed while it waited for a free hand: whoever runs it, it is not begun here."""
        if held.done or held.reason is CancelReason.LEASE_LOST:
            return None
        return Release(held.id, held.token)

    async def _within(self, seconds: float, handler: Handler, job: Job[Any]) -> Any:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await handler.call(job)
        except TimeoutError:
            if limit.expired():
                raise TimedOut(seconds) from None
            raise

    async def _in_thread(self, handler: Handler, job: Job[Any], held: Held) -> Any:
        """No thread can be stopped: at its timeout it is told, and its job fails, while it goes on until it asks."""
        await self._threads.reserve_one()
        if held.reason is not None:
            self._threads.give_up()
            job.raise_if_cancelled()
        future = self._threads.start(handler.call, job)
        if handler.timeout_seconds is None:
            output, error = await future
        else:
            await asyncio.wait({future}, timeout=handler.timeout_seconds)
            if not future.done():
                held.tell(CancelReason.TIMED_OUT)
                raise TimedOut(handler.timeout_seconds)
            output, error = future.result()
        if error is not None:
            raise error
        return output

    def _returned(self, held: Held, output: object) -> Verdict:
        verdict = of_output(held, output, self._settings)
        if isinstance(verdict, Fail):
            self._tell(held, verdict.error)
        return verdict

    def _failed(self, held: Held, error: BaseException) -> Verdict | None:
        if held.reason is CancelReason.LEASE_LOST or (held.done and not held.completed):
            return None
        if held.completed:
            # Committed is committed; but what the handler did afterwards failed, and nobody else would hear of it.
            if not isinstance(error, asyncio.CancelledError):
                self._tell(held, f"after its transaction: {summarise(error)}")
            return None
        verdict = of_error(held, error, self._settings)
        if isinstance(verdict, Fail):
            self._tell(held, verdict.error)
        return verdict

    def _tell(self, held: Held, error: str) -> None:
        job = held.claimed
        line = error.partition("\n")[0]
        self._log.warning(Event.JOB_FAILED, job=job.id, lane=job.lane, kind=job.kind, attempt=job.attempt, error=line)
