"""Where a folder stands in git: repository, branch and commit, read from git's own files.

Git is never started here, so that a hook or the beginning of a turn can ask. It loads next to nothing, for the same
reason. What cannot be read this way is empty.
"""

from __future__ import annotations

import os

LINKS_MAX = 5
"""So many symbolic refs are followed."""


def git_folders(top: str) -> tuple[str, str] | None:
    """The git folder of the repository whose top folder this is, and the one that it shares with its other worktrees.
    `.git` may be a folder, or a file that names one."""
    git = os.path.join(top, ".git")
    if os.path.isfile(git):
        said = read_text(git)
        if not said.startswith("gitdir:"):
            return None
        git = os.path.join(top, said.removeprefix("gitdir:").strip())
    if not os.path.isfile(os.path.join(git, "HEAD")):
        return None
    common = read_text(os.path.join(git, "commondir"))
    return git, os.path.normpath(os.path.join(git, common)) if common else git


def top_of(folder: str) -> str:
    """The top folder of the repository that a folder lies in; empty when it lies in none."""
    here = os.path.abspath(folder)
    while git_folders(here) is None:
        above = os.path.dirname(here)
        if above == here:
            return ""
        here = above
    return here


def commit_of(git: str, common: str) -> str:
    """The commit that HEAD stands for; empty when it has none yet, or keeps its refs in a way not known here."""
    said = read_text(os.path.join(git, "HEAD"))
    for _ in range(LINKS_MAX):
        if not said.startswith("ref:"):
            return said
        name = said.removeprefix("ref:").strip()
        said = read_text(os.path.join(git, name)) or read_text(os.path.join(common, name))
        if not said:
            return _packed(common, name)
    return ""


def git_labels(folder: str) -> dict[str, str]:
    """The labels of a session that works in a folder: `repo`, `branch` and `commit`. Nothing where there is no git.

    `repo` is the main work tree, so that all worktrees of a repository have the same. Without a branch, when a commit
    is checked out by itself, there is no `branch`."""
    top = top_of(folder)
    found = git_folders(top) if top else None
    if found is None:
        return {}
    git, common = found
    head = read_text(os.path.join(git, "HEAD"))
    branch = head.removeprefix("ref:").strip().removeprefix("refs/heads/") if head.startswith("ref:") else ""
    labels = {
        "repo": os.path.realpath(_main(top, git, common)),
        # This is what HEAD names where refs are kept in a table of their own.
        "branch": "" if branch == ".invalid" else branch,
        "commit": commit_of(git, common),
    }
    return {name: value for name, value in labels.items() if value}


def _main(top: str, git: str, common: str) -> str:
    """The main work tree. A bare repository has none, and stands for itself."""
    if git == common:
        return top
    return os.path.dirname(common) if os.path.basename(common) == ".git" else common


def _packed(common: str, name: str) -> str:
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
