"""A connection that posts JSON, one request at a time, with as little of a client as HTTP/1.1 allows.

It shares two cores with the service and the database: an ordinary client would take more of them than the service.
"""

import asyncio
import json
from typing import Any

_HEAD_BYTES_MAX = 2**16


class Connection:
    """Made by `open`; kept alive over all requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """To the loopback address, and nowhere else."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_HEAD_BYTES_MAX)
        return cls(reader, writer, f"127.0.0.1:{port}")

    async def post(self, path: str, body: object) -> Any:
        """The document of the answer; `RuntimeError` unless it is a success."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode("ascii") + content)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in answer[1:] if line)
        document = await self._reader.readexactly(int(headers["content-length"]))
        if not answer[0].startswith("HTTP/1.1 2"):
            raise RuntimeError(f"POST {path}: {answer[0]}: {document.decode(errors='replace')}")
        return json.loads(document)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()
