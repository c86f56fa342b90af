"""JSON Patch (RFC 6902): the form of every delta.

A stored delta uses `add`, `remove` and `replace` only, with resolved indices, so that any reader can fold it and any
delta can be inverted. What people write may use all six operations and `-`: `resolve` turns that into a stored delta.
Types are compared strictly: 1, true and 1.0 are three values.
"""

from __future__ import annotations

from typing import Any, Final

from wakelog.errors import InvalidInputError
from wakelog.model.values import Value

Op = dict[str, Value]
Delta = list[Op]
_CONTAINERS = frozenset((dict, list))
MISSING: Final = object()
"""Stands for "nothing there" where None is a value."""


def escape(token: str) -> str:
    """A key as one token of a JSON Pointer."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


def tokens_of(pointer: str) -> list[str]:
    """The tokens of a JSON Pointer, unescaped."""
    if not pointer:
        return []
    if pointer[0] != "/":
        raise _refusal(pointer, "a pointer is empty or starts with /")
    tokens = pointer.split("/")
    del tokens[0]
    if "~" in pointer:
        for i, token in enumerate(tokens):
            if "~" in token:
                rest = token.replace("~0", "").replace("~1", "")
                if "~" in rest:
                    raise _refusal(pointer, "~ must be written ~0")
                tokens[i] = token.replace("~1", "/").replace("~0", "~")
    return tokens


def apply_op(doc: dict[str, Value], tokens: list[str], op: Op) -> Op:
    """Applies one stored operation to `doc` in place and returns its inverse. Root replacement keeps `doc` itself."""
    name = op["op"]
    if name not in ("add", "remove", "replace"):
        raise _refusal(op["path"], f"{name!r} is not an operation of a stored delta")
    if not tokens:
        old = dict(doc)
        _replace_root(doc, op)
        return {"op": "replace", "path": "", "value": old}
    parent: Value = doc
    for token in tokens[:-1]:
        parent = _child(parent, token, tokens)
    key, path = tokens[-1], op["path"]
    if type(parent) is dict:
        old = parent.get(key, MISSING)
        if name == "remove":
            if old is MISSING:
                raise _refusal(path, "there is nothing to remove")
            del parent[key]
            return {"op": "add", "path": path, "value": old}
        if name == "replace" and old is MISSING:
            raise _refusal(path, "there is nothing to replace")
        parent[key] = op["value"]
        if old is MISSING:
            return {"op": "remove", "path": path}
        return {"op": "replace", "path": path, "value": old}
    if type(parent) is list:
        index = _index(key, path)
        if name == "add":
            if index > len(parent):
                raise _refusal(path, f"the list has {len(parent)} items")
            parent.insert(index, op["value"])
            return {"op": "remove", "path": path}
        if index >= len(parent):
            raise _refusal(path, f"the list has {len(parent)} items")
        old = parent[index]
        if name == "remove":
            del parent[index]
            return {"op": "add", "path": path, "value": old}
        parent[index] = op["value"]
        return {"op": "replace", "path": path, "value": old}
    raise _refusal(path, "its parent is neither an object nor a list")


def _replace_root(doc: dict[str, Value], op: Op) -> None:
    value = op.get("value")
    if op["op"] == "remove" or type(value) is not dict:
        raise _refusal("", "the whole document can only be replaced by an object")
    doc.clear()
    doc.update(value)


def _child(node: Value, token: str, tokens: list[str]) -> Value:
    if type(node) is dict:
        if token in node:
            return node[token]
    elif type(node) is list:
        index = _index(token, "/" + "/".join(tokens))
        if index < len(node):
            return node[index]
    raise _refusal("/" + "/".join(map(escape, tokens)), f"{token!r} is not there")


def _index(token: str, path: str) -> int:
    if token.isascii() and token.isdigit() and (token == "0" or token[0] != "0"):
        return int(token)
    raise _refusal(path, f"{token!r} is not a list index")


def _refusal(path: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"the patch does not fit the document at {path!r}: {why}", kind="bad-patch")


def child_of(node: Value, token: str) -> Value:
    """What one token of a pointer leads to; MISSING when nothing is there."""
    if type(node) is dict:
        return node.get(token, MISSING)
    if type(node) is list and token.isascii() and token.isdigit() and int(token) < len(node):
        return node[int(token)]
    return MISSING


def get(doc: Value, pointer: str) -> Value:
    """The value at a pointer, or InvalidInputError."""
    node = doc
    tokens = tokens_of(pointer)
    for token in tokens:
        node = _child(node, token, tokens)
    return node


def resolve(doc: Value, patch: list[dict[str, Any]]) -> tuple[Value, Delta]:
    """Applies any RFC 6902 patch to a copy of `doc`; returns the result and the same change as a stored delta.

    All or nothing: an operation that does not fit, or a `test` that fails, raises and changes nothing.
    """
    if type(patch) is not list:
        raise InvalidInputError("a JSON Patch is a list of operations", kind="bad-patch")
    # The document is held in a one-key object, so that the root is a member like any other.
    held = {"doc": copy(doc)}
    delta: Delta = []
    for op in patch:
        for step in _resolve_op(held["doc"], op):
            tokens = ["doc", *tokens_of(step["path"])]
            apply_op(held, tokens, {**step, "value": copy(step.get("value"))})
            delta.append(step)
    return held["doc"], delta


def _resolve_op(doc: Value, op: Any) -> Delta:
    if type(op) is not dict or type(op.get("op")) is not str or type(op.get("path")) is not str:
        raise InvalidInputError(f"{op!r} is not a patch operation: it needs op and path", kind="bad-patch")
    name, path = op["op"], op["path"]
    if name in ("add", "replace", "test") and "value" not in op:
        raise _refusal(path, f"{name} needs a value")
    if name == "test":
        if not equal(get(doc, path), op["value"]):
            raise _refusal(path, "the tested value differs")
        return []
    if name == "remove":
        return [{"op": "remove", "path": path}]
    if name in ("add", "replace"):
        if name == "replace":
            get(doc, path)
        return [{"op": name, "path": _resolved(doc, path) if name == "add" else path, "value": op["value"]}]
    if name in ("move", "copy"):
        return _resolve_move(doc, name, path, op.get("from"))
    raise _refusal(path, f"{name!r} is not an operation")


def _resolve_move(doc: Value, name: str, path: str, origin: Any) -> Delta:
    if type(origin) is not str:
        raise _refusal(path, f"{name} needs from")
    value = get(doc, origin)
    if name == "copy":
        return [{"op": "add", "path": _resolved(doc, path), "value": copy(value)}]
    if path == origin:
        return []
    if tokens_of(path)[: len(tokens_of(origin))] == tokens_of(origin):
        raise _refusal(path, "a value cannot be moved into itself")
    removed = {"op": "remove", "path": origin}
    without, _ = resolve(doc, [removed])
    return [removed, {"op": "add", "path": _resolved(without, path), "value": copy(value)}]


def _resolved(doc: Value, path: str) -> str:
    """`path` with a final `-` turned into the index it stands for."""
    if path.endswith("/-"):
        parent = get(doc, path[:-2])
        if type(parent) is list:
            return f"{path[:-1]}{len(parent)}"
    return path


def equal(a: Value, b: Value) -> bool:
    """Equality of JSON values by type and content; Python's == takes 1, True and 1.0 for the same."""
    if a is b:
        return True  # no value differs from itself: there is no NaN
    if type(a) is not type(b):
        return False
    if type(a) is dict:
        return a.keys() == b.keys() and all(equal(v, b[k]) for k, v in a.items())
    if type(a) is list:
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


def copy(value: Value) -> Value:
    """A deep copy."""
    # Most values hold no others: only those that do are visited.
    if type(value) is dict:
        copied = value.copy()
        for key, held in value.items():
            if type(held) in _CONTAINERS:
                copied[key] = copy(held)
        return copied
    if type(value) is list:
        return [copy(held) if type(held) in _CONTAINERS else held for held in value]
    return value
