"""What changed in files between two points, as unified diffs of the contents in the log.

The points may be in one session or in two of the same fork tree. If a content is not in the log or not text, a note
says so instead of a diff.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from wakelog.diff.turn_diff import shared_event
from wakelog.files.capture import as_value, line_counts
from wakelog.files.file_history import FileSide, content_of, file_pasts
from wakelog.files.line_diff import unified_hunks
from wakelog.files.manifest import MAX_FILE_BYTES
from wakelog.files.restore_plan import FileStep
from wakelog.files.tree_writer import OpenRoot
from wakelog.log import Log
from wakelog.model.ids import Seq

NULL = "/dev/null"
Change = Literal["created", "modified", "deleted"]


class FileDiff(msgspec.Struct, frozen=True):
    """One file at two points. `text` is the diff, without names; `note` says why there is none."""

    path: str
    change: Change
    added: int
    removed: int
    text: str
    note: str = ""
    before_mode: str = ""
    after_mode: str = ""

    def __str__(self) -> str:
        old = NULL if self.change == "created" else f"a/{self.path}"
        new = NULL if self.change == "deleted" else f"b/{self.path}"
        lines = [f"--- {old}", f"+++ {new}"] if self.text else []
        if self.before_mode != self.after_mode and self.before_mode and self.after_mode:
            lines.insert(0, f"mode of {self.path}: {self.before_mode} → {self.after_mode}")
        if self.note:
            lines.insert(0, f"{self.change} {self.path}: {self.note}")
        return "\n".join([*lines, self.text] if self.text else lines)


def file_diff(log_a: Log, a: Seq, log_b: Log, b: Seq, *, paths: Iterable[str] = ()) -> list[FileDiff]:
    """Every file that differs between `a` in `log_a` and `b` in `log_b`, in order of their paths."""
    only = tuple(paths)
    shared = shared_event(log_a, a, log_b, b)
    since_a, since_b = file_pasts(log_a, shared, upto=a, paths=only), file_pasts(log_b, shared, upto=b, paths=only)
    out = []
    for path in sorted({*since_a, *since_b}):
        # A file that one side did not change after the shared event is still what the other side found there.
        at_shared = (log_b, since_b[path].then) if path in since_b else (log_a, since_a[path].then)
        old = (log_a, since_a[path].now) if path in since_a else at_shared
        new = (log_b, since_b[path].now) if path in since_b else at_shared
        diff = diff_sides(path, *old, *new)
        if diff is not None:
            out.append(diff)
    return out


def step_diff(log: Log, step: FileStep) -> FileDiff | None:
    """What a step of a plan would change on disk now."""
    if step.place is None or step.then is None or step.disk is None:
        return None
    before = b""
    if step.disk.exists:
        with OpenRoot(step.place.root) as tree:
            before = tree.read(step.place.parts, MAX_FILE_BYTES) or b""
    after, _ = content_of(log, step.then) if step.then.exists else (b"", "")
    change: Change = "created" if not step.disk.exists else "modified" if step.then.exists else "deleted"
    mode = f"{step.disk.mode:o}" if step.disk.exists else ""
    return _text_diff(step.path, change, before, after, mode, step.then.mode)


def diff_sides(path: str, log_a: Log, old: FileSide, log_b: Log, new: FileSide) -> FileDiff | None:
    """The difference between two sides of a file; None if they are equal."""
    if not old.exists and not new.exists:
        return None
    change: Change = "created" if not old.exists else "deleted" if not new.exists else "modified"
    is_same = old.exists == new.exists and old.hash == new.hash and bool(old.hash)
    if is_same and old.mode == new.mode:
        return None
    before, old_missing = content_of(log_a, old) if old.exists else (b"", "")
    after, new_missing = content_of(log_b, new) if new.exists else (b"", "")
    if old_missing or new_missing:
        sides = [f"{side}: {why}" for side, why in (("before", old_missing), ("after", new_missing)) if why]
        note = old_missing if old_missing == new_missing else ", ".join(sides)
        return FileDiff(path, change, 0, 0, "", note, old.mode, new.mode)
    return _text_diff(path, change, before, after, old.mode, new.mode)


def _text_diff(path: str, change: Change, before: bytes, after: bytes, old_mode: str, new_mode: str) -> FileDiff:
    if _is_binary(before) or _is_binary(after):
        note = f"binary, {len(before):,} → {len(after):,} bytes"
        return FileDiff(path, change, 0, 0, "", note, old_mode, new_mode)
    added, removed = line_counts(before, after)
    text = "\n".join(unified_hunks(before.decode(), after.decode()))
    return FileDiff(path, change, added, removed, text, "", old_mode, new_mode)


def _is_binary(content: bytes) -> bool:
    return b"\0" in content or isinstance(as_value(content), bytes)
