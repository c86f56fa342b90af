"""The audit lists what was done to a record, by whom and why; the fleet lists sessions that need a person."""

from pathlib import Path
from typing import Any

import pytest

import wakelog
from wakelog import events as ev
from wakelog.cli.demo import build
from wakelog.maintenance.audit import audit_session
from wakelog.maintenance.holds import find_holds, lift_hold, list_holds, place_hold
from wakelog.maintenance.live_sessions import find_live
from wakelog.session import Session
from wakelog.store import Store


@pytest.fixture
def store() -> Any:
    with wakelog.open("memory:") as store:
        yield store


@pytest.fixture
def session(store: Store) -> Session[Any]:
    session = store.session("work")
    with session.turn(user="go"):
        session.fact("k", "v")
        session.fact("l", "w")
    return session


def test_an_erasure_is_told_with_who_did_it_why_and_to_which_events(store: Store, session: Session[Any]) -> None:
    target = next(e.seq for e in session.events(kind="fact"))
    store.erase(session, [target], why="a name was in it", by="dpo")
    entry = next(e for e in audit_session(store, session).entries if e.concern == "removal")
    assert (entry.by, entry.why, entry.events) == ("dpo", "a name was in it", (target,))


def test_a_hold_is_told_while_it_stands_and_that_it_was_lifted_after(store: Store, session: Session[Any]) -> None:
    session.label({"team": "a"})
    place_hold(session, "case 7")
    found = audit_session(store, session)
    assert found.hold is not None
    assert found.hold.reason == "case 7"
    lift_hold(session, why="over")
    found = audit_session(store, session)
    assert found.hold is None
    assert [e.what for e in found.entries if e.concern == "hold"] == ["hold placed: case 7", "hold lifted"]


def test_the_index_knows_the_same_holds_as_the_logs(store: Store, session: Session[Any]) -> None:
    place_hold(session, "case 7")
    session.fork(name="heir")
    store.session("free").label({"team": "a"})
    lifted = store.session("lifted")
    place_hold(lifted, "case 8")
    lift_hold(lifted)
    quick, slow = list_holds(store), find_holds(store)
    assert sorted(hold.name for hold in quick.found) == ["heir", "work"]
    assert set(quick.found) == set(slow.found)


def test_rewinds_marks_and_approvals_are_in_it_also_where_they_were_rewound(
    store: Store, session: Session[Any]
) -> None:
    session.append(ev.ActionRequested(action="mail", tool="send", approval=True))
    session.calls.approve("mail", by="me", why="read it")
    session.trust.endorse("e3", by="me")
    session.rewind("@1")
    concerns = [e.concern for e in audit_session(store, session).entries]
    assert concerns == ["life", "approval", "trust", "history"]


def test_it_comes_in_pages_that_meet(store: Store, session: Session[Any]) -> None:
    for number in range(7):
        session.checkpoint(f"c{number}")
    seen: list[int] = []
    after = ""
    while True:
        page = audit_session(store, session, after=after, limit=3)
        seen += [e.seq for e in page.entries]
        after = page.next
        if not after:
            break
    assert seen == [e.seq for e in audit_session(store, session).entries]
    assert len(seen) == 8


def test_those_who_need_somebody_come_first_and_the_rest_are_counted(store: Store) -> None:
    for number in range(5):
        store.session(f"idle{number}")
    store.session("waits").append(ev.ActionRequested(action="mail", tool="send", approval=True))
    fleet = find_live(store, idle=2)
    assert fleet.found[0].session.name == "waits"
    assert len(fleet.found) == 3
    assert fleet.resting == 3
    assert [each.info.name for each in find_live(store, ["waiting"]).found] == ["waits"]
    assert len(find_live(store, idle=None).found) == 6


def test_a_record_that_was_altered_still_has_an_audit(tmp_path: Path) -> None:
    with wakelog.open(tmp_path) as store:
        build("tampered", store.engine)
        found = audit_session(store, store.resume("tampered"))
    assert found.damaged
    assert found.hold is None
    assert found.entries
