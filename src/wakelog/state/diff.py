"""The difference of two documents, as a delta that turns one into the other.

Objects are compared key by key. Lists are compared by their common head and tail, and the items between are removed and
added: short, always correct, and linear. `apply(a, diff(a, b)) == b` holds for all values, with 1, true and 1.0 apart.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wakelog.model.values import Value
from wakelog.native import core
from wakelog.state.patch import Delta, equal, escape

_encode = msgspec.json.Encoder().encode


def diff(a: Value, b: Value, path: str = "") -> Delta:
    """The stored delta from `a` to `b`; empty when they are equal."""
    out: Delta = []
    _diff(a, b, path, out)
    return out


def _diff(a: Value, b: Value, path: str, out: Delta) -> None:
    if a is b:
        return
    if type(a) is dict and type(b) is dict:
        for key in a:
            if key not in b:
                out.append({"op": "remove", "path": f"{path}/{escape(key)}"})
        for key, value in b.items():
            if key in a:
                if a[key] is value:
                    continue  # two states that follow each other share most of what they hold
                _diff(a[key], value, f"{path}/{escape(key)}", out)
            else:
                out.append({"op": "add", "path": f"{path}/{escape(key)}", "value": value})
    elif type(a) is list and type(b) is list:
        _diff_list(a, b, path, out)
    elif not equal(a, b):
        out.append({"op": "replace", "path": path, "value": b})


def diff_lists(a: list[Value], b: list[Value], path: str, first: int) -> Delta:
    """The delta between the ends of two lists, `a` and `b`, that come after `first` items which are the same."""
    out: Delta = []
    _diff_list(a, b, path, out, first)
    return out


def _diff_list(a: list[Value], b: list[Value], path: str, out: Delta, first: int = 0) -> None:
    shorter = min(len(a), len(b))
    head = common_head(a, b) if core is not None else 0
    while head < shorter and _is_same(a[head], b[head]):
        head += 1
    tail = 0
    while tail < shorter - head and _is_same(a[-1 - tail], b[-1 - tail]):
        tail += 1
    middle_a, middle_b = a[head : len(a) - tail], b[head : len(b) - tail]
    paired = min(len(middle_a), len(middle_b))
    head += first
    for i in range(paired):
        _diff(middle_a[i], middle_b[i], f"{path}/{head + i}", out)
    for i in range(len(middle_a) - 1, paired - 1, -1):
        out.append({"op": "remove", "path": f"{path}/{head + i}"})
    for i in range(paired, len(middle_b)):
        out.append({"op": "add", "path": f"{path}/{head + i}", "value": middle_b[i]})


def _is_same(a: Value, b: Value) -> bool:
    """Equality of two items of a list. Most are the same, and then their bytes are: that is ten times faster to see
    than by walking through both. Bytes that differ may still be the same object with its keys in another order."""
    if a is b:
        return True
    if type(a) is dict or type(a) is list:
        return (type(a) is type(b) and _encode(a) == _encode(b)) or equal(a, b)
    return equal(a, b)


def common_head_in_python(a: list[Value], b: list[Value]) -> int:
    """How many items two lists have in common at their start. An item that is no JSON value is not."""
    return next((place for place, pair in enumerate(zip(a, b, strict=False)) if not equal(*pair)), min(len(a), len(b)))


common_head: Callable[[list[Value], list[Value]], int] = common_head_in_python if core is None else core.common_head
