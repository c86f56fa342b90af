"""Cursor: `state.vscdb`, a SQLite database with JSON values by key, in the table `cursorDiskKV`.

`composerData:<id>` is a session: its name, model and the order of its bubbles. `bubbleId:<id>:<bubble>` is a bubble: a
message of the user (type 1), or what the agent said, thought or did (type 2), with a tool call and its result in
`toolFormerData`. Older sessions hold their bubbles inside. A bubble is a record. Cursor rewrites it as it grows, so its
steps have names.

The other table, `ItemTable`, holds account keys. It is never read, and neither is a value whose name says it is a key.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.importers import steps as st
from wakelog.importers.common.amounts import read_usage
from wakelog.importers.common.chat import call_block, json_or_text, text_block, thinking_block
from wakelog.importers.common.file_changes import file_change
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import USER_DATA, Sample, decode_json, digest, home_files, json_digest
from wakelog.importers.source.foreign_database import MAGIC, open_database, table_names
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_list, as_text, text_in, without_fields
from wakelog.model.values import Value

NAME = "cursor"
TITLE = "Cursor"
find_in_home = home_files(*(f"{data}/Cursor/User/globalStorage/state.vscdb" for data in USER_DATA))
_SECRET = re.compile(r"key$|token$|secret", re.IGNORECASE)
_HELD = frozenset({"text", "richText", "thinking", "toolFormerData"})
_OUTCOMES: dict[str, st.Outcome] = {
    "completed": "succeeded",
    "success": "succeeded",
    "error": "failed",
    "failed": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
    "rejected": "denied",
}
_EDITS = re.compile(r"(?:edit_file|search_replace|write|delete_file|apply_patch|reapply)")
_PATHS = ("target_file", "targetFile", "file_path", "relativeWorkspacePath", "path", "effectiveUri")
_KEYS = "SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ? AND value IS NOT NULL ORDER BY key"
_ROWS = "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? AND value IS NOT NULL ORDER BY key"


def recognises(sample: Sample) -> bool:
    return sample.start.startswith(MAGIC) and "cursorDiskKV" in table_names(sample.path)


def transcripts(path: Path) -> Iterator[st.Transcript]:
    """Yields the sessions one at a time: a database may have gigabytes."""
    with open_database(path) as db:
        ids = [str(key).partition(":")[2] for (key,) in db.execute(_KEYS, _range("composerData:"))]
        for id in ids:
            if (transcript := _transcript(db, id)) is not None:
                yield transcript


def _transcript(db: sqlite3.Connection, id: str) -> st.Transcript | None:
    row = db.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (f"composerData:{id}",)).fetchone()
    composer, size = _decode_value(row[0]) if row else None, _size(db, id)
    if not isinstance(composer, dict) or not (size or as_list(composer.get("conversation"))):
        return None  # a session that was opened and never used
    changed = microseconds(composer.get("lastUpdatedAt") or composer.get("createdAt"))
    inside = len(msgspec.json.encode(composer))
    head = st.TranscriptHead(id, NAME, labels=_labels(composer))
    return st.Transcript(head, partial(_records, db, id, composer), (size + inside, changed))


def _labels(composer: dict[str, Any]) -> dict[str, str]:
    uri = as_dict(as_dict(composer.get("workspaceIdentifier")).get("uri"))
    return {"project": text_in(uri, "fsPath") or text_in(uri, "path"), "title": text_in(composer, "name")[:200]}


def _records(db: sqlite3.Connection, id: str, composer: dict[str, Any]) -> Iterator[tuple[st.SourceRecord, int]]:
    try:
        stored = {str(key).rpartition(":")[2]: value for key, value in db.execute(_ROWS, _range(f"bubbleId:{id}:"))}
    except sqlite3.Error as exc:
        raise InvalidInputError(f"session {id} of Cursor cannot be read: {exc}", kind="bad-transcript") from exc
    model = text_in(as_dict(composer.get("modelConfig")), "modelName")
    fields = _without_secrets(without_fields(composer, ("conversation", "conversationMap")))
    version = json_digest(fields, 8)
    created = microseconds(composer.get("createdAt"))
    named = [(f"model/{model}", st.LabelsStep({"model": model}))] if model else []
    yield st.named_record(f"{id}.{version}", named, created, fields), 0
    bubbles = list(_in_order(composer, stored))
    is_busy = composer.get("status") in ("generating", "running", "streaming")
    for number, (name, raw) in enumerate(bubbles):
        bubble = _decode_value(raw)
        size = len(raw) if isinstance(raw, str | bytes) else 0
        if not isinstance(bubble, dict):
            rest = raw if isinstance(raw, str) else None
            yield st.SourceRecord(f"{name}.broken", rest=rest, broken=f"bubble {name} is no object"), size
            continue
        is_growing = is_busy and number == len(bubbles) - 1
        yield _record(name, bubble, model, is_growing=is_growing), size


def _in_order(composer: dict[str, Any], stored: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The bubbles in the session's order. A bubble that no list names was removed from the conversation."""
    for header in as_list(composer.get("fullConversationHeadersOnly")):
        name = text_in(as_dict(header), "bubbleId")
        raw = stored.get(name, as_dict(composer.get("conversationMap")).get(name))
        if raw is not None:
            yield name, raw
    for number, bubble in enumerate(as_list(composer.get("conversation"))):
        yield text_in(as_dict(bubble), "bubbleId") or f"inside-{number}", bubble


