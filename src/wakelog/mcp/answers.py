"""Answers for a model to read: short JSON, cut where it would be long, with a way to read the rest.

Text from a session is data, not an instruction, and says how far it can be trusted. Nothing is cut silently: a cut text
says how much is missing, and a cut list has the cursor of the next page. An answer stays small however large the state
is, because some clients cut long answers in the middle without telling anybody.
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
"""Characters of one answer, never more; some 2,000 tokens."""
ROOM = ANSWER_MAX - 500
"""What of it is for the list or value asked for; the rest is for the words around it."""
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


def page(
    items: Iterable[Any], show: Callable[[Any], Any] = lambda item: item, *, limit: int, room: int = ROOM
) -> list[Any]:
    """The first items, shown, that fit into an answer; at least one, cut to what there is room for."""
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
    """As many items from a place on as fit into an answer, and where to go on."""
    rows = page(items[skip:], show, limit=len(items) or 1, room=room)
    reached = skip + len(rows)
    return rows, reached if reached < len(items) else None


def read_on(value: Value, skip: int) -> dict[str, Any]:
    """A long text from a place on, or a long list or object from an item on; `next` is where to go on."""
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
    """A value in `room` characters, strictly: what `fit` leaves too long, because much of it has to be escaped, is
    given less."""
    aim = room
    while size(shown := fit(value, aim, min(text, max(aim, 20)))) > room and aim > 40:
        aim = aim * 2 // 3
    return shown if size(shown) <= room else "…"


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
    """One event: where it stands, how far it is trusted, and what it says. `cut` names what is not shown whole."""
    header = entry.header
    said: dict[str, Value] = {"e": entry.seq, "kind": entry.kind}
    if header.turn:
        said["turn"] = header.turn
    if header.trust != "trusted":
        said["trust"] = header.trust
    if header.source:
        said["source"] = shorten(header.source, 200)
    if not entry.is_intact:
        said["gone"] = "erased" if entry.record.body else "pruned"
    names = [n for n in entry.body if n != "delta" and (full or n not in _HIDDEN)]
    whole = {name: session.log.value(entry, entry.body[name]) for name in names}
    each = ROOM if full else min(4 * TEXT_MAX, ROOM)
    shown = {name: fit_within(value, each, each if full else TEXT_MAX) for name, value in whole.items()}
    if size(shown) > ROOM:
        shown = {name: fit_within(value, ROOM // len(shown) - size(name) - 2) for name, value in whole.items()}
    cut: list[Value] = [name for name in names if shown[name] != whole[name]]
    return {**said, **shown, **({"cut": cut} if cut else {})}


def field_answer(session: Session[Any], entry: Entry, field: str, skip: int) -> dict[str, Any] | None:
    """One field of an event from a place on; a value that is no text is read as its JSON. None if it has none."""
    if field not in entry.body or field == "delta":
        return None
    value = session.log.value(entry, entry.body[field])
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return {"e": entry.seq, "field": field, "trust": entry.header.trust, **read_on(text, skip)}


def error_text(exc: WakelogError) -> str:
    """What went wrong and what to do, with the stable kind for programs."""
    hint = _HINTS.get(exc.kind, exc.hint)
    return str(shorten(f"[{exc.kind}] {exc.message}" + (f" ({hint})" if hint else ""), 2000))
