"""The output of `codex exec --json`: one event per line, of a thread that ran without a user.

`thread.started`, then for each turn `turn.started`, its items (`item.started`, `item.updated`, `item.completed`) and
`turn.completed` with the usage. There are no times. The prompt is missing too: it was on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.coding_agents.codex.calls import call_of, details_of, plain_content, result_of
from wakelog.importers.coding_agents.codex.usage import usage_of
from wakelog.importers.common.chat import call_block, text_block, thinking_block
from wakelog.importers.common.file_changes import file_change
from wakelog.importers.source.files import JsonLine, RecordIds, Sample, digest, home_files, json_lines, line_records
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_text, dicts_in, text_in, without_fields
from wakelog.model.usage import Usage
from wakelog.model.values import Value

NAME = "codex-exec-json"
TITLE = "Codex (exec --json)"
find_in_home = home_files()
PROMPT = "(the prompt is not in the output of codex exec --json)"
_TYPES = frozenset(
    {
        *("thread.started", "turn.started", "turn.completed", "turn.failed"),
        *("item.started", "item.updated", "item.completed"),
    }
)
_CALLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"})
_KINDS = {"add": "created", "delete": "deleted", "update": "modified"}


def recognises(sample: Sample) -> bool:
    return any(text_in(line, "type") in _TYPES for line in sample.lines)


def transcripts(path: Path) -> Iterator[st.Transcript]:
    """One transcript per thread: a file may hold the output of several runs."""
    names = [name for name in dict.fromkeys(thread for _, thread in _with_threads(path)) if name] or [""]
    for name in names:
        # The thread also has a rollout, which is a separate session.
        head = st.TranscriptHead(f"exec/{name or path.name.split('.')[0]}", "codex")
        yield st.Transcript(head, partial(_records, path, name, takes_unnamed=name == names[0]))


def _records(path: Path, thread: str, *, takes_unnamed: bool) -> Iterator[tuple[st.SourceRecord, int]]:
    wanted = (thread, "") if takes_unnamed else (thread,)
    reader = _Reader()
    return line_records((line for line, name in _with_threads(path) if name in wanted), reader.ids, reader.record)


def _with_threads(path: Path) -> Iterator[tuple[JsonLine, str]]:
    thread = ""
    for line in json_lines(path):
        value = line.value or {}
        if value.get("type") == "thread.started":
            thread = text_in(value, "thread_id") or thread
        yield line, thread


class _Reader:
    def __init__(self) -> None:
        self.ids, self._call_ids = RecordIds(), RecordIds()
        self._open: dict[str, str] = {}
        self._reply, self._is_new_reply = 0, True

    def record(self, line: JsonLine) -> st.SourceRecord:
        id = self.ids.unique(digest(line.raw))
        value: dict[str, Any] = line.value
        steps = tuple(self._steps(value))
        item = value.get("item")
        if steps and isinstance(item, dict):
            held = ("text", "aggregated_output", "result")
            value = value | {"item": without_fields(item, held)}
        return st.SourceRecord(id, steps, rest=value if steps else line.whole)

    def _steps(self, value: dict[str, Any]) -> Iterator[st.Step]:
        item = value.get("item")
        match value.get("type"):
            case "turn.started":
                self._is_new_reply = True
                yield st.PromptStep(PROMPT)
            case "turn.completed":
                yield self._say(usage=usage_of(value.get("usage")))
                yield st.TurnEndStep()
            case "turn.failed":
                yield st.TurnEndStep("failed", _message(value.get("error")) or "the turn failed")
            case "error":
                yield st.MessageStep("system", _message(value), name="error")
            case "item.started" if isinstance(item, dict) and text_in(item, "type") in _CALLS:
                yield from self._call(item)
            case "item.completed" if isinstance(item, dict):
                yield from self._completed(item)

    def _say(self, *blocks: dict[str, Value], usage: Usage | None = None) -> st.ReplyStep:
        if self._is_new_reply:
            self._reply, self._is_new_reply = self._reply + 1, False
        return st.ReplyStep(f"reply-{self._reply}", list(blocks), usage=usage or Usage())

    def _completed(self, item: dict[str, Any]) -> Iterator[st.Step]:
        text = text_in(item, "text")
        match text_in(item, "type"):
            case "agent_message":
                yield self._say(text_block(text))
            case "reasoning":
                yield self._say(thinking_block(text))
            case "error":
                yield st.MessageStep("system", _message(item), name="error")
            case kind if kind in _CALLS:
                if text_in(item, "id") not in self._open:
                    yield from self._call(item)
                yield self._result(item)

    def _call(self, item: dict[str, Any]) -> Iterator[st.Step]:
        given_id = text_in(item, "id")
        self._open[given_id] = id = self._call_ids.unique(given_id or "item")
        tool, value = _tool(item)
        yield self._say(call_block(id, tool))
        yield call_of(id, tool, value, f"reply-{self._reply}")

    def _result(self, item: dict[str, Any]) -> st.ResultStep:
        id = self._open.pop(text_in(item, "id"))
        tool, _ = _tool(item)
        output = item.get("aggregated_output", item.get("result"))
        if isinstance(output, dict) and "content" in output:
            output = plain_content(output["content"])
        result, _ = result_of(id, output, details_of(item), tool)
        files = tuple(_changes(item.get("changes"))) if result.outcome == "succeeded" else ()
        self._is_new_reply = True
        error = result.error or _message(item.get("error")) if result.outcome != "succeeded" else ""
        return st.ResultStep(id, result.output, result.outcome, error, files, result.cost)


def _tool(item: dict[str, Any]) -> tuple[str, Value]:
    match item.get("type"):
        case "command_execution":
            return "exec_command", {"command": item.get("command")}
        case "file_change":
            return "apply_patch", {"changes": item.get("changes")}
        case "web_search":
            return "web_search", {"query": item.get("query")}
        case "mcp_tool_call":
            return f"{text_in(item, 'server')}.{text_in(item, 'tool')}".strip("."), item.get("arguments")
    return text_in(item, "tool") or text_in(item, "type") or "unknown", item.get("arguments")


def _changes(changes: Any) -> Iterator[FileChanged]:
    for change in dicts_in(changes):
        if path := text_in(change, "path"):
            kind: Any = _KINDS.get(text_in(change, "kind"), "modified")
            yield file_change(path, change=kind)


def _message(value: Any) -> str:
    found = value.get("message") if isinstance(value, dict) else value
    return as_text(found)
