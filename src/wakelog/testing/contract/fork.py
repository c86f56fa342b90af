"""Forks: a session whose numbers and chain continue from a point of its parent."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from wakelog.engine import Engine
from wakelog.errors import ConflictError, NotFoundError
from wakelog.model import events as ev
from wakelog.model.records import ForkPoint
from wakelog.testing.builders import CommitWriter, fact
from wakelog.testing.contract.base import Hooks, expected, opened, store, stored


class ForkChecks(Hooks):
    def test_a_fork_begins_after_the_event_it_leaves_at(self, engine: Engine, tmp_path: Path) -> None:
        parent = opened(engine, "a", "b")
        child = parent.forked(2)
        point = child.seal_fork().fork
        store(engine, *child.commits, child.seal(fact("own")))
        again = self.reopen(engine, tmp_path)
        assert [(c.first, c.last) for c in again.read(child.session)] == [(3, 3), (4, 4)]
        assert again.head(child.session).fork == point == ForkPoint(parent.session, 2, parent.commits[1].hash)
        assert stored(again, parent.session) == expected(*parent.commits)
        again.close()

    def test_parent_and_fork_go_on_by_themselves(self, engine: Engine) -> None:
        parent = opened(engine, "a")
        child = parent.forked()
        store(engine, child.seal_fork(), parent.seal(fact("b")), child.seal(fact("c")), parent.seal(fact("d")))
        assert stored(engine, parent.session) == expected(*parent.commits)
        assert stored(engine, child.session) == expected(*child.commits)

    def test_a_fork_cannot_leave_at_an_event_that_is_not_there(self, engine: Engine) -> None:
        parent = opened(engine, "a")
        parent.seal(fact("never stored"))
        child = parent.forked(3)
        with pytest.raises(NotFoundError):
            engine.submit(child.seal_fork()).result()
        assert stored(engine, child.session) == []
        assert list(engine.children(parent.session)) == []

    def test_a_fork_cannot_leave_a_session_that_is_not_there(self, engine: Engine) -> None:
        parent = CommitWriter()
        parent.open()
        child = parent.forked()
        with pytest.raises(NotFoundError):
            engine.submit(child.seal_fork()).result()
        assert stored(engine, child.session) == []

    def test_a_fork_cannot_leave_a_deleted_session(self, engine: Engine) -> None:
        parent = opened(engine, "a")
        child = parent.forked(2)
        engine.delete(parent.seal(ev.SessionDeleted()))
        with pytest.raises(NotFoundError):
            engine.submit(child.seal_fork()).result()
        assert stored(engine, child.session) == []

    def test_parent_and_fork_can_arrive_together(self, engine: Engine) -> None:
        parent = CommitWriter()
        first = [parent.open(), parent.seal(fact("a"))]
        child = parent.forked()
        engine.submit(*first, child.seal_fork(), child.seal(fact("b"))).result()
        assert engine.head(child.session).seq == 4
        assert [h.session for h in engine.children(parent.session)] == [child.session]

    def test_when_the_parent_is_refused_the_fork_is_too(self, engine: Engine) -> None:
        parent = opened(engine)
        parent.seal(fact("never stored"))
        broken = msgspec.structs.replace(parent.commits[-1], prev=b"\x01" * 32)
        child = parent.forked()
        with pytest.raises(ConflictError):
            engine.submit(broken, child.seal_fork()).result()
        assert stored(engine, child.session) == []

    def test_a_repeated_fork_gives_the_same_answer(self, engine: Engine) -> None:
        parent = opened(engine, "a")
        child = parent.forked()
        commit = child.seal_fork()
        first = engine.submit(commit).result()
        assert engine.submit(commit).result() == first
        assert [h.session for h in engine.children(parent.session)] == [child.session]
