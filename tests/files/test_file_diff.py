"""Diffs of files from what the log holds."""

import subprocess
from pathlib import Path
from typing import Any

from tests.files.conftest import Agent, Shell
from tests.files.repository import needs_git
from wakelog.files.file_diff import FileDiff
from wakelog.log.removal import erase
from wakelog.model import events as ev
from wakelog.session import Session
from wakelog.store import Store


def _by_path(diffs: list[FileDiff]) -> dict[str, FileDiff]:
    return {diff.path: diff for diff in diffs}


@needs_git
def test_a_turns_diff_is_what_git_would_show(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("seq 60 > f; seq 9 > gone; git add -A; git commit -qm x")
    agent("sed -i 's/^3$/three/; s/^50$/fifty/' f; rm gone; seq 4 > new")
    shell("git add -A")
    ours = "\n".join(str(diff) for diff in agent.session.files.diff())
    told = subprocess.run(["git", "diff", "--cached"], cwd=repo, capture_output=True, text=True, check=True).stdout
    skipped = ("diff --git", "index ", "new file", "deleted file")
    theirs = [line for line in told.splitlines() if not line.startswith(skipped)]
    # Git names the enclosing line behind the second @@, which we do not.
    theirs = [line[: line.index("@@", 2) + 2] if line.startswith("@@") else line for line in theirs]
    assert ours.splitlines() == theirs


def test_any_two_points_either_way(agent: Agent, repo: Path) -> None:
    agent("echo 1 > f")
    agent("echo 2 > f; echo 1 > g")
    agent("rm g; echo 3 > f")
    between = _by_path(agent.session.files.diff("@1", "@3"))
    assert set(between) == {"f"}, "what came and went is no difference"
    assert between["f"].text == "@@ -1 +1 @@\n-1\n+3"
    assert _by_path(agent.session.files.diff("@3", "@1"))["f"].text == "@@ -1 +1 @@\n-3\n+1"
    assert _by_path(agent.session.files.diff("@0", "@2"))["g"].change == "created"
    assert _by_path(agent.session.files.diff("@2", "@3"))["g"].change == "deleted"
    assert agent.session.files.diff("@2", "@2") == []
    assert set(_by_path(agent.session.files.diff("@1", "@3", paths=["g"]))) == set()


def test_a_fork_against_its_parent(agent: Agent, store: Store, repo: Path, shell: Shell) -> None:
    agent("echo 1 > f; echo 1 > same")
    fork = Agent(agent.session.fork(name="fork"), repo)
    agent("echo parent > f")
    shell("echo 1 > f")
    fork("echo child > f; echo 1 > made")
    diffs = _by_path(agent.session.files.diff("@2", "@2", other=fork.session))
    assert diffs["f"].text == "@@ -1 +1 @@\n-parent\n+child"
    assert diffs["made"].change == "created"
    assert "same" not in diffs


def test_what_cannot_be_shown_says_why(agent: Agent, repo: Path, shell: Shell) -> None:
    shell(
        "printf '\\0\\1' > bin; echo 0 > gone; echo 0 > mode; echo '*.log' > .gitignore; ln -s a link; echo 0 > x.log"
    )
    agent("printf '\\0\\2\\3' > bin; echo 1 > gone; chmod +x mode; rm link; ln -s b link; echo 1 > x.log")
    erase(
        agent.session.log, [next(e.seq for e in agent.session.events(kind="file.changed") if e.body["path"] == "gone")]
    )
    agent.session.append(ev.FileChanged(path="only-named"))
    diffs = _by_path(agent.session.files.diff("@0", None))
    assert diffs["bin"].note == "binary, 2 → 3 bytes"
    assert diffs["gone"].note == "erased"
    assert diffs["x.log"].note == "ignored by git"
    assert diffs["only-named"].note == "content not captured"
    assert (diffs["mode"].before_mode, diffs["mode"].after_mode, diffs["mode"].text) == ("100644", "100755", "")
    assert diffs["link"].text.splitlines()[-2:] == ["+b", "\\ No newline at end of file"]
    assert "mode of mode: 100644 → 100755" in str(diffs["mode"])


def test_what_somebody_edited_between_turns_is_not_the_turns_work(agent: Agent, repo: Path, shell: Shell) -> None:
    agent("echo 1 > f")
    shell("echo mine >> f")
    agent("echo 2 >> f")
    [diff] = agent.session.files.diff("@1", "@2")
    assert diff.text == "@@ -1,2 +1,3 @@\n 1\n mine\n+2"


def test_without_turns_everything_is_compared(session: Session[Any]) -> None:
    session.append(ev.FileChanged(path="f", change="created", after="1\n"))
    assert [diff.text for diff in session.files.diff()] == ["@@ -0,0 +1 @@\n+1"]
