"""Names and heartbeats, which an engine stores beside the log."""

from __future__ import annotations

from pathlib import Path

from wakelog.engine import Engine
from wakelog.model import events as ev
from wakelog.model.names import NAME_MAX
from wakelog.model.records import Heartbeat
from wakelog.testing.builders import CommitWriter, new_session
from wakelog.testing.contract.base import Hooks, in_parallel, opened, store


class NameChecks(Hooks):
    def test_a_free_name_is_bound_and_found(self, engine: Engine, tmp_path: Path) -> None:
        writer = opened(engine)
        assert engine.find("checkout") is None
        assert engine.claim("checkout", writer.session) == writer.session
        again = self.reopen(engine, tmp_path)
        assert again.find("checkout") == writer.session
        again.close()

    def test_claiming_a_taken_name_returns_its_owner(self, engine: Engine) -> None:
        first, second = opened(engine), opened(engine)
        engine.claim("checkout", first.session)
        assert engine.claim("checkout", second.session) == first.session
        assert engine.claim("checkout", first.session) == first.session
        assert engine.find("checkout") == first.session

    def test_the_longest_name_and_the_longest_commit_id_are_kept(self, engine: Engine, tmp_path: Path) -> None:
        writer = opened(engine)
        longest = "\N{GRINNING FACE}" * NAME_MAX
        assert engine.claim(longest, writer.session) == writer.session
        store(engine, writer.seal(ev.NoteAdded(text="a"), commit_id=longest))
        again = self.reopen(engine, tmp_path)
        known = again.known(writer.session, longest)
        assert again.find(longest) == writer.session
        assert known is not None
        assert known.head == again.head(writer.session)
        again.close()

    def test_names_are_compared_letter_by_letter(self, engine: Engine) -> None:
        ids = [opened(engine).session for _ in range(3)]
        for name, session in zip(("check", "Check", "chéck"), ids, strict=True):
            assert engine.claim(name, session) == session

    def test_a_name_can_be_claimed_before_its_session_is_opened(self, engine: Engine) -> None:
        writer = CommitWriter()
        engine.claim("soon", writer.session)
        assert engine.find("soon") == writer.session
        store(engine, writer.open())
        assert engine.head(writer.session).name == "soon"

    def test_of_concurrent_claims_one_wins_and_all_get_its_id(self, engine: Engine) -> None:
        answers = in_parallel(lambda session: engine.claim("rare", session), [new_session() for _ in range(8)])
        assert len(set(answers)) == 1
        assert engine.find("rare") == answers[0]

    def test_deleting_a_session_frees_its_name(self, engine: Engine) -> None:
        writer, heir = opened(engine), opened(engine)
        engine.claim("checkout", writer.session)
        engine.delete(writer.seal(ev.SessionDeleted()))
        assert engine.find("checkout") is None
        assert engine.head(writer.session).name == ""
        assert engine.claim("checkout", heir.session) == heir.session

    def test_the_last_heartbeat_is_stored(self, engine: Engine) -> None:
        writer, other = opened(engine), opened(engine)
        assert engine.last_beat(writer.session) is None
        for beat in (Heartbeat(1, "worker", 5), Heartbeat(2, "another", 3)):
            store(engine, writer.seal(ev.LeaseTaken(epoch=beat.epoch, holder=beat.holder)))
            engine.beat(writer.session, beat)
            assert engine.last_beat(writer.session) == beat
        assert engine.last_beat(other.session) is None
        assert engine.head(writer.session).seq == 3
