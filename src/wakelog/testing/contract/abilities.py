"""The abilities that an engine declares beyond the protocol. Tests of others are skipped."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TypeVar

import pytest

from wakelog.engine import Engine, end_of
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import UnavailableError
from wakelog.log import Log
from wakelog.log.bundle import export_bundle
from wakelog.model import events as ev
from wakelog.model.records import Heartbeat
from wakelog.testing.builders import fact
from wakelog.testing.contract.base import Hooks, expected, opened, store, stored

T = TypeVar("T")


class AbilityChecks(Hooks):
    def test_what_is_stored_after_the_end_of_the_feed_is_in_it(self, engine: Engine) -> None:
        writer = opened(engine, "a")
        cursor = end_of(engine)
        store(engine, writer.seal(fact("b")))
        assert (writer.session, writer.seq) in {(c.session, c.seq) for c in engine.changes(cursor)}

    def test_the_end_of_the_feed_is_found_without_reading_it(self, engine: Engine) -> None:
        feed_end = _declared(engine.abilities.feed_end)
        writer = opened(engine, "a")
        cursor = feed_end()
        store(engine, writer.seal(fact("b")))
        assert (writer.session, writer.seq) in {(c.session, c.seq) for c in engine.changes(cursor)}

    def test_heartbeats_are_returned_together(self, engine: Engine) -> None:
        live_sessions = _declared(engine.abilities.live_sessions)
        early, late, never = (opened(engine) for _ in range(3))
        for writer, until in ((early, 5), (late, 9)):
            store(engine, writer.seal(ev.LeaseTaken(epoch=1, holder="worker")))
            engine.beat(writer.session, Heartbeat(1, "worker", until))
        assert [set(live_sessions(since)) for since in (5, 6, 10)] == [
            {early.session, late.session},
            {late.session},
            set(),
        ]
        assert never.session not in live_sessions(0)
        engine.delete(late.seal(ev.SessionDeleted()))
        assert set(live_sessions(5)) == {early.session}

    def test_a_bundle_is_imported_completely(self, engine: Engine) -> None:
        take_bundle = _declared(engine.abilities.take_bundle)
        source = MemoryEngine()
        writer = opened(source, "a", "b")
        bundle = io.BytesIO()
        export_bundle(Log(source, writer.session), bundle)
        assert take_bundle(bundle.getvalue()) == writer.session
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_a_new_store_waits_for_no_migration(self, engine: Engine) -> None:
        migrations = _declared(engine.abilities.migrations)
        writer = opened(engine, "a")
        before = migrations.version()
        assert list(migrations.waiting()) == []
        assert list(migrations.migrate()) == []
        assert migrations.version() == before > 0
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_marks_are_kept_beside_the_log(self, engine: Engine, tmp_path: Path) -> None:
        marks = _declared(engine.abilities.marks)
        assert marks.mark("scrub") is None
        marks.set_mark("scrub", "first")
        marks.set_mark("scrub", "second")
        marks.set_mark("scrubbed", "other")
        other = self.another(engine, tmp_path)
        assert _declared(other.abilities.marks).mark("scrub") == "second"
        if other is not engine:
            other.close()

    def test_rewriting_changes_nothing_that_can_be_read(self, engine: Engine) -> None:
        rewrite = _declared(engine.abilities.rewrite)
        writer, gone = opened(engine, "a"), opened(engine, "b")
        engine.delete(gone.seal(ev.SessionDeleted()))
        with contextlib.suppress(UnavailableError):  # it may have to wait for others
            rewrite()
            assert rewrite() is False
        assert stored(engine, writer.session) == expected(*writer.commits)

    def test_sizes_include_every_session(self, engine: Engine) -> None:
        sizes = _declared(engine.abilities.sizes)
        writer = opened(engine, "a")
        assert sizes.session_bytes()[writer.session] > 0
        assert all(size >= 0 for size in sizes.table_bytes().values())

    def test_inspection_finds_no_damage_where_there_is_none(self, engine: Engine) -> None:
        inspection = _declared(engine.abilities.inspection)
        writer = opened(engine, "a", "b")
        engine.claim("named", writer.session)
        assert [f for f in inspection.inspect() if f.is_damage] == []
        inspection.tidy()
        assert stored(engine, writer.session) == expected(*writer.commits)
        assert engine.find("named") == writer.session

    def test_damage_report_on_a_sound_store(self, engine: Engine) -> None:
        damage = _declared(engine.abilities.damage)
        writer, gone = opened(engine, "a"), opened(engine, "b")
        engine.claim("named", writer.session)
        engine.delete(gone.seal(ev.SessionDeleted()))
        assert list(damage.session_ids()) == sorted([writer.session, gone.session])
        assert damage.last_sound(writer.session) == engine.head(writer.session)
        assert list(damage.faults(writer.session)) == []

    def test_the_path_is_that_of_a_file(self, engine: Engine) -> None:
        assert _declared(engine.abilities.path).is_file()


def _declared(ability: T | None) -> T:
    """The ability, or a skipped test."""
    if ability is None:
        pytest.skip("this engine does not declare it")
    return ability
