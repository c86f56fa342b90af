"""Commits sealed elsewhere are taken in when sealing them here gives the same bytes, and else refused."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wakelog.engine import Engine, Pending, Surgery
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotFoundError, WakelogError
from wakelog.log import Log
from wakelog.log.admission import default_redact
from wakelog.log.foreign_commits import AHEAD_MAX_US, CommitChecker
from wakelog.log.foreign_removals import take_deletion, take_surgery
from wakelog.log.removal import delete, erase, prune
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.document import HOLD_LABEL
from wakelog.model.ids import SessionId
from wakelog.model.payloads import Payload
from wakelog.model.records import Commit, EventDraft, Head, Record
from wakelog.testing.builders import START_US, CommitWriter, fact, message, new_session, raw_commit, raw_record
from wakelog.testing.contract import EngineContract
from wakelog.testing.contract.base import opened, store, stored

BIG = "a payload is what does not fit into a body " * 30
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


class CheckedEngine:
    """An engine whose commits all come in as if from elsewhere."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.durability = inner.durability
        self._logs: dict[SessionId, Log] = {}
        self.checker = CommitChecker(inner, self._log, known_log=self._logs.get, clock=lambda: START_US + 10**12)

    def _log(self, session: SessionId) -> Log:
        if session not in self._logs:
            self._logs[session] = Log(self.inner, session)
        return self._logs[session]

    def submit(self, *commits: Commit) -> Pending:
        try:
            pending = self.checker.submit(*commits)
        except WakelogError as exc:
            return _Refused(exc)
        return _Remembered(pending)

    def operate(self, surgery: Surgery) -> Head:
        return take_surgery(self.checker, surgery)

    def delete(self, commit: Commit) -> Head:
        head = take_deletion(self.checker, commit)
        self._logs.pop(commit.session, None)
        return head

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _Refused:
    def __init__(self, error: WakelogError) -> None:
        self._error = error

    def result(self) -> Head:
        raise self._error


class _Remembered:
    """An answer that can be asked for twice."""

    def __init__(self, pending: Pending) -> None:
        self._ask = functools.cache(lambda: self._answer(pending))

    @staticmethod
    def _answer(pending: Pending) -> Head | WakelogError:
        try:
            return pending.result()
        except WakelogError as exc:
            return exc

    def result(self) -> Head:
        answer = self._ask()
        if isinstance(answer, WakelogError):
            raise answer
        return answer


class TestCheckedSqlite(EngineContract):
    def make_engine(self, tmp_path: Path) -> Engine:
        return CheckedEngine(SqliteEngine(tmp_path / "log.db"))


@pytest.fixture
def engine() -> CheckedEngine:
    return CheckedEngine(MemoryEngine())


@pytest.fixture
def log(engine: CheckedEngine) -> Log:
    ticks = count(START_US, 1000)
    return Log.create(engine, new_session(), ev.SessionOpened(data={"n": 0}), clock=lambda: next(ticks))


def test_every_kind_of_move_a_log_makes_is_taken_in(log: Log, engine: CheckedEngine) -> None:
    log.append(ev.TurnStarted(input=BIG), message(BIG), commit_id="mine")
    log.append(ev.TurnStarted(input=BIG), message(BIG), commit_id="mine")
    log.append(ev.ActionRequested(action="a", tool="mail", input={"long": BIG}), EventDraft(fact("k"), source="web:x"))
    log.append(message(BIG), ev.CheckpointNamed(name="here", at=log.head().seq + 1))
    log.append(EventDraft(fact("told", SECRET), trust="untrusted", source="web:y", derived_from=((1, 2),)))
    log.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/n", "value": {"b": [1.5, True, None, "✓"]}}]))
    log.append(ev.Foreign(foreign_kind="x.own", data={"any": [1, {"thing": "✓"}]}, why="because"))
    log.append(message(b"\x00\xff" * 600), message({"json": [BIG]}))
    log.append(ev.ActionSucceeded(action="a", output=BIG))
    log.append(ev.TurnEnded())
    epoch = log.take_lease("worker")
    log.append(fact("guarded"), guard=epoch)
    fork = log.fork(log.head().seq - 3, name="f")
    fork.append(fact("other way"))
    log.rewind(3)
    log.rewind(log.head().seq - 1, mode="undo")
    log.rewind(3, then=[fact("after it")])
    log.adopt(fork, force=True)
    log.release_lease(epoch)
    for each in (log, fork):
        report = verify(each)
        assert report.ok, report
    assert log.state()["facts"]["told"]["value"] == "[redacted:github-token]"
    erase(log, [3], why="gone")
    prune(log, 5)
    delete(fork)
    assert verify(log).ok
    assert engine.inner.head(fork.id).status == "deleted"


