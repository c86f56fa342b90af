"""What was erased, pruned or deleted leaves the index too, to the last byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.index.asking import ask, contents
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import UnavailableError
from wakelog.index import Index
from wakelog.index.connection import Connection
from wakelog.log import Log
from wakelog.log.removal import delete, erase, prune
from wakelog.model import events as ev
from wakelog.testing.builders import new_session

# Only letters and digits: full-text search keeps it as one word, in lower case.
SECRET = "sk8secretkaleidoscope"
OTHERS = 400


def traces_of(words: str, db: Connection) -> int:
    """How many texts and places of the index have something. Searching would not tell: it asks the log too."""
    kept = db.execute("select count(*) from wl_text where body like ?", (f"%{words}%",)).get
    if db.words.wants_all:  # in PostgreSQL the words are in the row of their text
        return int(kept)
    return int(kept) + int(db.execute("select count(*) from wl_words where wl_words match ?", (f'"{words}"',)).get)


def residue(folder: Path) -> list[str]:
    files = sorted(folder.glob("index.db*"))
    assert files
    return [path.name for path in files if SECRET.encode() in path.read_bytes().lower()]


def secrets() -> list[ev.Event]:
    """One of each kind that has rows of its own, in small and in large."""
    return [
        ev.MessageAdded(role="user", content=f"my key is {SECRET}"),
        ev.MessageAdded(role="user", content=f"{SECRET} " * 100),
        ev.DecisionMade(choice=SECRET, because=SECRET, alternatives=(SECRET,)),
        ev.FactRecorded(key=f"k-{SECRET}", value={"deep": [SECRET]}),
        ev.FactRetracted(key=f"k-{SECRET}"),
        ev.FileChanged(path=f"src/{SECRET}.py", why=SECRET),
        ev.ActionRecorded(
            action="a", tool="t", outcome="failed", error=ev.Failure(SECRET, SECRET), input={"x": SECRET}
        ),
        ev.GoalSet(goal=SECRET),
        ev.LabelsSet(labels={"l": SECRET}),
        ev.NoteAdded(text=SECRET),
        ev.TurnStarted(input=SECRET),
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def crowd(tmp_path: Path) -> tuple[Engine, Log]:
    """A store with other sessions around the one that matters, so that pages are shared."""
    engine = SqliteEngine(tmp_path / "log.db")
    others = [Log.create(engine, new_session(), ev.SessionOpened()) for _ in range(4)]
    log = Log.create(engine, new_session(), ev.SessionOpened(name="open"))
    for i in range(OTHERS // 20):
        notes = [ev.NoteAdded(text=f"sk{i}{j} other words secret{j} sk8s{i}") for j in range(20)]
        others[i % 4].append(*notes)
    return engine, log


def test_erased_text_leaves_no_byte(crowd: tuple[Engine, Log], folder: Path) -> None:
    engine, log = crowd
    index = Index(engine, folder / "index.db")
    seqs = [log.append(event).seq for event in secrets()]
    fork = log.fork()
    assert len(index.search(SECRET, limit=100)) >= 8
    assert residue(folder)
    erase(log, seqs)
    index.scrub()
    assert residue(folder) == []
    assert not index.search(SECRET).rows
    for session in (log.id, fork.id):
        rows = ask(index, "select gone, summary, path, key from events where session = ? and gone <> ''", session)
        assert rows == ([("erased", "", "", "")] * len(seqs) if session == log.id else [])
    assert {info.goal for info in index.sessions() if info.id in (log.id, fork.id)} == {None}
    index.close()
    assert residue(folder) == []
    with Index(engine, folder / "index.db") as again:
        before = contents(again)
        again.rebuild()
        assert contents(again) == before
    engine.close()


def test_deleted_sessions_leave_no_byte(crowd: tuple[Engine, Log], folder: Path) -> None:
    engine, log = crowd
    with Index(engine, folder / "index.db") as index:
        log.append(*secrets())
        fork = log.fork()
        index.catch_up()
        delete(log)
        assert index.search(SECRET).rows, "the fork still has it"
        delete(fork)
        index.scrub()
        assert residue(folder) == []
        assert len(index.sessions()) == 4
    engine.close()


def test_pruned_text_leaves_no_byte(crowd: tuple[Engine, Log], folder: Path) -> None:
    engine, log = crowd
    with Index(engine, folder / "index.db") as index:
        log.append(ev.MessageAdded(role="user", content=f"{SECRET} " * 100), ev.NoteAdded(text=SECRET))
        seq = log.append(ev.TurnStarted(input=SECRET), ev.TurnEnded()).seq
        log.append(ev.NoteAdded(text="what stays"))
        assert index.search(SECRET).rows
        prune(log, seq)
        index.scrub()
        assert residue(folder) == []
        assert index.search("what stays").rows
    engine.close()


def test_an_index_made_anew_leaves_no_byte_of_the_one_before(crowd: tuple[Engine, Log], folder: Path) -> None:
    engine, log = crowd
    seq = log.append(ev.NoteAdded(text=SECRET)).seq
    with Index(engine, folder / "index.db") as index:
        index.catch_up()
        erase(log, [seq])
        index.rebuild()
        index.scrub()
        assert residue(folder) == []
    engine.close()


def test_bytes_that_a_reader_holds_are_owned_up_to(crowd: tuple[Engine, Log], folder: Path) -> None:
    engine, log = crowd
    seq = log.append(ev.NoteAdded(text=SECRET)).seq
    with Index(engine, folder / "index.db") as index, Index(engine, folder / "index.db") as other:
        index.catch_up()
        with other._database.reading() as db:
            assert db.execute("select count(*) from wl_event").get
            erase(log, [seq])
            with pytest.raises(UnavailableError) as pending:
                index.scrub()
            assert pending.value.kind == "scrub-pending"
            assert not index.search(SECRET).rows
        index.scrub()
        assert residue(folder) == []
    engine.close()


def test_erasing_reaches_deleted_sessions_that_a_fork_reads_through(engine: Engine, index: Index) -> None:
    log = Log.create(engine, new_session(), ev.SessionOpened())
    seq = log.append(ev.NoteAdded(text=SECRET)).seq
    fork = log.fork()
    index.catch_up()
    delete(log)
    assert index.search(SECRET).rows
    erase(fork, [seq])
    assert not index.search(SECRET).rows
    with index._database.reading() as db:
        assert traces_of(SECRET, db) == 0


@pytest.mark.parametrize("is_far", [False, True])
def test_an_erasure_while_the_index_reads_reaches_what_was_read_before(is_far: bool) -> None:
    """The deleted session has no event that would tell of it, and the fork is read when it was done already."""
    engine = MemoryEngine()
    log = Log.create(engine, new_session(), ev.SessionOpened())
    seq = log.append(ev.NoteAdded(text=SECRET)).seq
    fork = log.fork()
    delete(log)

    class Meddled:
        is_erased = False

        def head(self, session: str) -> object:
            if session == fork.id and not self.is_erased:
                self.is_erased = True
                erase(fork, [seq])
            return engine.head(fork.id if session == fork.id else log.id)

        def __getattr__(self, name: str) -> object:
            return is_far if name == "is_far" else getattr(engine, name)

    with Index(Meddled(), None) as index:  # type: ignore[arg-type]
        index.catch_up()
        assert not index.search(SECRET).rows
        with index._database.reading() as db:
            assert traces_of(SECRET, db) == 0


def test_what_was_not_erased_stays(engine: Engine, index: Index) -> None:
    """Erasing also takes the state hashes of later turns away. What these turns said is untouched."""
    log = Log.create(engine, new_session(), ev.SessionOpened())
    seq = log.append(ev.NoteAdded(text=SECRET)).seq
    failed = ev.TurnEnded(outcome="failed", error=ev.Failure("io", "the walrus"))
    log.append(ev.TurnStarted(input="go"), failed)
    erase(log, [seq])
    assert [(error.type, error.message) for error in index.errors(log.id)] == [("io", "the walrus")]
    assert [hit.kind for hit in index.search("walrus")] == ["turn.ended"]
    assert index.turns(log.id)[0].outcome == "failed"


def test_what_is_durable_outlives_a_prune(engine: Engine, index: Index) -> None:
    log = Log.create(engine, new_session(), ev.SessionOpened(name="long", goal="the goal", labels={"team": "a"}))
    log.append(ev.TurnStarted(input="hello"), ev.BudgetSpent(cost=ev.Cost(tokens_in=7)))
    log.append(
        ev.DecisionMade(choice="sqlite", because="one file", alternatives=("postgres",)),
        ev.FactRecorded(key="port", value=5432),
        ev.FactRecorded(key="gone", value=1),
        ev.FactRetracted(key="gone"),
        ev.DeadEndNoted(tried="threads", learned="deadlock"),
        ev.FileChanged(path="a.py", added=3),
    )
    end = log.append(ev.TurnEnded()).seq
    log.append(ev.TurnStarted(input="next"), ev.BudgetSpent(cost=ev.Cost(tokens_in=5)))
    index.catch_up()
    prune(log, end)
    [decision] = index.decisions(log.id)
    assert (decision.choice, decision.because, decision.alternatives) == ("sqlite", "one file", ("postgres",))
    assert ask(index, "select key, value from facts") == [("port", "5432")]
    assert [(f.path, f.change) for f in index.files_modified(log.id)] == [("a.py", "modified")]
    assert {hit.kind for hit in index.search("deadlock")} == {"dead_end.noted"}
    [info] = index.sessions()
    assert (info.goal, info.labels, info.tokens, info.turns) == ("the goal", {"team": "a"}, 12, 2)
    assert ask(index, "select distinct gone from events where seq <= ?", end) == [("pruned",)]
    assert [(t.turn, t.tokens) for t in index.turns(log.id)] == [(2, 5), (1, 7)]
    before = contents(index)
    index.rebuild()
    assert contents(index) == before


def test_the_view_outlives_a_prune(engine: Engine, index: Index) -> None:
    log = Log.create(engine, new_session(), ev.SessionOpened())
    for _ in range(4):
        log.append(ev.NoteAdded(text="x"))
    log.rewind(3)
    at = log.append(ev.NoteAdded(text="y")).seq
    log.append(ev.NoteAdded(text="z"))
    index.catch_up()
    prune(log, at)
    for _ in range(2):
        seen = {event.seq for event in index.events(log.id)}
        assert seen == {seq for first, last in log.view() for seq in range(first, last + 1)} == {1, 2, 3, 6, 7, 8, 9}
        index.rebuild()
