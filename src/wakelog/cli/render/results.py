"""Rendering by result type: one table holds the JSON shape of each type, another the function that shows it to people.

A shape lists JSON fields in order. `seq` is an attribute; `turn?` is null if it is empty or zero; `parent=session` is
the attribute `session` under another name; `at:iso` is a time in RFC 3339; a keyword argument computes a field. Field
names are frozen per schema version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from wakelog.cli.text import iso

T = TypeVar("T")
Show = TypeVar("Show", bound=Callable[..., Iterable[str] | None])
Read = Callable[[Any], Any]
_SHAPES: dict[type, tuple[tuple[str, Read], ...]] = {}
_SHOWN_BY: dict[type, Callable[..., Iterable[str] | None]] = {}


class SessionResult(msgspec.Struct, frozen=True):
    """A result, and the session that it is about."""

    session: Any
    result: Any


def shape(kind: type[T], fields: str, **computed: Callable[[T], Any]) -> None:
    """Registers the JSON shape of a type."""
    _SHAPES[kind] = tuple(_readers(fields, computed))


def shows(kind: type) -> Callable[[Show], Show]:
    """Registers the function that shows results of a type to people. It gets the context, the session (for a
    SessionResult) and the result."""

    def register(function: Show) -> Show:
        _SHOWN_BY[kind] = function
        return function

    return register


def show(ctx: Any, value: Any) -> Iterable[str]:
    """The lines for people; none if the function prints them itself."""
    if isinstance(value, SessionResult):
        return _SHOWN_BY[type(value.result)](ctx, value.session, value.result) or ()
    return _SHOWN_BY[type(value)](ctx, value) or ()


def plain(value: Any) -> Any:
    """A result as plain JSON: by its shape, or field by field if it has none."""
    if isinstance(value, SessionResult):
        return {"session": value.session.id, "name": value.session.name or None, **plain(value.result)}
    if isinstance(value, msgspec.Struct):
        fields = _SHAPES.get(type(value))
        return msgspec.to_builtins(value) if fields is None else {name: plain(read(value)) for name, read in fields}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _readers(fields: str, computed: dict[str, Read]) -> Iterator[tuple[str, Read]]:
    for field in fields.split():
        name, _, attribute = field.rstrip("?").removesuffix(":iso").partition("=")
        read: Read = computed.get(name) or attrgetter(attribute or name)
        convert = iso if ":iso" in field else None
        yield name, _reader(read, convert, is_nullable=field.endswith("?"))


def _reader(read: Read, convert: Callable[[int], str] | None, *, is_nullable: bool) -> Read:
    def read_field(result: Any) -> Any:
        value = read(result)
        if is_nullable and not value:
            return None
        return value if convert is None else convert(value)

    return read_field
