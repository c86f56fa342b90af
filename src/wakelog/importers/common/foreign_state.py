"""The state that a program tells of as it goes: a snapshot, and changes of it as JSON Patch.

A change is applied here first, so that what reaches the log is a delta that fits the state there. One that does not fit
changes nothing: its record keeps it as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wakelog.errors import WakelogError
from wakelog.importers.steps import StateDeltaStep
from wakelog.model.values import Value
from wakelog.state.patch import escape, resolve

_FIELDS = ("op", "path", "from", "value")


class ForeignState:
    """What the program's state is so far. It is the session's own part of the state, too."""

    def __init__(self) -> None:
        self._doc: Value = {}

    def put(self, key: str, value: Value) -> Iterator[StateDeltaStep]:
        """A part of the state is now this."""
        yield from self._take([{"op": "add", "path": f"/{escape(key)}", "value": value}])

    def patch(self, changes: Any, under: str = "") -> Iterator[StateDeltaStep]:
        """A change of the part `under`; nothing where it does not fit."""
        if not isinstance(changes, list) or not changes:
            return
        prefix = f"/{escape(under)}" if under else ""
        patch = []
        for change in changes:
            if not isinstance(change, dict) or not isinstance(change.get("path"), str):
                return
            op = {k: v for k, v in change.items() if k in _FIELDS}
            for pointer in ("path", "from"):
                if isinstance(op.get(pointer), str):
                    op[pointer] = prefix + op[pointer]
            patch.append(op)
        yield from self._take(patch)

    def _take(self, patch: list[dict[str, Any]]) -> Iterator[StateDeltaStep]:
        try:
            doc, delta = resolve(self._doc, patch)
        except WakelogError:
            return
        if isinstance(doc, dict) and delta and all(op["path"] for op in delta):
            self._doc = doc
            yield StateDeltaStep(delta)
