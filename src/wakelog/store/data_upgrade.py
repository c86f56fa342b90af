"""A session's own data that was written as another type or version, brought to the one it is opened with."""

from __future__ import annotations

from typing import Any

from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.session.data import LABEL
from wakelog.state.diff import diff


def bring_forward(session: Session[Any]) -> None:
    """Checks an existing session's data against the type it is opened with, and migrates older data."""
    data_type = session._data_type
    if data_type.kind is None:
        return
    state = session.log.state()
    written_as = state["labels"].get(LABEL, "")
    if written_as == data_type.label:
        data_type.load(state["data"])
        return
    value = data_type.migrate(state["data"], written_as)
    data_type.load(value)
    patch = diff(state["data"], value, "/data")
    why = f"data brought from {written_as or 'untyped'} to {data_type.label}"
    changes: list[ev.Event] = [ev.LabelsSet(labels={LABEL: data_type.label}, why=why)]
    if patch:
        changes.insert(0, ev.StatePatched(patch=patch, why=why))
    session.append(*(EventDraft(change, actor="runtime") for change in changes), expect=session.head.seq)
