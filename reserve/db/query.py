"""Loads the named statements of `reserve/sql` and qualifies them for a namespace; runs none.

A file holds one statement; its stem is the name, which the statement carries as a first comment so that
`pg_stat_activity` shows it. `{namespace}` is the only word in braces, `%(name)s` are the parameters. A claim is
declared in `reserve/db/claim.py` and rendered through the one shape in `claim.sql`.
"""

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from string import Formatter

from reserve.db.claim import CLAIMS, render_claim

_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


def _read() -> dict[str, str]:
    files = resources.files("reserve.sql")
    texts = {
        file.name.removesuffix(".sql"): _COMMENT.sub("", file.read_text("utf-8")).strip()
        for file in files.iterdir()
        if file.name.endswith(".sql")
    }
    shape = texts.pop("claim")
    for claim in CLAIMS:
        before = texts.pop(f"{claim.name}.before", "")
        texts[claim.name] = render_claim(shape, claim, before=before, after=texts.pop(f"{claim.name}.after"))
    for name, text in texts.items():
        words = {word for _, word, _, _ in Formatter().parse(text) if word is not None}
        # Fails when the module is imported, so that no broken statement waits for its first use.
        assert words == {"namespace"}, f"{name}.sql must name {{namespace}} and no other word in braces: {words}"
        assert not text.endswith(";"), f"{name}.sql must not end in a semicolon"
    return texts


_TEXTS = _read()


class Queries(Mapping[str, bytes]):
    """All statements, qualified for one namespace (already checked by `Settings`)."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        quoted = '"' + namespace.replace('"', '""') + '"'
        self._texts = {
            name: f"/* reserve:{name} */ {text.format(namespace=quoted)}".encode() for name, text in _TEXTS.items()
        }

    def __getitem__(self, name: str) -> bytes:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
