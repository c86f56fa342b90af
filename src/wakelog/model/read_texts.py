"""What a model could read of an event: the fields that hold it, by kind, and the texts in a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wakelog.model.values import Value

READ_FIELDS: Final = {
    "message.added": ("content",),
    "action.succeeded": ("output",),
    "action.failed": ("output", "error"),
    "action.recorded": ("output",),
    "action.reconciled": ("output",),
    "action.evidence": ("output",),
    "turn.started": ("input",),
    "input.answered": ("answer",),
    "subagent.returned": ("output",),
    "history.compacted": ("summary",),
}


def texts_of(value: Value) -> Iterator[str]:
    """All texts in a value, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, dict) and "$erased" not in value:
        for each in value.values():
            yield from texts_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)
