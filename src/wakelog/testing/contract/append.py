"""Appending: all or nothing, durable, in order, once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from wakelog.engine import Engine
from wakelog.errors import ConflictError, InvalidInputError, NotFoundError, WakelogError
from wakelog.model.records import Head
from wakelog.testing.builders import CommitWriter, fact, message
from wakelog.testing.contract.base import Hooks, expected, in_parallel, opened, store, stored

BIG = "a payload is what does not fit into a body " * 30


class AppendChecks(Hooks):
    def test_an_answered_append_is_there_after_reopening(self, engine: Engine, tmp_path: Path) -> None:
        writer = CommitWriter()
        commits = [writer.open(goal="stay"), writer.seal(fact("a"), message(BIG)), writer.seal(fact("b"))]
        store(engine, *commits)
        again = self.reopen(engine, tmp_path)
        assert stored(again, writer.session) == expected(*commits)
        again.close()

    def test_a_commit_comes_back_with_every_byte_it_was_given(self, engine: Engine) -> None:
        writer = CommitWriter()
        commits = [writer.open(), writer.seal(fact("ключ", "✓ \u0000 \U0001f600"), message(BIG), commit_id="mine")]
        store(engine, *commits)
        assert stored(engine, writer.session) == expected(*commits)

    def test_events_are_numbered_without_gaps_and_chained(self, engine: Engine) -> None:
        writer = CommitWriter()
        store(engine, writer.open(fact("a")), writer.seal(fact("b"), fact("c"), fact("d")), writer.seal(fact("e")))
        prev, seq = bytes(32), 0
        for commit in engine.read(writer.session):
            assert (commit.first, commit.prev) == (seq + 1, prev)
            assert len(commit.records) == commit.last - commit.first + 1
            prev, seq = commit.hash, commit.last
        assert (seq, prev) == (6, writer.hash)

    def test_the_answer_is_the_head_the_commit_leads_to(self, engine: Engine) -> None:
        writer = CommitWriter()
        commit = writer.open(fact("a"))
        head = engine.submit(commit).result()
        assert (head.session, head.seq, head.hash, head.at) == (commit.session, 2, commit.hash, commit.at)
        assert (head.epoch, head.status, head.turn, head.commit_id) == (0, "open", 0, commit.commit_id)

    def test_the_answer_equals_the_head_with_name_and_fork_point(self, engine: Engine) -> None:
        parent = CommitWriter()
        engine.claim("named", parent.session)
        assert engine.submit(parent.open()).result() == engine.head(parent.session)
        assert engine.submit(parent.seal(fact("a"))).result() == engine.head(parent.session)
        child = parent.forked()
        assert engine.submit(child.seal_fork()).result() == engine.head(child.session)
        assert engine.submit(child.seal(fact("b"))).result() == engine.head(child.session)

    def test_an_append_on_a_stale_head_is_refused_and_writes_nothing(self, engine: Engine) -> None:
        writer = opened(engine)
        late = writer.rival(fact("late"), message(BIG))
        store(engine, writer.seal(fact("first")))
        with pytest.raises(ConflictError) as refused:
            engine.submit(late).result()
        assert (refused.value.kind, refused.value.head_seq) == ("head-moved", 2)
        assert stored(engine, writer.session) == expected(*writer.commits)
        assert engine.head(writer.session).hash == writer.hash

    def test_an_append_ahead_of_the_head_is_refused_and_writes_nothing(self, engine: Engine) -> None:
        writer = opened(engine)
        skipped, ahead = writer.seal(fact("skipped")), writer.seal(fact("ahead"))
        with pytest.raises(ConflictError):
            engine.submit(ahead).result()
        store(engine, skipped, ahead)
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_an_append_on_the_right_number_but_another_hash_is_refused(self, engine: Engine) -> None:
        writer = opened(engine)
        stranger = msgspec.structs.replace(writer.rival(fact("a")), prev=b"\x01" * 32)
        with pytest.raises(ConflictError):
            engine.submit(stranger).result()
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_a_session_that_never_was_begins_at_its_first_event_only(self, engine: Engine) -> None:
        writer = CommitWriter()
        writer.open()
        with pytest.raises(NotFoundError) as refused:
            engine.submit(writer.seal(fact("a"))).result()
        assert refused.value.kind == "session-not-found"
        assert stored(engine, writer.session) == []

    def test_a_session_cannot_be_opened_twice(self, engine: Engine) -> None:
        writer = opened(engine)
        with pytest.raises(ConflictError):
            engine.submit(CommitWriter(writer.session).open(goal="another")).result()
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_repeating_a_commit_gives_the_same_answer_and_no_second_copy(self, engine: Engine) -> None:
        writer = opened(engine)
        commit = writer.seal(fact("a"), message(BIG))
        first = engine.submit(commit).result()
        assert engine.submit(commit).result() == first
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_repeating_the_opening_commit_gives_the_same_answer(self, engine: Engine) -> None:
        writer = CommitWriter()
        commit = writer.open()
        first = engine.submit(commit).result()
        assert engine.submit(commit).result() == first
        assert stored(engine, writer.session) == expected(commit)

    def test_a_chosen_id_with_the_same_content_gives_the_first_answer(self, engine: Engine) -> None:
        writer = opened(engine)
        # Sealed twice, so salts, times and hashes differ, but it is the same append.
        resealed = writer.rival(fact("a"), commit_id="mine")
        first = engine.submit(writer.seal(fact("a"), commit_id="mine")).result()
        assert resealed.hash != first.hash
        again = engine.submit(resealed).result()
        assert (again.seq, again.hash, again.commit_id) == (first.seq, first.hash, "mine")
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_a_chosen_id_is_answered_after_later_commits(self, engine: Engine) -> None:
        writer = opened(engine)
        first = engine.submit(writer.seal(fact("a"), commit_id="mine")).result()
        store(engine, writer.seal(fact("b")))
        again = engine.submit(writer.rival(fact("a"), commit_id="mine")).result()
        assert (again.seq, again.hash) == (first.seq, first.hash)
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_a_chosen_id_with_other_content_is_invalid_and_writes_nothing(self, engine: Engine) -> None:
        writer = opened(engine)
        store(engine, writer.seal(fact("a"), commit_id="mine"))
        with pytest.raises(InvalidInputError) as refused:
            engine.submit(writer.rival(fact("b"), commit_id="mine")).result()
        assert refused.value.kind == "commit-id-reused"
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_a_chosen_id_means_nothing_in_another_session(self, engine: Engine) -> None:
        for _ in range(2):
            writer = opened(engine)
            store(engine, writer.seal(fact("a"), commit_id="mine"))
            assert engine.head(writer.session).seq == 2

    def test_a_repeated_commit_is_answered_after_reopening(self, engine: Engine, tmp_path: Path) -> None:
        writer = opened(engine)
        plain, chosen = writer.seal(fact("a")), writer.seal(fact("b"), commit_id="mine")
        answers = [engine.submit(c).result().hash for c in (plain, chosen)]
        again = self.reopen(engine, tmp_path)
        assert [again.submit(c).result().hash for c in (plain, chosen)] == answers
        assert stored(again, writer.session) == expected(*writer.commits)
        again.close()

    def test_known_returns_the_answer_to_a_chosen_id_and_to_no_other(self, engine: Engine) -> None:
        writer = opened(engine)
        plain, chosen = writer.seal(fact("a")), writer.seal(fact("b"), commit_id="mine")
        store(engine, plain, chosen)
        known = engine.known(writer.session, "mine")
        assert known is not None
        assert (known.head.seq, known.head.hash, known.fingerprint) == (3, chosen.hash, chosen.fingerprint)
        assert engine.known(writer.session, "other") is None

    def test_commits_submitted_together_are_stored_in_order(self, engine: Engine) -> None:
        writer, other = CommitWriter(), CommitWriter()
        mixed = [writer.open(), other.open(), writer.seal(fact("a")), other.seal(fact("b")), writer.seal(fact("c"))]
        head = engine.submit(*mixed).result()
        assert (head.session, head.seq, head.hash) == (writer.session, 3, writer.hash)
        assert stored(engine, writer.session) == expected(*writer.commits)
        assert stored(engine, other.session) == expected(*other.commits)

    def test_when_one_of_several_commits_is_refused_none_is_stored(self, engine: Engine) -> None:
        writer, other = opened(engine), opened(engine)
        stale = other.rival(fact("stale"))
        store(engine, other.seal(fact("first")))
        news = [writer.seal(fact("a"), message(BIG), commit_id="mine"), CommitWriter().open(), stale]
        with pytest.raises(ConflictError):
            engine.submit(*news).result()
        assert stored(engine, writer.session) == expected(writer.commits[0])
        assert stored(engine, news[1].session) == []
        assert stored(engine, other.session) == expected(*other.commits)

    def test_after_a_refused_group_the_session_goes_on_where_it_was(self, engine: Engine) -> None:
        writer = opened(engine)
        never, after = writer.seal(fact("never")), writer.seal(fact("after"))
        broken = msgspec.structs.replace(after, prev=b"\x01" * 32)
        with pytest.raises(ConflictError):
            engine.submit(never, broken).result()
        with pytest.raises(ConflictError):
            engine.submit(after).result()  # its predecessor was rolled back, so it would leave a gap
        assert engine.submit(never, after).result().seq == 3
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_a_group_that_was_stored_before_is_answered_as_a_whole(self, engine: Engine) -> None:
        writer = CommitWriter()
        group = [writer.open(), writer.seal(fact("a")), writer.seal(fact("b"))]
        first = engine.submit(*group).result()
        more = writer.seal(fact("c"))
        assert engine.submit(*group).result() == first
        assert engine.submit(*group, more).result().seq == 4
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_commits_in_flight_keep_their_order_however_answers_are_asked_for(self, engine: Engine) -> None:
        writer = opened(engine)
        pending = [engine.submit(writer.seal(fact(str(i)))) for i in range(5)]
        assert [p.result().seq for p in reversed(pending)] == [6, 5, 4, 3, 2]
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_an_answer_can_be_asked_for_twice(self, engine: Engine) -> None:
        writer = CommitWriter()
        pending = engine.submit(writer.open())
        assert pending.result() == pending.result()
        refused = engine.submit(CommitWriter(writer.session).open(goal="another"))
        for _ in range(2):
            with pytest.raises(ConflictError):
                refused.result()

    def test_a_refused_append_in_flight_does_not_hurt_the_others(self, engine: Engine) -> None:
        writer, other = opened(engine), opened(engine)
        stale = writer.rival(fact("stale"))
        pending = [
            engine.submit(writer.seal(fact("a"))),
            engine.submit(stale),
            engine.submit(other.seal(fact("b"))),
            engine.submit(CommitWriter(other.session).open(goal="another"), CommitWriter().open()),
            engine.submit(writer.seal(fact("c"))),
        ]
        answers = [_outcome(p.result) for p in pending]
        assert answers == [2, "head-moved", 2, "head-moved", 3]
        assert stored(engine, writer.session) == expected(*writer.commits)
        assert stored(engine, other.session) == expected(*other.commits)

    def test_of_rivals_for_one_place_exactly_one_wins(self, engine: Engine) -> None:
        writer = opened(engine)
        rivals = [writer.rival(fact(str(i))) for i in range(8)]
        answers = in_parallel(lambda commit: _outcome(engine.submit(commit).result), rivals)
        assert sorted(map(str, answers)) == ["2"] + ["head-moved"] * 7
        [_, won] = engine.read(writer.session)
        assert won.hash == rivals[answers.index(2)].hash

    def test_many_sessions_append_at_once_without_disturbing_each_other(self, engine: Engine) -> None:
        writers = [opened(engine) for _ in range(8)]

        def write(writer: CommitWriter) -> Head:
            for i in range(5):
                head = engine.submit(writer.seal(fact(f"k{i}"))).result()
            return head

        heads = in_parallel(write, writers)
        assert [head.seq for head in heads] == [6] * 8
        for writer in writers:
            assert stored(engine, writer.session) == expected(*writer.commits)

    def test_what_one_engine_object_stores_another_sees_and_respects(self, engine: Engine, tmp_path: Path) -> None:
        second = self.another(engine, tmp_path)
        writer = opened(engine)
        stale = writer.rival(fact("stale"))
        store(second, writer.seal(fact("a")))
        with pytest.raises(ConflictError):
            engine.submit(stale).result()
        store(engine, writer.seal(fact("b")))
        assert second.head(writer.session).hash == writer.hash
        assert stored(second, writer.session) == expected(*writer.commits)
        if second is not engine:
            second.close()


def _outcome(result: Callable[[], Head]) -> int | str:
    try:
        return result().seq
    except WakelogError as exc:
        return exc.kind
