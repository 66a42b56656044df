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
    [
        "items",
        "idempotency_key",
        "payload",
        "priority",
        "run_at",
        "delay_seconds",
        "max_attempts",
        "worker",
        "lease_seconds",
        "token",
        "output",
        "error",
        "retry_in_seconds",
        "discard",
        "progress",
        "paused",
        "backoff",
        "retention_days",
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
    ("PUT", "/v1/lanes/mail"),
    ("PUT", "/v1/lanes/fresh"),
    ("POST", "/v1/lanes/mail/jobs"),
    ("POST", "/v1/lanes/mail/jobs/batch"),
    ("POST", "/v1/lanes/mail/claims"),
    ("POST", "/v1/lanes/mail/retry-discarded"),
    ("POST", "/v1/jobs/{job}/complete"),
    ("POST", "/v1/jobs/{job}/fail"),
    ("POST", "/v1/jobs/{job}/extend"),
    ("POST", "/v1/jobs/{job}/release"),
    ("POST", "/v1/jobs/{job}/cancel"),
    ("POST", "/v1/jobs/{job}/retry"),
    ("POST", "/v1/jobs/{job}/discard"),
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
kinds = st.sampled_from(["a", "b"]) | values
job = {
    "payload": values,
    "priority": st.integers(-9, 9) | values,
    "run_at": st.datetimes().map(lambda moment: moment.isoformat() + "Z") | values,
    "delay_seconds": st.floats(0, 2) | values,
    "max_attempts": st.integers(1, 3) | values,
}
likely_of_jobs = st.one_of(
    st.fixed_dictionaries({"kind": kinds}, optional=job),
    st.fixed_dictionaries(
        {
            "items": st.lists(
                st.fixed_dictionaries(
                    {"kind": kinds, "idempotency_key": st.sampled_from(["a", "b", "c"]) | values}, optional=job
                )
                | values,
                max_size=5,
            )
        }
    ),
    st.fixed_dictionaries(
        {"worker": st.text(max_size=3)},
        optional={"limit": st.integers(1, 5) | values, "lease_seconds": st.integers(1, 60) | values},
    ),
    st.fixed_dictionaries(
        {"token": st.integers(1, 4) | values},
        optional={
            "output": values,
            "error": st.text(max_size=9) | values,
            "retry_in_seconds": st.floats(0, 2) | values,
            "discard": values,
            "lease_seconds": st.integers(1, 60) | values,
            "progress": values,
            "delay_seconds": st.floats(0, 2) | values,
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "paused": st.just(value=False) | values,
            "lease_seconds": st.integers(1, 60) | values,
            "max_attempts": st.integers(1, 3) | values,
            "backoff": st.fixed_dictionaries({"first_seconds": st.floats(0, 9), "seconds_max": st.floats(0, 9)})
            | values,
            "retention_days": st.integers(1, 9) | values,
            "limit": st.integers(1, 9) | values,
        },
    ),
)
bodies = (likely_of_jobs | likely | st.dictionaries(names, values, max_size=4) | values).map(
    lambda value: json.dumps(value).encode()
)


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
    jobs = (await api.client.get("/v1/jobs?limit=1")).json()["items"]
    method, path = call
    headers = {"Content-Type": "application/json", "Idempotency-Key": uuid4().hex}
    if path.endswith("/batch"):
        del headers["Idempotency-Key"]
    path = path.format(hold=known[0]["id"] if known else uuid4(), job=jobs[0]["id"] if jobs else 1)
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
    for prefix in (b"", b"/", b"/v1/pools/", b"/v1/holds/", b"/v1/jobs/", b"/v1/lanes/"):
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
