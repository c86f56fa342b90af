"""Compares the files before and after a shell command, which shell_files.py recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from wakelog.files.project import project_folder
from wakelog.hooks.spool_files import SpooledRecord
from wakelog.importers.common.file_changes import file_change
from wakelog.model import events as ev
from wakelog.model.json_fields import as_dict, text_in


def changes_between(before: SpooledRecord | None, after: SpooledRecord) -> Iterator[ev.FileChanged]:
    """The changes of the files that a shell command names."""
    old_files, new_files = _contents(before.data) if before is not None else {}, _contents(after.data)
    folder = text_in(after.data, "cwd")
    if before is not None and (before.data.get("more") or after.data.get("more")):
        # Not all files were read, so one that is on one side only may have existed all the time.
        old_files, new_files = (
            {p: f[p] for p in f if p in g} for f, g in ((old_files, new_files), (new_files, old_files))
        )
    for path in sorted({*old_files, *new_files}) if before is not None else ():
        old, new = old_files.get(path), new_files.get(path)
        if old == new:
            continue  # unchanged, or unknown on both sides
        change: Any = "created" if path not in old_files else "deleted" if path not in new_files else "modified"
        action = text_in(after.data, "tool_use_id")
        place = project_folder(folder) if folder else ""
        changed = file_change(path, folder=place, before=old, after=new, change=change, action=action)
        yield msgspec.structs.replace(changed, occurred_at=after.at_us)


def changes_by_call(records: Iterable[SpooledRecord]) -> dict[str, list[ev.FileChanged]]:
    """The file changes of shell commands, by call id."""
    before: dict[str, SpooledRecord] = {}
    out: dict[str, list[ev.FileChanged]] = {}
    for record in records:
        id = text_in(record.data, "tool_use_id")
        if id and record.event == "files.before":
            before[id] = record
        elif id and record.event == "files.after" and (changes := [*changes_between(before.pop(id, None), record)]):
            out[id] = changes
    return out


def _contents(data: dict[str, Any]) -> dict[str, str | None]:
    return as_dict(data.get("files"))
