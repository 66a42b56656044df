"""Which requests count as the same; pure."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserve.errors import IdempotencyKeyReused
from reserve.idempotency import IdempotencyKey, Replay, Response, fingerprint, judge_stored

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_spacing_and_the_order_of_names_do_not_matter():
    one, other = '{"a": 1, "b": [1, 2]}', '{"b":[1,2],\n"a":1}'
    assert fingerprint("POST", "/v1/holds", json.loads(one)) == fingerprint("POST", "/v1/holds", json.loads(other))


@pytest.mark.parametrize(
    "other",
    [
        ("PUT", "/v1/holds", {"a": [1, 2]}),
        ("POST", "/v1/holds/x", {"a": [1, 2]}),
        ("POST", "/v1/holds", {"a": [2, 1]}),
        ("POST", "/v1/holds", {"a": [1, 2], "b": None}),
        ("POST", "/v1/holds", {"a": "[1, 2]"}),
        ("POST", "/v1/holds", None),
    ],
)
def test_another_method_path_or_body_is_another_request(other):
    assert fingerprint(*other) != fingerprint("POST", "/v1/holds", {"a": [1, 2]})


@given(values, values)
def test_bodies_have_the_same_fingerprint_exactly_when_they_are_the_same_json(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (fingerprint("POST", "/", one) == fingerprint("POST", "/", other)) == same


def test_a_lone_surrogate_in_a_path_has_a_fingerprint_too():
    assert len(fingerprint("POST", "/\ud800", {"a": "\ud800"})) == 32


def test_a_stored_answer_is_replayed_to_the_same_request_and_refused_to_another():
    stored = (memoryview(b"x" * 32), 201, "/v1/holds/1", '"1"', memoryview(b"{}"))
    assert judge_stored(IdempotencyKey("k", b"x" * 32), stored) == Replay(Response(201, b"{}", "/v1/holds/1", '"1"'))
    refused = judge_stored(IdempotencyKey("k", b"y" * 32), stored)
    assert isinstance(refused, IdempotencyKeyReused)
    assert "'k'" in str(refused)
