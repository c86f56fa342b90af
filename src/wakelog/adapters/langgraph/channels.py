"""What changed in a channel since the checkpoint before, as operations on the session's data.

A checkpoint comes with the whole value of every channel, and a conversation of a thousand messages comes a thousand
times. So this process keeps a copy of each value it has seen, and which objects it was made from: an item that is the
same object, and still equal to its copy, needs no look inside. Everything else is compared in its stored form.
"""

from __future__ import annotations

from typing import Any

from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.importers.langgraph_values import is_plain_key
from wakelog.model.values import Value
from wakelog.state.diff import diff
from wakelog.state.patch import Delta, escape

_UNREAD = object()


class ChannelCopy:
    """A channel's value as it is in the log: in its stored form until somebody wants to have it."""

    __slots__ = ("_codec", "_given", "_own", "_stored")

    def __init__(self, codec: ValueCodec, stored: Value = None, own: Any = _UNREAD, given: Any = None) -> None:
        self._codec = codec
        self._stored = stored
        self._own = own
        self._given = given
        """The value that the graph has, its items by identity: a list or dict of the same objects."""

    def own(self) -> Any:
        if self._own is _UNREAD:
            self._own, self._stored = self._codec.revived(self._stored), None
        return self._own

    def stored(self, where: str) -> Value:
        return self._stored if self._own is _UNREAD else self._codec.stored(self._own, where)

    def hand_out(self) -> Any:
        """A copy for the graph, remembered so that it is known again when it comes back."""
        value = self._codec.copied(self.own())
        self._given = _shallow(value)
        return value

    def moved_to(self, value: Any, path: str, where: str) -> tuple[ChannelCopy, Delta]:
        """The copy for a new value, and the operations that lead there. This copy stays as it is."""
        if self._given is not None and type(value) is type(self._given) is type(self.own()):
            if type(value) is list:
                return self._moved_list(value, path, where)
            if type(value) is dict and all(map(is_plain_key, value)) and all(map(is_plain_key, self._given)):
                moved = self._moved_dict(value, path, where)
                if moved is not None:
                    return moved
        after = self._codec.stored(value, where)
        return _copy_of(self._codec, value), diff(self.stored(where), after, path)

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
        store, copy = self._codec.stored, self._codec.copied
        old = [store(item, where) for item in before]
        new = [store(item, f"{where}[{head + i}]") for i, item in enumerate(after)]
        kept = [*own[:head], *map(copy, after), *own[len(own) - tail :]]
        return ChannelCopy(self._codec, own=kept, given=list(value)), [_shifted(op, path, head) for op in diff(old, new)]

    def _moved_dict(self, value: dict[str, Any], path: str, where: str) -> tuple[ChannelCopy, Delta] | None:
        given, own = self._given, self._own
        kept = [key for key in own if key in value]
        if [*kept, *(key for key in value if key not in own)] != list(value):
            return None  # in another order, which a patch would not tell
        ops: Delta = [{"op": "remove", "path": f"{path}/{escape(key)}"} for key in own if key not in value]
        fresh: dict[str, Any] = {}
        for key, item in value.items():
            if key in own and key in given and self._is_same(item, given[key], own[key]):
                fresh[key] = own[key]
                continue
            place, named = f"{path}/{escape(key)}", f"{where}.{key}"
            after = self._codec.stored(item, named)
            if key in own:
                ops += diff(self._codec.stored(own[key], named), after, place)
            else:
                ops.append({"op": "add", "path": place, "value": after})
            fresh[key] = self._codec.copied(item)
        return ChannelCopy(self._codec, own=fresh, given=dict(value)), ops

    def _is_same(self, item: Any, given: Any, own: Any) -> bool:
        return item is given and self._codec.is_same(item, own)


def new_channel(codec: ValueCodec, value: Any, path: str, where: str) -> tuple[ChannelCopy, Delta]:
    """The copy of a channel's first value, and the operation that stores it."""
    return _copy_of(codec, value), [{"op": "add", "path": path, "value": codec.stored(value, where)}]


def _copy_of(codec: ValueCodec, value: Any) -> ChannelCopy:
    return ChannelCopy(codec, own=codec.copied(value), given=_shallow(value))


def _shallow(value: Any) -> Any:
    return list(value) if type(value) is list else dict(value) if type(value) is dict else None


def _shifted(op: dict[str, Value], path: str, by: int) -> dict[str, Value]:
    """An operation on a part of a list, as one on the whole."""
    index, slash, rest = op["path"][1:].partition("/")
    return {**op, "path": f"{path}/{int(index) + by}{slash}{rest}"}
