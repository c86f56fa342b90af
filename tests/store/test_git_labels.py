"""A live session gets labels for its place in git: when it is created, and when the place changes."""

from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.files.repository import GitRepository, needs_git
from wakelog.files.git_head import git_labels
from wakelog.importers.transcript_import import import_transcript
from wakelog.session import Session

pytestmark = needs_git


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    monkeypatch.setenv("WAKELOG_GIT_LABELS", "true")
    made = GitRepository(tmp_path / "shop")
    made.write("src/a.py", "1\n")
    made.commit("begin")
    monkeypatch.chdir(made.folder / "src")
    return made


def labels(session: Session[Any]) -> dict[str, str]:
    found: dict[str, str] = session.log.part("labels")
    return found


def changes(session: Session[Any]) -> list[dict[str, str | None]]:
    return [entry.body["labels"] for entry in session.log.entries() if entry.kind == "labels.set"]


def test_a_session_opened_in_a_git_folder_has_its_place(repo: GitRepository) -> None:
    with wakelog.open("memory:") as store:
        found = labels(store.session("fix", labels={"team": "web"}))
    assert found == {
        "project": str(repo.folder),
        "repo": str(repo.folder),
        "branch": "main",
        "commit": repo.git("rev-parse", "HEAD"),
        "team": "web",
    }


def test_own_labels_win(repo: GitRepository) -> None:
    with wakelog.open("memory:") as store:
        assert labels(store.session("fix", labels={"repo": "shop"}))["repo"] == "shop"


def test_worktrees_have_the_repository_of_their_main_tree(
    repo: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "tree"))
    monkeypatch.chdir(tmp_path / "tree")
    with wakelog.open("memory:") as store:
        found = labels(store.session("fix"))
    assert (found["repo"], found["project"], found["branch"]) == (
        str(repo.folder),
        str(tmp_path / "tree"),
        "feature",
    )


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_read_is_what_git_says(repo: GitRepository, tmp_path: Path, packed: bool) -> None:
    repo.git("checkout", "-q", "-b", "team/feature")
    repo.commit("more")
    if packed:
        repo.git("pack-refs", "--all")
    head = repo.git("rev-parse", "HEAD")
    assert git_labels(".") == {"repo": str(repo.folder), "branch": "team/feature", "commit": head}
    repo.git("checkout", "-q", "--detach")
    assert git_labels(".") == {"repo": str(repo.folder), "commit": head}
    repo.git("clone", "-q", "--bare", str(repo.folder), str(tmp_path / "bare"))
    repo.git("worktree", "add", "-q", str(tmp_path / "of-bare"), "main", folder=tmp_path / "bare")
    assert git_labels(str(tmp_path / "of-bare"))["repo"] == str(tmp_path / "bare")


def test_a_repository_without_a_commit_has_a_branch(tmp_path: Path) -> None:
    GitRepository(tmp_path / "new")
    assert git_labels(str(tmp_path / "new")) == {"repo": str(tmp_path / "new"), "branch": "main"}


def test_a_changed_branch_is_told_when_the_next_turn_begins(repo: GitRepository) -> None:
    with wakelog.open("memory:") as store:
        session = store.session("fix")
        first = labels(session)["commit"]
        with session.turn("one"):
            repo.git("checkout", "-q", "-b", "other")
        assert changes(session) == []
        repo.commit("more")
        with session.turn("two"):
            pass
        with session.turn("three"):
            pass
        assert changes(session) == [{"branch": "other"}]
        assert labels(session)["commit"] == first
        repo.git("checkout", "-q", "--detach")
        with store.resume("fix").turn("four"):
            pass
        assert changes(session) == [{"branch": "other"}, {"branch": None}]


@pytest.mark.parametrize("place", ["src", "top", "worktree"])
def test_every_change_of_the_branch_is_told_however_quickly_it_comes(
    repo: GitRepository, tmp_path: Path, place: str
) -> None:
    folder = {"src": repo.folder / "src", "top": repo.folder, "worktree": tmp_path / "tree"}[place]
    if place == "worktree":
        repo.git("worktree", "add", "-q", "-b", "b0", str(folder))
    else:
        repo.git("checkout", "-q", "-b", "b0")
    with wakelog.open("memory:") as store:
        session = store.session("fix", folder=str(folder))
        for number in range(1, 6):
            repo.git("symbolic-ref", "HEAD", f"refs/heads/b{number}", folder=folder)
            for _ in range(2):
                with session.turn():
                    pass
        assert changes(session) == [{"branch": f"b{number}"} for number in range(1, 6)]


def test_a_folder_that_leaves_git_keeps_its_labels_and_one_that_moves_to_another_has_its_own(
    repo: GitRepository,
) -> None:
    with wakelog.open("memory:") as store:
        session = store.session("fix", folder=str(repo.folder))
        with session.turn():
            pass
        repo.folder.joinpath(".git").rename(repo.folder / "away")
        with session.turn():
            pass
        assert changes(session) == []
        repo.folder.joinpath("away").rename(repo.folder / ".git")
        repo.git("checkout", "-q", "-b", "other")
        with session.turn():
            pass
        assert changes(session) == [{"branch": "other"}]


@pytest.mark.parametrize("how", ["setting", "keyword", "outside"])
def test_labels_can_be_left_out(repo: GitRepository, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "setting":
        monkeypatch.setenv("WAKELOG_GIT_LABELS", "false")
    if how == "outside":
        monkeypatch.chdir(tmp_path)
    with wakelog.open("memory:") as store:
        session = store.session("fix", folder="" if how == "keyword" else None)
        repo.git("checkout", "-q", "-b", "other")
        with session.turn("one"):
            pass
        assert (labels(session), changes(session)) == ({}, [])


def test_an_existing_session_is_not_touched_by_opening_it(repo: GitRepository, tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store.db") as store:
        head = store.session("fix", folder="").head.seq
        assert (labels(store.session("fix")), store.session("fix").head.seq) == ({}, head)


def test_an_imported_session_is_not_about_this_folder(repo: GitRepository, tmp_path: Path) -> None:
    from tests.hooks.conversation import write_transcript

    path = write_transcript(tmp_path / "0a1b2c3d-0000-4000-8000-000000000000.jsonl")
    with wakelog.open("memory:") as store:
        [found] = import_transcript(store, path).sessions
        assert "repo" not in labels(store.resume(found.name))
