"""What the tests of the HTTP interface share: a client that knows the calls, and time moved by data."""

import re
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx2
import pytest
from psycopg_pool import AsyncConnectionPool

from reserve.db.connection import Database
from reserve.settings import load
from reserve.web.app import create_app

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
#: A port of this machine at which no server listens.
NOWHERE = "host=127.0.0.1 port=1"
PROBLEM_MEMBERS = ("type", "title", "status", "detail", "code", "instance")


class Api:
    """The calls, by name. Each place, adjust and enqueue has a new idempotency key unless one is given."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def put_pool(self, key: str = "mug", *, headers: dict[str, str] | None = None, **body) -> httpx2.Response:
        return await self.client.put(f"/v1/pools/{key}", json=body, headers=headers)

    async def get_pool(self, key: str = "mug") -> dict:
        answer = await self.client.get(f"/v1/pools/{key}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def place(
        self, *, key: str | None = None, pool: str = "mug", quantity: object = 1, **body
    ) -> httpx2.Response:
        body.setdefault("lines", [{"pool": pool, "quantity": quantity}])
        return await self.post("/v1/holds", json=body, key=key or uuid4().hex)

    async def placed(self, **wish) -> dict:
        answer = await self.place(**wish)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def adjust(self, pool: str = "mug", *, key: str | None = None, **body) -> httpx2.Response:
        return await self.post(f"/v1/pools/{pool}/adjustments", json=body, key=key or uuid4().hex)

    async def verb(self, hold: dict, verb: str, *, key: str | None = None, **body) -> httpx2.Response:
        return await self.post(f"/v1/holds/{hold['id']}/{verb}", json=body, key=key)

    async def enqueue(self, lane: str = "mail", *, key: str | None = None, **body) -> httpx2.Response:
        return await self.post(f"/v1/lanes/{lane}/jobs", json={"kind": "k"} | body, key=key or uuid4().hex)

    async def enqueued(self, lane: str = "mail", **wish) -> dict:
        answer = await self.enqueue(lane, **wish)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def claim(self, lane: str = "mail", *, key: str | None = None, **body) -> httpx2.Response:
        return await self.post(f"/v1/lanes/{lane}/claims", json={"worker": "w"} | body, key=key)

    async def claimed(self, lane: str = "mail", **wish) -> list[dict]:
        answer = await self.claim(lane, **wish)
        assert answer.status_code == 200, answer.text
        return answer.json()["jobs"]

    async def verdict(self, claimed: dict, verb: str, *, key: str | None = None, **body) -> httpx2.Response:
        """Complete, fail, extend or release a job that was claimed, with its token."""
        return await self.post(f"/v1/jobs/{claimed['id']}/{verb}", json={"token": claimed["token"]} | body, key=key)

    async def post(self, path: str, *, key: str | None = None, **request) -> httpx2.Response:
        headers = {"Idempotency-Key": key} if key is not None else {}
        return await self.client.post(path, headers=headers | request.pop("headers", {}), **request)

    async def post_raw(self, content: bytes, *, path: str = "/v1/holds", **headers: str) -> httpx2.Response:
        """POST these bytes as JSON, with a key."""
        sent = {"Content-Type": "application/json", "Idempotency-Key": uuid4().hex}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(path, content=content, headers=sent)


@pytest.fixture
def api(client: httpx2.AsyncClient) -> Api:
    return Api(client)


@pytest.fixture
def nowhere() -> AsyncConnectionPool:
    """Connections to a database that is away, not opened yet."""
    return AsyncConnectionPool(NOWHERE, open=False, min_size=1, timeout=0.1)


@pytest.fixture
async def reader(nowhere: AsyncConnectionPool) -> AsyncIterator[Api]:
    """The interface on no database at all: what it refuses here, it refuses without asking one."""
    transport = httpx2.ASGITransport(create_app(Database(load(_env_file=None, database_url=NOWHERE), nowhere)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://reserve.test") as client:
        yield Api(client)


@pytest.fixture
async def away(nowhere: AsyncConnectionPool, reader: Api) -> AsyncIterator[Api]:
    """The interface on a database that it looks for and does not find."""
    async with nowhere:
        yield reader


def refused(answer: httpx2.Response, status: int, code: str) -> dict:
    """`answer` is the whole problem document with this code; its members."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    problem = answer.json()
    assert tuple(problem)[:6] == PROBLEM_MEMBERS
    assert (problem["status"], problem["code"], problem["type"]) == (status, code, f"/problems/{code}")
    assert problem["instance"] == answer.request.url.raw_path.decode().partition("?")[0]
    assert problem["title"]
    assert problem["detail"]
    return problem


async def lapse(database: Database, hold: dict) -> None:
    """Move a hold two days back, so that it has lapsed unless it lives longer."""

    async def work(conn) -> None:
        moved = "expires_at = expires_at - interval '2 days'"
        await conn.execute(
            f"update {database.namespace}.hold set created_at = created_at - interval '2 days', {moved} where id = %s",
            [hold["id"]],
        )
        await conn.execute(f"update {database.namespace}.hold_line set {moved} where hold_id = %s", [hold["id"]])

    await database.transact(work)


async def drain(database: Database, pool: str) -> None:
    """Let a pool take no new holds, which a later call of the interface will do."""

    async def work(conn) -> None:
        cursor = await conn.execute(
            f"update {database.namespace}.pool set state = 'draining' where key = %s returning id", [pool]
        )
        (pool_id,) = await cursor.fetchone()
        await conn.execute(f"update {database.namespace}.slot set open = false where pool_id = %s", [pool_id])

    await database.transact(work)
