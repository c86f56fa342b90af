"""OpenCode: `~/.local/share/opencode/opencode.db`, before 1.2 the folder `storage/` beside it.

store.py reads the sessions of all versions, parts.py interprets their messages. A session, a message and a part are one
record each. Since 2.0 a message contains its parts, and is one record with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from wakelog.importers.coding_agents.opencode.parts import ReplyReader, user_steps, whole_steps
from wakelog.importers.coding_agents.opencode.store import (
    StoredMessage,
    StoredRow,
    StoredSession,
    session_ids,
    sessions_in,
)
from wakelog.importers.common.file_changes import TrackedFiles
from wakelog.importers.source.files import Sample, digest, files_in, moved_folders
from wakelog.importers.source.foreign_database import MAGIC, table_names
from wakelog.importers.source.timestamps import microseconds
from wakelog.importers.steps import LabelsStep, NamedStep, SourceRecord, Transcript, TranscriptHead, named_record
from wakelog.model.json_fields import as_dict, as_text, text_in, without_fields
from wakelog.model.values import Value

NAME = "opencode"
TITLE = "OpenCode"
_SESSION = re.compile(rb'"id"\s*:\s*"ses_')


def find_in_home(home: Path) -> Iterator[Path]:
    """The databases, and session files that are in none of them."""
    folders = [home / ".local" / "share", *moved_folders(home, "XDG_DATA_HOME")]
    known: set[str] = set()
    for path in files_in(folders, "opencode/opencode*.db"):
        yield path
        known |= session_ids(path)
    for path in files_in(folders, "opencode/storage/session/*/ses_*.json"):
        if path.stem not in known:
            yield path


def recognises(sample: Sample) -> bool:
    if sample.start.startswith(MAGIC):
        names = table_names(sample.path)
        return {"session", "session_v2"} & names != set() and (
            "session_message" in names or {"message", "part"} <= names
        )
    if not _SESSION.search(sample.start):
        return False
    return sample.path.name.startswith("ses_") or sample.has(b'"info"', b'"messages"')


def transcripts(path: Path) -> Iterator[Transcript]:
    for session in sessions_in(path):
        info = session.info
        labels = {"project": text_in(info, "directory"), "agent_version": text_in(info, "version")}
        parent = text_in(info, "parentID") or text_in(info, "parent_id")
        head = TranscriptHead(session.id, NAME, labels=labels, parent=parent)
        yield Transcript(head, partial(_records, session), session.stat)


def _records(session: StoredSession) -> Iterator[tuple[SourceRecord, int]]:
    title = as_text(session.info.get("title"))
    named: list[NamedStep] = [(f"title/{title}", LabelsStep({"title": title[:200]}))] if title else []
    time = session.info.get("time")
    at = time.get("created") if isinstance(time, dict) else session.info.get("time_created")
    yield _record(session.id, named, microseconds(at), session.info), 0
    files = TrackedFiles()
    for message in session.messages():
        for record in _message(message, files):
            yield record, 0


def _message(message: StoredMessage, files: TrackedFiles) -> Iterator[SourceRecord]:
    row = message.row
    parts = [p for p in message.parts if not p.broken]
    for broken in (row, *message.parts):
        if broken.broken:
            yield SourceRecord(f"{broken.id}.broken", rest=broken.data, broken=broken.broken)
    if row.broken:
        for part in parts:
            yield _record(part.id, [], 0, part.data)
        return
    at = _created(row.data)
    if message.is_whole:
        yield _record(row.id, list(whole_steps(row.id, row.data, files)), at, _without_content(row.data))
    elif row.data.get("role") == "assistant":
        yield from _reply_records(row, parts, at, files)
    else:
        named = list(user_steps(row.id, [p.data for p in parts]))
        yield _record(row.id, named, at, row.data)
        for part in parts:
            yield _record(part.id, [], at, _without_content(part.data) if named else part.data)


def _reply_records(row: StoredRow, parts: list[StoredRow], at: int, files: TrackedFiles) -> Iterator[SourceRecord]:
    reader = ReplyReader(row.id, row.data, [p.data for p in parts], files)
    for part, (named, is_held) in zip(parts, reader.parts([p.data for p in parts]), strict=True):
        yield _record(part.id, named, _created(part.data) or at, _without_content(part.data) if is_held else part.data)
    yield _record(row.id, list(reader.end(row.data)), at, row.data)


def _record(id: str, named: list[NamedStep], at: int, rest: Value) -> SourceRecord:
    """A record whose id changes when it has more steps than before."""
    names = tuple(name for name, _ in named)
    version = f"{id}.{digest(repr(names).encode(), 6)}" if names else id
    return named_record(version, named, at, rest)


def _created(data: dict[str, Any]) -> int:
    inner = as_dict(data.get("state")).get("time")
    time = inner if isinstance(inner, dict) else as_dict(data.get("time"))
    return microseconds(time.get("start") or time.get("created"))


def _without_content(data: dict[str, Any]) -> dict[str, Any]:
    """A part without what its steps hold."""
    rest = without_fields(data, ("text",))
    if isinstance(rest.get("state"), dict):
        held = ("input", "output", "content", "error")
        rest["state"] = without_fields(rest["state"], held)
    if isinstance(rest.get("content"), list):
        rest["content"] = [_without_content(p) if isinstance(p, dict) else p for p in rest["content"]]
    return rest
