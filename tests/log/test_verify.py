"""Verification: every tampering is found and told where it shows, and nothing else is called a fault."""

import io
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

import wakelog
from tests.every import every
from tests.log.conftest import NewLog
from wakelog.codec.pack import pack_snapshot, unpack_snapshot
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine, tables
from wakelog.engines.sqlite.rows import checksum
from wakelog.errors import CorruptLogError, InvalidInputError, WakelogError
from wakelog.log import Log
from wakelog.log.removal import erase, prune
from wakelog.log.verify import verify, verify_session
from wakelog.model import events as ev
from wakelog.model.records import Anchor, Commit, Record
from wakelog.testing.builders import CommitWriter, fact, message, new_session, raw_commit, raw_record

BIG = "larger than what stays in a body " * 40
replace = msgspec.structs.replace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[Log]:
    """A session with a bit of everything: several commits, a payload, a turn, a snapshot, a file."""
    engine = SqliteEngine(path)
    log = Log.create(engine, new_session(), ev.SessionOpened(goal="g"))
    log.append(ev.TurnStarted(), fact("a"), message(BIG))  # 2, 3, 4
    log.append(ev.FileChanged(path="f.py"), fact("b"))  # 5, 6
    log.append(fact("big", "x" * 70_000))  # 7, with a snapshot
    log.append(ev.TurnEnded())  # 8
    log.append(fact("c"), fact("d"))  # 9, 10
    assert engine.snapshot(log.id, upto=99) is not None
    assert verify(log).ok
    yield log
    engine.close()


def commit_at(log: Log, first: int) -> Commit:
    [found] = [c for c in log.engine.read(log.id, payloads=True) if c.first == first]
    return found


def forge(path: Path, commit: Commit) -> None:
    """Puts a commit in place of the stored one as a careful forger would: with all checksums right."""
    db = apsw.Connection(str(path))
    tables.update_commit(db, tables.number_of(db, commit.session), commit)
    db.close()


def sql(path: Path, statement: str, *values: Any) -> None:
    with sqlite3.connect(path) as db:
        db.execute(statement, values)
    db.close()


def faults(log: Log, anchor: Anchor | None = None) -> tuple[set[int], set[int]]:
    """Where verification, done again, sees integrity and completeness hurt."""
    report = verify_session(log.engine, log.id, anchor)
    assert report.ok == (not report.integrity and not report.completeness)
    return {f.seq for f in report.integrity}, {f.seq for f in report.completeness}


def with_record(commit: Commit, index: int, **changes: Any) -> Commit:
    records = list(commit.records)
    records[index] = replace(records[index], **changes)
    return replace(commit, records=tuple(records))


# Single parts


def test_an_altered_body_is_found(log: Log, path: Path) -> None:
    commit = commit_at(log, 2)
    body = commit.records[1].body.replace(b'"a"', b'"z"')
    forge(path, with_record(commit, 1, body=body))
    assert faults(log) == ({3}, set())
    with pytest.raises(CorruptLogError):
        list(log.entries())


def test_an_altered_salt_is_found(log: Log, path: Path) -> None:
    commit = commit_at(log, 2)
    forge(path, with_record(commit, 1, salt=bytes(16)))
    assert faults(log) == ({3}, set())


def test_a_body_passed_off_as_a_replacement_is_found(log: Log, path: Path) -> None:
    commit = commit_at(log, 2)
    forge(path, with_record(commit, 1, salt=b"", body=b'{"$erased":3}'))
    integrity, _ = faults(log)
    assert 3 in integrity


def test_a_body_passed_off_as_pruned_is_found(log: Log, path: Path) -> None:
    commit = commit_at(log, 2)
    forge(path, with_record(commit, 1, salt=b"", body=b""))
    integrity, _ = faults(log)
    assert 3 in integrity
    log.engine.drop_snapshots(log.id)
    with pytest.raises(WakelogError):
        Log(log.engine, log.id).state()


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.replace(b'"kind":"fact.recorded"', b'"kind":"fact.retracted"'),
        lambda h: h.replace(b'"seq":3', b'"seq":4'),
        lambda h: h.replace(b'"turn":1', b'"turn":2'),
        lambda h: h + b" ",
        lambda h: b"{}",
        lambda h: b"",
    ],
)
def test_an_altered_header_is_found(log: Log, path: Path, change: Callable[[bytes], bytes]) -> None:
    commit = commit_at(log, 2)
    forge(path, with_record(commit, 1, header=change(commit.records[1].header)))
    integrity, _ = faults(log)
    assert integrity
    assert min(integrity) <= 3


