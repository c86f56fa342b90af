"""`files`, and paths and titles in listings: told apart, and whole where nobody gave a width."""

from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli

DEEP = "services/authentication/src/main/python/authentication/middleware"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    monkeypatch.chdir(tmp_path)
    with wakelog.open(tmp_path / ".wakelog") as opened:
        session = opened.session("edits", goal="a goal that is rather long, " * 8)
        for n in range(1, 5):
            with session.turn(f"edit {n}"):
                session.files.record(f"{DEEP}/file_{n}.py", "modified", added=n)
                session.files.record(f"{DEEP}/shared.py", "modified")
        session.rewind("@3")
    return tmp_path


def test_files_of_the_last_turns_in_view(store: Path, cli: Cli) -> None:
    said = cli("files", "--last", "2", "--json").data
    assert said["turns"] == [2, 3]
    assert [(f["path"][len(DEEP) + 1 :], f["changes"], f["turns"]) for f in said["files"]] == [
        ("shared.py", 2, [2, 3]),
        ("file_3.py", 1, [3]),
        ("file_2.py", 1, [2]),
    ]
    lines = cli("files", "edits", "--ndjson").records
    assert [r["path"][len(DEEP) + 1 :] for r in lines] == ["shared.py", "file_3.py", "file_2.py", "file_1.py"]
    assert {r["schema"] for r in lines} == {"wakelog.files/1"}
    assert len(cli("files", "edits@1", "--last", "0", "--json").data["files"]) == 2
    assert "no files changed" in cli("files", "edits@0").out or cli("files", "edits@0").code == 3


def test_changes_outside_of_turns_are_told(store: Path, cli: Cli) -> None:
    with wakelog.open(store / ".wakelog") as opened:
        opened.session("no-turns").files.record("a.py", "created")
        opened.session("edits").files.record("b.py", "created")
    said = cli("files", "no-turns").out
    assert "no files changed in a turn" in said
    assert "1 other change, in 1 more file, outside of turns (--last 0 shows all)" in said
    assert "1 other change, in 1 more file, outside of turns" in cli("files", "edits").out
    assert "a.py" in cli("files", "no-turns", "--last", "0").out
    assert "outside" not in cli("files", "no-turns", "--last", "0").out


def test_a_long_remark_is_folded(store: Path, cli: Cli) -> None:
    said = cli("files", "edits", "--last", "1", columns=60).out
    assert "4 other changes, in 2 more files, before @3 or outside of turns" in said.replace("\n", " ")
    assert max(map(len, said.splitlines()[-2:])) <= 60


def test_stat_counts_turns_in_view_alone(store: Path, cli: Cli) -> None:
    for count, turns in (("1", [3]), ("2", [3, 2]), ("5", [3, 2, 1]), ("0", [3, 2, 1])):
        assert [row["turn"] for row in cli("log", "--stat", "-n", count, "--json").data["turns"]] == turns
    assert [row["turn"] for row in cli("log", "-n", "2", "--json").data["turns"]] == [4, 3]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_two_files_never_look_the_same(store: Path, cli: Cli, columns: int) -> None:
    shown = cli("files", columns=columns).out
    assert all(f"file_{n}.py" in shown for n in (1, 2, 3))
    stat = cli("log", "--stat", columns=columns).out
    assert all(f"file_{n}.py" in stat for n in (1, 2, 3))
    assert all(len(line) <= columns for line in (*shown.splitlines(), *stat.splitlines()))


def test_blame_shows_a_path_as_a_path_and_takes_it_back(store: Path, cli: Cli) -> None:
    shown = cli("blame", "/files_modified", columns=160).out
    assert "~1" not in shown
    assert "/file_2.py" in shown
    plain = cli("blame", f"/files_modified/{DEEP}/file_2.py", "--json")
    assert plain.code == 0
    assert plain.data["pointer"] == f"/files_modified/{DEEP.replace('/', '~1')}~1file_2.py"
    assert cli("state", f"/files_modified/{DEEP}/file_2.py").code == 0
    assert cli("state", f"/files_modified/{DEEP}/nothing.py").code == 3


def test_for_another_program_nothing_is_cut(store: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    goal = ("a goal that is rather long, " * 8).strip()
    assert goal not in cli("ls").out
    # Whoever pipes has no width, unless somebody sets one.
    monkeypatch.setattr("wakelog.cli.context.CommandContext.is_piped", property(lambda self: True))
    assert goal in cli("ls").out
    assert f"{DEEP}/file_3.py" in cli("files").out


def test_a_line_is_asked_of_one_session_where_it_is_named_and_of_all_where_not(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with wakelog.open(tmp_path / ".wakelog") as store:
        texts = ["", "alpha\n", "alpha\nbeta\n"]
        for name, before, after in zip(("one", "two"), texts, texts[1:], strict=False):
            session = store.session(name, folder="")
            with session.turn(f"write in {name}"):
                session.files.record("x.py", "modified" if before else "created", before=before, after=after)
    (tmp_path / "x.py").write_text("alpha\nbeta\n", encoding="utf-8")
    assert '"write in one"' in cli("why", "x.py:1").out
    asked = cli("why", "two", "x.py:1")
    assert asked.code == 1
    assert "the line is older than this session" in asked.out


def test_the_turns_looked_at_are_a_range_that_fits_the_line(tmp_path: Path, cli: Cli) -> None:
    with wakelog.open(tmp_path) as opened:
        session = opened.session("many-turns")
        for number in range(30):
            with session.turn("go on"):
                session.files.record(f"file_{number % 3}.py", "modified")
    said = cli("files", "many-turns", "--last", "0", "--store", str(tmp_path), columns=40)
    assert said.lines[0] == "many-turns  3 files changed in @1..@30"
