"""One namespace for all histories of a module, with its event loop; each history begins with empty tables."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import psycopg

from reserve.db.connection import Database
from reserve.db.migrate import migrate
from reserve.errors import ReserveError
from reserve.settings import load
from tests.model.operations import Operation, Record, Unknown, parts
from tests.model.seen import Observer

T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """An operation; with `patience`, its caller gives it up after so many turns of the event loop."""

    operation: Operation
    patience: int | None = None


#: Says what to do next, given the last answer; None ends it.
Script = Callable[[Any], Step | None]

#: How many times the usual number of histories: for a longer hunt.
EXAMPLES = float(os.environ.get("RESERVE_TEST_EXAMPLES", "1"))

#: Small pools have several slots, and several sweeps; who waits for a lock is not given up on a slow machine.
_SETTINGS = {
    "slot_capacity_min": 4,
    "slots_per_pool_max": 5,
    "sweep_batch_size": 2,
    "lock_wait_seconds": 5,
    "connections_max": 8,
}


class World:
    def __init__(self, runner: asyncio.Runner, database: Database, observer: Observer) -> None:
        self._runner = runner
        self.database = database
        self.observer = observer

    def run(self, work: Awaitable[T]) -> T:
        async def running() -> T:
            return await work

        return self._runner.run(running())

    def do(self, operation: Operation) -> list[Record]:
        """Do this, and nothing else meanwhile."""
        steps = iter([Step(operation)])
        return self.run(self.perform(lambda _: next(steps, None)))

    async def perform(self, *scripts: Script) -> list[Record]:
        """Run the scripts at once; what they did, each with the caller's clock, all with the database's."""
        first = await self.observer.clock()
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._follow_script(script)) for script in scripts]
        span = (first, await self.observer.clock())
        timed = [each for task in running for each in task.result()]
        return [
            Record(operation, answer, span, begun, ended)
            for whole, whole_answer, begun, ended in timed
            for operation, answer in parts(whole, whole_answer)
        ]

    async def _follow_script(self, script: Script) -> list[tuple[Operation, Any, float, float]]:
        clock = asyncio.get_running_loop().time
        done = []
        answer = None
        while step := script(answer):
            begun = clock()
            answer = await self._answer(step)
            done.append((step.operation, answer, begun, clock()))
        return done

    async def _answer(self, step: Step) -> Any:
        """The answer, an expected error among them; anything unexpected goes on up."""
        running = asyncio.ensure_future(step.operation.run(self.database))
        if step.patience is not None:
            for _ in range(step.patience):
                await asyncio.sleep(0)
            running.cancel()
        try:
            return await running
        except ReserveError as error:
            return error
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if step.patience is None or (own is not None and own.cancelling()):
                raise  # it was not this caller's patience that ended
            return Unknown.LOST


@contextmanager
def open_world(database_url: str, **others: float) -> Iterator[World]:
    namespace = f"model_{uuid4().hex[:12]}"
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def open_all() -> World:
            await migrate(database_url, namespace)
            settings = load(database_url=database_url, namespace=namespace, _env_file=None, **_SETTINGS | others)
            database = await stack.enter_async_context(Database.open(settings))
            conn = await psycopg.AsyncConnection.connect(database_url, autocommit=True)
            await stack.enter_async_context(conn)
            stack.push_async_callback(conn.execute, f"drop schema {namespace} cascade")
            return World(runner, database, Observer(conn, namespace))

        try:
            yield runner.run(open_all())
        finally:
            runner.run(stack.aclose())
