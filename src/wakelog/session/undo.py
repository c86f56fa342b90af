"""Undo and redo: undo reverts a rewind, and redo reverts an undo.

Both are rewinds themselves, to the point just before the operation, so nothing is lost. Called again, undo goes further
back and redo further forward, as in jj; after a new rewind there is nothing to redo. Adopting a fork starts with a
rewind in the same commit, so undo reverts the adoption too. The rewind that starts a retry belongs to the agent and is
skipped. Files that an operation restored are put back too, unless somebody edited them since. Effects and erasures
cannot be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from wakelog.diff.rewind_preview import Beyond, effects_between
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.records import Head
from wakelog.timeline.points import commit_at, walk_back

if TYPE_CHECKING:
    # Imported when files are touched, which most sessions never do.
    from wakelog.files.capture import Capture
    from wakelog.files.restore import RestoredFiles

_OPERATIONS = ("rewind", "adopt", "redo")


class Project(msgspec.Struct, frozen=True):
    """Where files may be written: a folder, and the roots in it (none: all of it). With `force` also over edits."""

    folder: str
    roots: tuple[str, ...] = ()
    force: bool = False


Locate = Callable[[], Project]
"""Called only if the operation changed files."""


def project_of(log: Log, capture: Capture | None, roots: Sequence[str] = ()) -> Project:
    """Chooses where files may be written: the given roots, the first being the project's folder; else where files are
    captured now; else the current project, if the recorded files are there; else where they were captured."""
    if roots:
        return Project(roots[0], tuple(roots))
    from wakelog.files.file_history import find_project
    from wakelog.files.project import project_folder

    if capture is not None:
        return Project(capture.folder, capture.roots)
    return Project(find_project(log, project_folder()))


class Undone(msgspec.Struct, frozen=True):
    """What an undo or redo did: the operation it reverted, where the session is now, and what happened to files."""

    operation: Seq
    head: Head
    mode: str = "rewind"
    """What the operation was: rewind, adopt, undo or redo."""
    went_to: Seq = 0
    """Where the operation had moved the view."""
    left_view: int = 0
    """How many later events left the view; they stay in the log."""
    effects: tuple[Beyond, ...] = ()
    """Calls with effects among those. Their effects cannot be undone."""
    files: RestoredFiles | None = None
    left_files: bool = False
    """Whether the operation had changed files, and they were left as they are."""
    only_files: bool = False
    """Whether the operation had changed nothing but files."""


def undo(log: Log, project: Locate | None = None) -> Undone:
    """Reverts the newest rewind, adoption or redo that was not undone yet; NotFoundError when there is none."""
    operation = undoable(log)
    if operation is None:
        raise NotFoundError(
            f"there is nothing to undo in {log}: no rewind, and no fork that was adopted",
            kind="nothing-to-undo",
            hint=f"wakelog op log {log} lists what was done, and op restore goes back to any of it",
        )
    return _revert(log, operation, "undo", project)


def undoable(log: Log) -> Entry | None:
    """Returns the operation that an undo would revert now."""
    skip = 0
    for entry in walk_back(log):
        mode = _mode(entry)
        if mode == "undo":
            skip += 1
        elif mode in _OPERATIONS:
            if not skip:
                return entry
            skip -= 1
    return None


def redo(log: Log, project: Locate | None = None) -> Undone:
    """Reverts the newest undo that was not redone yet; NotFoundError when there is none, or a rewind came since."""
    skip = 0
    for entry in walk_back(log):
        mode = _mode(entry)
        if mode == "redo":
            skip += 1
        elif mode == "undo":
            if not skip:
                return _revert(log, entry, "redo", project)
            skip -= 1
        elif mode in _OPERATIONS:
            break
    raise NotFoundError(
        f"there is nothing to redo in {log}: no undo, or something was rewound since",
        kind="nothing-to-redo",
        hint=f"wakelog op log {log} lists what was done",
    )


def _mode(entry: Entry) -> str:
    return str(entry.body.get("mode", "rewind")) if entry.kind == "history.rewound" else ""


def _revert(log: Log, operation: Entry, mode: Literal["undo", "redo"], project: Locate | None) -> Undone:
    before = log.head().seq
    undone = _apply(log, operation, mode, project)
    # An operation on files alone leaves the view where it is.
    left = before - operation.seq if undone.head.seq > before and not undone.only_files else 0
    return msgspec.structs.replace(
        undone,
        mode=_mode(operation),
        went_to=operation.body["to"],
        left_view=left,
        effects=effects_between(log, operation.seq, before) if left else (),
    )


def _apply(log: Log, operation: Entry, mode: Literal["undo", "redo"], project: Locate | None) -> Undone:
    # Everything that belongs to the operation is in one commit.
    to = commit_at(log, operation.seq).first - 1
    why = f"{mode} of event {operation.seq}"
    had_files = bool(operation.body.get("files"))
    # An operation on files alone did not move the view, and later events stay in view.
    only_files = had_files and operation.body.get("to") == to
    if not had_files or (project is None and not only_files):
        return Undone(operation.seq, log.rewind(to, mode=mode, why=why), left_files=had_files)
    if project is None:
        raise InvalidInputError(
            f"event {operation.seq} only restored files",
            kind="only-files",
            hint="leave out --no-files (files=False)",
        )
    from wakelog.files.restore import restore
    from wakelog.files.restore_plan import plan_restore

    place = project()
    paths = _paths(log, to, operation.seq) if only_files else ()
    plan = plan_restore(log, to, folder=place.folder, roots=place.roots, force=place.force, paths=paths)
    files = restore(log, plan, rewind_to=None if only_files else to, mode=mode, why=why)
    return Undone(operation.seq, log.head(), files=files, only_files=only_files)


def _paths(log: Log, after: Seq, upto: Seq) -> list[str]:
    return [str(e.body.get("path", "")) for e in log.entries(after=after, upto=upto) if e.kind == "file.changed"]
