"""Which keys pools may have, and carts that name a pool twice; pure."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserve.inventory.rows import Line, sum_lines
from reserve.names import normalise_key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SKU-1", "SKU-1"),
        ("  trimmed\t", "trimmed"),
        ("a/b %20 c", "a/b %20 c"),
        ("شاي", "شاي"),
        ("🍵", "🍵"),
        ("e\u0301", "\u00e9"),
        ("x" * 200, "x" * 200),
        (" " + "x" * 200, "x" * 200),
        ("a\u200db", "a\u200db"),
    ],
)
def test_a_key_is_kept_in_nfc_and_trimmed(text, key):
    assert normalise_key(text) == key


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("x" * 201, "at most 200 characters, has 201"),
        ("a\0b", r"U\+0000"),
        ("a\nb", r"U\+000A"),
        ("a\x7fb", r"U\+007F"),
        ("a\x85b", r"U\+0085"),
        ("a\ud800b", r"U\+D800"),
    ],
)
def test_a_wrong_key_says_what_is_wrong_with_it(text, fault):
    with pytest.raises(ValueError, match=fault):
        normalise_key(text)


@given(st.text(max_size=250))
def test_a_key_that_passed_passes_unchanged_and_can_be_stored(text):
    try:
        key = normalise_key(text)
    except ValueError:
        return
    assert normalise_key(key) == key
    assert unicodedata.is_normalized("NFC", key)
    assert 1 <= len(key) <= 200
    assert b"\0" not in key.encode()


def test_the_same_pool_twice_is_summed_where_it_was_first_named():
    lines = [Line("tea", 2), Line("milk", 1), Line("tea", 3)]
    assert sum_lines(lines) == (Line("tea", 5), Line("milk", 1))


@given(st.lists(st.builds(Line, st.sampled_from("abc"), st.integers(1, 10**12))))
def test_summing_keeps_every_piece_and_names_each_pool_once(lines):
    summed = sum_lines(lines)
    assert len({line.pool for line in summed}) == len(summed)
    for line in summed:
        assert line.quantity == sum(each.quantity for each in lines if each.pool == line.pool)
    assert [line.pool for line in summed] == list(dict.fromkeys(line.pool for line in lines))
