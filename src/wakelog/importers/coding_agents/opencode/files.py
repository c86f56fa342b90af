"""Files that a call of OpenCode changed, according to its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from wakelog.importers.common.amounts import edited_lines
from wakelog.importers.common.file_changes import TrackedFiles, diff_counts, file_change, replace_text
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_text, dicts_in
from wakelog.model.values import Value

_KINDS = {"add": "created", "delete": "deleted", "added": "created", "deleted": "deleted"}


def changes_of(
    tool: str, given: Value, metadata: dict[str, Any], folder: str, tracked: TrackedFiles
) -> Iterator[FileChanged]:
    if tool not in ("edit", "write", "multiedit", "patch", "apply_patch"):
        return
    named = given.get("filePath") or given.get("path") if isinstance(given, dict) else None
    path = named if isinstance(named, str) else ""
    before = tracked.text(path)
    after = _content_after(tool, as_dict(given), before)
    diffs = list(_diffs(metadata))
    for each in diffs:
        known = (before, after) if len(diffs) == 1 and _path(each) == path else (None, None)
        change = _change(each, folder, *known)
        if change is not None:
            tracked.track(_path(each), change.after)
            yield change
    if diffs or not path:
        return
    tracked.track(path, after)
    if tool == "write":
        is_new = metadata.get("exists") is False
        yield file_change(path, folder=folder, before=before, after=after, change="created" if is_new else "modified")
        return
    diff = metadata.get("diff")
    old, new = as_dict(given).get("oldString"), as_dict(given).get("newString")
    lines = diff_counts(diff) if isinstance(diff, str) and after is None else None
    if lines is None and after is None and isinstance(old, str) and isinstance(new, str):
        lines = edited_lines([(old, new)])
    kind: Literal["created", "modified"] = "created" if old == "" else "modified"
    yield file_change(path, folder=folder, before=before, after=after, change=kind, lines=lines)


def _content_after(tool: str, data: dict[str, Any], before: str | None) -> str | None:
    """What is in the file after the call, if that follows from its input and what was in it before."""
    if tool == "write":
        return data["content"] if isinstance(data.get("content"), str) else None
    old, new = data.get("oldString"), data.get("newString")
    if tool != "edit" or not isinstance(old, str) or not isinstance(new, str):
        return None
    if not old:
        return new
    return replace_text(before, old, new, all=data.get("replaceAll") is True) if before is not None else None


def _diffs(metadata: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The diffs in the metadata: of one file, of several files, or of several edits."""
    if isinstance(metadata.get("filediff"), dict):
        yield metadata["filediff"]
    for key in ("files", "results"):
        for each in dicts_in(metadata.get(key)):
            yield each["filediff"] if isinstance(each.get("filediff"), dict) else each


def _path(diff: dict[str, Any]) -> str:
    names = ("file", "filePath", "path", "relativePath", "movePath")
    return next((diff[n] for n in names if isinstance(diff.get(n), str) and diff[n]), "")


def _change(diff: dict[str, Any], folder: str, known: str | None, result: str | None) -> FileChanged | None:
    """The change that a diff describes. Newer versions leave the contents out; then the known ones count."""
    path = _path(diff)
    if not path:
        return None
    before, after = (diff[k] if isinstance(diff.get(k), str) else None for k in ("before", "after"))
    if before is None and after is None:
        before, after = known, result
    change: Any = _KINDS.get(as_text(diff.get("type") or diff.get("status")))
    if change is None:
        change = "created" if before == "" and after else "modified"
    added, removed = diff.get("additions"), diff.get("deletions")
    lines = (added, removed) if type(added) is int and type(removed) is int and added >= 0 and removed >= 0 else None
    if lines is None and isinstance(diff.get("patch"), str):
        lines = diff_counts(diff["patch"])
    return file_change(path, folder=folder, before=before, after=after, change=change, lines=lines)
