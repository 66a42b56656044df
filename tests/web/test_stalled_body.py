"""A body that does not arrive is given up on, in a sentence, and changes nothing."""

import asyncio

import pytest

from reserve.errors import InvalidRequest
from reserve.web import body


async def test_a_body_that_stalls_is_refused_after_its_time():
    never = asyncio.Event()
    parts = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive():
        for part in parts:
            return part
        await never.wait()
        raise AssertionError("nobody sets it")

    with pytest.raises(InvalidRequest, match=r"did not arrive within 0\.01 seconds"):
        await body.read(receive, {}, bytes_max=100, seconds_max=0.01)
