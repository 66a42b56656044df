"""Whatever comes: no body and no path makes the service fail, and each refusal is a problem document."""

import functools
import json
import operator
import string
from uuid import uuid4

import httpx2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.conftest import Api

FIELDS = [
    [
        "lines",
        "pool",
        "quantity",
        "ttl_seconds",
        "owner",
        "reference",
        "mode",
        "confirm",
        "metadata",
        "kind",
        "on_hand",
        "buffer",
        "hold_ttl_seconds",
    ],
    [
        "max_per_owner",
        "late_confirm",
        "window",
        "limit",
        "delta",
        "reason",
        "expected_on_hand",
        "allow_shortage",
        "any_of",
        "units",
        "to",
    ],
]
CALLS = [
    ("PUT", "/v1/pools/mug"),
    ("PUT", "/v1/pools/fresh"),
    ("POST", "/v1/pools/mug/adjustments"),
    ("POST", "/v1/holds"),
    ("POST", "/v1/holds/{hold}/confirm"),
    ("POST", "/v1/holds/{hold}/release"),
    ("POST", "/v1/holds/{hold}/extend"),
]

names = st.sampled_from(functools.reduce(operator.iadd, FIELDS, [])) | st.text(max_size=5)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, 1, -1, 2**31, 2**63 - 1, 2**63, 10**12, 10**12 + 1, 10**400])
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["mug", "stock", "all_or_nothing", "refuse", "\0", "\ud800", "", " "])
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
lines = st.lists(st.fixed_dictionaries({"pool": st.just("mug") | scalars, "quantity": st.integers(1, 3) | scalars}))
likely = st.fixed_dictionaries(
    {},
    optional={
        "lines": lines | values,
        "ttl_seconds": st.integers(1, 900) | values,
        "owner": st.text(max_size=9) | values,
        "reference": st.text(max_size=9) | values,
        "metadata": st.dictionaries(names, values, max_size=3) | values,
        "on_hand": st.integers(0, 10**12) | values,
        "buffer": st.integers(0, 9) | values,
        "delta": st.integers() | values,
        "reason": st.text(max_size=9) | values,
        "expected_on_hand": values,
        "hold_ttl_seconds": st.integers(1, 900) | values,
    },
)
bodies = (likely | st.dictionaries(names, values, max_size=4) | values).map(lambda value: json.dumps(value).encode())


def assert_answered(answer: httpx2.Response) -> None:
    assert answer.status_code < 500 or answer.json()["code"] == "unavailable", answer.text
    if not answer.is_success:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code


@given(call=st.sampled_from(CALLS), body=bodies | st.binary(max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_no_body_makes_a_call_fail(api: Api, call: tuple[str, str], body: bytes):
    """The pool and the hold live on through all examples: what came before must not matter."""
    await api.put_pool("mug", on_hand=1000)
    known = (await api.client.get("/v1/holds")).json()["items"]
    method, path = call
    headers = {"Content-Type": "application/json", "Idempotency-Key": uuid4().hex}
    path = path.format(hold=known[0]["id"] if known else uuid4())
    assert_answered(await api.client.request(method, path, content=body, headers=headers))


@given(
    path=st.text(st.sampled_from(string.printable[:94] + "/%?é🫖"), max_size=30),
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE", "OPTIONS"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_no_path_makes_the_service_fail(away: Api, path: str, method: str):
    """As raw bytes in the scope, where no client tidies them up first."""
    raw = path.encode()
    sent: list[dict] = []

    async def receive() -> dict:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message) -> None:
        sent.append(message)

    app = away.client._transport.app
    raw_path, _, query = raw.partition(b"?")
    for prefix in (b"", b"/", b"/v1/pools/", b"/v1/holds/"):
        sent.clear()
        scope = {
            "type": "http",
            "method": method,
            "path": "/",
            "raw_path": prefix + raw_path,
            "query_string": query,
            "root_path": "",
            "headers": [(b"host", b"reserve.test"), (b"content-type", b"application/json")],
        }
        await app(scope, receive, send)
        status, body = sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
        assert status < 500 or json.loads(body)["code"] == "unavailable"
