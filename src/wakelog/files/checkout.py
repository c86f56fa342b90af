"""Writes the files as they were at a point to a separate folder, or over a new git worktree to get the whole project.

Only files that the session changed and whose content was captured are in the log, so only those can be written. The
others are listed with the reason. Nothing outside the folder is touched: links, and paths that lead out of the folder,
are not written.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import msgspec

from wakelog.errors import NotAllowedError, NotFoundError
from wakelog.files.commit_links import repository_folder
from wakelog.files.file_history import FilePast, content_of, recorded_changes
from wakelog.files.git_commits import find_commit, run_git
from wakelog.log import Log
from wakelog.model.ids import Seq


class Checkout(msgspec.Struct, frozen=True):
    """What was written; `missing` is what was not, as (path, why)."""

    folder: str
    at: Seq
    written: tuple[str, ...]
    removed: tuple[str, ...]
    """Files that did not exist at the point and were removed from the folder."""
    missing: tuple[tuple[str, str], ...]


def check_out(log: Log, at: Seq, folder: Path) -> Checkout:
    """Writes every file that the session changed, as it was at a point, into a folder. Existing files are replaced;
    files that did not exist at the point are removed."""
    past: dict[str, FilePast] = {}
    for change in recorded_changes(log):
        found = past.setdefault(change.path, FilePast(change.path, None, []))
        if change.seq <= at:
            found.last = change
        else:
            found.later.append(change)
    written, removed, missing = [], [], []
    for path, file_past in sorted(past.items()):
        why, content, mode = _read_content(log, file_past)
        target = _target_inside(folder, path)
        if target is None:
            missing.append((path, "it lies outside the project"))
        elif why:
            missing.append((path, why))
        elif content is None:
            if _remove(target):
                removed.append(path)
        else:
            _write(target, content, mode)
            written.append(path)
    return Checkout(str(folder), at, tuple(written), tuple(removed), tuple(missing))


class Worktree(msgspec.Struct, frozen=True):
    """A new folder with the project as it was."""

    folder: str
    repository: str
    commit: str
    is_recorded: bool
    """Whether the session recorded this commit as its start; otherwise it is the current HEAD."""
    files: Checkout


def make_worktree(log: Log, at: Seq, folder: Path, repository: str = "") -> Worktree:
    """See `Files.worktree`. If the files cannot be written, the worktree is removed again."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NotAllowedError(f"{folder} already exists", kind="file-exists", hint="name a new folder")
    labels = log.state(at)["labels"] if at else {}
    place = repository_folder(labels, repository)
    named = str(labels.get("commit") or "")
    try:
        commit, is_recorded = find_commit(place, named or "HEAD").hash, bool(named)
    except NotFoundError:
        commit, is_recorded = find_commit(place, "HEAD").hash, False  # another clone, or it was rebased away
    run_git(place, "worktree", "add", "--detach", "--quiet", str(folder.absolute()), commit)
    try:
        files = check_out(log, at, folder)
    except BaseException:
        run_git(place, "worktree", "remove", "--force", str(folder.absolute()), check=False)
        raise
    return Worktree(str(folder), place, commit, is_recorded, files)


def _read_content(log: Log, past: FilePast) -> tuple[str, bytes | None, str]:
    """Why a file cannot be written, its content (None if it did not exist), and its mode."""
    side = past.then
    if not side.exists:
        return "", None, ""
    if side.is_link:
        return "it was a link", None, ""
    content, why = content_of(log, side)
    left = past.last.after if past.last is not None else None
    # The next change may have recorded this content without its mode.
    mode = side.mode or (left.mode if left is not None and left.hash == side.hash else "")
    return why, content, mode


def _target_inside(folder: Path, path: str) -> Path | None:
    """The path inside a folder; None if it leads out of it or must not be written."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\0" in path or not pure.parts or pure.parts[0] == ".git":
        return None
    target = folder.joinpath(*pure.parts)
    # A link in the folder, such as one that git checked out, may lead out of it.
    top, parent = os.path.realpath(folder), os.path.realpath(target.parent)
    if os.path.commonpath([top, parent]) != top or target.is_symlink():
        return None
    return target


def _remove(target: Path) -> bool:
    try:
        target.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as exc:
        raise NotAllowedError(f"{target} cannot be removed: {exc.strerror}", kind="not-writable") from exc
    return True


def _write(target: Path, content: bytes, mode: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        if mode.endswith("755"):
            target.chmod(0o755)
    except OSError as exc:
        raise NotAllowedError(f"{target} cannot be written: {exc.strerror}", kind="not-writable") from exc
