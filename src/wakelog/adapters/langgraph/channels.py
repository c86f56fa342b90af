"""Finds what changed in a channel since the last checkpoint, as operations on the session's data.

A checkpoint brings the whole value of every channel, so a conversation of a thousand messages comes a thousand times.
To find the difference fast, this process keeps a copy of each value and the objects it was made from. An item that is
the same object, and still equals its copy, is unchanged. Rows (texts, numbers, and dicts of these) and messages are
compared all in one step. A list rebuilt from plain data has only grown if its packed bytes start with those of the
copy. Everything else is compared in its stored form.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

import ormsgpack

from wakelog.adapters.langgraph.codec import ATOMS, ValueCodec
from wakelog.adapters.langgraph.held_items import held_places
from wakelog.importers.frameworks.langgraph.values import is_plain_key
from wakelog.model.values import Value
from wakelog.state.diff import diff
from wakelog.state.patch import Delta, escape

_UNREAD = object()
_FEW_OPS = 3
_NUMBERS = frozenset({int, float, bool})
_NONE: frozenset[str] = frozenset()
_ONLY_PLAIN = (
    ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


class ChannelCopy:
    """A copy of a channel's stored value, which is revived when it is first needed."""

    __slots__ = ("_are_rows", "_codec", "_fields", "_given", "_is_plain", "_numbers", "_own", "_stored")

    def __init__(self, codec: ValueCodec, stored: Value = None) -> None:
        self._codec = codec
        self._stored = stored
        self._own: Any = _UNREAD
        self._is_plain = False
        """True if the copy is a list of plain data."""
        self._are_rows = False
        """True if the items of that list are rows, which are cheap to copy."""
        self._numbers: frozenset[str] = _NONE
        """The keys of the numbers in the list of plain data. Numbers of two types can be equal."""
        self._fields: list[dict[str, Any]] | None = None
        """The fields of the copy's items if it is a list of messages, once they were needed."""
        self._given: Any = None
        """The graph's own value as a shallow copy: a list or dict of the same objects."""

    def hand_out(self) -> Any:
        """Returns a value that the graph may change. Its items are recognised when the next checkpoint has them."""
        own = self._value()
        value = self._unheld_items() if type(own) is list and type(self._given) is list else None
        if value is None:
            value = _copied_rows(own) if self._are_rows else self._codec.copy(own)
        self._given = _shallow(value)
        return value

    def _unheld_items(self) -> list[Any] | None:
        """The items as they were given, with a copy of each that somebody else holds; None if that is most."""
        own, given = self._own, self._given
        if len(own) != len(given):
            return None
        held = held_places(given, are_rows=self._are_rows)
        if held is None or not self._still_equals(given):
            return None
        value = list(given)
        for place in held:
            value[place] = self._codec.copy(own[place])
        return value

    def _value(self) -> Any:
        if self._own is _UNREAD:
            self._keep(self._codec.decode(self._stored))
            self._stored = None
        return self._own

    def _keep(self, own: Any) -> None:
        self._own = own
        self._is_plain = type(own) is list and _packed(own) is not None
        self._are_rows = self._is_plain and all(map(_is_row, own))
        self._numbers = _keys_of_numbers(own) if self._is_plain else _NONE

    def _next(self, own: list[Any], added: list[Any], value: list[Any]) -> ChannelCopy:
        """The copy of the list's next version. `added` are its new items."""
        fresh = ChannelCopy(self._codec)
        fresh._own, fresh._given = own, list(value)
        fresh._is_plain = self._is_plain and _packed(added) is not None
        fresh._are_rows = fresh._is_plain and self._are_rows and all(map(_is_row, added))
        fresh._numbers = self._numbers | _keys_of_numbers(added) if fresh._is_plain else _NONE
        return fresh

    def moved_to(self, value: Any, path: str, where: str) -> tuple[ChannelCopy, Delta]:
        """The copy of a new value, and the operations that lead from this copy to it."""
        if type(value) is list and self._has_grown(value):
            return self._grown(value, path, where)
        if self._given is not None and type(value) is type(self._given):
            if type(value) is list:
                return self._moved_list(value, path, where)
            if self._is_stored_by_key(value) and self._is_stored_by_key(self._given):
                moved = self._moved_dict(value, path, where)
                if moved is not None:
                    return moved
        before = self._codec.encode(self._value(), where) if self._stored is None else self._stored
        ops = shortest(before, self._codec.encode(value, where), path)
        return copy_of(self._codec, value), ops

    def _is_stored_by_key(self, value: Any) -> bool:
        """True for a dict whose stored form is a dict. A serializer of the user's makes one value of it."""
        return type(value) is dict and self._codec.is_readable and all(map(is_plain_key, value))

    def _has_grown(self, value: list[Any]) -> bool:
        """True if a list starts with all items of the copy."""
        own, given = self._value(), self._given
        if type(own) is not list or len(value) < len(own):
            return False
        if type(given) is list and all(map(operator.is_, given, value)):
            return self._still_equals(given)
        return self._is_plain and _packed(own) == _packed(value[: len(own)])

    def _still_equals(self, given: list[Any]) -> bool:
        """True if nobody has changed these items in place."""
        try:
            if self._is_plain:
                is_equal = bool(given == self._own)
                if not is_equal or not self._numbers:
                    return is_equal
                is_same = self._are_rows and _has_same_numbers(given, self._own, self._numbers)
                return is_same or _packed(given) == _packed(self._own)
            fields = self._codec.fields_of(given)
            if fields is None:
                return False
            if self._fields is None:
                self._fields = self._codec.fields_of(self._own)
            return fields == self._fields
        except Exception:  # a value in a message may refuse to be compared
            return False

    def _grown(self, value: list[Any], path: str, where: str) -> tuple[ChannelCopy, Delta]:
        first = len(self._own)
        added = value[first:]
        ops = [
            {"op": "add", "path": f"{path}/{i}", "value": self._codec.encode(item, f"{where}[{i}]")}
            for i, item in enumerate(added, first)
        ]
        copies = list(map(self._codec.copy, added))
        fresh = self._next([*self._own, *copies], added, value)
        if self._fields is not None and (fields := self._codec.fields_of(copies)) is not None:
            fresh._fields = [*self._fields, *fields]
        return fresh, ops

    def _moved_list(self, value: list[Any], path: str, where: str) -> tuple[ChannelCopy, Delta]:
        given, own, same = self._given, self._own, self._is_same
        shorter = min(len(given), len(value))
        head = 0
        while head < shorter and same(value[head], given[head], own[head]):
            head += 1
        tail = 0
        while tail < shorter - head and same(value[-1 - tail], given[-1 - tail], own[-1 - tail]):
            tail += 1
        before, after = own[head : len(own) - tail], value[head : len(value) - tail]
        store, copy = self._codec.encode, self._codec.copy
        new = [store(item, f"{where}[{head + i}]") for i, item in enumerate(after)]
        fresh = self._next([*own[:head], *map(copy, after), *own[len(own) - tail :]], after, value)
        is_whole = not head and not tail
        if is_whole and _leaves(new) > _FEW_OPS and not _shares(before, after):
            return fresh, [{"op": "replace", "path": path, "value": new}]  # what `shortest` would return
        old = [store(item, where) for item in before]
        if is_whole:
            return fresh, shortest(old, new, path)
        return fresh, [_shifted(op, path, head) for op in diff(old, new)]

    def _moved_dict(self, value: dict[str, Any], path: str, where: str) -> tuple[ChannelCopy, Delta] | None:
        given, own = self._given, self._own
        kept = [key for key in own if key in value]
        if [*kept, *(key for key in value if key not in own)] != list(value):
            return None  # a patch cannot express a new order of keys
        ops: Delta = [{"op": "remove", "path": f"{path}/{escape(key)}"} for key in own if key not in value]
        copies: dict[str, Any] = {}
        for key, item in value.items():
            if key in own and key in given and self._is_same(item, given[key], own[key]):
                copies[key] = own[key]
                continue
            place, named = f"{path}/{escape(key)}", f"{where}.{key}"
            after = self._codec.encode(item, named)
            if key in own:
                ops += diff(self._codec.encode(own[key], named), after, place)
            else:
                ops.append({"op": "add", "path": place, "value": after})
            copies[key] = self._codec.copy(item)
        fresh = ChannelCopy(self._codec)
        fresh._own, fresh._given = copies, dict(value)
        return fresh, ops

    def _is_same(self, item: Any, given: Any, own: Any) -> bool:
        return item is given and self._codec.is_same(item, own)