def test_calls_open_at_a_fork_must_be_abandoned_in_it(log: Log, engine: CheckedEngine) -> None:
    writer = CommitWriter()
    store(engine, writer.open(), writer.seal(ev.ActionRequested(action="a", tool="t")))
    with pytest.raises(InvalidInputError, match="not abandoned"):
        engine.submit(writer.forked().seal_fork()).result()
    child = writer.forked()
    engine.submit(child.seal_fork(ev.ActionAbandoned(action="a", inherited=True))).result()


@dataclasses.dataclass(frozen=True)
class Forgery:
    """A commit with one thing wrong."""

    name: str
    make: Callable[[CommitWriter], Commit]


def _replaced(**changes: Any) -> Callable[[CommitWriter], Commit]:
    return lambda writer: msgspec.structs.replace(writer.rival(fact("a"), message(BIG)), **changes)


def _raw(kind: str, body: dict[str, Any], **header: Any) -> Callable[[CommitWriter], Commit]:
    def make(writer: CommitWriter) -> Commit:
        record = raw_record(writer.seq + 1, kind, body, at=START_US + 10**9, **header)
        return raw_commit(writer.session, [record], prev=writer.hash)

    return make


def _altered(change: Callable[[Record], Record]) -> Callable[[CommitWriter], Commit]:
    def make(writer: CommitWriter) -> Commit:
        commit = writer.rival(fact("a"))
        return msgspec.structs.replace(commit, records=tuple(map(change, commit.records)))

    return make


FORGERIES = [
    Forgery("another hash", _replaced(hash=bytes(32))),
    Forgery("another status", _replaced(status="closed")),
    Forgery("another epoch", _replaced(epoch=7)),
    Forgery("another turn", _replaced(turn=7)),
    Forgery("other turns", _replaced(turns=(1, 9))),
    Forgery("other kinds", _replaced(kinds=("fact.recorded",))),
    Forgery("other paths", _replaced(paths=("a.py",))),
    Forgery("another time", _replaced(at=1)),
    Forgery("late although it may not be", _replaced(late=True)),
    Forgery("an id that is not its own", _replaced(commit_id="another")),
    Forgery("a fingerprint of something else", _replaced(commit_id="mine", fingerprint=bytes(32))),
    Forgery("a payload nobody mentions", _replaced(payloads=((bytes(32), b"smuggled"),))),
    Forgery("a payload that is not there", _replaced(payloads=())),
    Forgery("no records", _replaced(records=())),
    Forgery("more events than records", _replaced(last=99)),
    Forgery("an altered body", _altered(lambda r: Record(r.header, r.salt, r.body.replace(b'"a"', b'"b"')))),
    Forgery("a body without salt", _altered(lambda r: Record(r.header, b"", r.body))),
    Forgery("a short salt", _altered(lambda r: Record(r.header, b"salt", r.body))),
    Forgery("no body", _altered(lambda r: Record(r.header, r.salt, b""))),
    Forgery("a header that is none", _altered(lambda r: Record(b"\xff{", r.salt, r.body))),
    Forgery("a body that is none", _altered(lambda r: Record(r.header, r.salt, b"\xff{"))),
    Forgery("no delta", _raw("fact.recorded", {"key": "a", "value": 1})),
    Forgery("another delta", _raw("goal.set", {"goal": "x", "delta": [{"op": "add", "path": "/goal", "value": "y"}]})),
    Forgery("a delta of a kind without", _raw("note.added", {"text": "x", "delta": [{"op": "add", "path": "/x"}]})),
    Forgery("a kind nobody knows", _raw("own.kind", {"a": 1})),
    Forgery("a body that does not fit", _raw("note.added", {"text": 7})),
    Forgery("a turn that is not open", _raw("note.added", {"text": "x"}, turn=3)),
    Forgery("a cause to come", _raw("note.added", {"text": "x"}, cause=99)),
    Forgery("an encrypted body", _raw("note.added", {"text": "x"}, codec="aes")),
    Forgery("a faked mention", _raw("message.added", {"role": "user", "content": {"$payload": "00" * 32, "size": 3}})),
    Forgery("a mention that is none", _raw("message.added", {"role": "user", "content": {"$payload": 3}})),
    Forgery("a reserved key", _raw("fact.recorded", {"key": "a", "value": {"$erased": 1}})),
    Forgery("a rewind to nowhere else", _raw("history.rewound", {"to": 1, "under": 5})),
    Forgery("a rewind that does nothing", _raw("history.rewound", {"to": 1})),
    Forgery("a redaction of another event", _raw("payload.redacted", {"target": 1})),
]  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda f: f.name)
def test_a_commit_with_one_thing_wrong_is_refused_and_nothing_is_stored(
    engine: CheckedEngine, forgery: Forgery
) -> None:
    writer = opened(engine, "before")
    before = stored(engine, writer.session)
    with pytest.raises(InvalidInputError):
        engine.submit(forgery.make(writer)).result()
    assert stored(engine, writer.session) == before
    store(engine, writer.seal(fact("goes on")))


