"""Answers for a model to read: short JSON, cut where it would be long, with a handle to the rest.

Text out of a session is data, not instruction, and says how far it can be trusted. Nothing is cut silently: a cut text
ends in how much is missing, a cut list in the cursor that goes on.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.errors import WakelogError
from wakelog.log.reading import Entry
from wakelog.model.values import Value
from wakelog.session import Session

TEXT_MAX = 600
PAGE = 20
_HIDDEN = frozenset({"delta", "input_hash", "policy", "context_hash", "occurred_at"})
"""Bookkeeping that a model has no use for."""


def answer(data: Any) -> str:
    return msgspec.json.encode(data).decode()


def shorten(value: Value, limit: int = TEXT_MAX) -> Value:
    """A value with its long texts cut, each saying how much was left out."""
    if isinstance(value, str):
        if len(value) <= limit:
            return value
        return f"{value[:limit]}… ({len(value) - limit} more characters)"
    if isinstance(value, dict):
        return {k: shorten(v, limit) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [shorten(v, limit) for v in value]
    return value


def event_answer(session: Session[Any], entry: Entry, *, full: bool = False) -> dict[str, Value]:
    """One event: where it stands, how far it is trusted, and what it says."""
    header = entry.header
    said: dict[str, Value] = {"e": entry.seq, "kind": entry.kind}
    if header.turn:
        said["turn"] = header.turn
    if header.trust != "trusted":
        said["trust"] = header.trust
    if header.source:
        said["source"] = header.source
    for name, value in entry.body.items():
        if name in _HIDDEN and not full:
            continue
        whole = session.value(entry, value)
        said[name] = whole if full else shorten(whole)
    return said


def error_text(exc: WakelogError) -> str:
    """What went wrong and what to do, with the stable kind for programs."""
    return f"[{exc.kind}] {exc.message}" + (f" ({exc.hint})" if exc.hint else "")
