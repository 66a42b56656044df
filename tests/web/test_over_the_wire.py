"""Over real uvicorn and real sockets: raw paths, bodies without a length or with a false one, clients that leave."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import uvicorn

from reserve.db.connection import Database
from reserve.web.app import create_app

#: Sends these bytes on a connection of their own and reads until as many answers are complete.
Talk = Callable[..., Awaitable[list[tuple[int, dict[str, str], bytes]]]]

KEY = b"Idempotency-Key: k\r\n"
JSON = b"Content-Type: application/json\r\n"
HOST = b"Host: reserve.test\r\n"


@pytest.fixture(params=["httptools", "h11"])
async def port(request: pytest.FixtureRequest, database: Database) -> AsyncIterator[int]:
    """A port where the service listens, as `reserve serve` runs it, with each HTTP parser that uvicorn may choose."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(database), http=request.param, log_config=None, lifespan="on")
    server = uvicorn.Server(config)
    # A client may connect at once: the socket listens already and the server accepts when it is up.
    serving = asyncio.create_task(server._serve([listener]))
    yield listener.getsockname()[1]
    server.should_exit = True
    await serving
    listener.close()


@pytest.fixture
def talk(port: int) -> Talk:
    async def exchange(*pieces: bytes, answers: int = 1) -> list[tuple[int, dict[str, str], bytes]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return [await read_answer(reader) for _ in range(answers)]
        finally:
            writer.close()
            await writer.wait_closed()

    return exchange


async def read_answer(reader: asyncio.StreamReader, *, head: bool = False) -> tuple[int, dict[str, str], bytes]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
    length = 0 if head else int(headers.get("content-length", 0))
    return int(lines[0].split()[1]), headers, await reader.readexactly(length)


def put(path: bytes, body: bytes = b"{}") -> bytes:
    return b"PUT %s HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n%s" % (path, HOST, JSON, len(body), body)


def get(path: bytes) -> bytes:
    return b"GET %s HTTP/1.1\r\n%s\r\n" % (path, HOST)


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


PLACE = b"POST /v1/holds HTTP/1.1\r\n" + HOST + KEY + JSON
CART = b'{"lines":[{"pool":"mug","quantity":1}]}'


@pytest.mark.parametrize(
    ("path", "key"),
    [
        (b"a%2Fb", "a/b"),
        (b"a%2fb", "a/b"),
        (b"a%252Fb", "a%2Fb"),
        (b"%25", "%"),
        (b"..", ".."),
        (b"%2E%2E", ".."),
        (b"a%20b%3Fc%23", "a b?c#"),
        (b"a+b&c=d", "a+b&c=d"),
        ("🫖".encode().hex("%").join(["%", ""]).encode(), "🫖"),
        ("قهوة".encode().hex("%").join(["%", ""]).encode(), "قهوة"),
    ],
)
async def test_a_key_in_a_raw_path_is_decoded_once(talk: Talk, path: bytes, key: str):
    made, read, listed = await talk(
        put(b"/v1/pools/" + path) + get(b"/v1/pools/" + path) + get(b"/v1/pools/" + path + b"/adjustments"), answers=3
    )
    assert (made[0], json.loads(made[2])["key"]) == (201, key)
    assert (read[0], json.loads(read[2])["key"]) == (200, key)
    assert (listed[0], list(json.loads(listed[2]))) == (200, ["items", "next_cursor"])


async def test_a_path_with_bytes_that_are_no_text_is_a_bad_request(talk: Talk):
    for path in (b"/v1/pools/%FF", b"/v1/pools/%", b"/v1/pools/%C3%28"):
        ((status, _, body),) = await talk(get(path))
        assert (status, json.loads(body)["instance"]) == (400, path.decode())


async def test_head_sends_no_body_and_keeps_the_connection_in_step(port: int):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for method in (b"HEAD", b"GET", b"HEAD"):
        writer.write(method + b" /health/live HTTP/1.1\r\n" + HOST + b"\r\n")
        status, headers, _ = await read_answer(reader, head=method == b"HEAD")
        assert (status, headers["content-length"]) == (200, "17")
    writer.close()
    await writer.wait_closed()


async def test_a_chunked_body_is_read_like_any_other(talk: Talk):
    await talk(put(b"/v1/pools/mug", b'{"on_hand":5}'))
    ((status, headers, body),) = await talk(PLACE + b"Transfer-Encoding: chunked\r\n\r\n", chunked(CART, 7))
    assert (status, json.loads(body)["lines"]) == (201, [{"pool": "mug", "quantity": 1}])
    assert re.fullmatch(r"/v1/holds/[0-9a-f-]{36}", headers["location"])
    ((_, replayed, again),) = await talk(PLACE + b"Content-Length: %d\r\n\r\n" % len(CART) + CART)
    assert (again, replayed["idempotent-replayed"], replayed["etag"]) == (body, "true", headers["etag"])


async def test_a_chunked_body_without_a_length_is_cut_off_at_the_limit(port: int):
    """The client sends until it is answered, which must be long before it would end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(PLACE + b"Transfer-Encoding: chunked\r\n\r\n")
    answer = asyncio.create_task(read_answer(reader))
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    sent = 0
    while not answer.done():
        writer.write(piece)
        await writer.drain()
        sent += 0x10000
        assert sent < 64 * 2**20, "the service reads on"
        await asyncio.wait([answer], timeout=0.001)
    status, _, body = await answer
    assert (status, json.loads(body)["code"]) == (413, "body-too-large")
    writer.transport.abort()


async def test_a_declared_length_over_the_limit_is_refused_before_the_body_comes(talk: Talk):
    ((status, headers, body),) = await talk(PLACE + b"Content-Length: 10000000\r\n\r\n" + b"{")
    assert (status, json.loads(body)["code"]) == (413, "body-too-large")
    assert headers["content-type"] == "application/problem+json"


async def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_nothing_behind(talk: Talk, port: int):
    await talk(put(b"/v1/pools/mug", b'{"on_hand":5}'))
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(PLACE + b"Content-Length: %d\r\n\r\n" % (len(CART) + 1) + CART)
    await writer.drain()
    writer.transport.abort()
    ((_, _, listed),) = await talk(get(b"/v1/holds"))
    assert json.loads(listed)["items"] == []


async def test_what_the_server_itself_adds_is_little(talk: Talk):
    ((_, headers, _),) = await talk(get(b"/health/live"))
    assert set(headers) <= {"date", "server", "content-type", "content-length", "cache-control", "x-request-id"}
