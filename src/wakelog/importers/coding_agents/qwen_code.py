"""Qwen Code: `~/.qwen/projects/<folder>/chats/<session>.jsonl`, one record per line.

The program comes from Gemini CLI, and so do its messages: a text, calls and their results are parts. The lines around
them look like Claude Code's: each has a uuid, its parent, the folder and the version. A result comes as a line of its
own, with what the program showed the user.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.coding_agents.gemini_cli.messages import MessageReader
from wakelog.importers.source.files import JsonLine, RecordIds, Sample, digest, home_files, json_lines, line_records
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.json_fields import as_dict, dicts_in, text_in, without_fields
from wakelog.model.values import Value

NAME = "qwen-code"
TITLE = "Qwen Code"
find_in_home = home_files(".qwen/projects/*/chats/*.jsonl")
_HELD = frozenset({"message", "usageMetadata", "model", "toolCallResult"})
_USAGE = {
    "input": "promptTokenCount",
    "cached": "cachedContentTokenCount",
    "output": "candidatesTokenCount",
    "thoughts": "thoughtsTokenCount",
}


def recognises(sample: Sample) -> bool:
    return any(
        "sessionId" in line and "uuid" in line and isinstance(as_dict(line.get("message")).get("parts"), list)
        for line in sample.lines
    )


def transcripts(path: Path) -> Iterator[st.Transcript]:
    lines = (line.value for line in json_lines(path) if line.value and "sessionId" in line.value)
    first = as_dict(next(lines, None))
    labels = {"project": text_in(first, "cwd"), "branch": text_in(first, "gitBranch")}
    labels["agent_version"] = text_in(first, "version")
    origin = text_in(first, "sessionId") or path.stem
    head = st.TranscriptHead(origin, NAME, labels=labels)
    yield st.Transcript(head, lambda: _Reader().records(path))


class _Reader:
    def __init__(self) -> None:
        self._ids = RecordIds()
        self._messages = MessageReader(frozenset())
        self._records: dict[str, str] = {}
        """Records by the uuid of their line."""
        self._last = ""

    def records(self, path: Path) -> Iterator[tuple[st.SourceRecord, int]]:
        return line_records(json_lines(path), self._ids, self._record)

    def _record(self, line: JsonLine) -> st.SourceRecord:
        value: dict[str, Any] = line.value
        own = text_in(value, "uuid") or digest(line.raw)
        id = self._ids.unique(own)
        steps = [*self._rewind(value), *self._steps(own, value)]
        self._records[own], self._last = id, own
        rest: Value | msgspec.Raw = without_fields(value, _HELD) if steps else line.whole
        return st.SourceRecord(id, tuple(steps), microseconds(value.get("timestamp")), rest)

    def _rewind(self, value: dict[str, Any]) -> Iterator[st.Step]:
        """A line that does not follow the one before: the user went back."""
        parent = text_in(value, "parentUuid")
        if self._last and parent != self._last and parent in self._records:
            yield st.RewindStep(self._records[parent])

    def _steps(self, id: str, value: dict[str, Any]) -> Iterator[st.Step]:
        parts = dicts_in(as_dict(value.get("message")).get("parts"))
        match value.get("type"):
            case "user":
                yield from (step for _, step in self._messages.steps(id, {"type": "user", "content": parts}))
            case "assistant":
                yield from self._reply(id, value, parts)
            case "tool_result":
                result = as_dict(value.get("toolCallResult"))
                for part in parts:
                    call = text_in(as_dict(part.get("functionResponse")), "id")
                    yield from self._messages.answer(call, result | {"result": [part]})
            case "system" if value.get("subtype") == "chat_compression":
                yield from _compaction(as_dict(value.get("systemPayload")))

    def _reply(self, id: str, value: dict[str, Any], parts: list[dict[str, Any]]) -> Iterator[st.Step]:
        used = as_dict(value.get("usageMetadata"))
        message = {
            "type": "gemini",
            "content": parts,
            "model": value.get("model"),
            "thoughts": [{"description": text_in(part, "text")} for part in parts if part.get("thought") is True],
            "tokens": {name: used.get(key) for name, key in _USAGE.items()},
        }
        steps = [step for _, step in self._messages.steps(id, message)]
        is_last = not any(isinstance(step, st.CallStep) for step in steps)
        for step in steps:
            yield msgspec.structs.replace(step, is_last=is_last) if isinstance(step, st.ReplyStep) else step


def _compaction(payload: dict[str, Any]) -> Iterator[st.Step]:
    """The history that goes on begins with the summary."""
    for message in dicts_in(payload.get("compressedHistory")):
        texts = [text_in(part, "text") for part in dicts_in(message.get("parts"))]
        if summary := "\n".join(filter(None, texts)):
            yield st.CompactionStep(summary)
            return
