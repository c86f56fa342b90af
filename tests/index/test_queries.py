"""Filters and pages of the typed questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from wakelog.engine import Engine
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.index import Index, Page
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.testing.builders import START_US, new_session


class Clock:
    def __init__(self) -> None:
        self.now = START_US

    def __call__(self) -> int:
        self.now += 1_000
        return self.now


@pytest.fixture
def log(engine: Engine) -> Log:
    log = Log.create(engine, new_session(), ev.SessionOpened(name="one", labels={"team": "a"}), clock=Clock())
    for turn in range(1, 8):
        log.append(ev.TurnStarted(input=f"turn {turn}"), ev.DecisionMade(choice=f"c{turn}"))
        log.append(ev.ActionRecorded(action=f"a{turn}", tool="t", outcome="failed", error=ev.Failure("io", str(turn))))
        log.append(ev.TurnEnded())
    return log


def all_pages(ask: Callable[[str], Page[Any]]) -> list[Any]:
    """Everything, page by page."""
    rows: list[Any] = []
    after = ""
    while True:
        page = ask(after)
        rows += page.rows
        if not page.next:
            return rows
        assert page.next != after
        after = page.next


@pytest.mark.parametrize("limit", [1, 2, 7, 8, 100])
def test_pages_together_are_the_whole(log: Log, index: Index, limit: int) -> None:
    asked = log.id
    turns = all_pages(lambda after: index.turns(asked, after=after, limit=limit))
    assert [turn.turn for turn in turns] == [7, 6, 5, 4, 3, 2, 1]
    upward = all_pages(lambda after: index.turns(asked, after=after, limit=limit, newest_first=False))
    assert upward == turns[::-1]
    events = all_pages(lambda after: index.events(asked, after=after, limit=limit))
    assert [event.seq for event in events] == list(range(1, log.head().seq + 1))
    assert all_pages(lambda a: index.events(asked, after=a, limit=limit, newest_first=True)) == events[::-1]
    for session in (asked, None):
        decisions = all_pages(lambda a, s=session: index.decisions(s, after=a, limit=limit))  # type: ignore[misc]
        assert [decision.choice for decision in decisions] == ["c7", "c6", "c5", "c4", "c3", "c2", "c1"]
        errors = all_pages(lambda a, s=session: index.errors(s, after=a, limit=limit))  # type: ignore[misc]
        assert [error.message for error in errors] == ["7", "6", "5", "4", "3", "2", "1"]


def test_sessions_come_the_last_active_first(engine: Engine, index: Index) -> None:
    clock = Clock()
    logs = [Log.create(engine, new_session(), ev.SessionOpened(), clock=clock) for _ in range(5)]
    logs[1].append(ev.NoteAdded(text="x"))
    wanted = [logs[i].id for i in (1, 4, 3, 2, 0)]
    for limit in (1, 2, 5, 100):
        found = all_pages(lambda after, n=limit: index.sessions(after=after, limit=n))  # type: ignore[misc]
        assert [info.id for info in found] == wanted


def test_sessions_at_the_same_moment_are_not_lost_between_pages(engine: Engine, index: Index) -> None:
    ids = {Log.create(engine, new_session(), ev.SessionOpened(), clock=lambda: START_US).id for _ in range(7)}
    assert {info.id for info in all_pages(lambda after: index.sessions(after=after, limit=2))} == ids


def test_sessions_are_told_apart(engine: Engine, index: Index) -> None:
    clock = Clock()

    def open_(name: str, **fields: Any) -> Log:
        return Log.create(engine, new_session(), ev.SessionOpened(name=name, **fields), clock=clock)

    failing, closed, labelled, idle = (
        open_("fix-auth"),
        open_("fix-ci"),
        open_("other", labels={"team": "a=b", "x": ""}),
        open_("", agent="coder"),
    )
    failing.append(ev.TurnStarted(), ev.TurnEnded(outcome="failed", error=ev.Failure("io", "no disk")))
    closed.append(ev.SessionClosed(outcome="failed"))
    names = {failing.id: "failing", closed.id: "closed", labelled.id: "labelled", idle.id: "idle"}

    def found(**asked: Any) -> set[str]:
        return {names[info.id] for info in index.sessions(**asked)}

    assert found() == {"failing", "closed", "labelled", "idle"}
    assert found(status="closed") == {"closed"}
    assert found(live=True) == {"failing", "labelled", "idle"}
    assert found(live=False) == {"closed"}
    assert found(failed=True) == {"failing", "closed"}
    assert found(failed=False) == {"labelled", "idle"}
    assert found(failed=True, live=True) == {"failing"}
    assert found(name_glob="fix-*") == {"failing", "closed"}
    assert found(label="team") == {"labelled"}
    assert found(label="team=a=b") == {"labelled"}
    assert found(label="x=") == {"labelled"}
    assert found(label="team=c") == found(label="nothing") == found(status="odd") == set()
    assert found(agent="coder") == {"idle"}
    assert found(prefix=failing.id[:-1]) >= {"failing"}
    assert found(prefix=failing.id) == {"failing"}
    assert found(since=closed.head().at) == {"closed"}
    assert found(text="FIX-") == {"failing", "closed"}
    assert found(text=labelled.id.lower()) == {"labelled"}
    assert found(text="%") == found(text="_x_") == set(), "no sign of a pattern means anything"
    assert found(pending=False, flagged=False) == found()
    assert found(pending=True) == found(flagged=True) == set()
    failing.append(ev.TurnStarted(), ev.TurnEnded())
    assert found(failed=True) == {"closed"}, "how the last turn ended counts"
    [info] = index.sessions(name_glob="fix-auth")
    assert info.last_error == "io: no disk"


def test_events_are_told_apart(log: Log, index: Index) -> None:
    def found(**asked: Any) -> set[str]:
        return {event.kind for event in index.events(log.id, **asked)}

    assert found(kinds="turn") == {"turn.started", "turn.ended"}
    assert found(kinds=["turn.ended", "decision"]) == {"turn.ended", "decision.made"}
    assert found(kinds=[]) == set()
    assert found(tool="t") == {"action.recorded"}
    assert {event.turn for event in index.events(log.id, turns=(2, 3))} == {2, 3}
    assert {event.turn for event in index.events(log.id, last_turns=2)} == {6, 7}
    assert len(index.events(log.id, since=log.head().at)) == 1


def test_when_things_happened_counts_not_when_they_were_stored(engine: Engine, index: Index) -> None:
    long_ago = START_US - 10**12
    log = Log.create(engine, new_session(), ev.SessionOpened(occurred_at=long_ago), clock=Clock())
    log.append(ev.FileChanged(path="a.py", occurred_at=long_ago + 1))
    [info] = index.sessions()
    assert (info.first_at, info.last_at) == (long_ago, long_ago + 1)
    assert index.sessions(since=long_ago + 2).rows == ()
    assert index.files_modified(since=long_ago + 2).rows == ()
    assert index.files_modified(since=long_ago + 1)[0].at == long_ago + 1


def test_all_sessions_are_asked_at_once(engine: Engine, log: Log, index: Index) -> None:
    other = Log.create(engine, new_session(), ev.SessionOpened())
    other.append(ev.FileChanged(path="b.py"), ev.ActionRecorded(action="a", tool="t"))
    other.append(ev.FileChanged(path="c.py"))
    other.rewind(3)
    assert {(file.session, file.path) for file in index.files_modified()} == {(other.id, "b.py")}
    assert {file.path for file in index.files_modified(rewound=True)} == {"b.py", "c.py"}
    assert {(t.session, t.tool, t.calls, t.errors) for t in index.tools()} == {
        (log.id, "t", 7, 7),
        (other.id, "t", 1, 0),
    }


def test_wrong_questions_are_refused(log: Log, index: Index) -> None:
    for wrong in (
        lambda: index.files_modified(last_turns=3),
        lambda: index.files_modified(log.id, last_turns=0),
        lambda: index.turns(log.id, limit=0),
        lambda: index.turns(log.id, limit=10**6),
        lambda: index.turns(log.id, after="x"),
        lambda: index.events(log.id, after="x"),
        lambda: index.decisions(log.id, after="x"),
        lambda: index.decisions(log.id, after="1:2:x"),
        lambda: index.sessions(after="x"),
    ):
        with pytest.raises(InvalidInputError):
            wrong()
    for unknown in (index.turns, index.events, index.decisions, index.files_modified, index.tools, index.errors):
        with pytest.raises(NotFoundError) as told:
            unknown("s_nobody")
        assert told.value.kind == "session-not-found"
    with pytest.raises(NotFoundError):
        index.search("x", session="s_nobody")


def test_sessions_are_counted_by_each_of_their_facets(engine: Engine, log: Log) -> None:
    two = Log.create(engine, new_session(), ev.SessionOpened(name="two", agent="codex", labels={"team": "b"}))
    two.append(ev.ActionRequested(action="x", tool="t", approval=True), ev.FlagRaised(flag="f"))
    Log.create(engine, new_session(), ev.SessionOpened(name="three", agent="codex", labels={"team": "b"}))
    with Index(engine, None) as index:
        found = index.session_counts()
        told = {(each.facet, each.value): each.count for each in found.counts}
        assert found.total == len(index.sessions()) == 3
        assert told["agent", "codex"] == told["label:team", "b"] == 2
        assert told["label:team", "a"] == told["needs", "flagged"] == told["needs", "pending"] == 1
        assert ("is", "fork") not in told, "what does not occur has no count"
        assert index.session_counts(label="team=b").total == 2
        assert {each.value for each in index.session_counts(agent="codex").counts if each.facet == "label:team"} == {
            "b"
        }
        assert index.session_counts(limit=1).is_cut
