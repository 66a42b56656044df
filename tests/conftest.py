"""What every test may ask for: a database of the worker's own, a fresh namespace in it, the service on top.

The server is started once for the run (`tests/server.py`) and its address handed to the workers. Each worker makes a
database of its own, so that an old snapshot or a table lock in one never reaches the tests of another; each test that
asks gets a new namespace in it, migrated by the service's own migrations.
"""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import asdict
from uuid import uuid4

import httpx2
import psycopg
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from psycopg import conninfo, sql

from reserve.db.connection import Database
from reserve.db.migrate import migrate
from reserve.settings import Settings, load
from tests.server import Server, choose

SERVER = pytest.StashKey[Server]()

#: How long dropping a namespace waits for a connection that its test left open, before that test is blamed.
DROP_WAIT = "5s"

# Always random, with the blob that repeats a failure printed; a test against a database has no fair deadline.
for _profile, _examples in {"default": 50, "ci": 100, "thorough": 1000}.items():
    hypothesis_settings.register_profile(
        _profile,
        max_examples=_examples,
        derandomize=False,
        print_blob=True,
        deadline=None,
        # The machine's other load makes a round trip slow, not the test wrong.
        suppress_health_check=[HealthCheck.too_slow],
    )
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


def pytest_configure(config: pytest.Config) -> None:
    # The settings of the person who runs the tests are not those of the tests.
    for name in [name for name in os.environ if name.startswith("RESERVE_") and not name.startswith("RESERVE_TEST_")]:
        del os.environ[name]
    if hasattr(config, "workerinput"):
        config.stash[SERVER] = Server(**config.workerinput["server"])


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the server before xdist starts its workers; it stops when the run is over, however it ends."""
    config = session.config
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        stack = ExitStack()
        config.add_cleanup(stack.close)
        config.stash[SERVER] = stack.enter_context(choose())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["server"] = asdict(node.config.stash[SERVER])


def pytest_report_header(config: pytest.Config) -> str | None:
    server = config.stash.get(SERVER, None)
    return f"database: {server.what}" if server is not None else None


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest) -> str:
    """The server of the run: its administrative database."""
    return request.config.stash[SERVER].url


@pytest.fixture(scope="session")
def database_url(server_url: str) -> Iterator[str]:
    """The database of this worker; the given one if making databases is not allowed there."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    name = f"reserve_test_{worker}_{uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as conn:
        try:
            conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        except psycopg.errors.InsufficientPrivilege:
            yield server_url
            return
    try:
        yield conninfo.make_conninfo(server_url, dbname=name)
    finally:
        with psycopg.connect(server_url, autocommit=True) as conn:
            conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
async def namespace(database_url: str) -> AsyncIterator[str]:
    """A new namespace, migrated, dropped after the test."""
    name = f"test_{uuid4().hex[:12]}"
    await migrate(database_url, name)
    yield name
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
        await conn.execute(sql.SQL("set lock_timeout = {}").format(DROP_WAIT))
        await conn.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(name)))


@pytest.fixture
def settings(database_url: str, namespace: str) -> Settings:
    """Default settings on the test's namespace; `settings.model_copy(update={…})` makes others."""
    return load(database_url=database_url, namespace=namespace, _env_file=None)


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    """The test's namespace, open."""
    async with Database.open(settings) as database:
        yield database


@pytest.fixture
async def conn(database_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """A connection beside the service's own, without its limits, in autocommit."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
        yield conn


@pytest.fixture
async def client(database: Database) -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client of the service on the test's namespace.

    It calls the application in the test's own event loop, which the database's connections belong to; Litestar's test
    client would run it in a loop of its own thread.
    """
    from reserve.web.app import create_app  # noqa: PLC0415 -- only tests of HTTP pay for the import

    app = create_app(database)
    async with (
        _in_one_task(app.lifespan()),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://reserve.test") as client,
    ):
        yield client


@pytest.fixture
def service_url(settings: Settings) -> Iterator[str]:
    """The service over real HTTP on a free port of loopback, in a thread and event loop of its own."""
    import uvicorn  # noqa: PLC0415 -- as above

    from reserve.web.app import create_app  # noqa: PLC0415

    async def serve() -> None:
        async with Database.open(settings) as database:
            server.config.app = create_app(database)
            await server.serve(sockets=[listener])

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as executor:
        server = uvicorn.Server(uvicorn.Config("made by serve", log_config=None, lifespan="on"))
        serving = executor.submit(asyncio.run, serve())
        while not server.started and not serving.done():
            time.sleep(0.01)
        if server.started:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        serving.result()  # raises what kept it from starting or stopping


@asynccontextmanager
async def _in_one_task(context: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
    """Enter and leave `context` in one task, which it may insist on; pytest runs a fixture's halves in two."""
    entered, leave = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with context:
            entered.set()
            await leave.wait()

    holder = asyncio.create_task(hold())
    entering = asyncio.create_task(entered.wait())
    await asyncio.wait([holder, entering], return_when=asyncio.FIRST_COMPLETED)
    try:
        if entered.is_set():
            yield
    finally:
        entering.cancel()
        leave.set()
        await holder  # raises what entering or leaving raised
