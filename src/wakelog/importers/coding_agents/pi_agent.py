"""pi: `~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl`, a header and then one entry per line.

Entries name their parents. The file grows in order of time, so it is read from top to bottom. An entry whose parent is
not the entry before it means that the user went back in the tree. A fork starts with a copy of the entries that it
continues, with their old times: they are kept as records without events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import edited_lines, micros, read_usage
from wakelog.importers.common.chat import call_block, image_block, join_texts, text_block
from wakelog.importers.common.file_changes import TrackedFiles, diff_counts, file_change, replace_text
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import JsonLine, RecordIds, Sample, digest, home_files, json_lines, line_records
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_text, dicts_in, text_in, without_fields
from wakelog.model.usage import Usage
from wakelog.model.values import Value

NAME = "pi"
TITLE = "pi"
find_in_home = home_files(".pi/agent/sessions/**/*.jsonl")
_STOPPED = re.compile(r"(?:.*\n)*?(?:Operation|Command) aborted", re.IGNORECASE)
_TIMED_OUT = re.compile(r"Command timed out", re.IGNORECASE)
_DENIED = re.compile(r"(?:denied|blocked|rejected) by (?:the )?user|user (?:denied|rejected|blocked)", re.IGNORECASE)


def recognises(sample: Sample) -> bool:
    first = sample.lines[0] if sample.lines else {}
    return first.get("type") == "session" and "id" in first and "timestamp" in first


def transcripts(path: Path) -> Iterator[st.Transcript]:
    first = next(json_lines(path), None)
    header: dict[str, Any] = first.value or {} if first is not None else {}
    origin = text_in(header, "id") or path.name.split(".")[0]
    source = text_in(header, "parentSession") or text_in(header, "branchedFrom")
    forked = source.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".jsonl").rsplit("_", 1)[-1]
    labels = {"project": text_in(header, "cwd"), "model": text_in(header, "modelId"), "forked_from": forked}
    head = st.TranscriptHead(origin, NAME, labels=labels)
    yield st.Transcript(head, lambda: _Reader(forked, microseconds(header.get("timestamp"))).records(path))


class _Reader:
    def __init__(self, forked: str, forked_at: int) -> None:
        self._forked, self._forked_at = forked, forked_at if forked else 0
        self._copied = 0
        self._ids = RecordIds()
        self._leaf: str | None = None
        self._entries: set[str] = set()
        self._model = ""
        self._inputs: dict[str, tuple[str, Value]] = {}
        self._files = TrackedFiles()

    def records(self, path: Path) -> Iterator[tuple[st.SourceRecord, int]]:
        return line_records(json_lines(path), self._ids, self._record)

    def _record(self, line: JsonLine) -> st.SourceRecord:
        value: dict[str, Any] = line.value
        own = text_in(value, "id") if value.get("type") != "session" else ""
        id = self._ids.unique(own or digest(line.raw))
        at = microseconds(value.get("timestamp"))
        if value.get("type") != "session" and 0 < at < self._forked_at:
            self._copied += 1
            self._go_to(own)
            return st.SourceRecord(id, (), at, line.whole)
        steps = [*self._fork_and_rewind_steps(value, own), *self._steps(id, value)]
        self._go_to(own)
        message = value.get("message")
        if steps and isinstance(message, dict):
            value = value | {"message": without_fields(message, ("content",))}
        return st.SourceRecord(id, tuple(steps), at, value if steps else line.whole)

    def _go_to(self, own: str) -> None:
        if own:
            self._leaf = own
            self._entries.add(own)

    def _fork_and_rewind_steps(self, value: dict[str, Any], own: str) -> Iterator[st.Step]:
        if self._copied and value.get("type") != "session":
            text = f"This session goes on from {self._forked}: {self._copied} entries of that one come first."
            self._copied, self._forked_at = 0, 0
            yield st.MessageStep("system", text, name="fork")
        parent = value.get("parentId")
        if not own or "parentId" not in value or self._leaf is None or parent == self._leaf:
            return
        if isinstance(parent, str) and parent in self._entries:
            yield st.RewindStep(parent)
        elif parent is None:
            yield st.MessageStep("system", "The user went back to the beginning.", name="rollback")

    def _steps(self, id: str, value: dict[str, Any]) -> Iterator[st.Step]:
        message, summary = value.get("message"), value.get("summary")
        match value.get("type"):
            case "message" if isinstance(message, dict):
                yield from self._message(id, message)
            case "custom_message":
                yield st.MessageStep("user", _content(value.get("content")), name="context", trust="unverified")
            case "compaction" if isinstance(summary, str):
                yield st.CompactionStep(summary)
            case "branch_summary" if isinstance(summary, str):
                yield st.MessageStep("system", summary, name="summary")
            case "model_change" if isinstance(value.get("modelId"), str):
                yield st.LabelsStep({"model": value["modelId"]})
            case "session_info" if isinstance(value.get("name"), str):
                yield st.LabelsStep({"title": value["name"][:200]})

    def _message(self, id: str, message: dict[str, Any]) -> Iterator[st.Step]:
        content = message.get("content")
        match message.get("role"):
            case "user":
                yield st.PromptStep(_content(content), id=id)
            case "assistant":
                yield from self._assistant(id, message)
            case "toolResult":
                yield self._result(message)
            case "bashExecution":
                words = f"!{text_in(message, 'command')}\n{text_in(message, 'output')}".strip()
                yield st.MessageStep("user", words, name="command", trust="unverified")
            case "custom" | "hookMessage":
                yield st.MessageStep("user", _content(content), name="context", trust="unverified")
            case "branchSummary" | "compactionSummary" if isinstance(message.get("summary"), str):
                yield st.MessageStep("system", message["summary"], name="summary")

    def _assistant(self, id: str, message: dict[str, Any]) -> Iterator[st.Step]:
        content = message.get("content")
        blocks = [text_block(content)] if isinstance(content, str) else dicts_in(content)
        stop = text_in(message, "stopReason")
        usage, cost = _usage(as_dict(message.get("usage")))
        said: list[dict[str, Value]] = []
        asks: list[st.Step] = []
        for number, block in enumerate(blocks):
            if block.get("type") != "toolCall":
                said.append(_block(block))
                continue
            call, tool = text_in(block, "id") or f"{id}-{number}", text_in(block, "name") or "unknown"
            arguments = block.get("arguments")
            self._inputs[call] = tool, arguments
            said.append(call_block(call, tool))
            asks.append(st.CallStep(call, tool, arguments, effect_of(tool, arguments), group=id))
        yield st.ReplyStep(
            id,
            said,
            model=text_in(message, "model"),
            usage=usage,
            cost_micros=cost,
            stop_reason=stop,
            is_last=stop in ("stop", "length"),
        )
        yield from asks
        if isinstance(message.get("errorMessage"), str):
            yield st.MessageStep("system", message["errorMessage"], name="error")
        if stop == "aborted":
            yield st.TurnEndStep("interrupted")

    def _result(self, message: dict[str, Any]) -> st.ResultStep:
        call = text_in(message, "toolCallId")
        output = _content(message.get("content"))
        text = as_text(output)
        outcome = _failure(text) if message.get("isError") is True else "succeeded"
        tool, value = self._inputs.pop(call, ("", None))
        details = as_dict(message.get("details"))
        files = tuple(self._changes(tool, value, details)) if outcome == "succeeded" else ()
        error = "" if outcome == "succeeded" else text[: st.ERROR_MAX]
        return st.ResultStep(call, output, outcome, error, files)

    def _changes(self, tool: str, given: Value, details: Any) -> Iterator[FileChanged]:
        path = given.get("path") or given.get("file_path") if isinstance(given, dict) else None
        if tool not in ("write", "edit") or not isinstance(path, str) or not path:
            return
        before = self._files.text(path)
        if tool == "write":
            after = given.get("content") if isinstance(given.get("content"), str) else None
            yield file_change(path, before=before, after=after)
        else:
            edits = given["edits"] if isinstance(given.get("edits"), list) else [given]
            pairs = [
                (e["oldText"], e["newText"])
                for e in edits
                if isinstance(e, dict) and isinstance(e.get("oldText"), str) and isinstance(e.get("newText"), str)
            ]
            after = before
            for old, new in pairs:
                after = replace_text(after, old, new) if after is not None else None
            diff = details.get("diff")
            lines = diff_counts(diff) if isinstance(diff, str) else edited_lines(pairs)
            yield file_change(path, before=before, after=after, lines=None if after is not None else lines)
        self._files.track(path, after)


def _failure(text: str) -> st.Outcome:
    if _DENIED.search(text[:400]):
        return "denied"
    if _STOPPED.match(text[-400:]):
        return "interrupted"
    return "timed_out" if _TIMED_OUT.search(text[-400:]) else "failed"


def _content(content: Any) -> Value:
    """Content as a string if it is only text. Images become blocks that can be stored separately."""
    if not isinstance(content, list):
        return content
    return join_texts([_block(b) if isinstance(b, dict) else b for b in content])


def _block(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("type") == "image" and isinstance(block.get("data"), str):
        return image_block(text_in(block, "mimeType"), block["data"])
    return block


def _usage(data: dict[str, Any]) -> tuple[Usage, int]:
    usage = read_usage(data, input="input", output="output", cache_read="cacheRead", cache_write="cacheWrite")
    return usage, micros(as_dict(data.get("cost")).get("total"))