def test_an_altered_payload_is_found(log: Log, path: Path) -> None:
    commit = commit_at(log, 2)
    [(digest, content)] = commit.payloads
    forge(path, replace(commit, payloads=((digest, content + b"!"),)))
    assert faults(log)[0] == {2}
    with pytest.raises(CorruptLogError):
        entry = log.entry(4)
        log.value(entry, entry.body["content"])


def test_a_missing_payload_is_found(log: Log, path: Path) -> None:
    forge(path, replace(commit_at(log, 2), payloads=()))
    assert faults(log) == (set(), {4})


@pytest.mark.parametrize(
    "change",
    [
        {"kinds": ("fact.recorded",)},
        {"turns": (0, 7)},
        {"paths": ("other.py",)},
        {"paths": ()},
        {"at": 5},
        {"status": "closed"},
        {"epoch": 3},
        {"turn": 9},
    ],
    ids=str,
)
def test_an_altered_summary_is_found(log: Log, path: Path, change: dict[str, Any]) -> None:
    forge(path, replace(commit_at(log, 5), **change))
    assert faults(log) == ({5}, set())


@pytest.mark.parametrize(
    "column", ["at", "epoch", "status", "turn", "turn_first", "kinds", "paths", "commit_id", "prev", "hash", "first"]
)
def test_a_careless_change_of_any_column_is_found(log: Log, path: Path, column: str) -> None:
    value = {"status": "paused", "kinds": "[]", "paths": "[]", "commit_id": "x", "prev": b"x", "hash": b"x"}
    sql(path, f"update log set {column} = ? where first = 5", value.get(column, 77))
    integrity, completeness = faults(log)
    assert integrity | completeness


@pytest.mark.parametrize("part", ["prev", "hash"])
def test_a_broken_link_is_found(log: Log, path: Path, part: str) -> None:
    forge(path, replace(commit_at(log, 5), **{part: b"\x01" * 32}))
    integrity, _ = faults(log)
    assert min(integrity) == 5


def test_an_altered_snapshot_is_found_and_told_to_be_a_cache(log: Log, path: Path) -> None:
    snapshot = log.engine.snapshot(log.id, upto=99)
    assert snapshot is not None
    state = unpack_snapshot(snapshot.data)
    forged = pack_snapshot(state.replace(b'"goal":"g"', b'"goal":"h"'))
    sql(path, "update snapshot set data = ?, checksum = ?", forged, checksum(log.id, snapshot.seq, forged))
    report = verify(Log(log.engine, log.id))
    assert [f.seq for f in report.integrity] == [7]
    assert "cache" in report.integrity[0].what
    log.engine.drop_snapshots(log.id)
    assert verify(log).ok


def test_a_damaged_snapshot_changes_no_answer(log: Log, path: Path) -> None:
    state = log.state()
    sql(path, "update snapshot set data = substr(data, 1, 40)")
    assert Log(log.engine, log.id).state() == state


# The order of things


def test_a_missing_commit_in_the_middle_is_found(log: Log, path: Path) -> None:
    sql(path, "delete from log where first = 5")
    _, completeness = faults(log)
    assert 5 in completeness
    with pytest.raises(CorruptLogError) as told:
        list(log.entries())
    assert told.value.kind == "gap"


def test_a_missing_beginning_is_found(log: Log, path: Path) -> None:
    sql(path, "delete from log where first = 1")
    integrity, completeness = faults(log)
    assert 1 in integrity | completeness


def test_commits_that_changed_places_are_found(log: Log, path: Path) -> None:
    log.append(fact("e"), fact("f"))  # 11, 12: of the same size as 9, 10
    one, other = commit_at(log, 9), commit_at(log, 11)
    forge(path, replace(one, records=other.records, prev=other.prev, hash=other.hash))
    forge(path, replace(other, records=one.records, prev=one.prev, hash=one.hash))
    integrity, _ = faults(log)
    assert min(integrity) == 9


