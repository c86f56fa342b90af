"""GitHub Copilot CLI: `~/.copilot/session-state/<session>/events.jsonl`, one event per line.

Every event has a type, an id, a time and its data. The usage of a reply is an event of its own, which comes before the
reply or after it; both name the call of the model's API. Events of a sub-agent carry its id. Most types (permissions,
hooks, settings, telemetry) add nothing; they are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import CAMEL_CASE, edited_lines, read_whole_usage
from wakelog.importers.common.chat import call_block, text_block, thinking_block
from wakelog.importers.common.file_changes import TrackedFiles, diff_counts, file_change, replace_text
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import JsonLine, RecordIds, Sample, digest, home_files, json_lines, line_records
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, dicts_in, text_in, without_fields
from wakelog.model.usage import Usage
from wakelog.model.values import Value

NAME = "copilot-cli"
TITLE = "GitHub Copilot CLI"
find_in_home = home_files(".copilot/session-state/*/events.jsonl", ".copilot/session-state/*.jsonl")
_HELD = frozenset({"content", "toolRequests", "result", "arguments", "reasoningText", "summaryContent", "message"})
"""Fields of the data that are in the steps."""
_DENIED = ("denied", "rejected")
_CHANGES = {"create": "created", "delete": "deleted"}


def recognises(sample: Sample) -> bool:
    for line in sample.lines:
        data = as_dict(line.get("data"))
        if line.get("type") == "session.start" and "sessionId" in data and "copilotVersion" in data:
            return True
    return False


def transcripts(path: Path) -> Iterator[st.Transcript]:
    lines = (line.value for line in json_lines(path) if line.value and line.value.get("type") == "session.start")
    start = as_dict(as_dict(next(lines, None)).get("data"))
    origin = text_in(start, "sessionId") or (path.parent.name if path.name == "events.jsonl" else path.stem)
    labels = _place(as_dict(start.get("context"))) | {"agent_version": text_in(start, "copilotVersion")}
    head = st.TranscriptHead(origin, NAME, labels=labels)
    yield st.Transcript(head, lambda: _Reader().records(path))


class _Reader:
    def __init__(self) -> None:
        self._ids = RecordIds()
        self._usage: dict[str, Usage] = {}
        """Usage that came before its reply, by the call of the model's API."""
        self._replies: dict[str, str] = {}
        """Replies by the call of the model's API."""
        self._inputs: dict[str, tuple[str, Value]] = {}
        self._before: dict[str, str] = {}
        """The record before each event."""
        self._last = ""
        self._files = TrackedFiles()

    def records(self, path: Path) -> Iterator[tuple[st.SourceRecord, int]]:
        return line_records(json_lines(path), self._ids, self._record)

    def _record(self, line: JsonLine) -> st.SourceRecord:
        value: dict[str, Any] = line.value
        own = text_in(value, "id") or digest(line.raw)
        id = self._ids.unique(own)
        data = as_dict(value.get("data"))
        steps = tuple(self._steps(text_in(value, "type"), own, data))
        self._before[own], self._last = self._last, id
        rest = value | {"data": without_fields(data, _HELD)} if steps else line.whole
        return st.SourceRecord(id, steps, microseconds(value.get("timestamp")), rest, lane=text_in(value, "agentId"))

    def _steps(self, kind: str, id: str, data: dict[str, Any]) -> Iterator[st.Step]:
        content = text_in(data, "content")
        match kind:
            case "user.message" if content:
                # Others than the user send such messages too: a skill, another agent, a loop that goes on by itself.
                if data.get("isAutopilotContinuation") is True or text_in(data, "source") not in ("", "user"):
                    yield st.MessageStep("user", content, name="context", trust="unverified")
                else:
                    yield st.PromptStep(content, id=id)
            case "system.message" if content:
                yield st.MessageStep(text_in(data, "role") or "system", content, name="context")
            case "assistant.message":
                yield from self._reply(id, data)
            case "session.usage_record" | "assistant.usage":
                yield from self._used(as_dict(data.get("usage")) or data)
            case "tool.execution_complete":
                yield self._result(data)
            case "abort":
                yield st.TurnEndStep("interrupted", text_in(data, "reason"))
            case "session.error" if text_in(data, "message"):
                yield st.MessageStep("system", text_in(data, "message"), name="error")
            case "session.compaction_complete" if text_in(data, "summaryContent"):
                yield st.CompactionStep(data["summaryContent"])
            case "session.snapshot_rewind" if self._before.get(text_in(data, "upToEventId")):
                yield st.RewindStep(self._before[data["upToEventId"]])
            case "session.model_change" if text_in(data, "newModel"):
                yield st.LabelsStep({"model": data["newModel"]})
            case "session.title_changed" if text_in(data, "title"):
                yield st.LabelsStep({"title": data["title"][:200]})
            case "session.context_changed" if _place(data):
                yield st.LabelsStep(_place(data))

    def _reply(self, id: str, data: dict[str, Any]) -> Iterator[st.Step]:
        reply, called = text_in(data, "messageId") or id, text_in(data, "apiCallId")
        said: list[dict[str, Value]] = []
        if thought := text_in(data, "reasoningText"):
            said.append(thinking_block(thought))
        if text := text_in(data, "content"):
            said.append(text_block(text))
        asks = []
        for number, request in enumerate(dicts_in(data.get("toolRequests"))):
            call, tool = text_in(request, "toolCallId") or f"{reply}-{number}", text_in(request, "name") or "unknown"
            arguments = request.get("arguments")
            self._inputs[call] = tool, arguments
            said.append(call_block(call, tool))
            asks.append(st.CallStep(call, tool, arguments, effect_of(tool, arguments), group=reply))
        if called:
            self._replies[called] = reply
        usage = self._usage.pop(called, Usage())
        # A reply may be split into several messages; only the last one can end the turn.
        place, count = data.get("chunkIndex"), data.get("chunkCount")
        is_whole = not (isinstance(place, int) and isinstance(count, int)) or place == count - 1
        model = text_in(data, "model")
        yield st.ReplyStep(reply, said, model=model, usage=usage, is_last=is_whole and not asks)
        yield from asks

    def _used(self, data: dict[str, Any]) -> Iterator[st.Step]:
        called, model = text_in(data, "apiCallId"), text_in(data, "model")
        usage = read_whole_usage(data, **CAMEL_CASE)
        if called in self._replies:
            yield st.ReplyStep(self._replies[called], [], model=model, usage=usage)
        elif called:
            self._usage[called] = usage
        elif usage.is_known:
            yield st.CostStep(model, usage)

    def _result(self, data: dict[str, Any]) -> st.ResultStep:
        call = text_in(data, "toolCallId")
        tool, value = self._inputs.pop(call, ("", None))
        result, error = as_dict(data.get("result")), as_dict(data.get("error"))
        text = text_in(result, "content") or text_in(error, "message")
        outcome = _outcome(data, error)
        files = tuple(self._changes(tool, as_dict(value), data, result)) if outcome == "succeeded" else ()
        failed = "" if outcome == "succeeded" else text[: st.ERROR_MAX]
        return st.ResultStep(call, text, outcome, failed, files)

    def _changes(
        self, tool: str, given: dict[str, Any], data: dict[str, Any], result: dict[str, Any]
    ) -> Iterator[FileChanged]:
        diff = text_in(result, "detailedContent")
        for edit in dicts_in(data.get("fileEdits")):
            path, change = text_in(edit, "path"), _CHANGES.get(text_in(edit, "kind"), "modified")
            if not path:
                continue
            before = self._files.text(path)
            after, lines = None, diff_counts(diff) if diff else None
            if tool == "create":
                after = text_in(given, "file_text")
            elif tool == "edit" and path == text_in(given, "path"):
                pair = text_in(given, "old_str"), text_in(given, "new_str")
                after = replace_text(before, *pair) if before is not None else None
                lines = lines or edited_lines([pair])
            self._files.track(path, after)
            is_known = after is not None and (before is not None or change == "created")
            yield file_change(
                path,
                before=before,
                after=after,
                change="created" if change == "created" else "deleted" if change == "deleted" else "modified",
                lines=None if is_known else lines,
            )


def _outcome(data: dict[str, Any], error: dict[str, Any]) -> st.Outcome:
    if data.get("success") is False:
        return "denied" if text_in(error, "code") in _DENIED else "failed"
    # The tool reports success whenever the command ran. The exit code says how it ended.
    exit_code = as_dict(data.get("shellExecution")).get("exitCode")
    return "failed" if isinstance(exit_code, int) and exit_code != 0 else "succeeded"


def _place(context: dict[str, Any]) -> dict[str, str]:
    labels = {"project": text_in(context, "cwd"), "branch": text_in(context, "branch")}
    return {name: value for name, value in labels.items() if value}
