"""What a log says about files: every recorded change, and what a file was at a point.

A change has two sides, before and after. For each side the log has the content, or only a hash, or only the reason why
there is neither. A redacted or erased content is reported as such and never used as the file's content.

At a point, a file was what the next change found. If somebody edited it by hand in between, that includes the edit.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from wakelog.errors import NotFoundError
from wakelog.files.manifest import IGNORED
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.payloads import as_ref
from wakelog.model.values import Value
from wakelog.redaction.values import REDACTED
from wakelog.state.patch import tokens_of
from wakelog.timeline.points import walk_back

NOT_CAPTURED = "content not captured"
ERASED = "erased"


class FileSide(msgspec.Struct, frozen=True):
    """A file before or after a change."""

    exists: bool
    hash: str = ""
    """SHA-256 of its bytes; empty when it is not known."""
    mode: str = ""
    missing: str = ""
    """Why there is no content; empty if there is."""
    entry: Entry | None = None
    field: str = ""

    @property
    def is_link(self) -> bool:
        return self.mode.startswith("12") and len(self.mode) == 6


GONE = FileSide(False)


class RecordedChange(msgspec.Struct, frozen=True):
    """One recorded change of a file."""

    path: str
    change: Literal["created", "modified", "deleted"]
    before: FileSide
    after: FileSide
    seq: Seq
    turn: int
    actor: str
    action: str

    @property
    def is_ignored(self) -> bool:
        return IGNORED in (self.before.missing, self.after.missing)


def recorded_changes(log: Log, *, after: Seq = 0, upto: Seq | None = None) -> Iterator[RecordedChange]:
    """The changes of files in a range, oldest first, whether in view or not. Pruned changes are left out."""
    for entry in log.entries(after=after, upto=upto):
        if entry.kind == "file.changed" and entry.body:
            yield read_change(entry)


def find_project(log: Log, here: str) -> str:
    """The folder that recorded paths are relative to: `here` if a recorded file is in it, else the folder in which they
    were captured. NotFoundError, which names that folder, if it does not exist."""
    # Rewound changes count too, so this reads the log and not the state.
    newest = next((e for e in walk_back(log) if e.kind == "file.changed" and e.body.get("folder")), None)
    if newest is None:
        return here
    paths = {str(newest.body.get("path", "")), *log.part("files_modified")}
    folder = str(newest.body["folder"])
    if any(os.path.lexists(os.path.join(here, path)) for path in paths if path and not path.startswith("/")):
        return here
    if os.path.realpath(folder) == os.path.realpath(here):
        return here
    if os.path.isdir(folder):
        return folder
    raise NotFoundError(
        f"none of the recorded files is in {here}: they were captured in {folder}, which does not exist here",
        kind="folder-not-found",
        hint="go to the project's folder, or name it with --root",
    )


def read_change(entry: Entry) -> RecordedChange:
    """Reads a `file.changed` event. Tolerates events that other programs wrote."""
    body = entry.body
    change = body.get("change", "modified")
    if change not in ("created", "modified", "deleted"):
        change = "modified"
    path = body.get("path") if entry.is_intact else _path_in_delta(entry)
    return RecordedChange(
        path=path if isinstance(path, str) else "(erased)",
        change=change,
        before=GONE if change == "created" else _side(entry, "before"),
        after=GONE if change == "deleted" else _side(entry, "after"),
        seq=entry.seq,
        turn=entry.header.turn,
        actor=entry.header.actor,
        action=str(body.get("action", "")),
    )


def _path_in_delta(entry: Entry) -> str:
    """The path of an erased change. Erasing keeps the keys of the state."""
    for op in entry.delta:
        tokens = tokens_of(op["path"])
        if tokens[:1] == ["files_modified"] and len(tokens) == 2:
            return tokens[1]
    return "(erased)"


def _side(entry: Entry, field: str) -> FileSide:
    if not entry.is_intact:
        return FileSide(True, missing=ERASED)
    body = entry.body
    missing = body.get("missing")
    why = str(missing.get(field, "")) if isinstance(missing, dict) else ""
    value = body.get(field)
    if not why and not (isinstance(value, str) or as_ref(value) is not None):
        why = NOT_CAPTURED
    digest, mode = body.get(f"{field}_hash", ""), body.get(f"{field}_mode", "")
    if not why and not digest:
        # A payload's hash is the hash of its bytes; text in the body is hashed here.
        ref = as_ref(value)
        digest = ref.hash if ref is not None else hashlib.sha256(str(value).encode()).hexdigest()
    return FileSide(True, str(digest), str(mode), why, entry, field)


def content_of(log: Log, side: FileSide) -> tuple[bytes, str]:
    """The content of a side, or why it is not known. Checked against the recorded hash."""
    if side.missing or side.entry is None:
        return b"", side.missing or NOT_CAPTURED
    content = _bytes(log, side)
    if content is None:
        return b"", ERASED
    if hashlib.sha256(content).hexdigest() != side.hash:
        return b"", REDACTED
    return content, ""


def text_as_recorded(log: Log, side: FileSide) -> bytes | None:
    """The content of a side as stored, even if redacted; for comparing two redacted contents."""
    return _bytes(log, side) if side.entry is not None else None


def _bytes(log: Log, side: FileSide) -> bytes | None:
    assert side.entry is not None
    try:
        value: Value = log.value(side.entry, side.entry.body.get(side.field))
    except NotFoundError:
        return None
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else None


class FilePast(msgspec.Struct):
    """The changes of one file around a point: the last one up to it, and those after it."""

    path: str
    last: RecordedChange | None
    later: list[RecordedChange]

    @property
    def then(self) -> FileSide:
        """What the file was at the point: what the next change found, else what the last one left."""
        if not self.later:
            return self.last.after if self.last is not None else FileSide(True, missing=NOT_CAPTURED)
        side = self.later[0].before
        left = self.last.after if self.last is not None else None
        if side.missing and left is not None and left.exists and not left.missing:
            # The next change has no content. Use the content that the last one left, if the hash is the same or
            # unknown.
            is_same = side.hash == left.hash if side.hash else side.missing == NOT_CAPTURED
            return left if is_same else side
        return side

    @property
    def now(self) -> FileSide:
        """What the file is now, according to the log."""
        return self.later[-1].after if self.later else self.then


def file_pasts(log: Log, at: Seq, *, upto: Seq | None = None, paths: Iterable[str] = ()) -> dict[str, FilePast]:
    """Every file changed after a point, by path, in the order of the first change. With `paths`, only these files and
    files below these folders."""
    wanted_paths = [path.rstrip("/") for path in paths]
    out: dict[str, FilePast] = {}
    for change in recorded_changes(log, after=at, upto=upto):
        if wanted_paths and not any(f"{change.path}/".startswith(f"{path}/") for path in wanted_paths):
            continue
        out.setdefault(change.path, FilePast(change.path, None, [])).later.append(change)
    if out and at:
        # Needed for changes without the content before them; one pass serves all of them.
        wanted = {path for path, past in out.items() if past.later[0].before.missing}
        for change in recorded_changes(log, upto=at) if wanted else ():
            if change.path in wanted:
                out[change.path].last = change
    return out
