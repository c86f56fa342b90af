"""The ids of a framework as the name of a session, and back.

A framework's ids are any text: an email address, a path, `e86`, which in wakelog is a position. Each id becomes one
part of a name such as `adk/shop/ann%40example.org/e86`. The first part is the framework, so no name looks like a
position; what a name may not hold is written as in a URL. A name that would be too long ends with a hash instead.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote

from wakelog.model.names import NAME_MAX
from wakelog.model.values import check_text

_EMPTY = "%-"
_HASHED = "%~"
_ODD = re.compile(r"[%/@\x00-\x1f\x7f\x85\u2028\u2029]|(?<=\.)\.|^\s+|\s+$")


def compound_name(framework: str, *ids: str) -> str:
    """The name of the session for these ids: always the same, and no other ids have it."""
    name = "/".join((framework, *(_ODD.sub(_quoted, check_text(each, "an id")) or _EMPTY for each in ids)))
    if len(name) > NAME_MAX:
        told = "\0".join(f"{len(each)}:{each}" for each in ids)
        name = f"{framework}/{_HASHED}{hashlib.sha256(told.encode()).hexdigest()}"
    return name


def ids_of(framework: str, name: str) -> tuple[str, ...] | None:
    """The ids that a name was made of; None where it is no such name, or only has a hash of them."""
    first, *parts = name.split("/")
    if first != framework or not parts or parts[0].startswith(_HASHED):
        return None
    return tuple("" if part == _EMPTY else unquote(part) for part in parts)


def is_hashed(framework: str, name: str) -> bool:
    """Whether a name has only a hash of its ids: then the session's labels tell them."""
    return name.startswith(f"{framework}/{_HASHED}")


def _quoted(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode())
