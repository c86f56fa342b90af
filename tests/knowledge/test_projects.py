"""Which project a session belongs to, and which file is which."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.files.repository import needs_git
from tests.knowledge.past import edit, look, worked
from wakelog.model import events as ev
from wakelog.model.call_subject import project_path, subject_of
from wakelog.store import Store


def git(folder: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    top = tmp_path / "a" / "shop"
    top.mkdir(parents=True)
    git(top, "init", "-q")
    git(top, "commit", "-q", "--allow-empty", "-m", "begin")
    return top


def changed(store: Store, name: str, folder: Path, path: str) -> None:
    session = store.session(name, folder=str(folder))
    session.append(ev.TurnStarted(), ev.FileChanged(path=path), edit(str(folder / "src" / "a.py")).draft("c"))


@needs_git
def test_all_worktrees_of_a_repository_are_one_project(store: Store, repository: Path, tmp_path: Path) -> None:
    beside = tmp_path / "elsewhere"
    git(repository, "worktree", "add", "-q", str(beside))
    changed(store, "main", repository, "src/a.py")
    changed(store, "beside", beside, "src/a.py")
    for folder in (repository, beside):
        (folder / "src").mkdir(exist_ok=True)
        (folder / "src" / "a.py").write_text("x")
        subject, project = store.known.here("a.py", folder=str(folder / "src"))
        assert (subject, project) == ("src/a.py", str(repository.resolve()))
        [line] = store.known.about(subject, aspect="who", project=project).lines
        assert line.roots == 2


@needs_git
def test_repositories_of_one_name_are_two_projects(store: Store, repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "b" / "shop"
    other.mkdir(parents=True)
    git(other, "init", "-q")
    changed(store, "one", repository, "src/a.py")
    changed(store, "two", other, "src/a.py")
    assert [line.roots for line in store.known.about("src/a.py", aspect="who").lines] == [1, 1]
    assert len(store.known.about("src/a.py", aspect="who", project=str(other.resolve())).lines) == 1


def test_files_of_sessions_without_a_project_are_not_the_same_file(store: Store) -> None:
    worked(store, "one", [look("setup.py")], labels={})
    worked(store, "two", [look("setup.py")], labels={})
    assert [line.roots for line in store.known.about("setup.py", aspect="who").lines] == [1, 1]


@pytest.mark.parametrize(
    ("path", "labels", "wanted"),
    [
        ("/r/src/a.py", {"repo": "/r", "project": "/r"}, "src/a.py"),
        ("a.py", {"repo": "/r", "project": "/r/src"}, "src/a.py"),
        ("/wt/x/src/a.py", {"repo": "/r", "project": "/wt/x"}, "src/a.py"),
        ("./src/../src/a.py", {"project": "/r"}, "src/a.py"),
        ("/etc/hosts", {"repo": "/r", "project": "/r"}, "/etc/hosts"),
        ("/rest/a.py", {"repo": "/r"}, "/rest/a.py"),
        ("src/a.py", {}, "src/a.py"),
    ],
)
def test_a_file_is_named_from_the_top_of_its_worktree(path: str, labels: dict[str, str], wanted: str) -> None:
    assert project_path(path, labels) == wanted


@pytest.mark.parametrize(
    ("line", "label", "target"),
    [
        ("cd /x && FOO=1 uv run pytest tests/a.py -q | tail -5", "pytest", "tests/a.py"),
        ("git add -A && git commit -m 'fix a.py'", "git commit", ""),
        ("python3 -m pytest", "pytest", ""),
        ("npm run build", "npm run build", ""),
        ("cat src/a.py | head -3", "cat", "src/a.py"),
        ("bash -lc 'cargo test'", "cargo test", ""),
        ("curl -s https://a.example/x", "curl", "https://a.example/x"),
    ],
)
def test_a_command_is_labelled_by_what_it_runs(line: str, label: str, target: str) -> None:
    found = subject_of("Bash", "external", {"command": line})
    assert (found.label, found.target) == (label, target)


def test_a_tool_is_labelled_by_its_name(store: Store) -> None:
    given: dict[str, Any] = {"file_path": "/r/a.py", "old": "x"}
    found = subject_of("Edit", "write", given)
    assert (found.label, found.written, found.read) == ("Edit", ("/r/a.py",), ())


def test_a_full_path_finds_the_file_of_the_project_it_lies_in(store: Store) -> None:
    for place in ("/code/shop", "/code/shop/vendor/kit", "/code/shopping"):
        session = store.session(place[1:], labels={"repo": place}, folder="")
        session.append(ev.TurnStarted(), edit(f"{place}/src/a.py").draft("c"), look("/etc/hosts").draft("d"))
    for place in ("/code/shop", "/code/shop/vendor/kit"):
        [line] = store.known.about(f"{place}/src/a.py", aspect="who").lines
        assert line.project == place
    assert store.known.about("/code/shop/src/a.py", aspect="who", project="/code/shopping").lines == ()
    assert {line.project for line in store.known.about("/etc/hosts", aspect="who").lines} == {
        "/code/shop",
        "/code/shop/vendor/kit",
        "/code/shopping",
    }
