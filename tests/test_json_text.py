"""JSON as it is stored: one spelling, read back the same, and what PostgreSQL would refuse is refused before."""

import json
import math

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserve.json_text import as_json_text

#: Whatever a text may be made of that has something to do with escapes.
pieces = st.sampled_from(
    ["\\", "\\\\", "u0000", "\\u0000", "\0", '"', "a", "é", "🍵", "\ud800", "\udc00", "\n", "\x7f"]
)
texts = st.lists(pieces, max_size=12).map("".join) | st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def texts_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from texts_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)


@given(values)
def test_a_value_comes_back_as_it_was_unless_a_text_cannot_be_stored(value):
    """A NUL or a surrogate anywhere, and nothing else: not a backslash that stands before `u0000`."""
    characters = {character for text in texts_of(value) for character in text}
    storable = not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in characters)
    if storable:
        text = as_json_text(value)
        assert json.loads(text) == value
        assert text == as_json_text(json.loads(text))
        text.encode()
    else:
        with pytest.raises(ValueError, match=r"U\+0000|surrogate"):
            as_json_text(value)


def test_the_spelling_is_compact_and_keeps_order_and_letters():
    assert as_json_text({"b": [1, 2.5, None], "a": "é\n🍵"}) == '{"b":[1,2.5,null],"a":"é\\n🍵"}'
    assert as_json_text((1, {2: 3})) == '[1,{"2":3}]'


DEEP: list = []
for _ in range(100_000):
    DEEP = [DEEP]
ROUND: list = []
ROUND.append(ROUND)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (math.nan, "NaN"),
        ([math.inf], "Infinity"),
        ({"a": -math.inf}, "Infinity"),
        (ROUND, "itself"),
        (DEEP, "must be JSON"),
        (b"bytes", "must be JSON"),
        ({1, 2}, "must be JSON"),
        ({(1, 2): 3}, "must be JSON"),
        (object(), "must be JSON"),
        ("a\0", "U\\+0000"),
        ({"a\0": 1}, "U\\+0000"),
        ("\\\0", "U\\+0000"),
        ("\ud800", "surrogate"),
    ],
)
def test_what_is_no_json_is_refused_with_a_sentence(value, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_json_text(value)


@pytest.fixture(scope="module")
def server(database_url):
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield conn


@given(value=values)
def test_postgresql_stores_whatever_is_not_refused(server, value):
    try:
        text = as_json_text(value)
    except ValueError:
        return
    ((stored,),) = server.execute("select %s::json::text", [text]).fetchall()
    assert stored == text
