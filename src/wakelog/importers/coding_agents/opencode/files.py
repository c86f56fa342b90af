"""Files that a call of OpenCode changed, according to its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wakelog.importers.common.amounts import edited_lines
from wakelog.importers.common.file_changes import diff_counts, file_change
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_text, dicts_in
from wakelog.model.values import Value

_KINDS = {"add": "created", "delete": "deleted", "added": "created", "deleted": "deleted"}


def changes_of(tool: str, given: Value, metadata: dict[str, Any], folder: str) -> Iterator[FileChanged]:
    if tool not in ("edit", "write", "multiedit", "patch", "apply_patch"):
        return
    diffs = list(_diffs(metadata))
    for each in diffs:
        change = _change(each, folder)
        if change is not None:
            yield change
    path = given.get("filePath") or given.get("path") if isinstance(given, dict) else None
    if diffs or not isinstance(path, str) or not path:
        return
    if tool == "write":
        content = given.get("content")
        after = content if isinstance(content, str) else None
        is_new = metadata.get("exists") is False
        yield file_change(path, folder=folder, after=after, change="created" if is_new else "modified")
        return
    diff = metadata.get("diff")
    old, new = given.get("oldString"), given.get("newString")
    lines = diff_counts(diff) if isinstance(diff, str) else None
    if lines is None and isinstance(old, str) and isinstance(new, str):
        lines = edited_lines([(old, new)])
    yield file_change(path, folder=folder, change="created" if old == "" else "modified", lines=lines)


def _diffs(metadata: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The diffs in the metadata: of one file, of several files, or of several edits."""
    if isinstance(metadata.get("filediff"), dict):
        yield metadata["filediff"]
    for key in ("files", "results"):
        for each in dicts_in(metadata.get(key)):
            yield each["filediff"] if isinstance(each.get("filediff"), dict) else each


def _change(diff: dict[str, Any], folder: str) -> FileChanged | None:
    names = ("file", "filePath", "path", "relativePath", "movePath")
    path = next((diff[n] for n in names if isinstance(diff.get(n), str) and diff[n]), "")
    if not path:
        return None
    before, after = (diff[k] if isinstance(diff.get(k), str) else None for k in ("before", "after"))
    change: Any = _KINDS.get(as_text(diff.get("type") or diff.get("status")))
    if change is None:
        change = "created" if before == "" and after else "modified"
    added, removed = diff.get("additions"), diff.get("deletions")
    lines = (added, removed) if type(added) is int and type(removed) is int and added >= 0 and removed >= 0 else None
    if lines is None and isinstance(diff.get("patch"), str):
        lines = diff_counts(diff["patch"])
    return file_change(path, folder=folder, before=before, after=after, change=change, lines=lines)
