"""Surgery: stored bytes are replaced together with the commits that record it, or not at all."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import msgspec
import pytest

from wakelog.engine import Engine, Surgery
from wakelog.errors import ConflictError, InvalidInputError, NotFoundError
from wakelog.model import events as ev
from wakelog.model.records import Commit, Record
from wakelog.testing.builders import CommitWriter, fact, message
from wakelog.testing.contract.base import Hooks, expected, opened, store, stored

BIG = "what is to be gone " * 60


class RemovalChecks(Hooks):
    def test_surgery_replaces_bytes_and_appends_its_record(self, engine: Engine, tmp_path: Path) -> None:
        writer = _with_content(engine)
        emptied, commit = _emptied(writer.commits[1]), writer.seal(ev.NoteAdded(text="erased"))
        head = engine.operate(Surgery((commit,), (emptied,), stale_from={}))
        assert (head.seq, head.hash) == (6, commit.hash)
        again = self.reopen(engine, tmp_path)
        assert stored(again, writer.session) == expected(writer.commits[0], emptied, *writer.commits[2:])
        with pytest.raises(NotFoundError):
            again.payload(writer.session, 2, hashlib.sha256(BIG.encode()).digest())
        again.close()

    def test_snapshots_that_may_hold_what_was_removed_are_dropped(self, engine: Engine) -> None:
        writer = _with_content(engine)
        commit = writer.seal(ev.NoteAdded(text="erased"))
        engine.operate(Surgery((commit,), (), stale_from={writer.session: 4}))
        assert _snapshots(engine, writer) == [3]

    def test_snapshots_before_a_prune_are_dropped(self, engine: Engine) -> None:
        writer = _with_content(engine)
        commit = writer.seal(ev.NoteAdded(text="pruned"))
        engine.operate(Surgery((commit,), (), stale_from={}, pruned_to={writer.session: 4}))
        assert _snapshots(engine, writer) == [4, 5]

    def test_surgery_reaches_all_sessions_of_a_tree_at_once(self, engine: Engine) -> None:
        parent = _with_content(engine)
        child = parent.forked()
        store(engine, child.seal_fork(), child.seal(message(BIG)), child.seal(fact("k"), snapshot=True))
        emptied = [_emptied(parent.commits[1]), _emptied(child.commits[1])]
        commits = [parent.seal(ev.NoteAdded(text="erased")), child.seal(ev.NoteAdded(text="erased too"))]
        engine.operate(Surgery(tuple(commits), tuple(emptied), stale_from={parent.session: 1, child.session: 1}))
        assert stored(engine, parent.session)[1] == expected(emptied[0])[0]
        assert stored(engine, child.session)[1] == expected(emptied[1])[0]
        assert [engine.head(w.session).hash for w in (parent, child)] == [c.hash for c in commits]
        assert _snapshots(engine, parent) == _snapshots(engine, child) == []

    def test_a_conflict_changes_nothing_at_all(self, engine: Engine) -> None:
        parent = _with_content(engine)
        child = parent.forked()
        store(engine, child.seal_fork(), child.seal(message(BIG)))
        stale = child.rival(ev.NoteAdded(text="erased too"))
        store(engine, child.seal(fact("came first")))
        before = [stored(engine, w.session) for w in (parent, child)]
        commit = parent.rival(ev.NoteAdded(text="erased"))
        surgery = Surgery(
            (commit, stale),
            (_emptied(parent.commits[1]), _emptied(child.commits[1])),
            stale_from={parent.session: 1},
            pruned_to={parent.session: 5},
        )
        with pytest.raises(ConflictError):
            engine.operate(surgery)
        assert [stored(engine, w.session) for w in (parent, child)] == before
        assert _snapshots(engine, parent) == [3, 4, 5]
        # Nothing of what was rolled back is remembered: both sessions continue where they were.
        store(engine, parent.seal(fact("goes on")), child.seal(fact("goes on")))

    def test_a_session_goes_on_after_surgery(self, engine: Engine, tmp_path: Path) -> None:
        writer = _with_content(engine)
        emptied = _emptied(writer.commits[1])
        engine.operate(Surgery((writer.seal(ev.NoteAdded(text="erased")),), (emptied,), stale_from={}))
        store(engine, writer.seal(fact("more")))
        again = self.reopen(engine, tmp_path)
        store(again, writer.seal(fact("and more")))
        assert [c.first for c in again.read(writer.session)] == [1, 2, 3, 4, 5, 6, 7, 8]
        again.close()

    def test_removed_content_does_not_return_with_a_repeated_commit(self, engine: Engine) -> None:
        writer = _with_content(engine)
        original = writer.commits[1]
        engine.operate(Surgery((writer.seal(ev.NoteAdded(text="erased")),), (_emptied(original),), stale_from={}))
        after = stored(engine, writer.session)
        # The answer may be known or not, but the content must not return.
        with contextlib.suppress(ConflictError, InvalidInputError):
            assert engine.submit(original).result().seq == 2
        assert stored(engine, writer.session) == after


def _with_content(engine: Engine) -> CommitWriter:
    """Five events in five commits: a payload at 2, snapshots at 3, 4 and 5."""
    writer = opened(engine)
    store(engine, writer.seal(message(BIG), commit_id="mine"))
    store(engine, *(writer.seal(fact(k), snapshot=True) for k in "abc"))
    return writer


def _emptied(commit: Commit) -> Commit:
    """The commit with headers only, as after an erasure."""
    records = tuple(Record(r.header, b"", b"") for r in commit.records)
    return msgspec.structs.replace(commit, records=records, payloads=(), paths=(), fingerprint=b"", snapshot=None)


def _snapshots(engine: Engine, writer: CommitWriter) -> list[int]:
    found = (engine.snapshot(writer.session, upto=seq) for seq in range(1, 12))
    return sorted({snapshot.seq for snapshot in found if snapshot})
