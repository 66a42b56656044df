"""The OpenAPI document: complete, sound in itself, and true."""

from itertools import chain

import pytest
from pydantic import TypeAdapter

from reserve.settings import load
from reserve.web import examples, job_examples, problems
from reserve.web.answers import encode
from reserve.web.app import create_app
from reserve.web.call import Call
from reserve.web.calls import CALLS
from reserve.web.openapi import openapi_document, schema_name
from reserve.web.requests import validated
from tests.web.conftest import Api

DOCUMENT = openapi_document()
each_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.answer.__name__)


def operation(call: Call) -> dict:
    return DOCUMENT["paths"][call.path][call.method.lower()]


def references(value) -> list[str]:
    match value:
        case {"$ref": str(reference)}:
            return [reference]
        case dict():
            return list(chain.from_iterable(map(references, value.values())))
        case list():
            return list(chain.from_iterable(map(references, value)))
    return []


@pytest.mark.parametrize("path", ["/schema", "/schema/openapi.json"])
async def test_the_document_is_served_as_openapi_3_1(reader: Api, path: str):
    answer = await reader.client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == DOCUMENT
    assert answer.json()["openapi"] == "3.1.0"


def test_what_is_routed_is_documented_and_nothing_else(reader: Api):
    app = reader.client._transport.app
    routed = {
        (method, route.path_format)
        for route in app.routes
        for method in route.methods - {"OPTIONS"}
        if not route.path_format.startswith("/schema")
    }
    documented = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert routed == documented


def test_every_reference_leads_somewhere():
    for reference in references(DOCUMENT):
        value = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            value = value[step]
        assert value


def test_everything_in_the_components_is_used_but_problems_of_addresses_and_later_calls():
    used = set(references(DOCUMENT))
    unused = {
        f"#/components/{kind}/{name}" for kind, entries in DOCUMENT["components"].items() for name in entries
    } - used
    assert unused == {
        "#/components/examples/hold-fulfilled",
        "#/components/examples/hold-returned",
        "#/components/examples/method-not-allowed",
        "#/components/examples/pool-archived",
        "#/components/examples/precondition-required",
    }


