"""The repository, branch and commit of a folder, read from git's files.

Git is not started here and almost nothing is imported, so that a hook or the start of a turn can afford it. What cannot
be read this way is empty.
"""

from __future__ import annotations

import os

LINKS_MAX = 5
"""How many symbolic refs to follow."""
_PART = 1 << 16


def git_folders(top: str) -> tuple[str, str] | None:
    """The git folder of the repository with this top folder, and the one that it shares with its other worktrees.
    `.git` may be a folder, or a file that names one. None if there is no repository."""
    git = os.path.join(top, ".git")
    text = read_text(git)
    if text:
        if not text.startswith("gitdir:"):
            return None
        git = os.path.join(top, text.removeprefix("gitdir:").strip())
    if not os.path.isfile(os.path.join(git, "HEAD")):
        return None
    common = read_text(os.path.join(git, "commondir"))
    return git, os.path.normpath(os.path.join(git, common)) if common else git


def top_of(folder: str) -> str:
    """The top folder of the repository that contains a folder; empty if there is none."""
    found = _repository_of(folder)
    return found[0] if found is not None else ""


def _repository_of(folder: str) -> tuple[str, str, str] | None:
    """The top folder of the repository that contains a folder, and its two git folders."""
    here = os.path.abspath(folder)
    while (found := git_folders(here)) is None:
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above
    return here, *found


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
    labels, git, common = _place_of(folder)
    commit = commit_of(git, common) if labels else ""
    return {**labels, "commit": commit} if commit else labels


def branch_labels(folder: str) -> dict[str, str]:
    """The same without `commit`: what the start of every turn asks for."""
    return _place_of(folder)[0]


def head_files(folder: str) -> tuple[str, ...]:
    """The files that say where a folder is in git: as long as they are the same, so are its labels. None where the
    repository begins further up: another one could be made in between."""
    found = git_folders(folder)
    return (os.path.join(folder, ".git"), os.path.join(found[0], "HEAD")) if found is not None else ()


def stamp_of(files: tuple[str, ...]) -> object:
    """Tells whether files are the same as before. Git writes a new file and gives it the name of the old one. None if
    there are none."""
    try:
        stats = [os.stat(file) for file in files]
    except OSError:
        return None
    return [(each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns) for each in stats] or None


def _place_of(folder: str) -> tuple[dict[str, str], str, str]:
    """`repo` and `branch`, and the two git folders."""
    found = _repository_of(folder)
    if found is None:
        return {}, "", ""
    top, git, common = found
    head = read_text(os.path.join(git, "HEAD"))
    branch = head.removeprefix("ref:").strip().removeprefix("refs/heads/") if head.startswith("ref:") else ""
    labels = {"repo": os.path.realpath(_main_worktree(top, git, common))}
    if branch and branch != ".invalid":  # which is what HEAD always names with the reftable format
        labels["branch"] = branch
    return labels, git, common


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
    """The text of a file without the space around it; empty if it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return ""
    try:
        parts = [os.read(file, _PART)]
        while len(parts[-1]) == _PART:
            parts.append(os.read(file, _PART))
        return b"".join(parts).decode("utf-8", "replace").strip()
    except OSError:  # a folder
        return ""
    finally:
        os.close(file)
