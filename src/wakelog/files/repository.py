"""The git repository around a folder, looked at from outside: nothing here ever writes to it.

Most answers are read from its files. Two need git itself: which file holds the user's own ignore rules, and which
tracked files match an ignore rule all the same. Where git is not installed these answers are the default, and nothing.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec

GIT_TIMEOUT_S = 20.0


class Repository(msgspec.Struct, frozen=True):
    """Where a repository is. A worktree has its own `git_dir` beside the `common_dir` it shares with the others."""

    top: str
    git_dir: str
    common_dir: str

    @property
    def exclude(self) -> str:
        return os.path.join(self.common_dir, "info", "exclude")

    @property
    def index(self) -> str:
        return os.path.join(self.git_dir, "index")


def repository_of(folder: str) -> Repository | None:
    """The repository a folder lies in; None when there is none."""
    here = os.path.abspath(folder)
    while True:
        found = repository_at(here)
        if found is not None:
            return found
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def repository_at(top: str) -> Repository | None:
    """The repository whose top folder this is. `.git` may be a folder, or a file that names one."""
    git = os.path.join(top, ".git")
    if os.path.isfile(git):
        said = _read(git)
        if not said.startswith("gitdir:"):
            return None
        git = os.path.join(top, said.removeprefix("gitdir:").strip())
    if not os.path.isfile(os.path.join(git, "HEAD")):
        return None
    common = _read(os.path.join(git, "commondir"))
    return Repository(top, git, os.path.normpath(os.path.join(git, common)) if common else git)


def head_of(repository: Repository) -> str:
    """The commit that HEAD stands for; empty when it has none yet, or keeps its refs in a way not known here."""
    said = _read(os.path.join(repository.git_dir, "HEAD"))
    for _ in range(5):
        if not said.startswith("ref:"):
            return said
        name = said.removeprefix("ref:").strip()
        said = _read(os.path.join(repository.git_dir, name)) or _read(os.path.join(repository.common_dir, name))
        if not said:
            return _packed(repository, name)
    return ""


def _packed(repository: Repository, name: str) -> str:
    for line in _read(os.path.join(repository.common_dir, "packed-refs")).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def excludes_file(folder: str) -> str:
    """The user's own ignore rules: `core.excludesFile`, or the place where git looks without it."""
    told = _git(folder, "config", "--type=path", "-z", "--get", "core.excludesFile")
    if told:
        return os.path.join(folder, os.fsdecode(told.split(b"\0")[0]))
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "git", "ignore")


def tracked_though_ignored(repository: Repository) -> frozenset[str]:
    """Files that git tracks although a rule matches them, as paths below the top: git does not ignore these."""
    told = _git(repository.top, "ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    return frozenset(os.fsdecode(name) for name in told.split(b"\0") if name)


def _git(folder: str, *args: str) -> bytes:
    # No lock is taken, and no program that the repository's own settings name is started.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *args]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=GIT_TIMEOUT_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout if done.returncode == 0 else b""
