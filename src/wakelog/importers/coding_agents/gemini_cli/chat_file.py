"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, since 2026 `.jsonl`.

The old file is one document with all messages, rewritten each time. The new one is a log: a header, messages, and
patches of the header (`$set`). A message that comes again replaces the earlier one, `$rewindTo` removes a message and
all after it, and a `$set` with `messages` is the whole history after the program changed it. Sub-agents have their own
files in a folder named after the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.coding_agents.gemini_cli.messages import MessageReader
from wakelog.importers.source.files import (
    JsonLine,
    RecordIds,
    Sample,
    digest,
    files_in,
    json_digest,
    json_lines,
    line_records,
    moved_folders,
    read_object,
)
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.json_fields import as_list, as_text, dicts_in, without_fields
from wakelog.model.values import Value

NAME = "gemini-cli"
TITLE = "Gemini CLI"
_GEMINI = re.compile(rb'"type"\s*:\s*"gemini"')
_HELD = frozenset({"content", "displayContent", "thoughts", "toolCalls", "tokens", "model"})


def find_in_home(home: Path) -> Iterator[Path]:
    chats = (f".gemini/tmp/*/chats/{name}" for name in ("session-*.json", "session-*.jsonl", "*/*.jsonl"))
    return files_in([home, *moved_folders(home, "GEMINI_CLI_HOME")], *chats)


def recognises(sample: Sample) -> bool:
    for line in sample.lines:
        if "sessionId" in line and "projectHash" in line and "type" not in line:
            return True
        if line.get("type") == "gemini" and "id" in line and "content" in line:
            return True
    if sample.first != b"{":
        return False
    is_session = sample.has(b'"sessionId"', b'"messages"') and sample.has(b'"projectHash"')
    return is_session or bool(
        _GEMINI.search(sample.start) and (sample.has(b'"thoughts"') or sample.has(b'"toolCalls"'))
    )


def transcripts(path: Path) -> Iterator[st.Transcript]:
    is_log = _is_log(path)
    headers = (line.value for line in json_lines(path) if line.value and "sessionId" in line.value)
    header = next(headers, {}) if is_log else read_object(path, "a session of Gemini CLI")
    origin = as_text(header.get("sessionId") or header.get("id")) or path.name.split(".")[0]
    is_agent = header.get("kind") == "subagent"
    parent = path.parent.name if is_agent and path.parent.name != "chats" else ""
    head = st.TranscriptHead(origin, NAME, labels={"project": _project(path, header)}, parent=parent)
    reader = partial(_LogReader, _children(path, origin), is_agent=is_agent)
    read = partial(_log_records, reader, path) if is_log else partial(_document_records, reader, header)
    yield st.Transcript(head, read)


def _log_records(reader: Callable[[], _LogReader], path: Path) -> Iterator[tuple[st.SourceRecord, int]]:
    read = reader()
    return line_records(json_lines(path), read.ids, read.record)


def _document_records(
    reader: Callable[[], _LogReader], header: dict[str, Any]
) -> Iterator[tuple[st.SourceRecord, int]]:
    read = reader()
    if not isinstance(header.get("messages"), list):
        # A single message in a file.
        yield read.message(header), 0
        return
    fields = without_fields(header, ("messages",))
    yield st.SourceRecord("header", tuple(_title_steps(fields)), microseconds(fields.get("startTime")), fields), 0
    for message in header["messages"]:
        if isinstance(message, dict):
            yield read.message(message, is_rewritten=True), 0
        else:
            yield st.SourceRecord(read.id_of(message), rest=message, broken="a message is not an object"), 0


class _LogReader:
    def __init__(self, children: frozenset[str], *, is_agent: bool) -> None:
        self._messages = MessageReader(children, is_agent=is_agent)
        self.ids = RecordIds()
        self._order: dict[str, str] = {}
        """Visible messages in order, with the record that each was last in."""

    def id_of(self, value: Any) -> str:
        return self.ids.unique(json_digest(value))

    def record(self, line: JsonLine) -> st.SourceRecord:
        value: dict[str, Any] = line.value
        if isinstance(value.get("id"), str) and "$set" not in value:
            return self.message(value)
        if "sessionId" in value:
            return st.SourceRecord(
                self.ids.unique("header"), tuple(_title_steps(value)), microseconds(value.get("startTime")), value
            )
        id = self.ids.unique(digest(line.raw))
        if isinstance(value.get("$rewindTo"), str):
            return st.SourceRecord(id, tuple(self._rewind(value["$rewindTo"])), rest=value)
        if isinstance(value.get("$set"), dict):
            return self._patch(id, line.whole, value["$set"])
        return st.SourceRecord(id, rest=line.whole)

    def message(self, message: dict[str, Any], *, is_rewritten: bool = False) -> st.SourceRecord:
        """Reads a message. In a document that is rewritten, its record id changes when it has more steps than
        before."""
        given = message.get("id")
        own = given if isinstance(given, str) and given else json_digest(message)
        named = self._messages.steps(own, message)
        version = f"{own}.{digest(repr([n for n, _ in named]).encode(), 6)}" if is_rewritten else own
        record = _record(self.ids.unique(version), named, message)
        self._order[own] = record.id
        return record

    def _patch(self, id: str, rest: Value | msgspec.Raw, new: dict[str, Any]) -> st.SourceRecord:
        """Reads a patch of the header. It may carry the whole history; its steps that are already known are skipped
        later."""
        named: list[st.NamedStep] = [(f"{id}/{n}", step) for n, step in enumerate(_title_steps(new))]
        for message in dicts_in(new.get("messages")):
            if isinstance(message.get("id"), str):
                named += self._messages.steps(message["id"], message)
        return st.named_record(id, named, microseconds(new.get("lastUpdated")), rest)

    def _rewind(self, to: str) -> Iterator[st.Step]:
        ids = list(self._order)
        kept = ids[: ids.index(to)] if to in self._order else []
        self._order = {id: self._order[id] for id in kept}
        if kept:
            yield st.RewindStep(self._order[kept[-1]])
        else:
            yield st.MessageStep("system", "The user took back every message so far.", name="rollback")


def _record(id: str, named: list[st.NamedStep], message: dict[str, Any]) -> st.SourceRecord:
    rest: dict[str, Value] = without_fields(message, _HELD) if named else message
    calls = message.get("toolCalls")
    if named and isinstance(calls, list):
        held = ("args", "result")
        rest["toolCalls"] = [without_fields(c, held) if isinstance(c, dict) else c for c in calls]
    return st.named_record(id, named, microseconds(message.get("timestamp")), rest)


def _title_steps(fields: dict[str, Any]) -> Iterator[st.Step]:
    summary = fields.get("summary")
    if isinstance(summary, str) and summary.strip():
        yield st.LabelsStep({"title": summary.strip()[:200]})


def _is_log(path: Path) -> bool:
    if ".jsonl" in path.name:
        return True
    first = next(json_lines(path), None)
    return first is not None and not first.broken and "messages" not in first.value and "content" not in first.value


def _children(path: Path, origin: str) -> frozenset[str]:
    """Sub-agents of a session, by file name."""
    folder = path.parent / re.sub(r"[^A-Za-z0-9._-]", "_", origin)
    return frozenset(child.stem for child in folder.glob("*.jsonl"))


def _project(path: Path, header: dict[str, Any]) -> str:
    """The project folder of the session: the program stores it beside its chats."""
    try:
        root = (path.parent.parent / ".project_root").read_text().strip()
    except (OSError, UnicodeDecodeError):
        root = ""
    return root or as_text(next(iter(as_list(header.get("directories"))), ""))