def new_channel(codec: ValueCodec, value: Any, path: str, where: str) -> tuple[ChannelCopy, Delta]:
    """The copy of a channel's first value, and the operation that stores it."""
    op = {"op": "add", "path": path, "value": codec.encode(value, where)}
    return copy_of(codec, value), [op]


def copy_of(codec: ValueCodec, value: Any) -> ChannelCopy:
    fresh = ChannelCopy(codec)
    fresh._keep(codec.copy(value))
    fresh._given = _shallow(value)
    return fresh


def shortest(before: Value, after: Value, path: str) -> Delta:
    """The difference between two values, or the whole new value if most of it changed."""
    ops = diff(before, after, path)
    if len(ops) > _FEW_OPS and 2 * len(ops) > _leaves(after):
        return [{"op": "replace", "path": path, "value": after}]
    return ops


def _leaves(value: Value) -> int:
    if type(value) is dict:
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if type(value) is list else 1


def _shares(a: Any, b: Any) -> bool:
    """True if two values may share a leaf, in the same place or at the end of a list."""
    if type(a) is dict and type(b) is dict:
        return any(key in b and _shares(item, b[key]) for key, item in a.items())
    if type(a) is list and type(b) is list:
        return any(map(_shares, a, b)) or bool(a and b and _shares(a[-1], b[-1]))
    return type(a) not in ATOMS or type(b) not in ATOMS or bool(a == b)


