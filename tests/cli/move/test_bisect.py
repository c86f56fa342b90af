"""`wakelog bisect`, as a person and as a script use it."""

import sys
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli

CHECK = """
import json, os, sys
state = json.load(sys.stdin)
assert state == json.load(open(os.environ["WAKELOG_BISECT_STATE"]))
print("testing", os.environ["WAKELOG_BISECT_TURN"])
n = state["data"]["n"]
text = open(os.path.join(os.environ["WAKELOG_BISECT_FILES"], "n.txt")).read()
assert text == str(n), text
sys.exit({codes}.get(n, 1 if n >= 5 else 0))
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    with wakelog.open(tmp_path / "store") as store:
        session = store.session("s", data={"n": 0}, folder="")
        for number in range(1, 9):
            with session.turn(user=f"turn {number}") as turn:
                turn.data["n"] = number
                session.files.record("n.txt", before=str(number - 1), after=str(number))
    return tmp_path


def test_a_command_finds_the_first_bad_turn(cli: Cli) -> None:
    assert cli("bisect", "start", "s@", "@1").out == "6 to test, about 3 steps. Next: s@4\n"
    Path("check.py").write_text(CHECK.replace("{codes}", "{}"))
    done = cli("bisect", "run", "--", sys.executable, "check.py")
    assert done.code == 0, done.err
    assert done.lines[:2] == ["s@5 is the first bad one  (" + done.lines[0].partition("(")[2], "  asked     turn 5"]
    assert any("/data/n" in line and "4 → 5" in line for line in done.lines)
    assert "testing 4" in done.err
    assert "@4 is good" in done.err
    assert cli("bisect", "log", "--json").data["first_bad"]["turn"] == 5
    assert cli("bisect", "reset").out == "The search is over.\n"
    assert cli("bisect", "reset").out == "There was no search.\n"


def test_a_person_says_good_bad_and_skip(cli: Cli) -> None:
    cli("bisect", "start", "@8", "@1", "-s", "s")
    assert cli("bisect", "skip").out == "5 to test, about 3 steps. Next: s@5\n"
    data = cli("bisect", "log", "--json").data
    seen = []
    while data["next"] is not None:
        turn = data["next"]["turn"]
        seen.append(turn)
        data = cli("bisect", "good" if turn < 6 else "bad", "--json").data
    assert data["first_bad"]["turn"] == 6
    assert 4 not in seen


def test_codes_are_those_of_git(cli: Cli) -> None:
    cli("bisect", "start", "s@", "@1")
    Path("check.py").write_text(CHECK.replace("{codes}", "{n: 125 for n in (4, 5, 6)}"))
    undecided = cli("bisect", "run", "--", sys.executable, "check.py")
    assert undecided.code == 1
    assert "one of @4, @5, @6, @7" in undecided.out
    for code in (126, 127, 128, 255):
        cli("bisect", "reset")
        cli("bisect", "start", "s@", "@1")
        Path("check.py").write_text(CHECK.replace("{codes}", f"dict.fromkeys(range(9), {code})"))
        stopped = cli("bisect", "run", "--json", "--", sys.executable, "check.py")
        assert stopped.code == 2
        assert f"ended with {code} at @4" in stopped.err
        assert cli("bisect", "log", "--json").data["judged"] == [], "nothing was marked"


def test_a_command_that_dies_or_cannot_start_marks_nothing(cli: Cli) -> None:
    cli("bisect", "start", "s@", "@1")
    killed = cli("bisect", "run", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert "by signal 9" in killed.err
    assert cli("bisect", "run", "--", "no-such-program-anywhere").code == 3
    assert cli("bisect", "log", "--json").data["judged"] == []


def test_a_command_runs_among_the_files_when_asked(cli: Cli) -> None:
    cli("bisect", "start", "s@", "@1")
    test = "import sys; sys.exit(int(open('n.txt').read()) >= 3)"
    done = cli("bisect", "run", "--in-files", "--json", "--", sys.executable, "-c", test)
    assert done.data["first_bad"]["turn"] == 3


def test_a_search_leaves_the_session_as_it_is_and_keeps_no_address(cli: Cli, place: Path) -> None:
    with wakelog.open(place / "store") as store:
        before = store.resume("s").head
    cli("bisect", "start", "s@", "@1")
    cli("bisect", "bad")
    kept = next((place / "data" / "bisect").iterdir())
    assert str(place) not in kept.read_text()
    with wakelog.open(place / "store") as store:
        assert store.resume("s").head == before


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["good"], 3),
        (["run", "true"], 3),
        (["log"], 3),
        (["start", "s@1", "@3"], 2),
        (["start", "s@1..@2", "@1"], 2),
        (["start", "s@99", "@1"], 3),
        (["start", "nobody@", "@1"], 3),
        (["start", "s@"], 2),
        (["run"], 2),
        (["perhaps"], 2),
    ],
)
def test_a_wrong_command_line_is_told(cli: Cli, args: list[str], code: int) -> None:
    done = cli("bisect", *args)
    assert (done.code, done.out) == (code, ""), done.err


def test_a_second_search_waits_and_a_broken_file_is_told(cli: Cli, place: Path) -> None:
    cli("bisect", "start", "s@", "@1")
    assert cli("bisect", "start", "s@", "@1").code == 6
    next((place / "data" / "bisect").iterdir()).write_text("{")
    done = cli("bisect", "good", "--json")
    assert done.error["kind"] == "bad-bisect"
    assert cli("bisect", "reset").code == 0
