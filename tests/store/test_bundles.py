"""Importing bundles: what is new here, and what stays unchanged."""

import io
from pathlib import Path
from typing import Any

import pytest

import wakelog
from wakelog.errors import ConflictError
from wakelog.session import Session
from wakelog.store import Store


@pytest.fixture
def source() -> Store:
    return wakelog.open("memory:")


@pytest.fixture
def session(source: Store) -> Session[Any]:
    session = source.session("s", goal="find out")
    session.fact("k", 1)
    return session


def _bundle(session: Session[Any]) -> io.BytesIO:
    out = io.BytesIO()
    assert session.export_bundle(out).seq == session.head.seq
    return io.BytesIO(out.getvalue())


def test_import_tells_what_was_new(session: Session[Any], tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "there") as there:
        first = there.import_bundle(_bundle(session))
        assert (first.head.session, first.head.name, first.new_events) == (session.id, "s", session.head.seq)
        session.fact("k", 2)
        assert there.import_bundle(_bundle(session)).new_events == 1
        assert there.import_bundle(_bundle(session)).new_events == 0
        assert there.resume("s").state().facts["k"].value == 2


def test_dry_run_tells_the_same_and_writes_nothing(session: Session[Any]) -> None:
    there = wakelog.open("memory:")
    found = there.import_bundle(_bundle(session), dry_run=True)
    assert found.new_events == session.head.seq
    assert list(there.sessions()) == []
    there.import_bundle(_bundle(session))
    session.fact("k", 2)
    assert there.import_bundle(_bundle(session), dry_run=True).new_events == 1
    assert there.resume("s").head.seq == session.head.seq - 1


@pytest.mark.parametrize("dry_run", [True, False])
def test_session_that_went_another_way_is_a_conflict(session: Session[Any], dry_run: bool) -> None:
    there = wakelog.open("memory:")
    there.import_bundle(_bundle(session))
    there.resume("s").fact("k", "here")
    session.fact("k", "there")
    with pytest.raises(ConflictError):
        there.import_bundle(_bundle(session), dry_run=dry_run)


def test_name_that_is_taken_stays_with_its_session(session: Session[Any]) -> None:
    there = wakelog.open("memory:")
    own = there.session("s").id
    found = there.import_bundle(_bundle(session))
    assert session.id in found.warning
    assert there.find("s") == own
    assert there.resume(session.id).state().facts["k"].value == 1