@pytest.mark.parametrize("event", [ev.ActionSucceeded(action="never begun"), ev.TurnEnded(), ev.SessionReopened()])
def test_an_illegal_move_is_refused(engine: CheckedEngine, event: ev.Event) -> None:
    writer = opened(engine)
    with pytest.raises(NotAllowedError):
        engine.submit(_raw(event.kind, msgspec.to_builtins(event))(writer)).result()


@pytest.mark.parametrize("kind", ["session.deleted", "payload.erased", "range.pruned"])
def test_removals_are_not_appended(engine: CheckedEngine, kind: str) -> None:
    writer = opened(engine)
    with pytest.raises(NotAllowedError) as refused:
        engine.submit(_raw(kind, {})(writer)).result()
    assert refused.value.kind == "own-kind"


@pytest.mark.parametrize("content", [f"my token is {SECRET}", BIG + SECRET, {"deep": [BIG, SECRET]}, SECRET.encode()])
def test_a_commit_that_holds_a_secret_is_turned_away(engine: CheckedEngine, content: Any) -> None:
    writer = opened(engine)
    with pytest.raises(NotAllowedError) as refused:
        engine.submit(writer.rival(message(content))).result()
    assert refused.value.kind == "secret-found"
    assert SECRET not in str(refused.value)
    store(engine, writer.seal(default_redact(message(content))[0]))


def test_a_clock_far_ahead_is_refused() -> None:
    engine = MemoryEngine()
    checker = CommitChecker(engine, lambda session: Log(engine, session), clock=lambda: START_US)
    ahead = Log.create(MemoryEngine(), new_session(), ev.SessionOpened(), clock=lambda: START_US + AHEAD_MAX_US + 1)
    with pytest.raises(InvalidInputError) as refused:
        checker.submit(*ahead.engine.read(ahead.id))
    assert refused.value.kind == "clock-ahead"


def test_a_commit_ahead_of_the_head_never_reaches_the_engine(engine: CheckedEngine) -> None:
    writer = opened(engine)
    writer.seal(fact("skipped"))
    forged = msgspec.structs.replace(writer.rival(fact("a")), status="closed")
    with pytest.raises(ConflictError):
        engine.submit(forged).result()
    # Its predecessor comes, and the forgery would fit now: it was not kept in line.
    store(engine, writer.commits[-1])
    assert engine.head(writer.session).status == "open"


def test_a_session_must_begin_with_its_opening_and_under_its_own_id(engine: CheckedEngine) -> None:
    writer = CommitWriter()
    for wrong in ("not-an-id", f"{writer.session}.00000000"):
        commit = msgspec.structs.replace(CommitWriter().open(), session=SessionId(wrong))
        with pytest.raises(InvalidInputError):
            engine.submit(commit).result()
    record = raw_record(1, "note.added", {"text": "x"})
    with pytest.raises(NotAllowedError):
        engine.submit(raw_commit(writer.session, [record])).result()


def test_a_fork_belongs_to_its_parents_tree_and_leaves_at_the_hash_it_names(engine: CheckedEngine) -> None:
    parent = opened(engine, "a")
    stranger = parent.forked(session=SessionId(f"{new_session()}.00000000"))
    with pytest.raises(InvalidInputError, match="tree"):
        engine.submit(stranger.seal_fork()).result()
    commit = parent.forked().seal_fork()
    assert commit.fork is not None
    for change in ({"at": 1}, {"hash": bytes(32)}):
        point = msgspec.structs.replace(commit.fork, **change)
        with pytest.raises((InvalidInputError, NotFoundError)):
            engine.submit(msgspec.structs.replace(commit, fork=point)).result()
    assert list(engine.children(parent.session)) == []


def test_a_snapshot_is_made_here_and_not_believed(engine: CheckedEngine) -> None:
    writer = opened(engine)
    forged = msgspec.structs.replace(writer.seal(fact("k"), snapshot=True), snapshot=b"\x00forged")
    store(engine, forged)
    found = engine.snapshot(writer.session, upto=2)
    assert found is not None
    assert found.data != forged.snapshot
    assert verify(Log(engine.inner, writer.session)).ok


def test_a_held_session_keeps_everything(engine: CheckedEngine, log: Log) -> None:
    log.append(message(BIG))
    commits = list(engine.inner.read(log.id, payloads=True))
    log.append(ev.LabelsSet(labels={HOLD_LABEL: "case 17"}))
    writer = _writer_on(log)
    deletion = writer.rival(ev.SessionDeleted())
    surgery = Surgery((writer.rival(ev.NoteAdded(text="x")),), (_emptied(commits[1]),), stale_from={})
    for remove in (lambda: engine.delete(deletion), lambda: engine.operate(surgery)):
        with pytest.raises(NotAllowedError) as refused:
            remove()
        assert refused.value.kind == "held"


