"""A restore that is killed at any step leaves each file whole, and doing it again finishes the rest."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.files.conftest import Agent, Shell, git_state, tree
from tests.files.repository import needs_git
from wakelog.session import Session

STEPS = ("fsync", "fchmod", "link", "rename", "unlink", "mkdir", "rmdir", "symlink")


def _killed_at(session: Session[Any], number: int) -> bool:
    """Restores in a child process that dies right before its n-th step on disk; False if it finished."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child failed by itself"
        return os.WIFSIGNALED(status)
    try:
        count = 0

        def dying(real: Any) -> Any:
            def step(*args: Any, **kwargs: Any) -> Any:
                nonlocal count
                count += 1
                if count == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return step

        for name in STEPS:
            setattr(os, name, dying(getattr(os, name)))
        session.files.restore("@0", state=True, force=True)
        os._exit(0)
    except BaseException:
        os._exit(1)


@needs_git
@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_step_it_leaves_files_whole_and_is_finished_by_the_next(
    agent: Agent, repo: Path, shell: Shell, stride: int
) -> None:
    shell(
        "mkdir d; echo 0 > a; echo 0 > d/b; printf '\\0\\377' > c; echo 0 > x; ln -s a l; git add -A; git commit -qm x"
    )
    agent("echo 1 > a; rm -r d; printf '\\1\\377' > c; chmod +x x; mkdir -p n/m; echo 1 > n/m/new; rm l")
    shell("echo mine >> a")
    old = tree(repo)
    agent.session.files.restore("@0", state=True, force=True)
    new = tree(repo)
    agent.session.undo()
    assert tree(repo) == old
    git = git_state(repo)
    number = stride
    while _killed_at(agent.session, number):
        for path, found in tree(repo).items():
            if not path.startswith(".wakelog-part-") and "/.wakelog-part-" not in path:
                assert found in (old.get(path), new.get(path)), f"step {number}: {path} is neither old nor new"
        report = agent.session.files.restore("@0", state=True, force=True)
        assert not report.is_partial, number
        assert tree(repo) == new, f"after step {number}"
        undone = agent.session.undo()
        assert undone.files is not None
        assert not undone.files.is_partial
        assert tree(repo) == old, f"undone after step {number}"
        number += stride
    assert number > 25, "hardly anything was tried"
    assert tree(repo) == new
    assert git_state(repo) == git
    assert agent.session.verify().ok
