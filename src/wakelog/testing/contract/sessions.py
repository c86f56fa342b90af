"""Listing: pages of sessions, the children of one, and the feed of changes."""

from __future__ import annotations

from pathlib import Path

from wakelog.engine import Engine, FeedChange
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.testing.builders import CommitWriter, fact
from wakelog.testing.contract.base import Hooks, opened, store


class ListChecks(Hooks):
    def test_sessions_come_in_pages_in_the_order_of_their_ids(self, engine: Engine) -> None:
        ids = sorted(opened(engine, "a").session for _ in range(7))
        session_ids: list[SessionId] = []
        sizes = []
        while page := engine.sessions(after=session_ids[-1] if session_ids else "", limit=3):
            session_ids += [head.session for head in page]
            sizes.append(len(page))
        assert session_ids == ids
        assert sizes == [3, 3, 1]
        assert [head.seq for head in engine.sessions()] == [2] * 7

    def test_listed_heads_are_the_heads(self, engine: Engine) -> None:
        writer = opened(engine)
        engine.claim("named", writer.session)
        store(engine, writer.seal(fact("a")))
        child = writer.forked()
        store(engine, child.seal_fork(), child.seal(fact("b")))
        assert list(engine.sessions()) == [engine.head(writer.session), engine.head(child.session)]
        assert list(engine.children(writer.session)) == [engine.head(child.session)]

    def test_deleted_sessions_are_not_listed(self, engine: Engine) -> None:
        writer, gone = opened(engine), opened(engine)
        engine.delete(gone.seal(ev.SessionDeleted()))
        assert [head.session for head in engine.sessions()] == [writer.session]

    def test_children_are_the_direct_forks_that_live(self, engine: Engine) -> None:
        parent = opened(engine, "a")
        children = [parent.forked(1), parent.forked(2), parent.forked(2)]
        for child in children:
            store(engine, child.seal_fork())
        grandchild = children[0].forked()
        store(engine, grandchild.seal_fork())
        engine.delete(children[2].seal(ev.SessionDeleted()))
        assert {h.session for h in engine.children(parent.session)} == {c.session for c in children[:2]}
        assert [h.session for h in engine.children(children[0].session)] == [grandchild.session]
        assert list(engine.children(grandchild.session)) == []

    def test_changes_include_every_commit_at_least_once_and_in_order(self, engine: Engine) -> None:
        writers = [CommitWriter() for _ in range(3)]
        for writer in writers:
            store(engine, writer.open())
        for turn in range(4):
            for writer in writers:
                store(engine, writer.seal(fact(str(turn))))
        for limit in (1, 4, 100):
            changes = _feed(engine, limit=limit)
            for writer in writers:
                seqs = [change.seq for change in changes if change.session == writer.session]
                assert seqs == sorted(seqs)
                assert seqs[-1] == 5, f"the newest commit of {writer.session} is missing with limit {limit}"

    def test_changes_go_on_after_a_cursor_without_losing_any(self, engine: Engine, tmp_path: Path) -> None:
        first, second = opened(engine, "a"), opened(engine)
        before = _feed(engine)
        assert list(engine.changes(before[-1].cursor)) == []
        store(engine, second.seal(fact("b")), first.seal(fact("c")))
        again = self.reopen(engine, tmp_path)
        news = _feed(again, cursor=before[-1].cursor)
        assert {(second.session, 2), (first.session, 3)} <= {(c.session, c.seq) for c in news}
        again.close()

    def test_changes_include_a_deletion(self, engine: Engine) -> None:
        writer = opened(engine, "a")
        cursor = _feed(engine)[-1].cursor
        engine.delete(writer.seal(ev.SessionDeleted()))
        assert (writer.session, 3) in {(c.session, c.seq) for c in _feed(engine, cursor=cursor)}


def _feed(engine: Engine, *, cursor: str = "", limit: int = 100) -> list[FeedChange]:
    """All changes from a cursor on, page by page."""
    changes: list[FeedChange] = []
    while page := engine.changes(cursor, limit):
        assert len(page) <= limit
        changes += page
        cursor = page[-1].cursor
    return changes
