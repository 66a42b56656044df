"""The PostgreSQL server of a test run: chosen and started once, by the process that the run was started in.

In this order: `RESERVE_TEST_DATABASE_URL`; a container, if a Docker engine answers and the image of
`RESERVE_TEST_POSTGRES_IMAGE` (default: the official one) can be had; else the embedded server.
"""

import gc
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import docker
import psycopg
import pytest
from docker.errors import DockerException, ImageNotFound
from psycopg import conninfo
from requests.exceptions import RequestException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from reserve.db import embedded

IMAGE_DEFAULT = "postgres:18"

#: How long an engine may take to answer or to send the next piece of an image, and a container to start.
_ENGINE_SECONDS = 60
_CONTAINER_SECONDS = 60

#: Test data need not survive a crash of the machine; one server has the pools of all workers.
_NOT_DURABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
_CONNECTIONS_MAX = "300"


class NoContainer(Exception):
    """There is a Docker engine, but no container can be had; the message says why."""


@dataclass(frozen=True)
class Server:
    """Where the tests' server is, as a connection string, and what it is, for the head of the run."""

    url: str
    what: str


@contextmanager
def choose() -> Iterator[Server]:
    if url := os.environ.get("RESERVE_TEST_DATABASE_URL"):
        yield _described(url, "RESERVE_TEST_DATABASE_URL")
        return
    reason = ""
    engine = _docker_engine()
    if engine is not None:
        image = os.environ.get("RESERVE_TEST_POSTGRES_IMAGE", IMAGE_DEFAULT)
        try:
            container = _run_container(engine, image)
        except NoContainer as error:
            reason = f" (a Docker engine answers, but {error})"
        else:
            try:
                yield _described(_wait_for_container(container), f"container of {image}")
            finally:
                container.stop()
            return
        finally:
            engine.close()
    with embedded.temporary(durable=False, extra={"max_connections": _CONNECTIONS_MAX}) as server:
        yield _described(server.url, f"embedded server{reason}")


def _described(url: str, what: str) -> Server:
    try:
        with psycopg.connect(url, connect_timeout=10) as conn:
            version = conn.execute("show server_version").fetchone()[0]
    except psycopg.Error as error:
        raise pytest.UsageError(f"The tests' database ({what}) does not answer: {error}") from error
    return Server(url, f"PostgreSQL {version}, {what}")


def _docker_engine() -> docker.DockerClient | None:
    # A client that finds no engine leaves its socket to the collector; some test would be blamed for the warning.
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        try:
            client = DockerClient(timeout=_ENGINE_SECONDS).client
            client.ping()
        except (DockerException, RequestException, OSError):
            client = None
        gc.collect()
    return client


def _run_container(engine: docker.DockerClient, image: str) -> DockerContainer:
    try:
        engine.images.get(image)
    except ImageNotFound:
        try:
            engine.images.pull(image)
        except (DockerException, RequestException) as error:
            raise NoContainer(f"the image {image} is neither present nor to be pulled: {error}") from error
    # Testcontainers' own janitor is a second image to pull; this run stops the one container it starts.
    testcontainers_config.ryuk_disabled = True
    options = [*_NOT_DURABLE, f"max_connections={_CONNECTIONS_MAX}"]
    container = (
        DockerContainer(image)
        .with_env("POSTGRES_USER", "postgres")
        .with_env("POSTGRES_PASSWORD", "postgres")
        .with_exposed_ports(5432)
        .with_command(" ".join(f"-c {option}" for option in options))
    )
    try:
        return container.start()
    except (DockerException, RequestException) as error:
        container.stop()
        raise NoContainer(f"the image {image} does not start: {error}") from error


def _wait_for_container(container: DockerContainer) -> str:
    url = conninfo.make_conninfo(
        host=container.get_container_host_ip(),
        port=container.get_exposed_port(5432),
        user="postgres",
        password="postgres",
        dbname="postgres",
    )
    deadline = time.monotonic() + _CONTAINER_SECONDS
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return url
