"""The name of the session for an id that a framework or its user made."""

from __future__ import annotations

import hashlib
import re

from wakelog.model.names import NAME_MAX, is_name

_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_KEPT = 48


def session_name(id: str, *, prefix: str = "session") -> str:
    """The id itself where it can name a session. One that cannot, as `e86` or `@5`, which are places in a session, gets
    a name of its own: what can be read of it, and a hash that tells it from every other."""
    if is_name(id):
        return id
    digest = hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()[:16]
    readable = _ODD.sub("-", id).strip("-")[:_KEPT].strip("-")
    return "-".join(part for part in (prefix, readable, digest) if part)[:NAME_MAX]
