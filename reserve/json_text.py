"""JSON as PostgreSQL stores it: one compact spelling, and what it cannot store refused. Owns no bound of a field."""

import json
import re

#: Without ASCII escapes a text has one spelling only, and NaN or Infinity are no JSON.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

#: A NUL has only this spelling here; a text that ends in a backslash has it doubled.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_SURROGATE = re.compile("[\ud800-\udfff]")


def as_json_text(value: object) -> str:
    """`value` as compact JSON; `ValueError` with a sentence for what JSON or PostgreSQL cannot hold."""
    try:
        text = _encode(value)
    except (TypeError, RecursionError):
        raise ValueError("must be JSON: objects with text names, arrays, texts, numbers, true, false or null") from None
    except ValueError:
        raise ValueError("must not contain NaN, Infinity, or itself") from None
    # Most texts have no backslash, and the others are few enough to look at closely.
    if "\\u0000" in text and _NUL.search(text):
        raise ValueError("must not contain the character U+0000")
    if not text.isascii() and _SURROGATE.search(text):
        raise ValueError("must not contain a lone surrogate")
    return text