def test_events_that_changed_places_within_a_commit_are_found(log: Log, path: Path) -> None:
    commit = commit_at(log, 9)
    forge(path, replace(commit, records=commit.records[::-1]))
    integrity, _ = faults(log)
    assert min(integrity) == 9


def test_an_inserted_event_is_found(log: Log, path: Path) -> None:
    commit = commit_at(log, 9)
    extra = raw_record(10, "note.added", {"text": "never said"})
    forge(path, replace(commit, records=(commit.records[0], extra)))
    integrity, _ = faults(log)
    assert min(integrity) == 9


def test_a_cut_off_end_is_found_against_an_anchor_only(log: Log, path: Path) -> None:
    early = Anchor(log.id, 8, log.entry(8).hash.hex(), 0)
    anchor = log.anchor()
    sql(path, "delete from log where first = 9")
    assert faults(log) == (set(), set())
    assert not verify(Log(log.engine, log.id)).anchored
    integrity, completeness = faults(log, anchor)
    assert (integrity, completeness) == (set(), {9})
    assert faults(log, early) == (set(), set())


def test_a_rewritten_history_is_found_against_an_anchor(log: Log, path: Path) -> None:
    """A forger who makes a whole new chain from the middle on: only a head kept elsewhere tells."""
    anchor = log.anchor()
    last = commit_at(log, 9)
    records = [
        raw_record(9, "note.added", {"text": "new"}, at=last.at),
        raw_record(10, "note.added", {"text": "x"}, at=last.at),
    ]
    forged = raw_commit(log.id, records, prev=last.prev, status=last.status)
    forge(path, replace(forged, turn=last.turn, epoch=last.epoch))
    assert faults(log) == (set(), set())
    integrity, _ = faults(log, anchor)
    assert integrity == {10}


