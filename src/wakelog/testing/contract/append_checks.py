"""The order of the checks on append, and so the answer to a repeated commit after the session has changed.

(1) the id is known with the same content; (2) known with other content; (3) deleted or closed; (4) epoch; (5) head.
Each test makes two checks apply at once and asserts which one decides.
"""

from __future__ import annotations

import pytest

from wakelog.engine import Engine
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, WakelogError
from wakelog.model import events as ev
from wakelog.model.records import Commit
from wakelog.testing.builders import CommitWriter, fact
from wakelog.testing.contract.base import Hooks, expected, opened, store, stored


class JudgeChecks(Hooks):
    @pytest.mark.parametrize("commit_id", ["", "mine"])
    def test_a_repeated_commit_is_answered_although_the_head_moved(self, engine: Engine, commit_id: str) -> None:
        writer, commit, first = _with_commit(engine, commit_id)
        store(engine, writer.seal(fact("more")), writer.seal(fact("and more")))
        assert engine.submit(commit).result().hash == first
        assert stored(engine, writer.session) == expected(*writer.commits)

    @pytest.mark.parametrize("commit_id", ["", "mine"])
    def test_a_repeated_commit_is_answered_although_its_epoch_is_over(self, engine: Engine, commit_id: str) -> None:
        writer, commit, first = _with_commit(engine, commit_id, guard=0)
        store(engine, writer.seal(_lease(1)))
        assert engine.submit(commit).result().hash == first

    @pytest.mark.parametrize("commit_id", ["", "mine"])
    def test_a_repeated_commit_is_answered_although_the_session_closed(self, engine: Engine, commit_id: str) -> None:
        writer, commit, first = _with_commit(engine, commit_id)
        store(engine, writer.seal(ev.SessionClosed()))
        assert engine.submit(commit).result().hash == first

    @pytest.mark.parametrize("commit_id", ["", "mine"])
    def test_a_repeated_commit_is_answered_although_the_session_was_deleted(
        self, engine: Engine, commit_id: str
    ) -> None:
        writer, commit, first = _with_commit(engine, commit_id)
        # A fork keeps the content, and so the knowledge of what was stored.
        store(engine, writer.forked().seal_fork())
        engine.delete(writer.seal(ev.SessionDeleted()))
        assert engine.submit(commit).result().hash == first
        assert engine.head(writer.session).status == "deleted"

    def test_other_content_under_a_known_id_is_invalid_before_anything_else(self, engine: Engine) -> None:
        writer, _, _ = _with_commit(engine, "mine", guard=0)
        other = writer.rival(fact("other"), commit_id="mine", guard=0)
        store(engine, writer.forked().seal_fork())
        for move in (fact("more"), _lease(1), ev.SessionClosed()):
            store(engine, writer.seal(move))
            assert _refusal(engine, other) == (InvalidInputError, "commit-id-reused")
        engine.delete(writer.seal(ev.SessionDeleted()))
        assert _refusal(engine, other) == (InvalidInputError, "commit-id-reused")

    def test_deleted_is_told_before_the_epoch_and_the_head(self, engine: Engine) -> None:
        writer = opened(engine)
        stale, evidence = writer.rival(fact("late"), guard=7), writer.rival(_evidence())
        engine.delete(writer.seal(ev.SessionDeleted()))
        assert _refusal(engine, stale) == (NotAllowedError, "append-to-deleted")
        assert _refusal(engine, evidence) == (NotAllowedError, "append-to-deleted")

    @pytest.mark.parametrize("ending", [(ev.SessionClosed(),), (ev.SessionClosed(), ev.SessionArchived())])
    def test_closed_is_told_before_the_epoch_and_the_head(self, engine: Engine, ending: tuple[ev.Event, ...]) -> None:
        writer = opened(engine)
        stale = writer.rival(fact("late"), guard=7)
        for event in ending:
            store(engine, writer.seal(event))
        assert _refusal(engine, stale) == (NotAllowedError, "session-closed")
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_a_commit_that_reopens_a_closed_session_may_go_on_there(self, engine: Engine) -> None:
        writer = opened(engine)
        store(engine, writer.seal(ev.SessionClosed()), writer.seal(ev.SessionReopened(), fact("a"), ev.SessionClosed()))
        assert stored(engine, writer.session) == expected(*writer.commits)
        assert engine.head(writer.session).status == "closed"

    def test_a_newer_epoch_is_told_before_the_moved_head(self, engine: Engine) -> None:
        writer = opened(engine)
        stale = writer.rival(fact("late"), guard=0)
        store(engine, writer.seal(_lease(1)))
        assert _refusal(engine, stale) == (ConflictError, "fenced")
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_an_old_epoch_is_refused_on_the_present_head_too(self, engine: Engine) -> None:
        writer = opened(engine)
        store(engine, writer.seal(_lease(1)), writer.seal(_lease(2)))
        assert _refusal(engine, writer.rival(fact("late"), guard=1)) == (ConflictError, "fenced")
        assert _refusal(engine, writer.rival(fact("early"), guard=3)) == (ConflictError, "fenced")
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_the_present_epoch_is_accepted_and_so_is_a_writer_without_a_lease(self, engine: Engine) -> None:
        writer = opened(engine)
        store(engine, writer.seal(_lease(1)), writer.seal(fact("a"), guard=1), writer.seal(fact("b")))
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_a_lease_that_is_taken_fences_out_what_is_already_in_flight(self, engine: Engine) -> None:
        writer = opened(engine)
        stale = writer.rival(fact("late"), guard=0)
        pending, late = engine.submit(writer.seal(_lease(1))), engine.submit(stale)
        assert pending.result().epoch == 1
        with pytest.raises(ConflictError) as refused:
            late.result()
        assert refused.value.kind == "fenced"

    def test_what_may_come_late_is_accepted_after_close(self, engine: Engine) -> None:
        writer = opened(engine)
        store(engine, writer.seal(ev.SessionClosed()), writer.seal(_evidence()), writer.seal(ev.SessionReopened()))
        store(engine, writer.seal(fact("again")))
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_a_late_commit_must_still_fit_on_the_head(self, engine: Engine) -> None:
        writer = opened(engine)
        late = writer.rival(_evidence())
        store(engine, writer.seal(ev.SessionClosed()))
        assert _refusal(engine, late) == (ConflictError, "head-moved")


def _with_commit(engine: Engine, commit_id: str, guard: int | None = None) -> tuple[CommitWriter, Commit, bytes]:
    """A session, a commit it holds and the hash of the answer that was given."""
    writer = opened(engine)
    commit = writer.seal(fact("a"), commit_id=commit_id, guard=guard)
    return writer, commit, engine.submit(commit).result().hash


def _lease(epoch: int) -> ev.LeaseTaken:
    return ev.LeaseTaken(epoch=epoch, holder=f"worker {epoch}")


def _evidence() -> ev.ActionEvidence:
    return ev.ActionEvidence(action="a1", outcome="succeeded")


def _refusal(engine: Engine, commit: Commit) -> tuple[type[WakelogError], str]:
    with pytest.raises(WakelogError) as refused:
        engine.submit(commit).result()
    return type(refused.value), refused.value.kind
