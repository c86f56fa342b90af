"""The first look at a large store does not wait for its index, and tells what the index will tell."""

from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.index import index
from wakelog.session.turn import start_turn


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    """A few sessions, taken for many."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(index, "FAR_BEHIND", 3)
    monkeypatch.setattr(index, "FEED_PAGE", 20)
    with wakelog.open(tmp_path / ".wakelog") as store:
        for n in range(12):
            session = store.session(f"s{n}", goal=f"goal {n}", labels={"n": str(n)}, agent="a")
            with session.turn("work"):
                session.append(
                    wakelog.events.ActionRecorded(
                        action="m", tool="m", effect="model", cost=wakelog.events.Cost(usd_micros=n)
                    )
                )
        fork = store.resume("s11").fork(name="forked")
        fork.fact("a", 1)
        store.resume("s10").life.end("failed")
    return tmp_path


def indexed(folder: Path) -> int:
    with wakelog.open(folder / ".wakelog") as store:
        import sqlite3

        path = store.index.path
        assert path is not None
        db = sqlite3.connect(path)
        try:
            return int(db.execute("select count(*) from wl_session").fetchone()[0])
        finally:
            db.close()


def test_the_first_page_is_what_the_index_tells_and_indexes_nothing(many: Path, cli: Cli) -> None:
    first = cli("ls", "-n", "5", "--json").data
    assert indexed(many) == 0
    assert "-n 0" in cli("ls", "-n", "5").out
    assert len(cli("ls", "-n", "0", "--json").data) == 13
    assert indexed(many) == 13
    assert cli("ls", "-n", "5", "--json").data == first
    assert [row["name"] for row in first][:2] == ["s10", "forked"]


def test_a_filter_looks_at_all(many: Path, cli: Cli) -> None:
    assert [row["name"] for row in cli("ls", "--label", "n=0", "--json").data] == ["s0"]


def test_ps_looks_at_the_newest_and_says_so_and_programs_get_all(many: Path, cli: Cli) -> None:
    assert "-A looks at all" in cli("ps").out
    assert indexed(many) == 0
    assert len(cli("ps", "--json").data) == 12


def test_of_sessions_that_rest_a_person_is_shown_some(many: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakelog.cli.commands.ps.IDLE_MAX", 4)
    with wakelog.open(many / ".wakelog") as store:
        start_turn(store.resume("s0"), "left open")
        store.index.catch_up()
    shown = cli("ps").out
    assert "s0" in shown
    assert len([line for line in shown.splitlines() if line.startswith("idle")]) == 4
    assert "7 more that are idle" in shown
    assert len([line for line in cli("ps", "-A").out.splitlines() if line.startswith("idle")]) == 11
