from collections.abc import Iterator

import pytest

from tests.model.world import World, open_world


@pytest.fixture(scope="module")
def world(database_url) -> Iterator[World]:
    with open_world(database_url) as world:
        yield world