def test_names_that_changed_places_are_found(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with wakelog.open(str(path)) as store:
        mine, other = store.session("mine"), store.session("other")
        forked = mine.fork(name="forked")
    db = apsw.Connection(str(path))
    db.execute("delete from name")
    for name, session in (("mine", other.id), ("other", forked.id), ("forked", mine.id)):
        db.execute("insert into name values (?, ?, ?)", (name, session, checksum(name, session)))
    db.close()
    with wakelog.open(str(path)) as store:
        [fault] = store.resume("mine").verify().integrity
        assert fault.what == "the store calls this session 'mine', but its first event names it 'other'"
        [fault] = store.resume("other").verify().integrity
        assert (fault.seq, fault.what.partition("names it ")[2]) == (2, "'forked'")
        [fault] = store.resume("forked").verify().integrity
        assert fault.what.endswith("'mine'")


def test_a_name_that_was_taken_claimed_later_erased_or_redacted_is_no_fault() -> None:
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    with wakelog.open("memory:") as store, wakelog.open("memory:") as elsewhere:
        session = store.session("mine")
        elsewhere.session("mine")
        session.export_bundle(bundle := io.BytesIO())
        bundle.seek(0)
        elsewhere.import_bundle(bundle)
        assert elsewhere.resume(session.id).verify().ok
        assert store.session(token).verify().ok
        store.engine.claim("later", (fork := session.fork()).id)
        assert fork.verify().ok
        erase(session.log, [1], why="asked to")
        assert session.verify().ok


def test_an_anchor_that_still_holds_is_said_to(log: Log) -> None:
    anchor = log.anchor()
    log.append(fact("more"))
    report = verify(log, anchor)
    assert report.ok
    assert report.anchored
    assert report.events == 11
    assert report.head_hash == log.head().hash.hex()


def test_an_anchor_of_another_session_is_refused(log: Log) -> None:
    other = Log.create(log.engine, new_session(), ev.SessionOpened())
    with pytest.raises(InvalidInputError):
        verify(log, other.anchor())


def test_time_that_goes_back_is_found() -> None:
    writer = CommitWriter()
    opened = writer.open()
    late = raw_commit(writer.session, [raw_record(2, "note.added", {"text": "t"}, at=5)], prev=opened.hash)
    engine = MemoryEngine()
    engine.submit(opened, late).result()
    assert faults(Log(engine, writer.session)) == ({2}, set())


def test_a_state_hash_that_is_not_the_folds_is_found() -> None:
    writer = CommitWriter()
    body = {
        "name": "c",
        "at": 1,
        "state_hash": "00" * 32,
        "delta": [{"op": "add", "path": "/checkpoints/c", "value": 1}],
    }
    commits = [writer.open(), raw_commit(writer.session, [raw_record(2, "checkpoint.named", body)], prev=writer.hash)]
    engine = MemoryEngine()
    engine.submit(*commits).result()
    integrity, _ = faults(Log(engine, writer.session))
    assert integrity == {2}


@every(
    "body",
    [
        b"not json",
        b"[]",
        b'{"delta":{}}',
        b'{"delta":[{}]}',
        b'{"delta":[{"op":"add"}]}',
        b'{"delta":[{"op":"add","path":"/goal"}]}',
        b'{"delta":[{"op":"add","path":5,"value":1}]}',
        b'{"delta":[{"op":"move","path":"/goal","from":"/status"}]}',
        b'{"delta":[{"op":"remove","path":"/facts/none"}]}',
        b'{"delta":[{"op":"replace","path":"","value":5}]}',
        b'{"delta":[{"op":"replace","path":"","value":{}}]}',
        b'{"delta":[{"op":"remove","path":"/turn"}]}',
        b'{"delta":[{"op":"add","path":"/status","value":{"a":1}}]}',
        b'{"delta":[5]}',
    ],
)
@every("kind", ["note.added", "file.changed", "payload.erased", "range.pruned", "history.rewound", "turn.ended"])
def test_a_body_that_makes_no_sense_is_a_fault_and_never_a_crash(kind: str, body: bytes) -> None:
    writer = CommitWriter()
    opened = writer.open()
    engine = MemoryEngine()
    engine.submit(opened, raw_commit(writer.session, [raw_record(2, kind, body)], prev=opened.hash)).result()
    assert not verify(Log(engine, writer.session)).ok


# What is no fault


def test_forks_erasures_and_prunes_are_no_faults(new_log: NewLog) -> None:
    log = new_log(*(fact(f"k{i}", str(i)) for i in range(8)), message(BIG), ev.FileChanged(path="f"))
    fork = log.fork(6)
    fork.append(fact("own"))
    erase(log, [7, 10, 11])
    prune(log, 4)
    fork.rewind(5)
    for each in (log, fork, fork.fork(6)):
        report = verify(each)
        assert report.ok, report
        assert report.events == each.head().seq


def test_odd_names_are_no_faults(new_log: NewLog) -> None:
    log = new_log(
        ev.FileChanged(path="a\nb"),
        ev.FileChanged(path=""),
        ev.FileChanged(path="a b"),
        ev.FileChanged(path="\U0001f600"),
        ev.FactRecorded(key="", value=""),
        ev.LabelsSet(labels={"~/~": "x"}),
        ev.ActionRequested(action="", tool=""),
        ev.Foreign(foreign_kind="x.a b\nc", data={}),
    )
    log.append(ev.FileChanged(path="x"), ev.FileChanged(path="x\ny"), ev.FileChanged(path="x"))
    assert verify(log).ok
    assert verify(Log(log.engine, log.id)).ok


def test_a_replacement_that_is_not_the_one_said_is_found(log: Log, path: Path) -> None:
    erase(log, [3])
    commit = commit_at(log, 2)
    forged = Record(commit.records[1].header, b"", commit.records[1].body.replace(b"$erased", b"$erasee"))
    records = (commit.records[0], forged, commit.records[2])
    forge(path, replace(commit, records=records))
    integrity, _ = faults(log)
    assert 3 in integrity


def test_a_base_state_that_was_altered_is_found(log: Log, path: Path) -> None:
    prune(log, 6)
    commit = commit_at(log, 11)
    [(digest, content)] = commit.payloads
    forge(path, replace(commit, payloads=((digest, content.replace(b'"goal":"g"', b'"goal":"h"')),)))
    integrity, _ = faults(log)
    assert integrity
