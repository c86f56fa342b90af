"""What the command line says and how it ends, where it once said something else."""

from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog.errors import InvalidInputError
from wakelog.log import Log
from wakelog.log.bundle import export_bundle
from wakelog.model import events as ev
from wakelog.model.ids import root_id
from wakelog.store import Store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "store"))
    return wakelog.open(tmp_path / "store")


def test_status_calls_unverified_sources_unverified(store: Store, cli: Cli, tmp_path: Path) -> None:
    session = store.session("s")
    session.fact("a", 1, source="web:docs.example", trust="unverified")
    session.fact("b", 1, source="web:blog.example", trust="untrusted")
    lines = cli("status", "s", "--store", str(tmp_path / "store")).lines
    assert "  untrusted  web:blog.example (e3)" in lines
    assert "  unverified web:docs.example (e2)" in lines


def test_a_question_that_is_answered_with_no_is_an_answer_and_no_interruption(
    store: Store, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.session("s")
    with session.turn("go"):
        session.fact("a", 1)
    before = session.head
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.prompt", lambda *_, **__: "n")
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    for command in (("rewind", "s@0"), ("delete", "s")):
        result = cli(*command, "--store", str(tmp_path / "store"))
        assert (result.code, "Nothing was done." in result.err) == (1, True), command
    assert session.head == before


@pytest.mark.parametrize("form", [(), ("--json",), ("--ndjson",)])
def test_an_anchor_is_taken_in_every_form_it_is_printed_in_and_said_to_hold(
    store: Store, cli: Cli, tmp_path: Path, form: tuple[str, ...]
) -> None:
    session = store.session("s")
    at = ("--store", str(tmp_path / "store"))
    kept = tmp_path / "anchor.json"
    kept.write_text(cli("anchor", "s", *form, *at).out)
    assert (
        "anchor       holds: e1 is the one it names, which is the head"
        in cli("verify", "--against", str(kept), *at).out
    )
    session.fact("a", 1)
    assert "e1 is the one it names, 1 event came after it" in cli("verify", "--against", str(kept), *at).out
    kept.write_text(kept.read_text().replace(session.log.entry(1).hash.hex(), "0" * 64))
    wrong = cli("verify", "--against", str(kept), *at)
    assert wrong.code == 4
    assert "holds: e1" not in wrong.out


def test_a_reason_that_is_derived_is_told_as_such(store: Store) -> None:
    session = store.session("s", data={"n": 0})
    with session.turn("go") as turn:
        session.decide("count", because="somebody must")
        turn.data["n"] = 1
    lines = {line.split()[1]: line for line in str(session.diff()).splitlines()}
    assert lines["/data/n"].endswith(": somebody must (derived)")
    assert all("derived" not in line for key, line in lines.items() if key.startswith("/decisions"))
    assert "somebody must (derived)" in session.diff()._repr_html_()


def test_a_line_from_before_the_session_is_said_to_be_older_once_and_has_no_reasons(
    store: Store, cli: Cli, tmp_path: Path
) -> None:
    session = store.session("s")
    with session.turn("add a line"):
        session.append(ev.FileChanged(path="a.py", before="old\n", after="old\nnew\n", why="asked for"))
    result = cli("why", "-s", "s", "a.py:1", "--store", str(tmp_path / "store"))
    assert result.code == 1
    assert result.out.count("older than this session") == 1
    assert "found by following" not in result.out
    assert "no origin" not in result.out
    newer = cli("why", "-s", "s", "a.py:2", "--store", str(tmp_path / "store"))
    assert newer.code == 0
    assert "older" not in newer.out


def test_a_bundle_whose_name_is_a_place_comes_in_under_its_id(store: Store, cli: Cli, tmp_path: Path) -> None:
    with wakelog.open("memory:") as elsewhere:
        old: Any = root_id(1, bytes(10))
        elsewhere.engine.claim("e86", old)
        log = Log.create(elsewhere.engine, old, ev.SessionOpened(name="e86"))
        with open(tmp_path / "old.wake", "wb") as file:
            export_bundle(log, file)
    result = cli("import", "old.wake", "--store", str(tmp_path / "store"))
    assert f"use its id, {old}" in result.out + result.err
    assert store.engine.find("e86") is None
    assert store.resume(old).head.seq == 1


@pytest.mark.parametrize("group", ["flag", "git", "store"])
def test_a_group_without_a_command_shows_its_help(group: str, cli: Cli) -> None:
    done = cli(group)
    assert done.code == 2
    assert done.err.startswith(f"Usage: wakelog {group} ")
    assert "error:" not in done.err


@pytest.mark.parametrize(
    "args", [("rewind", "s@9"), ("fork", "s@9"), ("note", "s@9", "-m", "x"), ("checkpoint", "good", "s@9")]
)
def test_a_missing_turn_is_reported_with_the_name_of_the_session(args: tuple[str, ...], cli: Cli, store: Store) -> None:
    session = store.session("s")
    with session.turn("work"):
        session.fact("a", 1)
    done = cli(*args)
    assert done.code == 3
    assert "no turn @9 in s (it has @1..@1)" in done.err
    assert "s@1" in done.err


def test_a_number_alone_is_answered_with_the_positions_it_may_mean(cli: Cli, store: Store) -> None:
    session = store.session("s")
    assert "did you mean @5 or e5?" in cli("status", "s", "--at", "5").err
    with pytest.raises(InvalidInputError, match=r"did you mean @5 or e5\?"):
        session.diff("5")


def test_limits_that_are_no_amounts_are_answered_with_one_that_is(cli: Cli, store: Store) -> None:
    store.session("s")
    assert "use tokens=200000 or so, a whole number" in cli("budget", "s", "--tokens", "1.5").err
    assert 'use usd="1.50" or so; six decimal places at most' in cli("budget", "s", "--usd", "much").err
