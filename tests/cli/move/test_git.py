"""`wakelog git`, and `why` about a line that is committed."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.files.repository import GitRepository, needs_git
from wakelog.session import Session

pytestmark = needs_git
FIRST = "def week():\n    return 6\n"
SECOND = "def week():\n    return 7\n"


class World:
    """A repository where an agent works, and the store of its sessions."""

    def __init__(self, folder: Path) -> None:
        self.repo = GitRepository(folder / "shop")
        self.repo.write("src/week.py", FIRST)
        self.repo.commit("begin")
        self.repo.wait(60)
        self.url = str(folder / "store")
        self.store = wakelog.open(self.url, clock=self.repo.clock)

    def work(self, name: str, asked: str, path: str, text: str) -> Session:
        session = self.store.session(name, folder=str(self.repo.folder))
        file = self.repo.folder / path
        before = file.read_text() if file.exists() else ""
        with session.turn(asked):
            self.repo.write(path, text)
            session.files.record(
                path,
                before=before,
                after=text,
                after_hash=hashlib.sha256(text.encode()).hexdigest(),
                folder=str(self.repo.folder),
            )
        self.repo.wait(5)
        return session


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.chdir(made.repo.folder)
    monkeypatch.setenv("WAKELOG_STORE", made.url)
    return made


def test_link_and_show_go_both_ways(cli: Cli, world: World) -> None:
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    made = world.repo.commit("seven days")
    world.store.close()
    linked = cli("git", "link", "weeks")
    assert linked.code == 0
    assert f"@1  {made[:10]}  matched  seven days" in linked.out
    shown = cli("git", "show", "HEAD")
    assert (shown.code, shown.lines[0]) == (0, f"{made[:10]} seven days")
    assert "weeks@1" in shown.lines[1]
    assert '"make sessions last a week"' in shown.lines[1]
    [turn] = cli("git", "show", "--json").data["turns"]
    assert (turn["name"], turn["turn"], turn["known"], turn["words"]) == (
        "weeks",
        1,
        "matched",
        "make sessions last a week",
    )
    assert cli("git", "show", "HEAD~1").code == 1
    assert made[:10] in cli("log", "weeks", "--events").out


def test_link_all_takes_the_sessions_of_this_repository(cli: Cli, world: World) -> None:
    world.work("weeks", "a week", "src/week.py", SECOND)
    world.work("days", "a day", "src/day.py", "1\n")
    world.store.session("elsewhere", folder="")
    world.repo.commit("both")
    world.store.close()
    dry = cli("git", "link", "--all", "--dry-run", "--json").data
    assert {each["name"] for each in dry} == {"weeks", "days"}
    assert cli("git", "show", "HEAD").code == 1
    cli("git", "link", "--all", "--notes")
    assert {turn["name"] for turn in cli("git", "show", "--json").data["turns"]} == {"weeks", "days"}
    assert set(world.repo.git("notes", "--ref=wakelog", "show", "HEAD").split()) == {"weeks@1", "days@1"}


def test_ls_lists_the_sessions_of_a_repository_and_of_an_agent(cli: Cli, world: World, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    world.repo.git("worktree", "add", "-q", "-b", "feature", str(tree))
    world.store.session("in-tree", folder=str(tree), agent="codex")
    world.store.session("imported", labels={"project": str(world.repo.folder / "src")}, folder="")
    world.store.session("elsewhere", labels={"project": "/elsewhere"}, folder="", agent="codex")
    world.store.close()

    def names(*args: str) -> set[str]:
        return {each["name"] for each in cli("ls", *args, "--json").data}

    assert names("--repo", "src") == names("--repo", str(tree)) == {"in-tree", "imported"}
    assert names("--agent", "codex") == {"in-tree", "elsewhere"}
    assert names("--agent", "codex", "--repo", ".") == {"in-tree"}


def test_log_and_show_say_what_changed_in_between(cli: Cli, world: World) -> None:
    session = world.store.session("weeks", folder=str(world.repo.folder), labels={"model": "a"})
    with session.turn("one"):
        pass
    session.label({"model": "b", "team": "web"})
    world.repo.git("checkout", "-q", "-b", "other")
    with session.turn("two"):
        pass
    world.store.close()
    assert [line.strip() for line in cli("log", "weeks").lines if "changed" in line] == [
        "◦ model changed: a → b",
        "◦ branch changed: main → other",
    ]
    [second, first] = cli("log", "weeks", "--json").data["turns"]
    assert (first["changed"], len(second["changed"])) == ([], 2)
    assert "changed" not in cli("log", "weeks", "--oneline").out
    assert "branch changed: main → other" in cli("show", "weeks@2").out
    assert "model changed: a → b, team=web" in cli("log", "weeks", "--events").out


def test_link_without_a_repository_says_what_to_name(cli: Cli, world: World) -> None:
    world.store.session("elsewhere", folder="")
    world.store.close()
    result = cli("git", "link", "elsewhere")
    assert result.code == 3
    assert "--repo" in result.err


def test_show_without_a_repository_does_not_blame_the_commit(
    cli: Cli, world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    refused = cli("git", "show", "HEAD", "--repo", str(outside))
    assert refused.code == 3
    assert f"there is no git repository at {outside}" in refused.err
    assert "there is no folder" in cli("git", "show", "HEAD", "--repo", str(outside / "gone")).err
    assert "there is no commit 'gone' in the repository" in cli("git", "show", "gone").err


def test_why_of_a_committed_line_goes_by_its_commit(cli: Cli, world: World) -> None:
    """Another session changed the file since, so the newest change is not the answer, and lines have moved."""
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    made = world.repo.commit("seven days")
    world.work("docs", "say what it is", "src/week.py", f'"""Weeks."""\n\n{SECOND}')
    world.repo.commit("words")
    world.store.close()
    asked = cli("why", "src/week.py:4", "--json").data
    assert (asked["name"], asked["asked"]["text"]) == ("weeks", "make sessions last a week")
    assert (asked["git"]["commit"], asked["way"]) == (made, "lines")
    lines = cli("why", "src/week.py:4").lines
    assert lines[1].startswith('@1 ← "make sessions last a week" (you, ')
    assert f'found by git blame: {made[:10]} "seven days"' in lines[2]
    assert cli("why", "src/week.py:1", "--json").data["name"] == "docs"


def test_why_of_a_line_that_somebody_committed_by_hand_says_so(cli: Cli, world: World) -> None:
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    world.repo.commit("seven days")
    world.repo.write("src/week.py", f"# by hand\n{SECOND}")
    made = world.repo.commit("a remark")
    world.store.close()
    result = cli("why", "src/week.py:1")
    assert f'the line is of {made[:10]} "a remark", and no session is known to be behind it' in " ".join(
        result.out.split()
    )
    assert cli("why", "src/week.py:1", "--json").data["git"]["session"] == ""


def test_why_of_a_line_that_is_not_committed_goes_by_the_newest_change(cli: Cli, world: World) -> None:
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    world.store.close()
    asked = cli("why", "src/week.py:2", "--json").data
    assert (asked["name"], asked["git"], asked["asked"]["text"]) == ("weeks", None, "make sessions last a week")


def test_why_of_a_line_edited_by_hand_before_the_commit_goes_by_the_link(cli: Cli, world: World) -> None:
    session = world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    with session.turn("commit it"):
        session.files.record("src/week.py", folder=str(world.repo.folder))
        world.repo.write("src/week.py", SECOND + "# by hand\n")
        made = world.repo.commit("seven days")
        session.note("done")
    session.files.link_commits()
    world.store.close()
    asked = cli("why", "src/week.py:3", "--json").data
    assert (asked["git"]["commit"], asked["asked"]["text"]) == (made, "commit it")
    # The line above it is the same in what the turn before left.
    assert cli("why", "src/week.py:2", "--json").data["asked"]["text"] == "make sessions last a week"


def test_why_of_a_line_goes_back_into_the_session_that_wrote_it(cli: Cli, world: World) -> None:
    """Three sessions changed the file and nothing of it is committed; afterwards somebody put a line above."""
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    world.work("docs", "say what it is", "src/week.py", f'"""Weeks."""\n\n{SECOND}')
    world.work("months", "months too", "src/week.py", f'"""Weeks."""\n\n{SECOND}\ndef month():\n    return 30\n')
    file = world.repo.folder / "src/week.py"
    file.write_text(f"# by hand\n{file.read_text()}")
    world.store.close()

    def asked(line: int) -> tuple[str, str]:
        data = cli("why", f"src/week.py:{line}", "--json").data
        return data["name"], data["way"]

    assert [asked(line) for line in (2, 5, 8)] == [("docs", "lines"), ("weeks", "lines"), ("months", "lines")]
    assert '@1 ← "make sessions last a week" (you, ' in cli("why", "src/week.py:5").lines[1]
    by_hand = cli("why", "src/week.py:1")
    assert by_hand.code == 1
    assert "the line was not there after the last recorded change, months@e" in " ".join(by_hand.out.split())


def test_why_of_a_line_older_than_all_sessions_says_so(cli: Cli, world: World) -> None:
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    world.work("docs", "say what it is", "src/week.py", f'"""Weeks."""\n\n{SECOND}')
    (world.repo.folder / ".git").rename(world.repo.folder / "no-git")
    world.store.close()
    result = cli("why", "src/week.py:3")
    told = " ".join(result.out.split())
    assert result.code == 1
    assert "the line is older than all 2 sessions that changed this file, first in weeks@e" in told
    assert "no origin" not in told
    assert cli("why", "src/week.py:3", "--json").data["way"] == "older"


def test_why_of_a_line_in_a_file_that_no_session_changed_names_the_commit(cli: Cli, world: World) -> None:
    world.work("days", "a day", "src/day.py", "1\n")
    world.store.close()
    result = cli("why", "src/week.py:1")
    assert result.code == 3
    assert "no session changed src/week.py; git has line 1 of it from" in result.err
    assert '"begin"' in result.err


def test_why_of_a_line_that_the_file_does_not_have_says_how_many_it_has(cli: Cli, world: World) -> None:
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    world.store.close()
    result = cli("why", "src/week.py:9")
    assert result.code == 3
    assert "src/week.py has 2 lines now, and no line 9" in result.err


def test_why_by_a_note_when_no_change_of_the_file_is_recorded(cli: Cli, world: World) -> None:
    session = world.store.session("bare", folder=str(world.repo.folder))
    with session.turn("begin the shop") as turn:
        turn.session.decide("weeks have six days")
    world.store.close()
    world.repo.git("notes", "--ref=wakelog", "add", "-m", "bare@1", "HEAD")
    assert cli("why", "src/week.py:2", "--json").data["asked"]["text"] == "begin the shop"


def test_a_file_that_git_does_not_know_is_answered_as_before(
    cli: Cli, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    world.repo.commit("seven days")
    world.store.close()
    monkeypatch.chdir(tmp_path)
    asked = cli("why", "src/week.py:2", "--json").data
    assert (asked["name"], asked["git"]) == ("weeks", None)


def install(cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hook, with a command that is this checkout's."""
    command = world.repo.folder.parent / "bin" / "wakelog"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wakelog "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    answer = cli("git", "hook", "install", "--json").data
    assert answer["changed"] is True
    return Path(answer["hook"])


