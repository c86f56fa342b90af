"""The kinds: a closed core, each a class of its own."""

import re

import msgspec
import pytest

from tests.every import every
from wakelog.model import events as ev
from wakelog.model.events import KINDS


@every("kind", sorted(KINDS))
def test_a_kind_is_two_plain_words_and_knows_its_class(kind: str) -> None:
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", kind)
    assert KINDS[kind].kind == kind


def test_every_event_class_is_in_the_core() -> None:
    classes = {
        value
        for value in vars(ev).values()
        if isinstance(value, type) and issubclass(value, ev.Event) and value not in (ev.Event, ev.Foreign)
    }
    assert classes == set(KINDS.values())
    assert len(classes) == len(KINDS)


@every("kind", sorted(KINDS))
def test_payload_fields_are_fields(kind: str) -> None:
    names = {field.name for field in msgspec.structs.fields(KINDS[kind])}
    assert set(KINDS[kind].payload_fields) <= names
    assert {"why", "occurred_at"} <= names
    assert "delta" not in names, "the body's delta would hide it"


def test_events_are_values() -> None:
    assert ev.NoteAdded(text="a") == ev.NoteAdded(text="a")
    with pytest.raises(AttributeError):
        ev.NoteAdded(text="a").text = "b"  # type: ignore[misc]
