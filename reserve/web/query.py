"""Query parameters, read strictly: what is unknown, repeats or cannot be read is refused by name; pure."""

import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar
from urllib.parse import parse_qsl

from reserve.errors import InvalidRequest
from reserve.names import normalise_key
from reserve.settings import Settings
from reserve.web.body import quoted

Member = TypeVar("Member", bound=StrEnum)

#: Parameters of one request, repeats counted; the address line of a server has its own bound besides.
_PARAMETERS_MAX = 1100


def refuse_query(raw: bytes) -> None:
    """`InvalidRequest` for any query parameter: this call has none."""
    if raw:
        Parameters(raw, single=())


class Parameters:
    """The query parameters of one request, of which only the named ones exist and only `many` may repeat."""

    def __init__(self, raw: bytes, *, single: Iterable[str], many: Iterable[str] = ()) -> None:
        single, many = set(single), set(many)
        self._values: dict[str, list[str]] = {}
        for name, value in _pairs(raw):
            if name not in single | many:
                known = ", ".join(sorted(single | many)) or "none"
                raise InvalidRequest(f"There is no query parameter {quoted(name)} here (there are: {known}).")
            if name in single and name in self._values:
                raise InvalidRequest(f"The query parameter {name!r} is given more than once.")
            self._values.setdefault(name, []).append(value)

    def text(self, name: str) -> str | None:
        return self._values[name][0] if name in self._values else None

    def keys(self, name: str) -> list[str]:
        """Every value of `name` as a pool key or another such text."""
        try:
            return [normalise_key(value) for value in self._values.get(name, ())]
        except ValueError as error:
            raise _refused(name, str(error)) from None

    def key(self, name: str) -> str | None:
        return next(iter(self.keys(name)), None)

    def prefix(self, name: str) -> str | None:
        """The start of a key: like a key, but a space at its end counts."""
        text = self.text(name)
        if text is None:
            return None
        try:
            normalise_key(text)
        except ValueError as error:
            raise _refused(name, str(error)) from None
        return unicodedata.normalize("NFC", text)

    def member(self, name: str, members: type[Member]) -> Member | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            return members(text)
        except ValueError:
            raise _refused(name, f"must be one of {', '.join(members)}") from None

    def limit(self, settings: Settings) -> int:
        """How many items the page has."""
        text = self.text("limit")
        if text is None:
            return settings.page_limit_default
        # Nine digits are beyond every bound, and keep a huge number from being parsed at all.
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
        if not 1 <= number <= settings.page_limit_max:
            raise _refused("limit", f"must be a whole number from 1 to {settings.page_limit_max}")
        return number


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    if not raw:
        return []
    try:
        return parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=_PARAMETERS_MAX,
        )
    except ValueError:
        # Not ASCII, not UTF-8 inside the percent-encoding, a name without '=', or far too many.
        raise InvalidRequest("The query must be name=value pairs, percent-encoded as UTF-8.") from None


def _refused(name: str, sentence: str) -> InvalidRequest:
    return InvalidRequest(f"The query parameter {name!r} {sentence}.")
