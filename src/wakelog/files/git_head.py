"""The repository, branch and commit of a folder, read from git's files.

Git is not started here and almost nothing is imported, so that a hook or the start of a turn can afford it. What cannot
be read this way is empty.
"""

from __future__ import annotations

import os

LINKS_MAX = 5
"""How many symbolic refs to follow."""


def git_folders(top: str) -> tuple[str, str] | None:
    """The git folder of the repository with this top folder, and the one that it shares with its other worktrees.
    `.git` may be a folder, or a file that names one. None if there is no repository."""
    git = os.path.join(top, ".git")
    if os.path.isfile(git):
        text = read_text(git)
        if not text.startswith("gitdir:"):
            return None
        git = os.path.join(top, text.removeprefix("gitdir:").strip())
    if not os.path.isfile(os.path.join(git, "HEAD")):
        return None
    common = read_text(os.path.join(git, "commondir"))
    return git, os.path.normpath(os.path.join(git, common)) if common else git


def top_of(folder: str) -> str:
    """The top folder of the repository that contains a folder; empty if there is none."""
    here = os.path.abspath(folder)
    while git_folders(here) is None:
        above = os.path.dirname(here)
        if above == here:
            return ""
        here = above
    return here


def commit_of(git: str, common: str) -> str:
    """The commit of HEAD; empty if there is none yet or the refs are stored in an unknown format."""
    text = read_text(os.path.join(git, "HEAD"))
    for _ in range(LINKS_MAX):
        if not text.startswith("ref:"):
            return text
        name = text.removeprefix("ref:").strip()
        text = read_text(os.path.join(git, name)) or read_text(os.path.join(common, name))
        if not text:
            return _find_packed_ref(common, name)
    return ""


def git_labels(folder: str) -> dict[str, str]:
    """The labels of a session that works in a folder: `repo`, `branch` and `commit`. Empty outside a repository.

    `repo` is the main work tree, so it is the same for all worktrees of a repository. With a detached HEAD there is no
    `branch`."""
    top = top_of(folder)
    found = git_folders(top) if top else None
    if found is None:
        return {}
    git, common = found
    head = read_text(os.path.join(git, "HEAD"))
    branch = head.removeprefix("ref:").strip().removeprefix("refs/heads/") if head.startswith("ref:") else ""
    labels = {
        "repo": os.path.realpath(_main_worktree(top, git, common)),
        # With the reftable format, HEAD always names `.invalid`.
        "branch": "" if branch == ".invalid" else branch,
        "commit": commit_of(git, common),
    }
    return {name: value for name, value in labels.items() if value}


def _main_worktree(top: str, git: str, common: str) -> str:
    """The main work tree; for a bare repository, the repository itself."""
    if git == common:
        return top
    return os.path.dirname(common) if os.path.basename(common) == ".git" else common


def _find_packed_ref(common: str, name: str) -> str:
    for line in read_text(os.path.join(common, "packed-refs")).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
