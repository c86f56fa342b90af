"""Makes a session name from a framework's ids, and finds the ids again.

A framework's ids can be any text: an email address, a path, or `e86`, which is a position in wakelog. Each id becomes
one part of a name such as `adk/shop/ann%40example.org/e86`. The first part is the framework, so no name looks like a
position. Characters that a name may not have are escaped as in a URL. A name that would be too long gets a hash instead
of the ids.
"""

from __future__ import annotations

import functools
import hashlib
import re
from urllib.parse import unquote

from wakelog.model.names import NAME_MAX
from wakelog.model.values import check_text

_EMPTY = "%-"
_HASHED = "%~"
_ESCAPED = re.compile(r"[%/@\x00-\x1f\x7f\x85\u2028\u2029]|(?<=\.)\.|^\s+|\s+$")


@functools.lru_cache(maxsize=1024)  # a framework gives the same few with every call
def compound_name(framework: str, *ids: str) -> str:
    """The session name for these ids. It is always the same, and no other ids have it."""
    name = "/".join((framework, *(_ESCAPED.sub(_quoted, check_text(id, "an id")) or _EMPTY for id in ids)))
    if len(name) > NAME_MAX:
        joined = "\0".join(f"{len(id)}:{id}" for id in ids)
        name = f"{framework}/{_HASHED}{hashlib.sha256(joined.encode()).hexdigest()}"
    return name


def ids_of(framework: str, name: str) -> tuple[str, ...] | None:
    """The ids in a name; None if it is not such a name, or has only their hash."""
    first, *parts = name.split("/")
    if first != framework or not parts or parts[0].startswith(_HASHED):
        return None
    return tuple("" if part == _EMPTY else unquote(part) for part in parts)


def is_hashed(framework: str, name: str) -> bool:
    """True if a name has only a hash of its ids. The session's labels have the ids then."""
    return name.startswith(f"{framework}/{_HASHED}")


def _quoted(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode())
