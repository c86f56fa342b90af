"""`wakelog op`, `cancel`, `ps --failed` and `fork --worktree`, as a person uses them."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.files.repository import needs_git
from wakelog import events as ev


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "store"))
    with wakelog.open(tmp_path / "store") as store:
        session = store.session("s", folder="")
        for number in (1, 2, 3):
            with session.turn(user=f"turn {number}"):
                session.fact("n", number)
        session.rewind("@2", why="too far")
        store.erase(session, [2], by="dpo", why="a name")
    return tmp_path


def _fact(place: Path) -> Any:
    with wakelog.open(place / "store") as store:
        return store.resume("s").log.state()["facts"]["n"]["value"]


def test_operations_are_listed_with_who_and_why(cli: Cli) -> None:
    data = cli("op", "log", "s", "--json").data
    assert [(each["kind"], each["why"]) for each in data[:2]] == [
        ("payload.erased", "a name"),
        ("history.rewound", "too far"),
    ]
    shown = cli("op", "log", "s")
    assert shown.lines[1].startswith(f"op:{data[0]['seq']}")
    assert "dpo" in shown.lines[1]
    assert cli("op", "log", "s", "-n", "1").lines[-1].endswith("more (-n 0 shows all)")


def test_an_operation_is_shown_and_restored(cli: Cli, place: Path) -> None:
    rewound = next(e for e in cli("op", "log", "s", "--json").data if e["kind"] == "history.rewound")["seq"]
    shown = cli("op", "show", f"op:{rewound}", "-s", "s")
    assert "why           too far" in shown.out
    assert "/facts/n" in shown.out
    cli("undo", "s")
    assert _fact(place) == 3
    done = cli("op", "restore", str(rewound), "-s", "s", "--yes")
    assert done.code == 0, done.err
    assert _fact(place) == 2
    assert cli("undo", "s").code == 0
    assert _fact(place) == 3


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["show", "op:2"], 3),
        (["show", "op:999"], 3),
        (["show", "nothing"], 2),
        (["restore", "op:1", "--no-input"], 2),
        (["show"], 2),
        (["perhaps"], 2),
    ],
)
def test_what_is_no_operation_is_told(cli: Cli, args: list[str], code: int) -> None:
    done = cli("op", *args, *(["-s", "s"] if args != ["perhaps"] else []))
    assert done.code == code, done.err
    assert "error:" in done.err


def test_a_session_is_cancelled_with_a_reason(cli: Cli, place: Path) -> None:
    assert cli("cancel", "s").code == 2
    assert cli("cancel", "-m", "x").code == 2
    assert cli("cancel", "s", "-m", " ").code == 2
    done = cli("cancel", "s", "-m", "it loops")
    assert (done.code, done.out) == (0, "s: active → cancelled\n")
    assert cli("cancel", "s", "-m", "again").code == 6


def test_failed_sessions_are_listed_with_their_error(cli: Cli, place: Path) -> None:
    assert cli("ps", "--failed").out == "nothing failed\n"
    with wakelog.open(place / "store") as store:
        session = store.session("broken", folder="")
        session.append(ev.TurnStarted(input="go"))
        session.append(ev.TurnEnded(outcome="failed", error=ev.Failure("boom", "it broke")))
    assert "it broke" in cli("ps", "--failed").out
    assert [each["name"] for each in cli("ps", "--failed", "--json").data] == ["broken"]


# A fork with files of its own


def _git(folder: Path, *args: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@x"]
    return subprocess.run(["git", *who, *args], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(place: Path) -> Path:
    folder = place / "repo"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("from git\n")
    (folder / "kept.txt").write_text("kept\n")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "first")
    with wakelog.open(place / "store") as store:
        session = store.session("work", folder=str(folder))
        with session.turn(user="one"):
            session.files.record("a.txt", before="from git\n", after="one\n")
            session.files.record("new.txt", "created", after="new\n")
        with session.turn(user="two"):
            session.files.record("a.txt", before="one\n", after="two\n")
            session.files.record("new.txt", "deleted", before="new\n")
            session.files.record("lost.txt")
    (folder / "a.txt").write_text("later\n")
    _git(folder, "commit", "-qam", "second")
    return folder


@needs_git
def test_a_fork_gets_a_worktree_with_the_files_as_they_were(cli: Cli, repository: Path, place: Path) -> None:
    before = (
        _git(repository, "for-each-ref") + _git(repository, "status", "--porcelain") + _git(repository, "log", "-1")
    )
    done = cli("fork", "work@1", "-n", "try", "--worktree", "try")
    assert done.code == 7, done.err
    assert "not there lost.txt: content not captured" in done.out
    assert (place / "try" / "a.txt").read_text() == "one\n"
    assert (place / "try" / "new.txt").read_text() == "new\n"
    assert (place / "try" / "kept.txt").read_text() == "kept\n"
    after = _git(repository, "for-each-ref") + _git(repository, "status", "--porcelain") + _git(repository, "log", "-1")
    assert after == before
    assert (repository / "a.txt").read_text() == "later\n"
    told = cli("fork", "work@2", "-n", "again", "--worktree", "again", "--json").data
    assert told["worktree"]["is_recorded"]
    assert (place / "again" / "a.txt").read_text() == "two\n"
    assert not (place / "again" / "new.txt").exists()


@needs_git
def test_a_worktree_that_cannot_be_made_leaves_no_fork(cli: Cli, repository: Path, place: Path) -> None:
    (place / "full").mkdir()
    (place / "full" / "mine").write_text("x")
    done = cli("fork", "work@1", "-n", "try", "--worktree", "full")
    assert (done.code, done.out) == (6, "")
    assert (place / "full" / "mine").read_text() == "x"
    assert cli("status", "try").code == 3
    nowhere = cli("fork", "s", "-n", "try", "--worktree", "new")
    assert nowhere.code in (3, 5), nowhere.err
    assert cli("status", "try").code == 3
    assert not (place / "new").exists()
