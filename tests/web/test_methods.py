"""HEAD, OPTIONS, wrong methods, and what every answer carries."""

import re

import pytest

from reserve.web.calls import CALLS
from tests.web.conftest import Api, refused

#: Every documented path with its methods.
METHODS = {path: {call.method for call in CALLS if call.path == path} for path in {call.path for call in CALLS}}
ADDRESSES = sorted((path, re.sub(r"\{\w+\}", "a%2Fb", path)) for path in METHODS)


def allowed(path: str) -> str:
    methods = METHODS[path] | {"OPTIONS"} | ({"HEAD"} if "GET" in METHODS[path] else set())
    return ", ".join(sorted(methods))


async def test_head_answers_like_get_without_the_body(api: Api):
    await api.put_pool("a%2Fb", on_hand=5)
    hold = await api.placed(pool="a/b")
    job = await api.enqueued("a%2Fb", delay_seconds=60)
    paths = [
        f"/v1/jobs/{job['id']}",
        "/v1/jobs?lane=a%2Fb",
        "/v1/lanes/a%2Fb",
        "/v1/lanes",
        "/v1/lanes/none",
        "/v1/jobs/x",
        "/v1/pools/a%2Fb",
        "/v1/pools?limit=1",
        "/v1/pools/a%2Fb/adjustments",
        f"/v1/holds/{hold['id']}",
        "/v1/holds",
        "/health/live",
        "/health/ready",
        "/problems/contended",
        "/schema",
        "/schema/openapi.json",
        "/v1/pools/none",
        "/none",
        "/v1/holds?x=1",
    ]
    for path in paths:
        head, get = await api.client.head(path), await api.client.get(path)
        assert (head.status_code, head.content) == (get.status_code, b""), path
        names = ("content-type", "content-length", "etag", "cache-control")
        assert [head.headers.get(name) for name in names] == [get.headers.get(name) for name in names], path


@pytest.mark.parametrize(
    ("method", "path", "address"),
    [
        (method, path, address)
        for path, address in ADDRESSES
        for method in ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "TRACE", "BREW")
        if method not in allowed(path).split(", ")
    ],
)
async def test_a_wrong_method_is_refused_with_those_that_work(reader: Api, method: str, path: str, address: str):
    answer = await reader.client.request(method, address)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed(path))
    if method == "HEAD":
        assert answer.content == b""
    else:
        refused(answer, 405, "method-not-allowed")


@pytest.mark.parametrize(("path", "address"), [*ADDRESSES, ("/health/live", "/schema")])
async def test_options_lists_the_methods_that_work(reader: Api, path: str, address: str):
    answer = await reader.client.options(address)
    assert (answer.status_code, answer.content, answer.headers["allow"]) == (204, b"", allowed(path))
    assert "content-type" not in answer.headers


@pytest.mark.parametrize("offered", ["abc-123", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "x" * 128])
async def test_a_request_id_comes_back(reader: Api, offered: str):
    for path in ("/health/live", "/none", "/v1/pools/%zz"):
        answer = await reader.client.get(path, headers={"X-Request-Id": offered})
        assert answer.headers.get_list("x-request-id") == [offered]


@pytest.mark.parametrize("offered", [None, "", "a b", "x" * 129, "é", '"'])
async def test_a_request_without_a_usable_id_gets_one(reader: Api, offered: str | None):
    headers = [] if offered is None else [(b"X-Request-Id", offered.encode())]
    ids = {(await reader.client.get("/none", headers=headers)).headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", request_id) for request_id in ids)


async def test_a_body_on_a_call_that_takes_none_is_ignored(api: Api):
    await api.put_pool(on_hand=5)
    answer = await api.client.request("GET", "/v1/pools/mug", content=b"\xff{")
    assert answer.status_code == 200
