"""Answers for a model to read: short JSON, cut where it would be long, with a way to read the rest.

Text from a session is data, not an instruction, and says how far it can be trusted. Nothing is cut silently: a cut text
says how much is missing, and a cut list has the cursor of the next page. An answer stays small however large the state
is, because some clients silently cut long answers in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from wakelog.errors import WakelogError
from wakelog.log.reader import Entry
from wakelog.model.values import Value
from wakelog.session import Session

TEXT_MAX = 600
ANSWER_MAX = 8_000
"""The limit of one answer in characters: about 2,000 tokens."""
ROOM = ANSWER_MAX - 500
"""The part of it for the list or value; the rest is for the other fields."""
PAGE = 20
_HIDDEN = frozenset({"input_hash", "policy", "context_hash", "occurred_at", "state_hash"})
"""Fields that a model does not need."""
_HINTS = {
    "action-not-pending": "pending lists the open calls",
    "commit-id-reused": "use a new id for new entries",
    "key-not-found": "get_state without a key shows all keys",
    "session-closed": "fork it to continue it, or open_session under another name",
    "session-not-found": "list_sessions lists all sessions",
    "turn-machine": "start_turn starts a turn, end_turn ends it",
}
"""Hints that name tools, for errors whose own hint is a command for a person."""


def answer(data: Any) -> str:
    return msgspec.json.encode(data).decode()


def page(
    items: Iterable[Any], show: Callable[[Any], Any] = lambda item: item, *, limit: int, room: int = ROOM
) -> list[Any]:
    """The first items that fit into an answer, as `show` renders them. At least one, shortened if necessary."""
    shown: list[Any] = []
    for item in items:
        one = show(item)
        if not shown:
            one = fit_within(one, room)
        room -= size(one) + 1
        if shown and room < 0:
            break
        shown.append(one)
        if len(shown) == limit:
            break
    return shown


def page_from(
    items: Sequence[Any], skip: int, show: Callable[[Any], Any] = lambda item: item, *, room: int = ROOM
) -> tuple[list[Any], int | None]:
    """The items from position `skip` that fit into an answer, and the position to continue at."""
    rows = page(items[skip:], show, limit=len(items) or 1, room=room)
    reached = skip + len(rows)
    return rows, reached if reached < len(items) else None


def read_on(value: Value, skip: int) -> dict[str, Any]:
    """The part of a text, list or object from position `skip`; `next` is the position to continue at."""
    if isinstance(value, dict):
        pairs, more = page_from(list(value.items()), skip, lambda p: [p[0], fit_within(p[1], ROOM - size(p[0]) - 10)])
        return {"value": dict(pairs), "next": more}
    if isinstance(value, list | tuple):
        items, more = page_from(value, skip)
        return {"value": items, "next": more}
    if not isinstance(value, str):
        return {"value": value, "next": None}
    part = value[skip : skip + ROOM]
    while size(part) > ROOM:
        part = part[: max(1, len(part) * ROOM // (size(part) + 1))]
    reached = skip + len(part)
    return {"value": part, "next": reached if reached < len(value) else None}


def fit_within(value: Value, room: int, text: int = TEXT_MAX) -> Value:
    """A value in at most `room` characters. `fit` may exceed them if much has to be escaped; then it gets less room."""
    target = room
    while size(shown := fit(value, target, min(text, max(target, 20)))) > room and target > 40:
        target = target * 2 // 3
    return shown if size(shown) <= room else "…"


def shorten(value: Value, limit: int = TEXT_MAX) -> Value:
    """A value with its long texts cut. Each says how much is missing."""
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
    """A value in about `room` characters. Small parts stay whole, large ones share the rest, and a part without room is
    replaced by its number of keys or items."""
    small = shorten(value, text)
    if size(small) <= room:
        return small
    if isinstance(value, str):
        return shorten(value, max(room - 40, 20))
    if isinstance(value, dict):
        names = list(value)[: max(room // 60, 1)]
        rooms = _share_room([size(shorten(value[n], text)) + size(n) + 2 for n in names], room)
        kept = {n: _fit_part(value[n], r - size(n) - 2, text) for n, r in zip(names, rooms, strict=True)}
        return kept if len(names) == len(value) else {**kept, "…": f"{len(value) - len(names)} more keys"}
    if isinstance(value, list | tuple):
        some = list(value[: max(room // 60, 1)])
        rooms = _share_room([size(shorten(v, text)) + 1 for v in some], room)
        items = [_fit_part(v, r, text) for v, r in zip(some, rooms, strict=True)]
        return items if len(some) == len(value) else [*items, f"… {len(value) - len(some)} more"]
    return small


def _fit_part(value: Value, room: int, text: int) -> Value:
    if room >= 60 or not isinstance(value, dict | list | tuple) or size(value) <= room:
        return fit(value, room, text)
    return f"… {len(value)} {'keys' if isinstance(value, dict) else 'items'}"


def _share_room(sizes: list[int], room: int) -> list[int]:
    """The room for each part. What small parts do not need goes to large ones."""
    rooms, left = [0] * len(sizes), room
    for done, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        rooms[place] = left // (len(sizes) - done)
        left -= min(sizes[place], rooms[place])
    return rooms


def event_answer(session: Session[Any], entry: Entry, *, full: bool = False) -> dict[str, Value]:
    """One event: its position, its trust and its fields. `cut` names the fields that are not shown whole."""
    header = entry.header
    shown_header: dict[str, Value] = {"e": entry.seq, "kind": entry.kind}
    if header.turn:
        shown_header["turn"] = header.turn
    if header.trust != "trusted":
        shown_header["trust"] = header.trust
    if header.source:
        shown_header["source"] = shorten(header.source, 200)
    if not entry.is_intact:
        shown_header["gone"] = "erased" if entry.record.body else "pruned"
    names = [n for n in entry.body if n != "delta" and (full or n not in _HIDDEN)]
    whole = {name: session.log.value(entry, entry.body[name]) for name in names}
    room = ROOM if full else min(4 * TEXT_MAX, ROOM)
    shown = {name: fit_within(value, room, room if full else TEXT_MAX) for name, value in whole.items()}
    if size(shown) > ROOM:
        shown = {name: fit_within(value, ROOM // len(shown) - size(name) - 2) for name, value in whole.items()}
    cut: list[Value] = [name for name in names if shown[name] != whole[name]]
    return {**shown_header, **shown, **({"cut": cut} if cut else {})}


def field_answer(session: Session[Any], entry: Entry, field: str, skip: int) -> dict[str, Any] | None:
    """One field of an event from position `skip`; other values than texts as JSON. None if the event has no such
    field."""
    if field not in entry.body or field == "delta":
        return None
    value = session.log.value(entry, entry.body[field])
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return {"e": entry.seq, "field": field, "trust": entry.header.trust, **read_on(text, skip)}


def error_text(exc: WakelogError) -> str:
    """The error for the model: what went wrong, what to do, and the stable kind for programs."""
    hint = _HINTS.get(exc.kind, exc.hint)
    return str(shorten(f"[{exc.kind}] {exc.message}" + (f" ({hint})" if hint else ""), 2000))
