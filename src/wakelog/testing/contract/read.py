"""Reading: ranges, prefixes, payloads, snapshots, heads."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from wakelog.engine import Engine
from wakelog.errors import NotFoundError, UnavailableError
from wakelog.model import events as ev
from wakelog.testing.builders import CommitWriter, fact, message, new_session
from wakelog.testing.contract.base import Hooks, essence, opened, store

BIG = "a payload is what does not fit into a body " * 30
SIZES = (1, 3, 1, 2, 4)
LAST = sum(SIZES)


class ReadChecks(Hooks):
    def test_a_read_gives_exactly_the_commits_that_touch_the_range(self, engine: Engine) -> None:
        writer = _in_commits(engine, SIZES)
        for after in range(LAST + 2):
            for upto in (None, *range(LAST + 2)):
                wanted = [c for c in writer.commits if c.last > after and (upto is None or c.first <= upto)]
                commits = list(engine.read(writer.session, after=after, upto=upto))
                assert [essence(c) for c in commits] == [essence(c) for c in wanted], f"after {after}, upto {upto}"

    def test_a_long_session_is_read_whole_and_in_order(self, engine: Engine) -> None:
        writer = CommitWriter()
        engine.submit(writer.open(), *(writer.seal(fact("k", i)) for i in range(400))).result()
        assert [c.first for c in engine.read(writer.session)] == list(range(1, 402))
        assert [c.first for c in engine.read(writer.session, after=200, upto=390)] == list(range(201, 391))

    def test_a_read_under_way_sees_a_prefix_and_never_a_hole(self, engine: Engine) -> None:
        writer = CommitWriter()
        engine.submit(writer.open(), *(writer.seal(fact("k", i)) for i in range(300))).result()
        seen = []
        for commit in engine.read(writer.session):
            seen.append(commit.first)
            if commit.first in (1, 100, 250):
                store(engine, writer.seal(fact("meanwhile")))
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) >= 301

    def test_payloads_are_left_out_unless_asked_for(self, engine: Engine) -> None:
        writer = opened(engine)
        commit = writer.seal(message(BIG), message(BIG + "2"))
        store(engine, commit)
        assert all(c.payloads == () for c in engine.read(writer.session))
        found = list(engine.read(writer.session, payloads=True))[-1]
        assert dict(found.payloads) == dict(commit.payloads)
        assert len(found.payloads) == 2

    def test_an_unknown_session_is_refused_at_the_call_and_not_later(self, engine: Engine) -> None:
        missing = new_session()
        for ask in (
            lambda: engine.read(missing),
            lambda: engine.head(missing),
            lambda: engine.known(missing, "mine"),
            lambda: engine.snapshot(missing, upto=1),
            lambda: engine.payload(missing, 1, bytes(32)),
            lambda: engine.last_beat(missing),
            lambda: engine.wait(missing, after=0, timeout_s=0),
        ):
            with pytest.raises(NotFoundError) as refused:
                ask()
            assert refused.value.kind == "session-not-found"

    def test_the_head_has_the_position_and_status_of_the_session(self, engine: Engine) -> None:
        writer = opened(engine)
        store(engine, writer.seal(ev.TurnStarted()), writer.seal(ev.LeaseTaken(epoch=1, holder="w")))
        commit = writer.seal(ev.SessionPaused())
        store(engine, commit)
        head = engine.head(writer.session)
        assert (head.session, head.seq, head.hash, head.at) == (writer.session, 4, commit.hash, commit.at)
        assert (head.epoch, head.status, head.turn, head.commit_id) == (1, "paused", 1, commit.commit_id)
        assert (head.fork, head.name) == (None, "")

    def test_a_payload_is_found_by_any_event_of_the_commit_that_brought_it(self, engine: Engine) -> None:
        writer = opened(engine)
        store(engine, writer.seal(fact("a"), message(BIG), fact("b")))
        digest = hashlib.sha256(BIG.encode()).digest()
        assert [engine.payload(writer.session, seq, digest) for seq in (2, 3, 4)] == [BIG.encode()] * 3

    def test_a_payload_is_found_neither_elsewhere_nor_by_another_session(self, engine: Engine) -> None:
        writer, other = opened(engine), opened(engine)
        store(engine, writer.seal(message(BIG)), writer.seal(fact("a")), other.seal(fact("b")))
        digest = hashlib.sha256(BIG.encode()).digest()
        for session, seq, wanted in (
            (writer.session, 1, digest),
            (writer.session, 3, digest),
            (writer.session, 9, digest),
            (writer.session, 2, bytes(32)),
            (other.session, 2, digest),
        ):
            with pytest.raises(NotFoundError):
                engine.payload(session, seq, wanted)

    def test_the_newest_snapshot_at_or_before_a_point_is_found(self, engine: Engine) -> None:
        writer, other = opened(engine), opened(engine)
        at = {}
        for seq in range(2, 9):
            commit = writer.seal(fact("k", seq), snapshot=seq in (3, 6))
            store(engine, commit)
            if commit.snapshot is not None:
                at[seq] = commit.snapshot
        store(engine, other.seal(fact("k"), snapshot=True))
        assert sorted(at) == [3, 6]
        for upto in range(1, 12):
            wanted = max((seq for seq in at if seq <= upto), default=0)
            snapshot = engine.snapshot(writer.session, upto=upto)
            assert (snapshot and (snapshot.seq, snapshot.data)) == ((wanted, at[wanted]) if wanted else None)

    def test_dropped_snapshots_are_gone_for_that_session_only(self, engine: Engine) -> None:
        writer, other = opened(engine), opened(engine)
        for each in (writer, other):
            store(engine, each.seal(fact("k"), snapshot=True))
        engine.drop_snapshots(writer.session)
        assert engine.snapshot(writer.session, upto=99) is None
        assert engine.snapshot(other.session, upto=99) is not None
        assert engine.head(writer.session).seq == 2

    def test_snapshots_are_there_after_reopening(self, engine: Engine, tmp_path: Path) -> None:
        writer = opened(engine)
        store(engine, writer.seal(fact("k"), snapshot=True))
        again = self.reopen(engine, tmp_path)
        assert again.snapshot(writer.session, upto=2) is not None
        again.close()

    def test_a_closed_engine_says_so(self, engine: Engine) -> None:
        writer = opened(engine)
        engine.close()
        for ask in (
            lambda: engine.submit(writer.rival(fact("a"))).result(),
            lambda: engine.head(writer.session),
            lambda: list(engine.read(writer.session)),
            lambda: engine.sessions(),
            lambda: engine.claim("name", writer.session),
            lambda: engine.wait(None, after=0, timeout_s=0),
        ):
            with pytest.raises(UnavailableError):
                ask()

    def test_closing_twice_is_harmless(self, engine: Engine) -> None:
        opened(engine)
        engine.close()
        engine.close()


def _in_commits(engine: Engine, sizes: tuple[int, ...]) -> CommitWriter:
    """A session in commits of these sizes."""
    writer = CommitWriter()
    for number, size in enumerate(sizes):
        facts = [fact(f"{number}.{i}") for i in range(size)]
        store(engine, writer.seal(*facts) if number else writer.open(*facts[1:]))
    return writer
