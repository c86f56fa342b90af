"""Compares the files before and after a shell command, which shell_files.py recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from wakelog.files.project import project_folder
from wakelog.hooks.spool_files import SpooledRecord
from wakelog.importers.common.file_changes import file_change
from wakelog.importers.writer.observed_calls import call_by_command
from wakelog.model import events as ev
from wakelog.model.json_fields import as_dict, text_in


def changes_between(before: SpooledRecord, after: SpooledRecord) -> Iterator[ev.FileChanged]:
    """The changes of the files that a shell command names."""
    old_files, new_files = _contents(before.data), _contents(after.data)
    folder = text_in(after.data, "cwd")
    if before.data.get("more") or after.data.get("more"):
        # Not all files were read, so one that is on one side only may have existed all the time.
        old_files, new_files = (
            {p: f[p] for p in f if p in g} for f, g in ((old_files, new_files), (new_files, old_files))
        )
    for path in sorted({*old_files, *new_files}):
        old, new = old_files.get(path), new_files.get(path)
        if old == new:
            continue  # unchanged, or unknown on both sides
        change: Any = "created" if path not in old_files else "deleted" if path not in new_files else "modified"
        action = text_in(after.data, "tool_use_id")
        place = project_folder(folder) if folder else ""
        changed = file_change(path, folder=place, before=old, after=new, change=change, action=action)
        yield msgspec.structs.replace(changed, occurred_at=after.at_us)


def changes_by_call(records: Iterable[SpooledRecord]) -> dict[str, list[ev.FileChanged]]:
    """The file changes of shell commands, by the call's id. An agent without ids in its hooks has names like the second
    call of a command instead."""
    calls = ShellCalls()
    found = (calls.take(record) for record in records if record.event in ("files.before", "files.after"))
    return {call.name: call.changes for call in found if call is not None and call.changes}


class ShellCall(msgspec.Struct, frozen=True):
    """A shell command that ended: its name among the calls of its session, and what it changed."""

    name: str
    changes: list[ev.FileChanged]


class ShellCalls:
    """Joins the records before and after each shell command of a session."""

    def __init__(self) -> None:
        self.running: dict[str, SpooledRecord] = {}
        self._count: Counter[str] = Counter()

    def drop(self, is_dropped: Callable[[SpooledRecord], bool]) -> None:
        """Forgets commands that were cut off."""
        self.running = {key: record for key, record in self.running.items() if not is_dropped(record)}

    def take(self, record: SpooledRecord) -> ShellCall | None:
        """The call that ended with this record."""
        id, command = text_in(record.data, "tool_use_id"), text_in(record.data, "command")
        if record.event == "files.before":
            self.running[id or command] = record
            return None
        before = self.running.pop(id or command, None)
        if before is None:
            return None
        self._count[command] += 1
        name = id or call_by_command(command, self._count[command])
        return ShellCall(name, [*changes_between(before, record)])


def _contents(data: dict[str, Any]) -> dict[str, str | None]:
    return as_dict(data.get("files"))
