"""A fork's history is its parent's and its own: questions look through, roll-ups and the view follow."""

from __future__ import annotations

import pytest

from tests.index.asking import ask
from wakelog.engine import Engine
from wakelog.errors import NotFoundError
from wakelog.index import Index
from wakelog.log import Log
from wakelog.log.removal import delete
from wakelog.model import events as ev
from wakelog.testing.builders import new_session


@pytest.fixture
def log(engine: Engine) -> Log:
    """Five turns, each changing one file and making one decision."""
    log = Log.create(engine, new_session(), ev.SessionOpened(name="parent", goal="g", agent="coder"))
    for turn in range(1, 6):
        play_turn(log, turn)
    return log


def play_turn(log: Log, turn: int) -> None:
    log.append(ev.TurnStarted(input=f"turn {turn}"))
    log.append(ev.FileChanged(path=f"f{turn}.py", added=turn), ev.DecisionMade(choice=f"c{turn}"))
    log.append(ev.BudgetSpent(cost=ev.Cost(tokens_in=10)), ev.TurnEnded())


def last_of(log: Log, turn: int) -> int:
    return max(entry.seq for entry in log.entries() if entry.header.turn == turn)


def changed(index: Index, log: Log, **asked: int | bool) -> list[str]:
    return sorted(file.path for file in index.files_modified(log.id, **asked))  # type: ignore[arg-type]


def test_the_last_turns_of_a_fork_include_inherited_ones(log: Log, index: Index) -> None:
    fork = log.fork(last_of(log, 3))
    play_turn(fork, 4)
    assert changed(index, fork, last_turns=2) == ["f3.py", "f4.py"]
    assert changed(index, fork, last_turns=2, lineage=False) == ["f4.py"]
    assert changed(index, fork) == ["f1.py", "f2.py", "f3.py", "f4.py"]
    assert changed(index, log, last_turns=2) == ["f4.py", "f5.py"]
    assert [(turn.turn, turn.session) for turn in index.turns(fork.id)] == [(n, fork.id) for n in (4, 3, 2, 1)]
    assert [turn.turn for turn in index.turns(fork.id, lineage=False)] == [4]


def test_a_fork_counts_its_own(log: Log, index: Index) -> None:
    fork = log.fork(last_of(log, 3), name="child")
    play_turn(fork, 4)
    [info] = [info for info in index.sessions() if info.id == fork.id]
    assert (info.parent, info.forked_at, info.root) == (log.id, last_of(log, 3), log.id)
    assert (info.turns, info.turn, info.tokens, info.name) == (1, 4, 10, "child")
    assert (info.goal, info.agent) == ("g", "coder")
    assert [info.id for info in index.sessions(parent=log.id)] == [fork.id]


def test_a_turn_cut_by_the_fork_is_summed_up_to_there(log: Log, index: Index) -> None:
    log.append(ev.TurnStarted(input="long"))
    at = log.append(ev.FileChanged(path="early.py", added=1), ev.ActionRecorded(action="a", tool="t")).seq
    log.append(ev.FileChanged(path="late.py", added=7), ev.ActionRecorded(action="b", tool="t"), ev.TurnEnded())
    fork = log.fork(at)
    whole, part = index.turns(log.id)[0], index.turns(fork.id)[0]
    assert (whole.turn, whole.outcome, whole.files, whole.added, whole.tool_calls) == (6, "completed", 2, 8, 2)
    assert (part.turn, part.outcome, part.files, part.added, part.tool_calls) == (6, "interrupted", 1, 1, 1)
    assert (part.last, part.ended_at, part.input) == (at, None, "long")


def test_a_fork_of_a_fork_reads_through_both(log: Log, index: Index) -> None:
    child = log.fork(last_of(log, 2))
    play_turn(child, 3)
    grandchild = child.fork()
    play_turn(grandchild, 4)
    assert changed(index, grandchild) == ["f1.py", "f2.py", "f3.py", "f4.py"]
    below = child.fork(last_of(log, 1))  # left below the point where its parent began
    assert changed(index, below) == ["f1.py"]


def test_what_a_fork_has_in_view_is_its_own_affair(log: Log, index: Index) -> None:
    fork = log.fork()
    log.rewind(last_of(log, 1))
    assert changed(index, log) == ["f1.py"]
    assert changed(index, fork) == ["f1.py", "f2.py", "f3.py", "f4.py", "f5.py"]
    fork.rewind(last_of(log, 2))
    assert changed(index, fork) == ["f1.py", "f2.py"]
    assert changed(index, fork, rewound=True) == ["f1.py", "f2.py", "f3.py", "f4.py", "f5.py"]
    late = log.fork()
    assert changed(index, late) == ["f1.py"]
    late.rewind(last_of(log, 3))  # which its parent has rewound
    assert changed(index, late) == ["f1.py", "f2.py", "f3.py"]


def test_a_retry_shows_both_attempts(log: Log, index: Index) -> None:
    log.rewind(last_of(log, 4), mode="retry")
    log.append(ev.TurnStarted(retry=True, input="again"), ev.FileChanged(path="better.py"), ev.TurnEnded())
    assert changed(index, log) == ["better.py", "f1.py", "f2.py", "f3.py", "f4.py"]
    newest = index.turns(log.id)[0]
    assert (newest.turn, newest.attempt, newest.attempts, newest.in_view) == (5, 2, 2, True)
    assert [(t.turn, t.attempt, t.in_view) for t in index.turns(log.id, rewound=True, limit=2)] == [
        (5, 2, True),
        (5, 1, False),
    ]
    fork = log.fork(last_of(log, 3))
    fork.append(ev.TurnStarted(retry=True, input="in the fork"), ev.TurnEnded())
    assert [(t.turn, t.attempt, t.attempts) for t in index.turns(fork.id, limit=2)] == [(3, 2, 2), (3, 1, 2)]


def test_a_deleted_parent_is_seen_through_its_fork_only(engine: Engine, log: Log, index: Index) -> None:
    fork = log.fork(last_of(log, 3))
    index.catch_up()
    delete(log)
    assert [info.id for info in index.sessions()] == [fork.id]
    assert ask(index, "select distinct session from files") == []
    with pytest.raises(NotFoundError):
        index.turns(log.id)
    assert changed(index, fork) == ["f1.py", "f2.py", "f3.py"]
    assert {(hit.session, hit.seq) for hit in index.search("c2")} == {(fork.id, 9)}
    assert not index.search("c5").rows, "no fork shares it"
    with Index(engine, None) as other:
        assert changed(other, fork) == ["f1.py", "f2.py", "f3.py"]
    delete(fork)
    assert not index.sessions().rows
    assert not index.search("c2").rows
    with index._database.reading() as db:
        assert db.execute("select count(*) from wl_event").get == 0
        assert db.execute("select count(*) from wl_lineage").get == 0


def test_a_feed_may_tell_of_a_fork_before_its_parent(engine: Engine, log: Log) -> None:
    fork = log.fork(last_of(log, 3))

    class Backwards:
        """An engine whose feed tells each session once, the newest first."""

        def changes(self, cursor: str = "", limit: int = 100) -> object:
            page = engine.changes(cursor, 1000)
            heads = {change.session: change for change in page}
            end = page[-1].cursor if page else ""
            return [type(c)(c.session, c.seq, end) for c in reversed(heads.values())]

        def __getattr__(self, name: str) -> object:
            return getattr(engine, name)

    with Index(Backwards(), None) as index:  # type: ignore[arg-type]
        assert changed(index, fork) == ["f1.py", "f2.py", "f3.py"]
        assert changed(index, log, last_turns=1) == ["f5.py"]
