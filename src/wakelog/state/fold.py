"""The fold: a state document that moves forward by deltas, and back again when an append fails.

Outside `/data` the document consists of entries (`/facts/deploy`) that are never changed in place: an operation inside
an entry replaces it by a changed copy. Entries are small, so that is cheap, and the digest and the undo list can keep
references to old entries. `/data` can be large and of any shape; the general JSON Patch code changes it in place.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.values import Value
from wakelog.state.digest import DEPTHS, OPEN, Digest, hash_total, total_of
from wakelog.state.patch import MISSING, Delta, Op, apply_op, copy, tokens_of

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Value]).decode

_OPS = frozenset({"add", "remove", "replace"})
_depth_of = DEPTHS.get

Entry = tuple[str, dict[str, Value], str, Value]
"""A change of one entry: its pointer, the map it is in, its key, its former value."""

Undo = list[Entry | Op]
"""How to undo changes: entries with their former values, and inverse operations for the rest."""


class Fold:
    """A working copy of the state. Not for sharing: readers take `copy()`.

    Few callers ask for the state's hash. So the running digest starts at the first question, over the whole document,
    and follows the changes from then on.
    """

    __slots__ = ("_digest", "doc")

    def __init__(self, doc: dict[str, Value] | None = None) -> None:
        self.doc: dict[str, Value] = {} if doc is None else doc
        self._digest: Digest | None = None

    @classmethod
    def load(cls, state: bytes) -> Fold:
        return cls(_decode(state))

    @classmethod
    def onward(cls, doc: dict[str, Value], deltas: Iterable[Delta]) -> Fold:
        """A fold that has moved on from `doc` by `deltas`. `doc` does not change, and the new state shares all entries
        that were not touched: a comparison of the two can skip those."""
        deltas = list(deltas)
        new = dict(doc)
        for part in {tokens[0] for delta in deltas for op in delta if (tokens := tokens_of(op["path"]))}:
            value, depth = new.get(part), _depth_of(part, 2)
            if type(value) is dict and depth > 1:
                # Maps are changed in place and their entries are not, except below `data`.
                new[part] = copy(value) if part == OPEN else dict(value)
                if part != OPEN and depth > 2:
                    new[part] = {key: dict(held) if type(held) is dict else held for key, held in value.items()}
        fold = cls(new)
        for delta in deltas:
            fold.apply(delta)
        return fold

    def dump(self) -> bytes:
        return _encode(self.doc)

    def apply(self, delta: Delta, undo: Undo | None = None) -> Undo:
        """Moves forward; adds how to undo it to `undo` and returns that. A delta that does not fit changes nothing. An
        interrupt may leave it half applied: then drop the fold.

        Values are not copied, they become part of the state: do not use the delta for anything else afterwards.
        """
        undo = [] if undo is None else undo
        start = len(undo)
        doc = self.doc
        touched = None if self._digest is None else self._digest.touched
        try:
            for op in delta:
                path, name = op["path"], op["op"]
                if path[:1] == "/" and "~" not in path:
                    tokens = path.split("/")  # `tokens_of` inlined for plain paths, which most are
                    del tokens[0]
                else:
                    tokens = tokens_of(path)
                depth = _depth_of(tokens[0], 2) if tokens else 1
                if len(tokens) != depth:
                    larger = len(tokens) < depth
                    undo.append(self._apply_in_place(tokens, op) if larger else self._apply_inside(tokens, depth, op))
                    continue
                parent = doc if depth == 1 else doc[tokens[0]] if depth == 2 else doc[tokens[0]][tokens[1]]
                key = tokens[-1]
                old = parent.get(key, MISSING)
                if name != "add" and (name not in _OPS or old is MISSING):
                    apply_op(doc, tokens, op)  # raises: no such operation, or nothing to remove or replace
                if touched is not None:
                    touched.setdefault(path, (parent, key, old))
                if name == "remove":
                    del parent[key]
                else:
                    parent[key] = op["value"]
                undo.append((path, parent, key, old))
        except (KeyError, AttributeError, TypeError) as exc:
            self.undo(undo, start)
            raise InvalidInputError(f"the delta does not fit the state: {exc!r}", kind="bad-patch") from exc
        except Exception:
            self.undo(undo, start)
            raise
        return undo

    def _apply_inside(self, tokens: list[str], depth: int, op: Op) -> Entry:
        """An operation inside an entry."""
        parent = self.doc
        for token in tokens[: depth - 1]:
            parent = parent[token]
        key = tokens[depth - 1]
        old = parent.get(key, MISSING)
        held = {} if old is MISSING else {key: _copied_along(old, tokens, depth)}
        apply_op(held, tokens[depth - 1 :], op)
        pointer = "/".join(op["path"].split("/")[: depth + 1])
        if self._digest is not None:
            self._digest.touched.setdefault(pointer, (parent, key, old))
        parent[key] = held[key]
        return pointer, parent, key, old

    def _apply_in_place(self, tokens: list[str], op: Op) -> Op:
        """An operation on something larger than an entry."""
        doc, digest = self.doc, self._digest
        if digest is None:
            return apply_op(doc, tokens, op)
        if not tokens or tokens[0] != OPEN:
            digest.settle()
        digest.count(doc, tokens, -1)
        try:
            return apply_op(doc, tokens, op)
        finally:
            digest.count(doc, tokens, +1)

    def undo(self, undo: Undo, start: int = 0) -> None:
        """Undoes what `apply` noted in `undo` from `start` on."""
        while len(undo) > start:
            step = undo.pop()
            if isinstance(step, dict):
                self._apply_in_place(tokens_of(step["path"]), step)
                continue
            pointer, parent, key, old = step
            if self._digest is not None:
                self._digest.touched.setdefault(pointer, (parent, key, parent.get(key, MISSING)))
            if old is MISSING:
                parent.pop(key, None)
            else:
                parent[key] = old

    def total(self) -> int:
        """The sum of the document's leaves (digest.py)."""
        if self._digest is None:
            self._digest = Digest(total_of(self.doc))
        return self._digest.total()

    def state_hash(self) -> str:
        return hash_total(self.total())

    def copy(self) -> dict[str, Value]:
        """A deep copy of the document."""
        return copy(self.doc)  # type: ignore[no-any-return]


def _copied_along(value: Value, tokens: list[str], at: int) -> Value:
    """A copy of an entry that can be changed at the path `tokens[at:]`: only the containers on that path are copied."""
    if type(value) is not dict:
        return copy(value)
    value = dict(value)
    if at + 1 < len(tokens) and (key := tokens[at]) in value:
        value[key] = _copied_along(value[key], tokens, at + 1)
    return value


FLOOR_BYTES = 32 * 1024
FACTOR = 2


def is_due(bytes_since: int, last_size: int) -> bool:
    """Whether a snapshot is worth taking: the record bytes since the last one exceed twice its size, with a floor.

    Then snapshots never cost more than half of what the records cost, and reading the state at any point costs at most
    the state and twice its size in records.
    """
    return bytes_since > max(FACTOR * last_size, FLOOR_BYTES)
