"""What changed in a channel since the checkpoint before, as operations on the session's data.

A checkpoint comes with the whole value of every channel, and a conversation of a thousand messages comes a thousand
times. So this process keeps what it knows of each value. Of a list of plain data it keeps the packed bytes: a longer
list whose bytes begin with those has only grown. Of other lists and of dicts it keeps a copy, and which objects it was
made from: an item that is the same object, and still equal to its copy, needs no look inside. What is left is compared
in its stored form.
"""

from __future__ import annotations

import operator
from typing import Any

import ormsgpack

from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.importers.frameworks.langgraph.values import is_plain_key
from wakelog.model.values import Value
from wakelog.state.diff import diff
from wakelog.state.patch import Delta, escape

_UNREAD = object()
_ONLY_PLAIN = (
    ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


class ChannelCopy:
    """A channel's value as it is in the log: in its stored form until somebody wants to have it."""

    __slots__ = ("_codec", "_given", "_own", "_packed", "_stored", "_took")

    def __init__(self, codec: ValueCodec, stored: Value = None) -> None:
        self._codec = codec
        self._stored = stored
        self._own: Any = _UNREAD
        self._packed: bytes | None = None
        """The items of a list of plain data, one after another."""
        self._took = 0
        """How many those are."""
        self._given: Any = None
        """The value that the graph has, its items by identity: a list or dict of the same objects."""

    def hand_out(self) -> Any:
        """A value for the graph to have, known again when it comes back."""
        if self._packed is None and self._own is _UNREAD:
            self._take(self._codec.revived(self._stored))
            self._stored = None
        if self._packed is not None:
            return ormsgpack.unpackb(_head(self._took) + self._packed)
        value = self._codec.copied(self._own)
        self._given = _shallow(value)
        return value

    def _take(self, value: Any) -> None:
        """Keeps a value that is this copy's own."""
        self._packed = _packed(value)
        if self._packed is None:
            self._own = value
        else:
            self._took = len(value)

    def _value(self) -> Any:
        if self._packed is not None or self._own is _UNREAD:
            return self.hand_out()
        return self._own

    def moved_to(self, value: Any, path: str, where: str) -> tuple[ChannelCopy, Delta]:
        """The copy for a new value, and the operations that lead there. This copy stays as it is."""
        packed = _packed(value)
        if packed is not None and self._packed is not None and packed.startswith(self._packed):
            fresh = ChannelCopy(self._codec)
            fresh._packed, fresh._took = packed, len(value)
            return fresh, self._added(value, self._took, path, where)
        if self._given is not None and type(value) is type(self._given):
            if type(value) is list and packed is None:
                return self._moved_list(value, path, where)
            if type(value) is dict and all(map(is_plain_key, value)) and all(map(is_plain_key, self._given)):
                moved = self._moved_dict(value, path, where)
                if moved is not None:
                    return moved
        before = self._codec.stored(self._value(), where) if self._stored is None else self._stored
        return copy_of(self._codec, value, packed), diff(before, self._codec.stored(value, where), path)

    def _added(self, value: list[Any], first: int, path: str, where: str) -> Delta:
        return [
            {"op": "add", "path": f"{path}/{i}", "value": self._codec.stored(value[i], f"{where}[{i}]")}
            for i in range(first, len(value))
        ]

    def _moved_list(self, value: list[Any], path: str, where: str) -> tuple[ChannelCopy, Delta]:
        given, own, same = self._given, self._own, self._is_same
        shorter = min(len(given), len(value))
        head = self._unchanged(value)
        while head < shorter and same(value[head], given[head], own[head]):
            head += 1
        tail = 0
        while tail < shorter - head and same(value[-1 - tail], given[-1 - tail], own[-1 - tail]):
            tail += 1
        before, after = own[head : len(own) - tail], value[head : len(value) - tail]
        store, copy = self._codec.stored, self._codec.copied
        old = [store(item, where) for item in before]
        new = [store(item, f"{where}[{head + i}]") for i, item in enumerate(after)]
        fresh = ChannelCopy(self._codec)
        fresh._own, fresh._given = [*own[:head], *map(copy, after), *own[len(own) - tail :]], list(value)
        return fresh, [_shifted(op, path, head) for op in diff(old, new)]

    def _unchanged(self, value: list[Any]) -> int:
        """How many items are there, if all are messages that are as they were, and none is gone. Else 0: that is seen
        one by one."""
        given = self._given
        if len(value) < len(given) or not all(map(operator.is_, given, value)):
            return 0
        fields = self._codec.fields_of(given)
        return len(given) if fields is not None and fields == self._codec.fields_of(self._own) else 0

    def _moved_dict(self, value: dict[str, Any], path: str, where: str) -> tuple[ChannelCopy, Delta] | None:
        given, own = self._given, self._own
        kept = [key for key in own if key in value]
        if [*kept, *(key for key in value if key not in own)] != list(value):
            return None  # in another order, which a patch would not tell
        ops: Delta = [{"op": "remove", "path": f"{path}/{escape(key)}"} for key in own if key not in value]
        copies: dict[str, Any] = {}
        for key, item in value.items():
            if key in own and key in given and self._is_same(item, given[key], own[key]):
                copies[key] = own[key]
                continue
            place, named = f"{path}/{escape(key)}", f"{where}.{key}"
            after = self._codec.stored(item, named)
            if key in own:
                ops += diff(self._codec.stored(own[key], named), after, place)
            else:
                ops.append({"op": "add", "path": place, "value": after})
            copies[key] = self._codec.copied(item)
        fresh = ChannelCopy(self._codec)
        fresh._own, fresh._given = copies, dict(value)
        return fresh, ops

    def _is_same(self, item: Any, given: Any, own: Any) -> bool:
        return item is given and self._codec.is_same(item, own)


def new_channel(codec: ValueCodec, value: Any, path: str, where: str) -> tuple[ChannelCopy, Delta]:
    """The copy of a channel's first value, and the operation that stores it."""
    op = {"op": "add", "path": path, "value": codec.stored(value, where)}
    return copy_of(codec, value, _packed(value)), [op]


def copy_of(codec: ValueCodec, value: Any, packed: bytes | None) -> ChannelCopy:
    fresh = ChannelCopy(codec)
    if packed is not None:
        fresh._packed, fresh._took = packed, len(value)
    else:
        fresh._own, fresh._given = codec.copied(value), _shallow(value)
    return fresh


def _packed(value: Any) -> bytes | None:
    """The items of a list one after another, if they are plain data that comes back as it was."""
    if type(value) is not list:
        return None
    try:
        packed: bytes = ormsgpack.packb(value, option=_ONLY_PLAIN)
        return packed[len(_head(len(value))) :]
    except (TypeError, ValueError):
        return None


def _head(count: int) -> bytes:
    """How a list of so many items begins, in MessagePack."""
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")


def _shallow(value: Any) -> Any:
    return list(value) if type(value) is list else dict(value) if type(value) is dict else None


def _shifted(op: dict[str, Value], path: str, by: int) -> dict[str, Value]:
    """An operation on a part of a list, as one on the whole."""
    index, slash, rest = op["path"][1:].partition("/")
    return {**op, "path": f"{path}/{int(index) + by}{slash}{rest}"}
