"""`wakelog resume` asks which session, where a person can answer; without a terminal the newest is meant."""

from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "own"))
    with wakelog.open(tmp_path / "own") as store:
        for name in ("first", "second", "third"):
            with store.session(name, goal=f"the {name} goal").turn("go"):
                pass


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody in front of a terminal, and what they will type."""
    typed: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("wakelog.cli.selectors._can_ask", lambda ctx: ctx.is_for_people and not ctx.no_input)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: typed.pop(0))
    return typed


def test_the_newest_are_listed_with_numbers_and_the_chosen_one_goes_on(
    cli: Cli, three: None, person: list[str]
) -> None:
    person.append("3")
    done = cli("resume")
    assert [line.split()[:2] for line in done.err.splitlines()[:3]] == [["1", "third"], ["2", "second"], ["3", "first"]]
    assert "the second goal" in done.err
    assert done.out.startswith("first is active")


def test_a_number_that_is_not_in_the_list_is_asked_for_again(cli: Cli, three: None, person: list[str]) -> None:
    person += ["9", "2"]
    assert cli("resume").out.startswith("second is active")


def test_it_also_chooses_what_goes_on_in_an_agent(cli: Cli, three: None, person: list[str]) -> None:
    person.append("2")
    assert "the second goal" in cli("resume", "--in", "codex", "--print").out


@pytest.mark.parametrize("args", [("--last",), ("third",), ("-s", "third"), ("--json",), ("--no-input",)])
def test_nobody_is_asked_when_it_is_said_or_a_program_asks(
    cli: Cli, three: None, person: list[str], args: tuple[str, ...]
) -> None:
    done = cli("resume", *args)
    assert done.code == 0
    assert "third" in done.out
    assert "second" not in done.err


def test_without_a_terminal_the_newest_is_meant(cli: Cli, three: None) -> None:
    done = cli("resume")
    assert done.out.startswith("third is active")
    assert done.err == ""
