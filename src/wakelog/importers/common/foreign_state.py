"""The state that a program reports: a snapshot, and changes to it as JSON Patch.

Each change is applied here first, so the log only gets deltas that fit its state. A change that does not fit is
dropped; its record still keeps it.
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
    """The program's state so far. It is also the session's own part of the state."""

    def __init__(self) -> None:
        self._doc: Value = {}

    def put(self, key: str, value: Value) -> Iterator[StateDeltaStep]:
        """Sets one key of the state."""
        yield from self._apply([{"op": "add", "path": f"/{escape(key)}", "value": value}])

    def patch(self, changes: Any, under: str = "") -> Iterator[StateDeltaStep]:
        """Applies a JSON Patch to the part `under`. Yields nothing if it does not fit."""
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
        yield from self._apply(patch)

    def _apply(self, patch: list[dict[str, Any]]) -> Iterator[StateDeltaStep]:
        try:
            doc, delta = resolve(self._doc, patch)
        except WakelogError:
            return
        if isinstance(doc, dict) and delta and all(op["path"] for op in delta):
            self._doc = doc
            yield StateDeltaStep(delta)
