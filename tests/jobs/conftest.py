"""Yards: the job lane on the test's namespace. Whatever a test did, no job may be in two places at its end."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from reserve.db.connection import Database
from tests.jobs.yard import Yard

OpenYard = Callable[..., Awaitable[Yard]]


@pytest.fixture
async def open_yard(settings, database_url, conn) -> AsyncIterator[OpenYard]:
    """Opens a yard with other settings than the defaults."""
    async with AsyncExitStack() as stack:
        opened: list[Yard] = []

        async def open_one(**changes: Any) -> Yard:
            database = await stack.enter_async_context(Database.open(settings.model_copy(update=changes)))
            opened.append(Yard(database, conn, database_url, stack))
            return opened[-1]

        yield open_one
        for yard in opened:
            await yard.check()


@pytest.fixture
async def yard(open_yard) -> Yard:
    return await open_yard()