def test_the_hook_names_the_turns_behind_a_commit_in_its_message(
    cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    world.work("other", "write a readme", "README.md", "# Shop\n")
    install(cli, world, monkeypatch)
    world.repo.git("add", "src/week.py")
    world.repo.git("commit", "-q", "-m", "seven days")
    assert world.repo.git("log", "-1", "--format=%B") == "seven days\n\nWakelog-Turn: weeks@1"
    world.repo.git("commit", "-q", "--amend", "--no-edit")
    shown = cli("git", "show", "HEAD")
    assert "weeks@1" in shown.out
    assert "make sessions last a week" in shown.out
    assert "other" not in shown.out


def test_the_hook_leaves_out_turns_whose_work_is_committed(
    cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.work("weeks", "make sessions last a week", "src/week.py", SECOND)
    world.repo.commit("seven days")
    world.repo.wait(5)
    session = world.work("docs", "say what it is", "src/week.py", f'"""Weeks."""\n\n{SECOND}')
    world.work("docs", "and for whom", "src/week.py", f'"""Weeks, for shops."""\n\n{SECOND}')
    assert session.name == "docs"
    world.store.close()
    install(cli, world, monkeypatch)
    world.repo.git("add", "-A")
    world.repo.git("commit", "-q", "-m", "words")
    assert world.repo.git("log", "-1", "--format=%B") == "words\n\nWakelog-Turn: docs@1\nWakelog-Turn: docs@2"


def test_the_hook_never_stops_a_commit(cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    install(cli, world, monkeypatch)
    monkeypatch.setenv("WAKELOG_STORE", str(world.repo.folder / "nowhere"))
    world.repo.write("a", "1")
    world.repo.commit("without a store")
    (world.repo.folder.parent / "bin" / "wakelog").unlink()
    world.repo.write("a", "2")
    assert world.repo.commit("without wakelog")


def test_removing_the_hook_takes_out_exactly_what_was_added(
    cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = install(cli, world, monkeypatch)
    assert os.access(path, os.X_OK)
    assert cli("git", "hook", "install", "--json").data["changed"] is False
    assert cli("git", "hook", "remove", "--json").data["changed"] is True
    assert not path.exists()
    own = "#!/bin/sh\necho mine\n"
    path.write_text(own)
    install(cli, world, monkeypatch)
    assert path.read_text().startswith(own)
    cli("git", "hook", "remove")
    assert path.read_text() == own


def test_a_hook_that_is_no_shell_script_is_left_alone(cli: Cli, world: World) -> None:
    path = world.repo.folder / ".git" / "hooks" / "prepare-commit-msg"
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/usr/bin/env python3\nprint()\n")
    refused = cli("git", "hook", "install")
    assert refused.code != 0
    assert "wakelog git trailer" in refused.err
    assert path.read_text() == "#!/usr/bin/env python3\nprint()\n"
