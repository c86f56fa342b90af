"""Recorded values: payloads fetched up to a size, JSON as a readable tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from wakelog.cli.text import fit, inert_line, size, width
from wakelog.errors import NotFoundError
from wakelog.model.document import name_objects
from wakelog.model.parts import content_text, thought_text
from wakelog.model.payloads import as_ref, is_erased
from wakelog.model.values import Value

if TYPE_CHECKING:
    from wakelog.log.reader import Entry
    from wakelog.session import Session

PEEK_BYTES = 64 * 1024
"""Payloads up to this size are fetched for a one-line preview."""
MAX_MEMBERS = 200
"""How many members of one container are shown; the others are counted."""


def fetch_value(session: Session[object], entry: Entry, value: Value, limit: int = PEEK_BYTES) -> Value:
    """The value itself; a reference is replaced by its payload if that has at most `limit` bytes (0: any size)."""
    ref = as_ref(value)
    if ref is None or (limit and ref.size > limit):
        return value
    try:
        return session.log.value(entry, value)
    except NotFoundError:
        return {"$erased": entry.seq}


def text_of(value: Value) -> str:
    """A value as text: strings as they are, the rest as JSON. Not yet inert."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return f"({size(len(value))} of bytes)"
    if isinstance(value, dict):
        if "$erased" in value:
            return "(erased)"
        if ref := as_ref(value):
            return f"({size(ref.size)} of {ref.media})"
    return msgspec.json.encode(name_objects(value)).decode()


def readable(value: Value) -> str:
    """A value as people read it: the words and calls of a model's answer, anything else as text."""
    return content_text(value) or thought_text(value) or text_of(value)


def preview(session: Session[object], entry: Entry, value: Value) -> str:
    """The start of a value, for one line."""
    return readable(fetch_value(session, entry, value))[:2000] if value is not None else ""


def tree(value: Value, columns: int, indent: int = 0) -> Iterator[str]:
    """A JSON value as indented lines, inert, none wider than `columns`."""
    margin = " " * indent
    if indent > columns // 2:
        yield margin + scalar(value, columns - indent)
    elif is_erased(value):
        yield margin + f"(erased, e{value['$erased']})"
    elif isinstance(value, dict) and value:
        yield from _members(list(value.items()), columns, indent)
    elif isinstance(value, list) and value:
        yield from _items(value, columns, indent)
    else:
        yield margin + scalar(value, columns - indent)


def scalar(value: Value, columns: int) -> str:
    """A value on one line."""
    if is_erased(value):
        return f"(erased, e{value['$erased']})"
    # Quotes stay around a cut string, so that "5" differs from 5.
    if isinstance(value, str):
        return f'"{fit(msgspec.json.encode(value[:4000]).decode()[1:-1], max(1, columns - 2))}"'
    return fit(msgspec.json.encode(name_objects(value)).decode(), max(1, columns))


def _members(members: list[tuple[str, Value]], columns: int, indent: int) -> Iterator[str]:
    margin = " " * indent
    names = [fit(name, max(8, columns // 2)) for name, _ in members[:MAX_MEMBERS]]
    column = min(max(map(width, names)), 28) + 2
    for name, (_, item) in zip(names, members, strict=False):
        start = max(column, width(name) + 2)
        if is_short(item, columns - indent - start):
            yield f"{margin}{name}{' ' * (start - width(name))}{scalar(item, columns - indent - start)}"
        else:
            yield f"{margin}{name}"
            yield from tree(item, columns, indent + 2)
    if len(members) > MAX_MEMBERS:
        yield f"{margin}({len(members) - MAX_MEMBERS} more; --json shows all)"


def _items(items: list[Value], columns: int, indent: int) -> Iterator[str]:
    margin = " " * indent
    for number, item in enumerate(items[:MAX_MEMBERS]):
        head = f"{number}  "
        if is_short(item, columns - indent - len(head)):
            yield f"{margin}{head}{scalar(item, columns - indent - len(head))}"
        else:
            first, *rest = tree(item, columns, indent + len(head))
            yield f"{margin}{head}{first[indent + len(head) :]}"
            yield from rest
    if len(items) > MAX_MEMBERS:
        yield f"{margin}({len(items) - MAX_MEMBERS} more; --json shows all)"


def is_short(value: Value, columns: int) -> bool:
    """True if a value reads well on one line."""
    if not isinstance(value, dict | list) or not value:
        return True
    if any(isinstance(v, dict | list) and v for v in (value.values() if isinstance(value, dict) else value)):
        return False
    return width(inert_line(msgspec.json.encode(value).decode())) <= min(columns, 72)
