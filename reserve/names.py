"""Which names pools, owners and references may have; pure."""

import unicodedata

#: Characters of a pool key, label, owner or reference.
KEY_LENGTH_MAX = 200


def normalise_key(text: str) -> str:
    """`text` in NFC, trimmed; `ValueError` says what is wrong with it.

    1 to 200 characters; no control characters and no lone surrogates, which PostgreSQL cannot store. Case is kept.
    """
    key = unicodedata.normalize("NFC", text).strip()
    if not key:
        raise ValueError("must not be empty")
    if len(key) > KEY_LENGTH_MAX:
        raise ValueError(f"must have at most {KEY_LENGTH_MAX} characters, has {len(key)}")
    for character in key:
        if unicodedata.category(character) in {"Cc", "Cs"}:
            raise ValueError(f"must not contain the character U+{ord(character):04X}")
    return key