def _record(name: str, bubble: dict[str, Any], model: str, *, is_growing: bool) -> st.SourceRecord:
    steps = [] if is_growing else list(_steps(name, bubble, model))
    names = tuple(step_name for step_name, _ in steps)
    version = f"{name}.{digest(repr(names), 6)}" if names else name
    timing = as_dict(bubble.get("timingInfo"))
    at = microseconds(bubble.get("createdAt")) or microseconds(timing.get("clientStartTime"))
    rest = bubble if not steps else without_fields(bubble, _HELD)
    tool = as_dict(bubble.get("toolFormerData"))
    if steps and tool:
        rest["toolFormerData"] = without_fields(tool, ("rawArgs", "params", "result"))
    return st.named_record(version, steps, at, _without_secrets(rest))


def _steps(name: str, bubble: dict[str, Any], model: str) -> Iterator[st.NamedStep]:
    text = text_in(bubble, "text")
    if bubble.get("type") == 1:
        if text.strip():
            yield f"{name}/prompt", st.PromptStep(text, id=name)
        return
    tool = as_dict(bubble.get("toolFormerData"))
    thinking = bubble.get("thinking")
    thought = text_in(as_dict(thinking), "text") or as_text(thinking)
    blocks: list[dict[str, Value]] = [thinking_block(thought)] if thought.strip() else []
    if text.strip():
        blocks.append(text_block(text))
    call = text_in(tool, "toolCallId") or f"{name}.call"
    called = text_in(tool, "name") or (str(tool["tool"]) if "tool" in tool else "")
    if called:
        blocks.append(call_block(call, called))
    if blocks:
        usage = read_usage(as_dict(bubble.get("tokenCount")), input="inputTokens", output="outputTokens")
        kind = text_in(as_dict(bubble.get("modelInfo")), "modelName") or model
        yield (
            f"{name}/said",
            st.ReplyStep(name, blocks, model=kind, usage=usage, is_last=not called and bool(text.strip())),
        )
    if called:
        value = json_or_text(tool.get("rawArgs") or tool.get("params"))
        yield f"{name}/ask", st.CallStep(call, called, value, effect_of(called, value), group=name)
        outcome = _OUTCOMES.get(text_in(tool, "status"))
        if outcome is not None:
            yield f"{name}/answer", _result(call, called, value, tool, outcome)


def _result(call: str, tool: str, value: Value, fields: dict[str, Any], outcome: st.Outcome) -> st.ResultStep:
    result = json_or_text(fields.get("result") if fields.get("result") is not None else fields.get("error"))
    details = as_dict(result)
    if outcome == "succeeded" and details.get("rejected") is True:
        outcome = "denied"
    error = "" if outcome == "succeeded" else (as_text(result) or text_in(details, "error"))[: st.ERROR_MAX]
    files = _files(call, tool, as_dict(value)) if outcome == "succeeded" else ()
    return st.ResultStep(call, result, outcome, error, files)


def _files(call: str, tool: str, given: dict[str, Any]) -> tuple[FileChanged, ...]:
    path = next((as_text(given[key]) for key in _PATHS if as_text(given.get(key))), "")
    if not path or not _EDITS.match(tool):
        return ()
    return (file_change(path, change="deleted" if tool.startswith("delete") else "modified", action=call),)


def _without_secrets(value: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in value.items() if not (isinstance(v, str) and _SECRET.search(k))}


def _size(db: sqlite3.Connection, id: str) -> int:
    query = "SELECT coalesce(sum(length(value)), 0) FROM cursorDiskKV WHERE key >= ? AND key < ?"
    return int(db.execute(query, _range(f"bubbleId:{id}:")).fetchone()[0])


def _range(prefix: str) -> tuple[str, str]:
    """The range of all keys with a prefix. The index finds them without reading the others."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _decode_value(raw: Any) -> Any:
    """Decodes a stored value: JSON as text or bytes, which older versions encoded twice."""
    for _ in range(2):
        if not isinstance(raw, str | bytes):
            break
        try:
            raw = decode_json(raw)
        except ValueError:
            return None
    return raw
