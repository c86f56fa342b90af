"""What the crash tests write, and how they tell afterwards that nothing of it was lost, doubled or halved.

Every append carries a commit id from which its events follow, so whoever knows the id can ask again or say what must
be there. Before an append the id is noted as tried, after it as acknowledged, with the place it was given.
"""

import contextlib
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from wakelog.engine import Engine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import ConflictError, NotFoundError
from wakelog.log.append import now_us
from wakelog.log.log import Log
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.ids import SessionId, root_id
from wakelog.model.records import Head

SESSIONS = ("alpha", "beta", "gamma")


class Journal:
    """What was tried and what was acknowledged. Thread-safe; `note` may also send it elsewhere."""

    def __init__(self, note: Callable[[str], None] | None = None) -> None:
        self.tried: dict[str, SessionId] = {}
        self.acknowledged: list[tuple[SessionId, int, str]] = []
        self._note = note or (lambda line: None)

    def trying(self, session: SessionId, commit_id: str) -> None:
        self.tried[commit_id] = session
        self._note(f"try {session} {commit_id}")

    def done(self, head: Head) -> None:
        self.acknowledged.append((head.session, head.seq, head.hash.hex()))
        self._note(f"ack {head.session} {head.seq} {head.hash.hex()}")

    def copy(self) -> "Journal":
        """What is known by now. Acknowledged first: the other order could know of an answer without its question."""
        other = Journal()
        other.acknowledged = list(self.acknowledged)
        other.tried = dict(self.tried)
        return other

    @classmethod
    def read(cls, lines: Iterable[str]) -> "Journal":
        journal = cls()
        for line in lines:
            match line.split():
                case ["try", session, commit_id]:
                    journal.tried[commit_id] = SessionId(session)
                case ["ack", session, seq, hash_]:
                    journal.acknowledged.append((SessionId(session), int(seq), hash_))
        return journal


def events_of(commit_id: str) -> list[ev.Event]:
    """The events appended under an id. They are legal in any open session, whatever else goes on in it."""
    rng = random.Random(commit_id)
    big = rng.randbytes(rng.choice([600, 3000, 20_000])).hex()
    match rng.randrange(5):
        case 0:
            return [ev.NoteAdded(text=commit_id)]
        case 1:
            return [ev.MessageAdded(role="user", content=big), ev.NoteAdded(text=commit_id)]
        case 2:
            return [ev.FactRecorded(key=f"k{rng.randrange(20)}", value=[commit_id, rng.random()]) for _ in range(3)]
        case 3:
            return [
                ev.TurnStarted(input=commit_id),
                ev.ActionRequested(action=commit_id, tool="search", input={"q": commit_id}, effect="read"),
                ev.ActionStarted(action=commit_id),
                ev.ActionSucceeded(action=commit_id, output=big),
                ev.TurnEnded(),
            ]
        case _:
            return [
                ev.FileChanged(path=f"src/{rng.randrange(9)}.py", after=big),
                ev.DecisionMade(choice=commit_id, because="it was drawn"),
            ]


@contextlib.contextmanager
def opened(path: Path | str, **options: Any) -> Iterator[SqliteEngine]:
    """The store in a folder, closed in the end."""
    engine = SqliteEngine(Path(path) / "log.db", **options)
    try:
        yield engine
    finally:
        engine.close()


def named(engine: Engine, name: str) -> Log:
    """The session of that name, created if there is none, in the order a store does it."""
    session = engine.find(name) or engine.claim(name, root_id(now_us(), os.urandom(10)))
    try:
        return Log(engine, session)
    except NotFoundError:
        with contextlib.suppress(ConflictError):
            return Log.create(engine, session, ev.SessionOpened(name=name))
        return Log(engine, session)


def logs_of(engine: Engine) -> list[Log]:
    """All sessions."""
    return [Log(engine, head.session) for head in engine.sessions(limit=10_000)]


def work(engine: Engine, journal: Journal, seed: str, commits: int) -> None:
    """One thread's share: appends to several sessions, with a fork or a rewind now and then."""
    rng = random.Random(seed)
    logs = [named(engine, name) for name in SESSIONS]
    for number in range(commits):
        log = rng.choice(logs)
        chance = rng.random()
        if chance < 0.06:
            logs.append(fork := log.fork())
            journal.done(fork.head())
        elif chance < 0.1:
            journal.done(log.rewind(rng.randint(1, log.head().seq)))
        else:
            append(log, journal, f"{seed}.{number}")


def append(log: Log, journal: Journal, commit_id: str) -> Head:
    journal.trying(log.id, commit_id)
    head = log.append(*events_of(commit_id), commit_id=commit_id)
    journal.done(head)
    return head


def work_in_threads(engine: Engine, journal: Journal, seed: str, *, threads: int, commits: int) -> None:
    """Several shares at once. An error in one of them is raised here."""
    errors: list[BaseException] = []

    def run(name: str) -> None:
        try:
            work(engine, journal, name, commits)
        except BaseException as exc:
            errors.append(exc)

    running = [threading.Thread(target=run, args=(f"{seed}-{i}",)) for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def check_survived(path: Path, journal: Journal, why: str) -> None:
    """Opens the store in a folder anew and holds it against what was acknowledged and tried; then goes on with it."""
    with opened(path) as engine:
        check_whole(engine, journal, why)
        for commit_id, session in list(journal.tried.items())[-5:]:
            # Whatever became of the last ones, asking again settles it; unless the session itself was on its way.
            with contextlib.suppress(NotFoundError):
                append(Log(engine, session), journal, commit_id)
        for name in SESSIONS:
            append(named(engine, name), journal, f"after-{name}-{why}".replace(" ", "-"))
        check_whole(engine, journal, f"{why}, and going on")


def check_whole(engine: SqliteEngine, journal: Journal, why: str) -> None:
    """Everything acknowledged is there, nothing is there in part or twice, and every session verifies."""
    wanted: dict[SessionId, dict[int, str]] = {}
    for session, seq, hash_ in journal.acknowledged:
        assert wanted.setdefault(session, {}).setdefault(seq, hash_) == hash_, f"{why}: two answers for {session} {seq}"
    found: Counter[tuple[SessionId, str]] = Counter()
    for log in logs_of(engine):
        report = verify(log)
        assert report.ok, f"{why}: {log.id}: {report.integrity} {report.completeness}"
        missing = wanted.pop(log.id, {})
        for entry in log.entries():
            if missing.get(entry.seq) == entry.hash.hex():
                del missing[entry.seq]
            if entry.session == log.id:
                found[log.id, entry.commit_id] += 1
        assert not missing, f"{why}: of {log.id}, which ends at {report.events}, acknowledged but lost: {missing}"
    assert not wanted, f"{why}: sessions acknowledged but lost: {wanted}"
    for commit_id, session in journal.tried.items():
        size = len(events_of(commit_id))
        assert found[session, commit_id] in (0, size), f"{why}: {commit_id} has {found[session, commit_id]} of {size}"
    assert engine.check() == [], why
