"""Everything a store can be asked, asked: so that two stores can be compared, or a damaged one with its former self."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.crash.workload import events_of, named
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import WakelogError
from wakelog.log.log import Log
from wakelog.log.removal import erase
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.model.records import Anchor


class Questions:
    """What to ask: taken from a store that is known to be whole."""

    def __init__(self, engine: SqliteEngine) -> None:
        self.sessions: list[SessionId] = [head.session for head in engine.sessions()]
        self.names = [head.name for head in engine.sessions() if head.name]
        self.anchors = {session: Log(engine, session).anchor() for session in self.sessions}
        self.commit_ids = [
            (session, commit.commit_id)
            for session in self.sessions
            for commit in engine.read(session)
            if commit.fingerprint
        ]

    def ask(self, engine: SqliteEngine) -> Iterator[tuple[str, Any]]:
        """(question, answer), one after another. A WakelogError is an answer too: its class."""
        yield _asked("sessions", engine.sessions)
        yield _asked("changes", engine.changes)
        for name in self.names:
            yield _asked(f"find {name}", engine.find, name)
        for session, commit_id in self.commit_ids:
            yield _asked(f"known {commit_id}", engine.known, session, commit_id)
        for session in self.sessions:
            yield _asked(f"children of {session}", engine.children, session)
            yield _asked(f"beat of {session}", engine.last_beat, session)
            question, log = _asked(f"open {session}", Log, engine, session)
            if is_complaint(log):
                yield question, log
                continue
            for about in (_head, _entries, _values, _state_now, _state_then):
                yield _asked(f"{about.__name__} {session}", about, log)
            yield _asked(f"verify {session}", _verified, log, self.anchors[session])


def _asked(question: str, ask: Callable[..., Any], *about: Any) -> tuple[str, Any]:
    try:
        return question, ask(*about)
    except WakelogError as exc:
        return question, type(exc)


def is_complaint(answer: Any) -> bool:
    """Whether an answer says that something is wrong."""
    return isinstance(answer, type) and issubclass(answer, WakelogError)


def _head(log: Log) -> Any:
    return log.head()


def _entries(log: Log) -> Any:
    return [
        (e.seq, e.hash, e.header, e.body, e.event, e.delta, e.commit_id, e.is_intact, e.session) for e in log.entries()
    ]


def _values(log: Log) -> Any:
    own = log.segments[-1].first - 1  # those of its ancestors are asked for there
    return [[log.value(e, value) for value in e.body.values()] for e in log.entries(after=own) if e.is_intact]


def _state_now(log: Log) -> Any:
    return log.state(), log.state_hash()


def _state_then(log: Log) -> Any:
    return log.state(log.head().seq // 2)


def _verified(log: Log, anchor: Anchor) -> Any:
    report = verify(log, anchor)
    return WakelogError if not report.ok else (report.events, report.head_hash, report.scope)


def small_store(engine: SqliteEngine) -> None:
    """A few sessions with a bit of everything: payloads, chosen ids, a turn, a rewind, forks, an erasure, a lease."""
    log = named(engine, "alpha")
    for number in range(5):
        log.append(*events_of(f"small-{number}"), commit_id=f"small-{number}")
    log.append(ev.FactRecorded(key="secret", value="to be erased"))
    gone = log.head().seq
    log.rewind(4)
    log.append(ev.MessageAdded(role="user", content="long " * 300), ev.FileChanged(path="a/b.py", after="x" * 600))
    fork = log.fork(at=6)
    fork.append(ev.NoteAdded(text="in the fork"), ev.CheckpointNamed(name="here", at=6))
    fork.fork().append(ev.FactRecorded(key="deep", value=[1, 2.5, None, "é"]))
    erase(log, [gone])
    other = named(engine, "beta, with a longer name")
    other.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/list", "value": [1, {"a": "b"}]}]))
    other.take_lease("somebody")
