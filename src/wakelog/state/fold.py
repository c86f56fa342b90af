"""The fold: a state document that moves forward by deltas, and back again when an append comes to nothing.

Outside `/data` the document is made of entries (`/facts/deploy`) that are values: an operation inside one puts a
changed copy in its place. Entries are small, so that is cheap, and it lets the digest and the way back keep plain
references to what was there. `/data` can be large and of any shape; it is changed in place by the general JSON Patch
code.
"""

from __future__ import annotations

import msgspec

from wakelog.model.values import Value
from wakelog.state.digest import MISSING, OPEN, WIDTH_BYTES, Digest, entry_depth, hash_total, total_of
from wakelog.state.patch import Delta, Op, apply_op, copy, tokens_of

_encode = msgspec.json.Encoder().encode

Undo = list[tuple[tuple[str, ...], Value] | Op]
"""The way back: entries with their former value, and inverse operations for the rest."""


class Fold:
    """A working copy of the state with its running digest. Not for sharing: whoever reads takes `copy()`."""

    __slots__ = ("_digest", "doc")

    def __init__(self, doc: dict[str, Value] | None = None, total: int = 0) -> None:
        self.doc: dict[str, Value] = {} if doc is None else doc
        self._digest = Digest(total_of({}) if doc is None else total)

    @classmethod
    def load(cls, state: bytes, total: bytes) -> Fold:
        """From a snapshot's two parts."""
        return cls(msgspec.json.decode(state), int.from_bytes(total, "little"))

    def dump(self) -> tuple[bytes, bytes]:
        """The two parts of a snapshot."""
        return _encode(self.doc), self.total().to_bytes(WIDTH_BYTES, "little")

    def apply(self, delta: Delta) -> Undo:
        """Moves forward; returns the way back. A delta that does not fit changes nothing.

        Values are taken over, not copied: the delta must not be used for anything else afterwards.
        """
        undo: Undo = []
        try:
            for op in delta:
                tokens = tokens_of(op["path"])
                if tokens and len(tokens) >= (depth := entry_depth(tokens[0])):
                    undo.append(self._apply_entry(tokens, depth, op))
                else:
                    undo.append(self._apply_in_place(tokens, op))
        except Exception:
            self.undo(undo)
            raise
        return undo

    def _apply_entry(self, tokens: list[str], depth: int, op: Op) -> tuple[tuple[str, ...], Value]:
        name = op["op"]
        entry = tuple(tokens[:depth])
        parent = self._parent(entry, op)
        key = entry[-1]
        old = parent.get(key, MISSING)
        if len(tokens) > depth:
            held = {key: copy(old)} if old is not MISSING else {}
            apply_op(held, tokens[depth - 1 :], op)
            new = held[key]
        elif name == "remove":
            apply_op(parent, [key], op)  # raises when there is nothing
            new = MISSING
        else:
            if name == "replace" and old is MISSING:
                apply_op(parent, [key], op)  # raises
            new = op["value"]
        if new is not MISSING:
            parent[key] = new
        self._digest.touch(entry, old, new)
        return entry, old

    def _parent(self, entry: tuple[str, ...], op: Op) -> dict[str, Value]:
        node: Value = self.doc
        for token in entry[:-1]:
            node = node.get(token) if type(node) is dict else None
        if type(node) is not dict:
            apply_op(self.doc, list(entry), op)  # raises the right error
        return node  # type: ignore[no-any-return]

    def _apply_in_place(self, tokens: list[str], op: Op) -> Op:
        doc, digest = self.doc, self._digest
        if not tokens or tokens[0] != OPEN:
            digest.settle()
        digest.count(doc, tokens, -1)
        try:
            return apply_op(doc, tokens, op)
        finally:
            digest.count(doc, tokens, +1)

    def undo(self, undo: Undo) -> None:
        """Takes back what `apply` did, given what it returned."""
        for step in reversed(undo):
            if isinstance(step, dict):
                self._apply_in_place(tokens_of(step["path"]), step)
                continue
            entry, old = step
            parent = self._parent(entry, {})
            new = parent.get(entry[-1], MISSING)
            if old is MISSING:
                parent.pop(entry[-1], None)
            else:
                parent[entry[-1]] = old
            self._digest.touch(entry, new, old)

    def total(self) -> int:
        """The digest's sum, from which another fold of the same document can go on."""
        return self._digest.total()

    def state_hash(self) -> str:
        return hash_total(self.total())

    def copy(self) -> dict[str, Value]:
        """The document as a value of its own."""
        return copy(self.doc)  # type: ignore[no-any-return]
