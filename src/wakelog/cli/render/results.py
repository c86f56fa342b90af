"""Results by their type: one table says what programs see of each, another who tells people about it.

A shape lists JSON fields in their order. `seq` is the attribute, `turn?` is null where it is empty or zero,
`parent=session` is an attribute under another name, and `at:iso` a time in RFC 3339; a field with a function of its own
is made by that. Field names are frozen per schema version.
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
    """A result together with the session that it is about."""

    session: Any
    result: Any


def shape(kind: type[T], fields: str, **made: Callable[[T], Any]) -> None:
    """Says how results of a type look to programs."""
    _SHAPES[kind] = tuple(_readers(fields, made))


def shows(kind: type) -> Callable[[Show], Show]:
    """Marks the function that tells people about results of a type: it gets the context, the session where there is
    one, and the result."""

    def register(function: Show) -> Show:
        _SHOWN_BY[kind] = function
        return function

    return register


def show(ctx: Any, value: Any) -> Iterable[str]:
    """The lines for people; a function that says them by itself gives none."""
    if isinstance(value, SessionResult):
        return _SHOWN_BY[type(value.result)](ctx, value.session, value.result) or ()
    return _SHOWN_BY[type(value)](ctx, value) or ()


def plain(value: Any) -> Any:
    """A result as JSON can hold it: by its shape, or field by field where it has none."""
    if isinstance(value, SessionResult):
        return {"session": value.session.id, "name": value.session.name or None, **plain(value.result)}
    if isinstance(value, msgspec.Struct):
        fields = _SHAPES.get(type(value))
        return msgspec.to_builtins(value) if fields is None else {name: plain(read(value)) for name, read in fields}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def _readers(fields: str, made: dict[str, Read]) -> Iterator[tuple[str, Read]]:
    for field in fields.split():
        name, _, attribute = field.rstrip("?").removesuffix(":iso").partition("=")
        read: Read = made.get(name) or attrgetter(attribute or name)
        convert = iso if ":iso" in field else None
        yield name, _reader(read, convert, is_null=field.endswith("?"))


def _reader(read: Read, convert: Callable[[int], str] | None, *, is_null: bool) -> Read:
    def value_of(value: Any) -> Any:
        found = read(value)
        if is_null and not found:
            return None
        return found if convert is None else convert(found)

    return value_of
