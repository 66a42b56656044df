"""Snapshots: texts in `tests/snapshots` that a reader of a change shall see change.

They are compared, and written only by `pytest tests/db --renew-snapshots`. Read the difference before you commit it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from reserve.db.connection import Database

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-snapshots", action="store_true", help="write tests/snapshots anew instead of comparing")


@pytest.fixture
def match_snapshot(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the snapshot of this name."""
    renew = request.config.getoption("--renew-snapshots", default=False)

    def match(name: str, text: str) -> None:
        path = SNAPSHOTS / f"{name}.txt"
        if renew:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        assert path.exists(), f"no snapshot {path.name}: run `pytest tests/db --renew-snapshots`"
        assert text == path.read_text("utf-8"), f"{path.name} differs; `pytest tests/db --renew-snapshots` renews it"

    return match


@pytest.fixture
async def open_database(settings) -> AsyncIterator[Callable[..., Awaitable[Database]]]:
    """Opens the test's namespace with other settings than the defaults."""
    async with AsyncExitStack() as stack:

        async def open_one(**changes: Any) -> Database:
            return await stack.enter_async_context(Database.open(settings.model_copy(update=changes)))

        yield open_one