def test_only_a_deletion_deletes(engine: CheckedEngine) -> None:
    writer = opened(engine, "a")
    with pytest.raises(InvalidInputError):
        engine.delete(writer.rival(fact("b")))
    with pytest.raises(InvalidInputError):
        engine.delete(writer.commits[-1])
    with pytest.raises(InvalidInputError):
        engine.delete(_altered(lambda r: Record(b"{", r.salt, r.body))(writer))


def test_surgery_vouched_for_by_forged_bytes_of_a_stored_commit_is_refused(engine: CheckedEngine, log: Log) -> None:
    log.append(fact("secret"))
    erase(log, [2])
    stored_commits = list(engine.inner.read(log.id))
    erased = ev.PayloadErased(erased=(ev.Replacement(2, {"key": "never", "value": "said"}),))
    [record] = _writer_on(log).rival(erased).records
    forged = msgspec.structs.replace(stored_commits[-1], records=(record,))
    body = msgspec.json.encode(erased.erased[0].body)
    rewritten = msgspec.structs.replace(
        stored_commits[1], records=tuple(Record(r.header, b"", body) for r in stored_commits[1].records)
    )
    with pytest.raises(InvalidInputError):
        engine.operate(Surgery((forged,), (rewritten,), stale_from={}))


def test_surgery_removes_and_does_not_invent(engine: CheckedEngine) -> None:
    writer = opened(engine)
    store(engine, writer.seal(message(BIG), fact("secret")))
    commit = writer.commits[1]
    say = writer.rival(ev.NoteAdded(text="erased"))

    def invented(body: bytes, salt: bytes = b"") -> Commit:
        records = tuple(Record(r.header, salt, body) for r in commit.records)
        return msgspec.structs.replace(commit, records=records)

    other = raw_record(2, "note.added", {"text": "never said"})
    wrong = [
        invented(b'{"key":"never","value":"said"}'),
        invented(b'{"key":"never","value":"said"}', salt=bytes(16)),
        msgspec.structs.replace(commit, records=(other, commit.records[1])),
        msgspec.structs.replace(commit, records=commit.records[:1]),
        msgspec.structs.replace(commit, payloads=((bytes(32), b"smuggled"),)),
        msgspec.structs.replace(commit, status="closed"),
        msgspec.structs.replace(commit, hash=bytes(32)),
    ]
    before = stored(engine, writer.session)
    for rewritten in wrong:
        with pytest.raises(InvalidInputError):
            engine.operate(Surgery((say,), (rewritten,), stale_from={}))
    assert stored(engine, writer.session) == before


def test_a_prune_below_a_live_fork_is_refused(engine: CheckedEngine, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(fact("a"))
    fork = log.fork()
    log.append(fact("b"))
    rival = CheckedEngine(engine.inner)
    monkeypatch.setattr(rival, "children", lambda session, deleted=False: [], raising=False)
    with pytest.raises(NotAllowedError) as refused:
        prune(Log(rival, log.id, clock=log.clock), 3)
    assert refused.value.kind == "live-fork"
    assert fork.state()["facts"]


def test_the_base_of_a_prune_is_the_state_there(engine: CheckedEngine, log: Log) -> None:
    log.append(fact("a"))
    log.append(fact("b"))
    hash_ = log.entry(2).hash.hex()
    forged = {**log.state(2), "goal": "never set"}
    for base, last_hash in ((forged, hash_), (log.state(2), "00" * 32), (log.state(3), hash_)):
        event = ev.RangePruned(upto=2, last_hash=last_hash, base=Payload(msgspec.json.encode(base), "json"))
        with pytest.raises(InvalidInputError, match="base"):
            engine.operate(Surgery((_writer_on(log).rival(event),), (), stale_from={}))


def _writer_on(log: Log) -> CommitWriter:
    """A writer at the head of an existing session."""
    writer = CommitWriter(log.id)
    head = log.head()
    tip = writer._tip
    tip.fold.doc.update(log.state())
    tip.seq, tip.hash, tip.at = head.seq, head.hash, head.at
    return writer


def _emptied(commit: Commit) -> Commit:
    records = tuple(Record(r.header, b"", b"") for r in commit.records)
    return msgspec.structs.replace(commit, records=records, payloads=(), paths=(), fingerprint=b"")


@pytest.fixture(autouse=True)
def _no_engine_left_open(engine: CheckedEngine) -> Iterator[None]:
    yield
    engine.close()
