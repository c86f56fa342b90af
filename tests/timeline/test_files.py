"""Which files were changed in the last turns: those in view, and no others."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wakelog
from tests.events_read import note_events_read
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.timeline.files import PAGE, changed_files


def edit(session: wakelog.Session, *paths: str) -> None:
    with session.turn("edit"):
        for path in paths:
            session.files.record(path, "modified", added=2, removed=1)


def paths(session: wakelog.Session, last: int) -> list[str]:
    return [f.path for f in session.files.modified(last).files]


def test_each_file_is_told_once_with_turns_count_and_its_last_event() -> None:
    session = wakelog.open("memory:").session("s")
    edit(session, "a", "b")
    edit(session, "a")
    edit(session, "c")
    found = session.files.modified(5)
    assert found.turns == (1, 2, 3)
    assert [f.path for f in found.files] == ["c", "a", "b"]
    a = found.files[1]
    assert (a.changes, a.turns, a.added, a.removed) == (2, (1, 2), 4, 2)
    assert session.log.entry(a.seq).body["path"] == "a"
    assert paths(session, 1) == ["c"]
    assert paths(session, 2) == ["c", "a"]
    assert [f.path for f in session.files.modified(1, at="@2").files] == ["a"]


def test_turns_that_were_rewound_do_not_count() -> None:
    session = wakelog.open("memory:").session("s")
    for n in range(1, 7):
        edit(session, f"f{n}")
    session.rewind("@2")
    edit(session, "f7")
    assert session.files.modified(2).turns == (2, 7)
    assert paths(session, 2) == ["f7", "f2"]
    assert paths(session, 5) == ["f7", "f2", "f1"]
    assert paths(session, 0) == ["f7", "f2", "f1"]
    session.rewind("@1")
    assert paths(session, 5) == ["f1"]


def test_of_a_retried_turn_only_the_attempt_in_view_counts() -> None:
    session = wakelog.open("memory:").session("s")
    for number, attempt in enumerate(session.attempts(2)):
        with attempt:
            session.files.record(f"try-{number}", "modified")
            if number == 0:
                raise ValueError("again")
    assert paths(session, 0) == paths(session, 5) == ["try-1"]


def test_the_tool_is_that_of_the_call_that_changed_the_file() -> None:
    session = wakelog.open("memory:").session("s")
    with session.turn("edit"):
        session.append(
            ev.ActionRecorded(action="x1", tool="edit_file", effect="write"),
            ev.FileChanged(path="a", change="created", action="x1"),
        )
    assert [(f.tool, f.change) for f in session.files.modified().files] == [("edit_file", "created")]


def test_a_session_without_turns_or_files_has_none_and_files_outside_of_turns_are_in_all() -> None:
    session = wakelog.open("memory:").session("s")
    assert session.files.modified() == changed_files(session.log, 0)
    session.files.record("a", "created")
    assert paths(session, 5) == []
    assert paths(session, 0) == ["a"]


def test_the_last_turns_are_read_without_the_state_and_nothing_older(monkeypatch: Any) -> None:
    session = wakelog.open("memory:").session("s")
    for n in range(200):
        edit(session, f"f{n}")
    read = note_events_read(monkeypatch)
    monkeypatch.setattr(Log, "state", lambda *_: pytest.fail("the state was folded"))
    log = Log(session.log.engine, session.id)
    assert [f.path for f in changed_files(log, 5).files] == ["f199", "f198", "f197", "f196", "f195"]
    oldest = min(read)
    assert oldest > next(e.seq for e in log.entries() if e.header.turn == 196) - 2 * PAGE


@given(st.lists(st.sampled_from(["edit", "rewind", "outside", "fail", "note"]), max_size=8), st.integers(1, 4))
def test_the_last_turns_are_the_same_however_they_are_found(steps: list[str], last: int) -> None:
    """Reading backwards from the end gives the same as using the view."""
    session = wakelog.open("memory:").session("s")
    for n, step in enumerate(steps):
        if step == "rewind":
            session.rewind(f"e{1 + n * 7 % session.head.seq}")
        elif step == "outside":
            session.files.record(f"o{n}", "created")
        elif step == "note":
            session.append(*(ev.FactRecorded(key=str(k), value=k) for k in range(70)))
        else:
            with contextlib.suppress(ValueError), session.turn("edit"):
                session.append(ev.ActionRequested(action=f"x{n}", tool="edit", effect="write"))
                session.append(ev.FileChanged(path=f"f{n % 5}", action=f"x{n - n % 2}"))
                if step == "fail":
                    raise ValueError("no")
    for at in (None, session.head.seq // 2 + 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("wakelog.timeline.files._read_newest_turns", lambda *_: None)
            expected = session.files.modified(last, at=at)
        assert session.files.modified(last, at=at) == expected
