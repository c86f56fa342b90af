"""Two states held against each other by what they say, not by where it was recorded."""

from __future__ import annotations

from collections.abc import Iterator

from wakelog.model.values import Value
from wakelog.state.diff import diff
from wakelog.state.patch import equal, escape, tokens_of

_PLACES = frozenset({"seq", "turn", "last", "evidence", "trust"})
_BY_NAME = ("labels", "facts", "artefacts")
_IN_ORDER = ("decisions_made", "dead_ends")


def differing_keys(recorded: dict[str, Value], replayed: dict[str, Value]) -> tuple[str, ...]:
    """Pointers to what is different in goal, labels, facts, decisions, dead ends, artefacts and data. What was erased
    since can no longer be compared."""
    return tuple(dict.fromkeys(_differing(recorded, replayed)))


def _differing(a: dict[str, Value], b: dict[str, Value]) -> Iterator[str]:
    if not _same(a["goal"], b["goal"]):
        yield "/goal"
    for part in _BY_NAME:
        for name in dict.fromkeys((*a[part], *b[part])):
            if name not in a[part] or name not in b[part] or not _same(_said(a[part][name]), _said(b[part][name])):
                yield f"/{part}/{escape(name)}"
    for part in _IN_ORDER:
        one, two = (list(map(_said, state[part].values())) for state in (a, b))
        for n in range(max(len(one), len(two))):
            if n >= len(one) or n >= len(two) or not _same(one[n], two[n]):
                keys = list(b[part]) if n < len(two) else list(a[part])
                yield f"/{part}/{escape(keys[n])}"
    for op in diff(a["data"], b["data"], "/data"):
        if not _is_erased(op, a):
            yield op["path"]


def _said(entry: Value) -> Value:
    return {k: v for k, v in entry.items() if k not in _PLACES} if type(entry) is dict else entry


def _same(a: Value, b: Value) -> bool:
    if type(a) is dict and "$erased" in a:
        return True
    if type(a) is dict and type(b) is dict:
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if type(a) is list and type(b) is list:
        return len(a) == len(b) and all(map(_same, a, b))
    return equal(a, b)


def _is_erased(op: dict[str, Value], recorded: dict[str, Value]) -> bool:
    node: Value = recorded
    for token in tokens_of(op["path"]):
        if type(node) is dict and "$erased" in node:
            return True
        if type(node) is dict and token in node:
            node = node[token]
        elif type(node) is list and token.isdigit() and int(token) < len(node):
            node = node[int(token)]
        else:
            return False
    return type(node) is dict and "$erased" in node
