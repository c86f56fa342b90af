"""Changes of the state while events are sealed: folded in, and encoded for the record of their event.

`StateChanges` is the specification: it collects operations, encodes them, and folds them with `Fold.apply`. The native
core (`core/src/changes.rs`) has the same methods. It changes the document and writes the bytes as it is called, and
builds no operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from wakelog.codec.records import encode_delta
from wakelog.model.values import Value
from wakelog.native import core
from wakelog.state.digest import DEPTHS
from wakelog.state.fold import Fold, Undo
from wakelog.state.patch import MISSING, Delta, escape


class DeltaWriter(Protocol):
    """Where effects write their changes. A path is given by its tokens, unescaped."""

    def put(self, *path_and_value: Any) -> None:
        """Sets the value, the last argument, at the path before it."""
        ...

    def remove(self, *path: str) -> None: ...

    def extend(self, ops: Delta) -> None:
        """Operations of a stored delta, as they are."""
        ...


class DeltaList:
    """Collects operations."""

    def __init__(self) -> None:
        self.ops: Delta = []

    def put(self, *path_and_value: Value) -> None:
        # In an object, RFC 6902's add also replaces: one operation says "this is now the value".
        self.ops.append({"op": "add", "path": _pointer(path_and_value[:-1]), "value": path_and_value[-1]})

    def remove(self, *path: str) -> None:
        self.ops.append({"op": "remove", "path": _pointer(path)})

    def extend(self, ops: Delta) -> None:
        self.ops.extend(ops)


def _pointer(path: Sequence[str]) -> str:
    pointer = "/" + "/".join(path)
    is_plain = "~" not in pointer and pointer.count("/") == len(path)  # as most paths are
    return pointer if is_plain else "/" + "/".join(map(escape, path))


class StateChanges(DeltaList):
    """Collects the changes of one event, then encodes and folds them; then those of the next event."""

    def __init__(self, fold: Fold, undo: Undo) -> None:
        """How to undo the changes is added to `undo`."""
        super().__init__()
        self._fold, self._undo = fold, undo

    def finish(self) -> bytes:
        """Folds the event's changes in, and returns them as its stored delta; empty where it has none."""
        ops, self.ops = self.ops, []
        if not ops:
            return b""
        stored = encode_delta(ops)  # before it is folded: what it holds becomes part of the state
        self._fold.apply(ops, self._undo)
        return stored


def _open_native(fold: Fold, undo: Undo) -> StateChanges:
    return core.StateChanges(fold, undo, DEPTHS, MISSING, encode_delta)  # type: ignore[no-any-return]


open_changes: Callable[[Fold, Undo], StateChanges] = StateChanges if core is None else _open_native
