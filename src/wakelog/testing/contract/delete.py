"""Deleting: a tombstone stays, and the content is dropped once no fork reads through it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from wakelog.engine import Engine
from wakelog.errors import ConflictError, NotAllowedError, NotFoundError
from wakelog.model import events as ev
from wakelog.testing.builders import CommitWriter, fact, message
from wakelog.testing.contract.base import Hooks, expected, opened, store, stored

BIG = "what is to be gone " * 60


class DeleteChecks(Hooks):
    def test_of_a_deleted_session_only_the_tombstone_is_left(self, engine: Engine, tmp_path: Path) -> None:
        writer = _with_content(engine)
        tombstone = writer.seal(ev.SessionDeleted())
        head = engine.delete(tombstone)
        assert (head.status, head.seq, head.hash) == ("deleted", 4, tombstone.hash)
        again = self.reopen(engine, tmp_path)
        assert stored(again, writer.session) == expected(tombstone)
        assert again.head(writer.session).status == "deleted"
        assert again.snapshot(writer.session, upto=99) is None
        with pytest.raises(NotFoundError):
            again.payload(writer.session, 2, hashlib.sha256(BIG.encode()).digest())
        again.close()

    def test_a_deleted_session_never_comes_back(self, engine: Engine, tmp_path: Path) -> None:
        writer = _with_content(engine)
        before = [*writer.commits, writer.rival(ev.ActionEvidence(action="a")), CommitWriter(writer.session).open()]
        engine.delete(writer.seal(ev.SessionDeleted()))
        again = self.reopen(engine, tmp_path)
        for commit in before:
            with pytest.raises(NotAllowedError) as refused:
                again.submit(commit).result()
            assert refused.value.kind == "append-to-deleted"
        assert again.head(writer.session).status == "deleted"
        again.close()

    def test_deleting_on_a_stale_head_is_refused_and_changes_nothing(self, engine: Engine) -> None:
        writer = _with_content(engine)
        engine.claim("kept", writer.session)
        stale = writer.rival(ev.SessionDeleted())
        store(engine, writer.seal(fact("b")))
        with pytest.raises(ConflictError):
            engine.delete(stale)
        assert stored(engine, writer.session) == expected(*writer.commits)
        assert engine.find("kept") == writer.session
        assert engine.snapshot(writer.session, upto=99) is not None
        store(engine, writer.seal(fact("c")))

    def test_deleting_twice_with_the_same_commit_gives_the_same_answer(self, engine: Engine) -> None:
        writer = _with_content(engine)
        commit = writer.seal(ev.SessionDeleted())
        assert engine.delete(commit) == engine.delete(commit)

    def test_a_parent_is_hidden_while_a_fork_lives_and_goes_with_the_last(self, engine: Engine, tmp_path: Path) -> None:
        parent = _with_content(engine)
        forks = [parent.forked(2), parent.forked(3)]
        for fork in forks:
            store(engine, fork.seal_fork())
        content = expected(*parent.commits)
        tombstone = parent.seal(ev.SessionDeleted())
        engine.delete(tombstone)
        assert parent.session not in {h.session for h in engine.sessions()}
        assert stored(engine, parent.session)[:-1] == content
        engine.delete(forks[0].seal(ev.SessionDeleted()))
        assert stored(engine, parent.session)[:-1] == content
        engine.delete(forks[1].seal(ev.SessionDeleted()))
        again = self.reopen(engine, tmp_path)
        assert stored(again, parent.session) == expected(tombstone)
        again.close()

    def test_content_waits_for_forks_of_forks_too(self, engine: Engine) -> None:
        parent = _with_content(engine)
        child = parent.forked(3)
        store(engine, child.seal_fork(), child.seal(fact("c")))
        grandchild = child.forked()
        store(engine, grandchild.seal_fork())
        held = [expected(*parent.commits), expected(*child.commits)]
        engine.delete(parent.seal(ev.SessionDeleted()))
        engine.delete(child.seal(ev.SessionDeleted()))
        assert [stored(engine, w.session)[:-1] for w in (parent, child)] == held
        engine.delete(grandchild.seal(ev.SessionDeleted()))
        assert [len(stored(engine, w.session)) for w in (parent, child, grandchild)] == [1, 1, 1]

    def test_deleting_a_fork_leaves_a_living_parent_alone(self, engine: Engine) -> None:
        parent = _with_content(engine)
        child = parent.forked()
        store(engine, child.seal_fork())
        engine.delete(child.seal(ev.SessionDeleted()))
        store(engine, parent.seal(fact("b")))
        assert stored(engine, parent.session) == expected(*parent.commits)


def _with_content(engine: Engine) -> CommitWriter:
    """A session with an event, a payload, a chosen id and a snapshot, three events long."""
    writer = opened(engine)
    store(engine, writer.seal(message(BIG), commit_id="mine"), writer.seal(fact("a"), snapshot=True))
    return writer
