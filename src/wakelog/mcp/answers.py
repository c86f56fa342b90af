"""Answers for a model to read: short JSON, cut where it would be long, with a handle to the rest.

Text out of a session is data, not instruction, and says how far it can be trusted. Nothing is cut silently: a cut text
ends in how much is missing, a cut list in the cursor that goes on. However large a state is, an answer is not.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.errors import WakelogError
from wakelog.log.reading import Entry
from wakelog.model.values import Value
from wakelog.session import Session

TEXT_MAX = 600
FULL_MAX = 50_000
"""A whole text is this long at most; the command line shows the rest of a longer one."""
ANSWER_MAX = 24_000
"""Characters of one answer, about; some 6,000 tokens."""
PAGE = 20
_HIDDEN = frozenset({"input_hash", "policy", "context_hash", "occurred_at", "state_hash"})
"""Bookkeeping that a model has no use for."""
_HINTS = {
    "action-not-pending": "pending shows what is",
    "commit-id-reused": "use a new id for new entries",
    "key-not-found": "get_state without a key shows what there is",
    "session-closed": "fork it to go on from it, or open_session under another name",
    "session-not-found": "list_sessions shows what there is",
    "turn-machine": "start_turn begins a turn, end_turn ends it",
}
"""What to do, in tools, where the error's own hint is a command for a person."""


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


def size(value: Value) -> int:
    return len(msgspec.json.encode(value))


def fit(value: Value, room: int = ANSWER_MAX, text: int = TEXT_MAX) -> Value:
    """A value in about `room` characters. Small parts stay whole, large ones share what is left, and a part for which
    there is no room says how much it holds."""
    small = shorten(value, text)
    if size(small) <= room:
        return small
    if isinstance(value, str):
        return shorten(value, max(room - 40, 20))
    if isinstance(value, dict):
        names = list(value)[: max(room // 60, 1)]
        rooms = _share([size(shorten(value[n], text)) + size(n) + 2 for n in names], room)
        kept = {n: _inside(value[n], r - size(n) - 2, text) for n, r in zip(names, rooms, strict=True)}
        return kept if len(names) == len(value) else {**kept, "…": f"{len(value) - len(names)} more keys"}
    if isinstance(value, list | tuple):
        some = list(value[: max(room // 60, 1)])
        rooms = _share([size(shorten(v, text)) + 1 for v in some], room)
        items = [_inside(v, r, text) for v, r in zip(some, rooms, strict=True)]
        return items if len(some) == len(value) else [*items, f"… {len(value) - len(some)} more"]
    return small


def _inside(value: Value, room: int, text: int) -> Value:
    if room >= 60 or not isinstance(value, dict | list | tuple) or size(value) <= room:
        return fit(value, room, text)
    return f"… {len(value)} {'keys' if isinstance(value, dict) else 'items'}"


def _share(sizes: list[int], room: int) -> list[int]:
    """Room for each: what the small ones do not need goes to the large ones."""
    rooms, left = [0] * len(sizes), room
    for done, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        rooms[place] = left // (len(sizes) - done)
        left -= min(sizes[place], rooms[place])
    return rooms


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
    if not entry.is_intact:
        said["gone"] = "erased" if entry.record.body else "pruned"
    for name, value in entry.body.items():
        if name == "delta" or (name in _HIDDEN and not full):
            continue
        whole = session.value(entry, value)
        said[name] = fit(whole, 2 * FULL_MAX, FULL_MAX) if full else fit(whole, 4 * TEXT_MAX)
    return said


def error_text(exc: WakelogError) -> str:
    """What went wrong and what to do, with the stable kind for programs."""
    hint = _HINTS.get(exc.kind, exc.hint)
    return f"[{exc.kind}] {exc.message}" + (f" ({hint})" if hint else "")
