"""One spelling for each path, so that a pool key may hold any character; pure, reads only the raw path.

Servers hand over `path` with percent-encodings decoded, where the `/` of a key looks like a separator. So
routing works on the raw path instead: each segment is decoded on its own and written again with everything
but unreserved characters encoded. `a%2fb`, `a%2Fb` and `%61%2Fb` become the same segment, `%252F` does not.
"""

import re
from urllib.parse import quote, unquote, unquote_to_bytes

from reserve.errors import InvalidRequest

_CANONICAL = re.compile(r"[A-Za-z0-9_.~/-]*\Z")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def canonical_path(path: str) -> str:
    """The canonical spelling of a path as it was sent; `InvalidRequest` when it does not decode to UTF-8."""
    if _CANONICAL.match(path):
        return path
    if _STRAY_PERCENT.search(path):
        raise InvalidRequest("The path has a '%' that does not start a percent-encoding; write it as %25.")
    try:
        segments = [unquote_to_bytes(segment).decode() for segment in path.split("/")]
    except UnicodeDecodeError:
        raise InvalidRequest("The path is not percent-encoded UTF-8.") from None
    return "/".join(quote(segment, safe="") for segment in segments)


def segment_text(segment: str) -> str:
    """What one segment of a canonical path spells."""
    return unquote(segment)


def has_empty_segment(path: str) -> bool:
    """Whether a slash trails or is doubled: nothing has such an address; a guess would hide empty keys."""
    return path != "/" and (path.endswith("/") or "//" in path)
