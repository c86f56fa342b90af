"""goose: `~/.local/share/goose/sessions/sessions.db`, a database with all sessions.

A message is a row: a role, and its content as a list of parts. What the user typed, the results of calls and what goose
adds to a turn all have the role `user`. The calls of one reply may come as several rows: the first has the usage. A row
is added when it is complete. Sub-agents are sessions of their own.
"""

from __future__ import annotations

import os.path
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import CAMEL_CASE, micros, read_whole_usage
from wakelog.importers.common.chat import call_block, image_block, join_texts, json_or_text, text_block, thinking_block
from wakelog.importers.common.file_changes import TrackedFiles, file_change
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import Sample, home_files
from wakelog.importers.source.foreign_database import MAGIC, open_database, table_names
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, dicts_in, text_in
from wakelog.model.values import Value

NAME = "goose"
TITLE = "goose"
find_in_home = home_files(".local/share/goose/sessions/sessions.db")
_DENIED = "The user has declined to run this tool"
_STOPPED = "Tool call was interrupted"


def recognises(sample: Sample) -> bool:
    return sample.start.startswith(MAGIC) and {"schema_version", "sessions", "messages"} <= table_names(sample.path)


def transcripts(path: Path) -> Iterator[st.Transcript]:
    with open_database(path) as db:
        counts = {
            str(row["session_id"]): (int(row["n"]), microseconds(row["last"]))
            for row in db.execute(
                "SELECT session_id, count(*) AS n, max(created_timestamp) AS last FROM messages GROUP BY session_id"
            )
        }
        sessions = [dict(row) for row in db.execute("SELECT * FROM sessions ORDER BY created_at, id")]
    for fields in sessions:
        id = str(fields.get("id"))
        if id in counts:
            yield st.Transcript(_head(id, fields), partial(_records, path, id, fields), counts[id])


def _head(id: str, fields: dict[str, Any]) -> st.TranscriptHead:
    title = text_in(fields, "name") or text_in(fields, "description")
    labels = {"project": text_in(fields, "working_dir"), "title": title[:200]}
    return st.TranscriptHead(id, NAME, labels=labels, parent=text_in(fields, "parent_session_id"))


def _records(path: Path, session: str, fields: dict[str, Any]) -> Iterator[tuple[st.SourceRecord, int]]:
    reader = _Reader(text_in(fields, "working_dir"))
    with open_database(path) as db:
        for row in db.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session,)):
            yield reader.record(row), len(str(row["content_json"]))


class _Reader:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files = TrackedFiles()
        self._asked: dict[str, st.CallStep] = {}
        self._reply = ""
        """The reply that the next rows may belong to."""

    def record(self, row: sqlite3.Row) -> st.SourceRecord:
        id, metadata = str(row["id"]), as_dict(json_or_text(row["metadata_json"] or "{}"))
        content = json_or_text(row["content_json"])
        if not isinstance(content, list):
            return st.SourceRecord(id, rest=content, broken=f"message {id} is not a list of parts")
        parts = dicts_in(content)
        if row["role"] == "assistant":
            steps = list(self._replies(str(row["message_id"] or id), parts, metadata))
        else:
            steps = list(self._user(parts, metadata))
        rest: Value = metadata if steps else {"role": row["role"], "content": content, "metadata": metadata}
        return st.SourceRecord(id, tuple(steps), microseconds(row["created_timestamp"]), rest)

    def _user(self, parts: list[dict[str, Any]], metadata: dict[str, Any]) -> Iterator[st.Step]:
        said: list[dict[str, Value]] = []
        for part in parts:
            match part.get("type"):
                case "toolResponse":
                    yield from self._result(part)
                case "text" | "image":
                    said.append(_shown(part))
        if not said:
            return
        if metadata.get("userVisible") is False:
            # The time and the folder are from goose itself.
            trust: Literal["trusted", "unverified"] = "trusted" if metadata.get("turnContext") is True else "unverified"
            yield st.MessageStep("user", join_texts(said), name="context", trust=trust)
        else:
            self._reply = ""
            yield st.PromptStep(join_texts(said))

    def _replies(self, own: str, parts: list[dict[str, Any]], metadata: dict[str, Any]) -> Iterator[st.Step]:
        used = as_dict(metadata.get("usage"))
        if used or not self._reply:
            self._reply = own
        said: list[dict[str, Value]] = []
        asks: list[st.CallStep] = []
        for part in parts:
            match part.get("type"):
                case "toolRequest":
                    ask = _ask(part, self._reply)
                    asks.append(ask)
                    said.append(call_block(ask.id, ask.tool))
                case "thinking" if text_in(part, "thinking"):
                    said.append(thinking_block(text_in(part, "thinking")))
                case "text" if text_in(part, "text"):
                    said.append(text_block(text_in(part, "text")))
        if not (said or used):
            return
        self._asked |= {ask.id: ask for ask in asks}
        model = text_in(as_dict(metadata.get("inference")), "requestedModel")
        yield st.ReplyStep(
            self._reply,
            said,
            model=model,
            usage=read_whole_usage(used, **CAMEL_CASE),
            cost_micros=micros(used.get("cost")),
            is_last=not asks,
        )
        yield from asks

    def _result(self, part: dict[str, Any]) -> Iterator[st.Step]:
        ask = self._asked.pop(text_in(part, "id"), None)
        if ask is None:
            return
        result = as_dict(part.get("toolResult"))
        value = as_dict(result.get("value"))
        output = join_texts([_shown(each) for each in dicts_in(value.get("content"))])
        text = output if isinstance(output, str) else text_in(result, "error")
        is_error = result.get("status") != "success" or value.get("isError") is True
        outcome: st.Outcome = "failed" if is_error else "succeeded"
        if text.startswith((_DENIED, _STOPPED)):
            outcome = "denied" if text.startswith(_DENIED) else "interrupted"
        yield st.ResultStep(
            ask.id,
            output or text,
            outcome,
            "" if outcome == "succeeded" else text[: st.ERROR_MAX],
            tuple(self._changes(ask, text)) if outcome == "succeeded" else (),
            child=text_in(as_dict(value.get("_meta")), "subagent_session_id"),
        )

    def _changes(self, ask: st.CallStep, text: str) -> Iterator[FileChanged]:
        data = as_dict(ask.input)
        if ask.tool not in ("write", "edit") or not text_in(data, "path"):
            return
        path = os.path.normpath(os.path.join(self._folder, text_in(data, "path")))
        kind: Literal["created", "modified"] = "created" if text.startswith("Created ") else "modified"
        if ask.tool == "edit":
            old, new = text_in(data, "before"), text_in(data, "after")
            yield self._files.edit(path, old, new, folder=self._folder, change=kind)
            return
        before = self._files.text(path)
        after = data["content"] if isinstance(data.get("content"), str) else None
        self._files.track(path, after)
        yield file_change(path, folder=self._folder, before=before, after=after, change=kind)


def _ask(part: dict[str, Any], reply: str) -> st.CallStep:
    """A call. One that the model wrote wrongly has an error in place of its name and input."""
    call = as_dict(as_dict(part.get("toolCall")).get("value"))
    tool, arguments = text_in(call, "name") or "unknown", call.get("arguments")
    return st.CallStep(text_in(part, "id"), tool, arguments, effect_of(tool, arguments), group=reply)


def _shown(part: dict[str, Any]) -> dict[str, Value]:
    """A part without what goose notes about it."""
    if part.get("type") == "image" and isinstance(part.get("data"), str):
        return image_block(text_in(part, "mimeType"), part["data"])
    return text_block(text_in(part, "text")) if part.get("type") == "text" else part
