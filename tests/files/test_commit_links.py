"""Git commits, linked to the turns whose work they contain."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import wakelog
from tests.files.repository import GitRepository, needs_git
from wakelog.errors import NotFoundError
from wakelog.files.commit_links import CommitLink
from wakelog.model import events as ev
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.store import Store

pytestmark = needs_git


@pytest.fixture
def repo(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path / "shop")
    made.write("README", "shop\n")
    made.commit("begin")
    made.wait(60)
    return made


@pytest.fixture
def store(tmp_path: Path, repo: GitRepository) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store.db", clock=repo.clock) as opened:
        yield opened


@pytest.fixture
def session(store: Store, repo: GitRepository) -> Session:
    return store.session("fix", folder=str(repo.folder))


def edit(session: Session, repo: GitRepository, path: str, text: str, *, hashed: bool = True) -> None:
    """A change that an agent makes, as it is recorded."""
    repo.write(path, text)
    after = hashlib.sha256(text.encode()).hexdigest() if hashed else ""
    session.files.record(path, after_hash=after, folder=str(repo.folder))


def told(links: list[CommitLink]) -> list[tuple[str, int, str]]:
    return [(link.subject, link.turn, link.known) for link in links]


def test_a_commit_made_during_a_turn_with_a_file_of_the_turn_is_linked(session: Session, repo: GitRepository) -> None:
    with session.turn("one"):
        edit(session, repo, "a.py", "1\n", hashed=False)
        repo.wait(1)
        repo.commit("a is one")
        repo.wait(1)
        session.note("done")
    assert told(session.files.link_commits()) == [("a is one", 1, "derived")]


def test_a_commit_during_a_turn_with_other_files_is_not_linked(session: Session, repo: GitRepository) -> None:
    with session.turn("one"):
        edit(session, repo, "a.py", "1\n", hashed=False)
        repo.git("add", "a.py")
        repo.git("stash")
        repo.write("b.py", "2\n")
        repo.commit("b is two")
        session.note("done")
    assert session.files.link_commits() == []


def test_a_commit_that_somebody_makes_later_is_linked_by_its_content(session: Session, repo: GitRepository) -> None:
    with session.turn("one"):
        edit(session, repo, "a.py", "1\n")
    repo.wait(30)
    with session.turn("two"):
        edit(session, repo, "b.py", "2\n")
    repo.wait(90)
    made = repo.commit("by hand")
    repo.write("a.py", "1, and more\n")
    repo.wait(90)
    repo.commit("changed since")
    links = session.files.link_commits()
    assert told(links) == [("by hand", 1, "matched"), ("by hand", 2, "matched")]
    assert {link.commit for link in links} == {made}
    assert [session.log.entry(link.on).body["path"] for link in links] == ["a.py", "b.py"]


def test_a_commit_from_before_the_turn_is_not_linked(session: Session, repo: GitRepository) -> None:
    repo.write("a.py", "1\n")
    repo.commit("before")
    repo.wait(30)
    with session.turn("again"):
        edit(session, repo, "a.py", "1\n")
    assert session.files.link_commits() == []


@pytest.mark.parametrize(
    "output",
    [
        lambda said: said,
        lambda said: {"stdout": said, "stderr": ""},
        lambda said: [{"type": "text", "text": f"ok\n{said}"}],
    ],
    ids=["text", "fields", "blocks"],
)
def test_a_call_that_commits_is_linked_by_the_hash_in_its_output(
    session: Session, repo: GitRepository, output: Callable[[str], Value]
) -> None:
    with session.turn("commit it"):
        repo.write("c.py", "3\n")
        repo.git("add", "-A")
        text = output(repo.git("commit", "-m", "c is three"))
        call = ev.ActionRecorded(
            action="t1", tool="Bash", effect="write", input={"command": "cd shop && git commit -m x"}, output=text
        )
        session.append(call)
    [link] = session.files.link_commits()
    assert told([link]) == [("c is three", 1, "recorded")]
    assert session.log.entry(link.on).kind == "action.recorded"


def test_a_hash_in_other_output_links_nothing(session: Session, repo: GitRepository) -> None:
    with session.turn("look"):
        made = repo.commit("somebody else's")
        call = ev.ActionRecorded(
            action="t1", tool="Bash", effect="read", input={"command": "cat notes"}, output=f"[main {made[:7]}] x"
        )
        session.append(call)
    assert session.files.link_commits() == []


def test_linking_again_records_nothing_and_works_when_closed(session: Session, repo: GitRepository) -> None:
    with session.turn("one"):
        edit(session, repo, "a.py", "1\n")
    repo.commit("one")
    session.life.end()
    first = session.files.link_commits()
    head = session.head.seq
    assert session.files.link_commits() == first
    assert session.head.seq == head
    assert session.files.commits() == first
    assert session.verify().ok


def test_a_dry_run_writes_nothing(session: Session, repo: GitRepository) -> None:
    with session.turn("one"):
        edit(session, repo, "a.py", "1\n")
    made = repo.commit("one")
    head = session.head.seq
    assert len(session.files.link_commits(notes=True, dry_run=True)) == 1
    assert session.head.seq == head
    assert repo.git("for-each-ref", "refs/notes") == ""
    assert made == repo.git("rev-parse", "HEAD")


def test_work_in_a_worktree_is_linked_with_paths_from_its_top(store: Store, repo: GitRepository) -> None:
    tree = repo.folder / ".trees" / "feature"
    repo.git("worktree", "add", "-q", "-b", "feature", str(tree))
    session = store.session("tree", folder=str(tree))
    assert session.state().labels["repo"] == str(repo.folder)
    with session.turn("one"):
        (tree / "a.py").write_text("1\n")
        session.files.record("a.py", after_hash=hashlib.sha256(b"1\n").hexdigest(), folder=str(tree))
    repo.git("add", "a.py", folder=tree)
    repo.git("commit", "-qm", "in the tree", folder=tree)
    assert told(session.files.link_commits()) == [("in the tree", 1, "matched")]


def test_notes_are_added_once_and_nothing_else_in_git_changes(session: Session, repo: GitRepository) -> None:
    with session.turn("one"):
        edit(session, repo, "a.py", "1\n")
    made = repo.commit("one")
    repo.write("b.py", "not committed\n")
    repo.git("add", "b.py")

    def rest() -> tuple[str, ...]:
        refs = [r for r in repo.git("for-each-ref").splitlines() if "refs/notes/" not in r]
        index = hashlib.sha256((repo.folder / ".git/index").read_bytes()).hexdigest()
        return (*refs, repo.git("symbolic-ref", "HEAD"), index, repo.git("log", "-1", "--format=%B"))

    before = rest()
    for _ in range(2):
        session.files.link_commits(notes=True)
        assert repo.git("notes", "--ref=wakelog", "show", made) == "fix@1"
    assert rest() == before


def test_a_note_of_somebody_else_stays(session: Session, repo: GitRepository) -> None:
    with session.turn("one"):
        edit(session, repo, "a.py", "1\n")
    made = repo.commit("one")
    repo.git("notes", "--ref=wakelog", "add", "-m", "other@4", made)
    session.files.link_commits(notes=True)
    assert repo.git("notes", "--ref=wakelog", "show", made).split() == ["other@4", "fix@1"]


def test_a_session_without_a_folder_says_what_is_missing(store: Store) -> None:
    with pytest.raises(NotFoundError) as told_why:
        store.session("nowhere", folder="").files.link_commits()
    assert told_why.value.kind == "no-repository"


def test_the_turns_behind_a_commit_are_found_over_all_sessions(
    store: Store, session: Session, repo: GitRepository
) -> None:
    other = store.session("second", folder=str(repo.folder))
    with session.turn("make it one"):
        edit(session, repo, "a.py", "1\n")
    with other.turn("make it two"):
        edit(other, repo, "b.py", "2\n")
    made = repo.commit("both")
    assert {each.name for each in store.git.link(str(repo.folder))} == {"second", "fix"}
    found = store.git.turns_behind("HEAD", folder=str(repo.folder))
    assert found.commit.hash == made
    assert {(t.name, t.turn, t.words.text if t.words else "") for t in found.turns} == {
        ("fix", 1, "make it one"),
        ("second", 1, "make it two"),
    }
    assert store.git.turns_behind("HEAD~1", folder=str(repo.folder)).turns == ()


def test_a_note_tells_of_a_session_that_is_elsewhere(store: Store, repo: GitRepository) -> None:
    repo.git("notes", "--ref=wakelog", "add", "-m", "gone@3", "HEAD")
    [turn] = store.git.turns_behind("HEAD", folder=str(repo.folder)).turns
    assert (turn.name, turn.turn, turn.known, turn.is_here) == ("gone", 3, "noted", False)


@pytest.mark.parametrize("revision", ["no-such", "--all", "HEAD:README"])
def test_what_is_no_commit_is_not_found(store: Store, repo: GitRepository, revision: str) -> None:
    with pytest.raises(NotFoundError) as why:
        store.git.turns_behind(revision, folder=str(repo.folder))
    assert why.value.kind == "git-commit-not-found"
