"""A store that fails during a call: the error is raised, and the call is uncertain, not lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.lives import World, stopped
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import UnavailableError
from wakelog.session import Session
from wakelog.store import Store
from wakelog.testing.faults import FaultyDisk, Hook, failing, full_after


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk("disk of calls")
    yield disk
    disk.unregister()


@pytest.fixture
def engine(disk: FaultyDisk, tmp_path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path / "log.db", vfs=disk.name)
    yield engine
    disk.before = None
    engine.close()


BREAKS: dict[str, Any] = {
    "full": lambda: full_after(0),
    "syncs fail": lambda: failing("sync", "-wal", times=99),
    "writes fail": lambda: failing("write", "-wal", times=99),
}


def _statuses(session: Session[Any]) -> list[str]:
    return [p.status for p in session.state().pending_actions.values()]


def _script(engine: SqliteEngine, world: World, disk: FaultyDisk, breaks: Hook | None = None) -> str:
    """A script of one call; the disk breaks inside it."""
    session = Store(engine).session("agent")

    @session.tool
    def act(n: int) -> str:
        answer = world.do("act", n, "")
        disk.before = breaks
        return answer

    with session.turn("go"):
        return act(1)


@pytest.mark.parametrize("how", BREAKS)
def test_an_outcome_that_cannot_be_recorded_is_loud_and_the_call_uncertain(
    disk: FaultyDisk, engine: SqliteEngine, how: str
) -> None:
    world = World()
    with pytest.raises(UnavailableError) as caught:
        _script(engine, world, disk, BREAKS[how]())
    assert any("could not be recorded" in note for note in caught.value.__notes__)
    disk.before = None
    again = Store(engine).session("agent")
    for _ in range(2):
        with stopped("uncertain-call"):
            _script(engine, world, disk)
        assert _statuses(again) == ["uncertain"]
        assert again.state().turn.status == "interrupted"
    (action,) = again.state().pending_actions
    again.calls.reconcile(action, "succeeded", output=world.answer(0))
    assert _script(engine, world, disk) == "act(1) no 1"
    assert len(world.done) == 1
    assert again.verify().ok


def test_when_the_disk_has_room_again_at_the_end_of_the_turn_its_call_is_uncertain_at_once(
    disk: FaultyDisk, engine: SqliteEngine
) -> None:
    session, world = Store(engine).session("agent"), World()

    @session.tool
    def act(n: int) -> str:
        disk.before = full_after(0)
        return world.do("act", n, "")

    with pytest.raises(UnavailableError) as caught, session.turn("go"):
        try:
            act(1)
        finally:
            disk.before = None
    assert caught.value.kind == "store-full"
    assert _statuses(session) == ["uncertain"]
    assert session.state().turn.status == "interrupted"
    assert [e.kind for e in session.events()][-2:] == ["action.uncertain", "turn.ended"]


def test_an_agent_that_shrugs_it_off_still_leaves_the_call_uncertain(disk: FaultyDisk, engine: SqliteEngine) -> None:
    session, world = Store(engine).session("agent"), World()

    @session.tool
    def act(n: int) -> str:
        disk.before = full_after(0)
        return world.do("act", n, "")

    with session.turn("go"):
        try:
            act(1)
        except UnavailableError:
            disk.before = None
    assert session.state().turn.status == "completed"
    assert _statuses(session) == ["uncertain"]


@pytest.mark.parametrize("how", BREAKS)
def test_an_intent_that_cannot_be_recorded_runs_nothing(disk: FaultyDisk, engine: SqliteEngine, how: str) -> None:
    session, world = Store(engine).session("agent"), World()

    @session.tool
    def act(n: int) -> str:
        return world.do("act", n, "")

    with pytest.raises(UnavailableError), session.turn("go"):
        disk.before = BREAKS[how]()
        act(1)
    disk.before = None
    assert world.done == []
    assert _script(engine, world, disk) == "act(1) no 1"
    assert len(world.done) == 1


def test_a_retry_that_cannot_be_recorded_is_not_begun(disk: FaultyDisk, engine: SqliteEngine) -> None:
    session, tries = Store(engine).session("agent"), list[int]()

    @session.tool(retry=5, backoff_s=0.0)
    def flaky() -> None:
        tries.append(1)
        disk.before = full_after(0)
        raise ConnectionError("reset")

    with pytest.raises(UnavailableError), session.turn("go"):
        flaky()
    assert tries == [1]
    disk.before = None
    Store(engine).session("agent").calls.recover()
    assert _statuses(session) == ["uncertain"]


def test_a_store_that_was_closed_inside_a_call_leaves_it_uncertain(tmp_path: Path) -> None:
    world = World()
    with Store(SqliteEngine(tmp_path / "log.db")) as store:
        session = store.session("agent")

        @session.tool
        def act(n: int) -> str:
            store.close()
            return world.do("act", n, "")

        with pytest.raises(UnavailableError), session.turn("go"):
            act(1)
    with Store(SqliteEngine(tmp_path / "log.db")) as store:
        assert store.session("agent").calls.recover()