def test_every_problem_is_documented_with_an_example():
    shown = DOCUMENT["components"]["examples"]
    assert set(shown) == {error.code for error in problems.PROBLEMS}
    for code, example in shown.items():
        assert (example["value"]["code"], example["value"]["type"]) == (code, f"/problems/{code}")
    assert set(DOCUMENT["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]) == {*shown, "internal-error"}
    members = set(chain.from_iterable(example["value"] for example in shown.values()))
    assert members == set(DOCUMENT["components"]["schemas"]["Problem"]["properties"])


@each_call
def test_each_call_shows_an_example_of_its_request_that_is_valid(call: Call):
    if call.body is None:
        assert "requestBody" not in operation(call)
        return
    body = operation(call)["requestBody"]
    assert body["required"] is not call.body_optional
    shown = body["content"]["application/json"]
    assert shown["schema"] == {"$ref": f"#/components/schemas/{call.body.__name__}"}
    assert validated(call.body, shown["examples"]["example"]["value"], [], load(_env_file=None))


@each_call
def test_each_call_shows_an_example_of_its_answer_that_has_its_shape(call: Call):
    for success in call.successes:
        shown = operation(call)["responses"][str(success.status)]["content"]["application/json"]
        assert shown["schema"] == {"$ref": f"#/components/schemas/{schema_name(success.shape)}"}
        assert shown["examples"]["example"]["value"] == success.example
        TypeAdapter(success.shape).validate_json(encode(success.example), extra="forbid")


@each_call
def test_each_call_shows_the_problems_it_can_answer_by_their_status(call: Call):
    responses = operation(call)["responses"]
    for error in call.errors:
        shown = responses[str(problems.PROBLEMS[error].status)]
        example = shown["content"]["application/problem+json"]["examples"][error.code]
        assert example == {"$ref": f"#/components/examples/{error.code}"}
        assert f"`{error.code}`" in shown["description"]
        assert ("Retry-After" in shown.get("headers", {})) >= error.transient


@each_call
def test_each_call_names_its_parameters(call: Call):
    parameters = {(entry["in"], entry["name"]): entry for entry in operation(call)["parameters"]}
    in_path = {("path", part[1:-1]) for part in call.path.split("/") if part.startswith("{")}
    assert {place for place in parameters if place[0] == "path"} == in_path
    key = parameters.get(("header", "Idempotency-Key"))
    assert (key is not None) == (call.method == "POST" and not call.path.endswith("/batch"))
    assert key is None or key["required"] == (
        call.path in {"/v1/holds", "/v1/pools/{key}/adjustments", "/v1/lanes/{lane}/jobs"}
    )
    assert (("header", "If-Match") in parameters) == (call.path == "/v1/pools/{key}" and call.method == "PUT")


async def test_the_documented_story_happens_as_documented(api: Api):
    """Each example request is sent; each answer equals its example, but for what is of the moment."""
    made = await api.put_pool("mug-blue", **examples.POOL_BODY)
    changed = await api.put_pool("mug-blue", buffer=10)
    placed = await api.post("/v1/holds", json=examples.HOLD_BODY, key="k")
    hold = placed.json()
    extended = await api.verb(hold, "extend", **examples.EXTEND_BODY)
    confirmed = await api.verb(hold, "confirm")
    released = await api.verb(await api.placed(pool="mug-blue"), "release")
    adjusted = await api.adjust("mug-blue", **examples.ADJUSTMENT_BODY)
    told = [
        (made, 201, examples.POOL),
        (changed, 200, examples.POOL_CHANGED),
        (placed, 201, examples.HOLD),
        (extended, 200, examples.HOLD_EXTENDED),
        (confirmed, 200, examples.HOLD_CONFIRMED | {"version": 3}),
        (adjusted, 201, examples.ADJUSTMENT),
    ]
    for answer, status, example in told:
        moment = {name: example[name] for name in example if name.endswith("_at") or name in {"id", "as_of"}}
        assert answer.status_code == status
        assert answer.json() | moment == example
        assert list(answer.json()) == list(example)
    assert list(released.json()) == list(examples.HOLD_RELEASED)
    assert released.json()["state"] == "released"


async def test_the_documented_story_of_a_job_happens_as_documented(api: Api):
    made = await api.client.put("/v1/lanes/mail", json=job_examples.LANE_BODY)
    enqueued = await api.post("/v1/lanes/mail/jobs", json=job_examples.JOB_BODY, key="k")
    job = enqueued.json()
    claimed = await api.post("/v1/lanes/mail/claims", json=job_examples.CLAIM_BODY)
    path = f"/v1/jobs/{job['id']}"
    extended = await api.post(f"{path}/extend", json=job_examples.JOB_EXTEND_BODY)
    failed = await api.post(f"{path}/fail", json=job_examples.FAIL_BODY)
    other = await api.post("/v1/lanes/mail/jobs", json=job_examples.JOB_BODY, key="other")
    (again,) = (await api.post("/v1/lanes/mail/claims", json=job_examples.CLAIM_BODY)).json()["jobs"]
    completed = await api.post(f"/v1/jobs/{again['id']}/complete", json=job_examples.COMPLETE_BODY)
    batch = await api.post("/v1/lanes/mail/jobs/batch", json=job_examples.JOB_BATCH_BODY)
    cancelled = await api.post(f"/v1/jobs/{batch.json()['items'][0]['job']['id']}/cancel")
    discarded = await api.post(f"/v1/jobs/{batch.json()['items'][1]['job']['id']}/discard")
    retried = await api.post("/v1/lanes/mail/retry-discarded", json=job_examples.RETRY_DISCARDED_BODY)
    lane = {"max_attempts": 10}
    told = [
        (made, 201, job_examples.LANE),
        (enqueued, 201, job_examples.JOB | lane),
        (extended, 200, job_examples.JOB_EXTENDED | lane),
        (failed, 200, job_examples.JOB_FAILED | lane | {"progress": {"sent": 3, "of": 10}}),
        (completed, 200, job_examples.JOB_SUCCEEDED | lane),
        (cancelled, 200, job_examples.JOB_CANCELLED | lane),
    ]
    for answer, status, example in told:
        moment = {name: example[name] for name in example if name.endswith("_at") or name == "id"}
        assert answer.status_code == status
        assert answer.json() | moment == example
        assert list(answer.json()) == list(example)
    assert list(claimed.json()["jobs"][0]) == list(job_examples.CLAIM["jobs"][0])
    assert (other.status_code, again["id"]) == (201, other.json()["id"])
    assert discarded.json()["state"] == "discarded"
    assert retried.json() == {"retried": 1}


def test_the_document_needs_no_database():
    assert create_app.__doc__
    assert openapi_document() == DOCUMENT
