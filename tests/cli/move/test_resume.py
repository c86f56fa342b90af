"""`resume` leaves a session alone that a living process is writing; `status` advises only what works."""

from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return "--store=.wakelog"


def test_resume_is_refused_while_a_living_process_has_the_turn(cli: Cli, store: str) -> None:
    with wakelog.open(".wakelog") as opened:
        session = opened.session("agent")
        with session.turn("go"):
            refused = cli("resume", "agent", store)
            assert refused.code != 0
            assert "is being written by process" in refused.err
            session.life.pause()
            lifted = cli("resume", "agent", store)
            assert (lifted.code, "is writing it at this moment" in lifted.out) == (0, True)
        assert cli("resume", "agent", store).code == 0


def test_status_advises_undo_only_where_it_takes_the_rewind_back(cli: Cli, store: str) -> None:
    with wakelog.open(".wakelog") as opened:
        session = opened.session("agent")
        with pytest.raises(KeyboardInterrupt), session.turn("go"):
            raise KeyboardInterrupt
        with session.turn("go"):
            session.fact("a", 1)
    told = cli("status", "agent", store).out
    assert "wakelog undo" not in told
    assert "tried again" in told
    assert cli("rewind", "agent@e1", store, "--yes").code == 0
    assert "to undo: wakelog undo agent" in cli("status", "agent", store).out
    assert cli("undo", "agent", store).code == 0
    told = cli("status", "agent", store).out
    assert "wakelog undo" not in told
    assert "to redo: wakelog redo agent" in told
    assert cli("redo", "agent", store).code == 0