def _is_row(item: Any) -> bool:
    return type(item) in ATOMS or (type(item) is dict and ATOMS.issuperset(map(type, item.values())))


def _keys_of_numbers(value: Any, key: str = "") -> frozenset[str]:
    """The keys of the numbers in a value. Items of a list have the key of the list, and those of the outermost none."""
    if type(value) is list:
        return _NONE.union(*[_keys_of_numbers(item, key) for item in value])
    if type(value) is dict:
        return _NONE.union(*[_keys_of_numbers(item, name) for name, item in value.items()])
    return frozenset({key}) if type(value) in _NUMBERS else _NONE


def _has_same_numbers(rows: list[Any], copies: list[Any], keys: frozenset[str]) -> bool:
    """True if equal rows also hold the same objects as numbers: 0 equals False, but is stored in another form. A copy
    is made of the same objects as the original. To look at all values would take four times as long as to compare the
    rows."""
    try:
        for key in keys:
            numbers, others = (map(dict.get, each, itertools.repeat(key)) if key else each for each in (rows, copies))
            if not all(map(operator.is_, numbers, others)):
                return False
    except TypeError:  # not all rows are dicts
        return False
    return True


def _copied_rows(rows: list[Any]) -> list[Any]:
    if rows and type(rows[0]) is dict:
        try:
            return list(map(dict.copy, rows))
        except TypeError:  # not all rows are dicts
            pass
    return [row.copy() if type(row) is dict else row for row in rows]


def _packed(value: Any) -> bytes | None:
    """The packed bytes of data that unpacks to the same value; None for everything else."""
    try:
        packed: bytes = ormsgpack.packb(value, option=_ONLY_PLAIN)
    except (TypeError, ValueError):
        return None
    return packed


def _shallow(value: Any) -> Any:
    return list(value) if type(value) is list else dict(value) if type(value) is dict else None


def _shifted(op: dict[str, Value], path: str, by: int) -> dict[str, Value]:
    """Translates an operation on a slice of a list into one on the whole list."""
    index, slash, rest = op["path"][1:].partition("/")
    return {**op, "path": f"{path}/{int(index) + by}{slash}{rest}"}
