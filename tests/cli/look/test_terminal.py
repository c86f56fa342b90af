"""Any terminal: recorded text is inert, rows fit, colour and signs follow what the terminal can do."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.look import world
from tests.cli.look.commands import EVERY, of_session
from tests.seeds import some
from wakelog.cli.text import fold_list, width
from wakelog.store import open as open_store

HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
SGR = re.compile("\x1b\\[[0-9;]*m")


@pytest.fixture(scope="session")
def evil(demo: Path) -> str:
    """The id of the session in which every text is hostile."""
    with open_store(demo, create=False) as store:
        return store.find(world.HOSTILE_NAME)


def test_hostile_text_is_shown_inert_by_every_command(look: Cli, evil: str) -> None:
    for args in of_session(evil):
        result = look(*args)
        assert result.code == 0, (args, result.err)
        assert not HARMFUL.search(result.out), args
        assert not HARMFUL.search(result.err), args


def test_hostile_text_brings_no_colour_of_its_own(look: Cli, evil: str) -> None:
    for args in of_session(evil):
        out = look(*args, "--color", "always").out
        assert "\x1b[31mred" not in out, args
        assert not HARMFUL.search(SGR.sub("", out)), args


def test_hostile_text_is_escaped_in_json(look: Cli, evil: str) -> None:
    for args in of_session(evil):
        for flag in ("--json", "--ndjson"):
            out = look(*args, flag).out
            assert not HARMFUL.search(out), args
    assert look("state", "/data", "-s", evil, "--json").data["value"] == {world.HOSTILE: world.HOSTILE}


def test_hostile_selectors_are_named_inert_in_errors(look: Cli) -> None:
    for args in (("log", world.ESC), ("show", f"{world.BIDI}@1"), ("state", f"/{world.HOSTILE}"), ("query", world.OSC)):
        result = look(*args)
        assert result.code in (2, 3)
        assert not HARMFUL.search(result.err), args


def test_hostile_name_never_stands_in_a_command_to_paste(look: Cli, evil: str) -> None:
    for result in (look("log", f"{evil}@9"), look("search", "end", "-s", evil)):
        pasted = [line for line in (result.out + result.err).splitlines() if "hint:" in line or line.startswith("s_")]
        assert pasted
        assert all("evil" not in line for line in pasted)


@pytest.mark.parametrize("columns", some([56, 60, 100, 160]))
def test_no_row_is_wider_than_the_terminal(look: Cli, evil: str, columns: int) -> None:
    for args in (*EVERY, *of_session(evil)):
        result = look(*args, columns=columns)
        assert result.code == 0, (args, result.err)
        wide = [line for line in result.lines if width(line) > columns]
        assert not wide, (args, wide)


def test_wide_characters_are_counted_as_wide(cli: Cli, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        session = store.session("日本語のセッション", goal="漢字" * 60)
        with session.turn(user="漢字" * 60):
            session.fact("キー", "値" * 100)
    for args in (("ls",), ("log",), ("show",), ("state",), ("diff",), ("blame",), ("status",), ("tail",)):
        result = cli(*args, "--store", str(tmp_path), columns=60)
        assert result.code == 0, result.err
        assert all(width(line) <= 60 for line in result.lines), args


def test_ascii_terminals_get_ascii(look: Cli) -> None:
    for args in (*EVERY, ("verify",), ("calls",), ("op", "log"), ("store", "check")):
        result = look(*args, env={"WAKELOG_ASCII": "1"})
        if args[0] not in ("query", "search"):  # these show words of the index, whose marks are its own
            assert result.out.isascii(), args


def test_colour_is_off_in_a_pipe_and_on_when_asked_for(look: Cli) -> None:
    assert "\x1b[" not in look("log", "fix-auth").out
    assert "\x1b[" in look("log", "fix-auth", "--color", "always").out
    assert "\x1b[" in look("log", "fix-auth", env={"FORCE_COLOR": "1"}).out
    assert "\x1b[" in look("log", "fix-auth", env={"CLICOLOR_FORCE": "1"}).out
    assert "\x1b[" not in look("log", "fix-auth", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).out
    assert "\x1b[" in look("log", "fix-auth", "--color", "always", env={"NO_COLOR": "1"}).out
    assert "\x1b[" not in look("log", "fix-auth", "--color", "never", env={"FORCE_COLOR": "1"}).out


def test_colour_changes_nothing_but_colour(look: Cli) -> None:
    for args in EVERY:
        if args[0] == "search":  # there colour stands for the marks around what matched
            continue
        plain = [line.rstrip() for line in look(*args).lines]
        coloured = [SGR.sub("", line).rstrip() for line in look(*args, "--color", "always").lines]
        assert plain == coloured, args


def test_meaning_is_never_colour_alone(look: Cli) -> None:
    assert "✗ turn" in look("log", "fix-auth", "--events").out
    assert "rewound" in look("log", "fix-auth").out
    assert "‖ paused" in look("ls").out


def test_suggestions_are_folded_between_commands() -> None:
    commands = ("wakelog show fix-auth@1", "wakelog diff fix-auth@1", "wakelog log fix-auth -p")
    assert fold_list("next: ", commands, 100) == ["next: " + " · ".join(commands)]
    assert fold_list("next: ", commands, 60) == [
        "next: wakelog show fix-auth@1 · wakelog diff fix-auth@1",
        "      wakelog log fix-auth -p",
    ]
    assert fold_list("next: ", commands, 20) == [f"next: {commands[0]}", *(f"      {each}" for each in commands[1:])]
    assert fold_list("next: ", (), 20) == ["next: "]
