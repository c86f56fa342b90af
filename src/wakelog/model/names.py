"""Names of sessions, and the grammar of positions, which cannot be names.

A position in a session is written as a selector (timeline/selectors.py). A session whose name looks like a position
could not be reached by its name. So the grammar is here, below everything that binds a name.
"""

from __future__ import annotations

import hashlib
import re

from wakelog.errors import InvalidInputError
from wakelog.model.ids import is_session_id
from wakelog.model.values import check_text

NAME_MAX = 256
"""The maximum length of a session's name and of a commit id, the same on every engine. It is checked where they enter
(`check_length`), not by the engines, so that older, longer ones can still be copied."""

WORDS = ("first-error", "last-error", "last-user", "last-tool")
PLACE = (
    r"@(?:-?\d*|~\d+|\d+\.(?:\d+|best))|turn:\d+|e\d+|event:\d+|(?:c|commit):[0-9a-f]+|t:[^@]+?|cp:[^@]+?|"
    + "|".join(WORDS)
)
"""A regular expression for a position."""

_RESERVED = rf"(?:{PLACE})"
_ODD = r"[^A-Za-z0-9_-]+"
_READABLE = 48


def is_of_store(name: str) -> bool:
    """Whether it is a session of the store itself, such as its plans. Lists of people's work leave it out."""
    return name.startswith("wakelog.")


def unquoted_name(name: str) -> str:
    """The name if it needs no quotes in a shell, else empty."""
    return name if re.fullmatch(r"[A-Za-z0-9_][\w.:+-]*", name, re.ASCII) else ""


def check_length(text: str, what: str) -> None:
    """Raises InvalidInputError if a name or id is too long."""
    if len(text) > NAME_MAX:
        raise InvalidInputError(
            f"{what} has {len(text)} characters, and may have {NAME_MAX}: {text[:24]!r}…",
            kind="too-long",
            hint="shorten it, or use a hash of it",
        )


def is_place(text: str) -> bool:
    """Whether a text is a position in a session. Then it cannot be a name."""
    return re.fullmatch(_RESERVED, text) is not None


def is_name(text: str) -> bool:
    """Whether a text can name a session."""
    try:
        check_name(text)
    except InvalidInputError:
        return False
    return True


def check_name(name: str) -> str:
    """Returns the name. Raises InvalidInputError if it cannot name a session."""
    check_length(check_text(name, "a name"), "a name")
    if is_place(name):
        raise InvalidInputError(
            f"{name!r} cannot name a session: it looks like a position in a session",
            kind="bad-name",
            hint=f"choose another, such as session-{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-') or '1'}",
        )
    is_odd = not name or is_session_id(name) or any(c in name for c in "@\n") or name[0] in "-.~" or ".." in name
    if is_odd or name != name.strip():
        raise InvalidInputError(
            f"{name!r} cannot name a session: a name is not empty, does not look like an id or a position, has no @, .."
            " or line break in it, does not start with - . or ~ and has no space at either end",
            kind="bad-name",
            hint="names look like fix-auth or nightly-2026-11-15",
        )
    return name


def name_of_id(id: str) -> str:
    """Makes a session's name from another program's id: the id itself if it can be a name. An id that cannot, such as
    `e86` or `@5`, becomes its readable characters and a hash, which makes it unique."""
    if is_name(id):
        return id
    digest = hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()[:16]
    readable = re.sub(_ODD, "-", id).strip("-")[:_READABLE].strip("-")
    return "-".join(part for part in ("session", readable, digest) if part)[:NAME_MAX]
