"""Shops: the service on the test's namespace. Whatever a test did, the books of its shops must balance at the end."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from reserve.db.connection import Database
from reserve.ops.audit import audit
from reserve.settings import Settings
from tests.inventory.shop import Shop

OpenShop = Callable[..., Awaitable[Shop]]


@pytest.fixture
async def open_shop(settings: Settings, database_url: str, conn) -> AsyncIterator[OpenShop]:
    """Opens a shop with other settings than the defaults."""
    async with AsyncExitStack() as stack:
        opened: list[Shop] = []

        async def open_one(**changes: Any) -> Shop:
            database = await stack.enter_async_context(Database.open(settings.model_copy(update=changes)))
            opened.append(Shop(database, conn, database_url, stack))
            return opened[-1]

        yield open_one
        for shop in opened:
            report = await audit(shop.database)
            assert report.clean, report.differences


@pytest.fixture
async def shop(open_shop: OpenShop) -> Shop:
    return await open_shop()


@pytest.fixture
async def wide_shop(open_shop: OpenShop) -> Shop:
    """A shop whose pools have a slot for each piece on hand, 16 at most."""
    return await open_shop(slot_capacity_min=1)
