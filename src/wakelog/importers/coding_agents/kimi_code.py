"""Kimi Code: `~/.kimi-code/sessions/<folder>/<session>/agents/<agent>/wire.jsonl`, one record per line.

A model's reply is a step: its text, thinking and calls are lines of their own, as are the results and the usage. The
lines `agent.message.appended` repeat them at the end of a turn and are kept as they are. The agent `main` is the
session; the others are its sub-agents, each with a file of its own. `state.json` of the session has the folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import read_usage
from wakelog.importers.common.chat import call_block, join_texts, text_block, text_of, thinking_block
from wakelog.importers.common.file_changes import TrackedFiles, file_change
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import (
    JsonLine,
    RecordIds,
    Sample,
    digest,
    home_files,
    json_lines,
    line_records,
    read_beside,
)
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.events import Cost, FileChanged
from wakelog.model.json_fields import as_dict, text_in, without_fields
from wakelog.model.usage import Usage
from wakelog.model.values import Value

NAME = "kimi-code"
TITLE = "Kimi Code"
FILE, MAIN = "wire.jsonl", "main"
find_in_home = home_files(f".kimi-code/sessions/*/*/agents/*/{FILE}")
_HELD = ("message", "event", "time")
_DENIED = re.compile(r'Tool ".*" was (?:denied by|not run because the )')
_ENDS: dict[str, Literal["completed", "failed", "interrupted"]] = {"cancelled": "interrupted", "failed": "failed"}


def recognises(sample: Sample) -> bool:
    return any(line.get("type") == "metadata" and "protocol_version" in line for line in sample.lines[:1]) and (
        sample.has(b'"agentId"')
    )


def transcripts(path: Path) -> Iterator[st.Transcript]:
    agent, folder = path.resolve().parent.name, path.resolve().parents[2]
    fields = read_beside(folder / "state.json")
    session = text_in(fields, "id") or folder.name
    labels = {"project": text_in(fields, "cwd"), "title": text_in(fields, "title")[:200]}
    is_main = agent == MAIN or not fields
    head = st.TranscriptHead(
        session if is_main else f"{session}/{agent}",
        NAME,
        labels=labels,
        parent="" if is_main else session,
    )
    yield st.Transcript(head, lambda: _Reader(session, text_in(fields, "cwd")).records(path))


class _Reader:
    def __init__(self, session: str, folder: str) -> None:
        self._session, self._folder = session, folder
        self._ids = RecordIds()
        self._files = TrackedFiles()
        self._new: set[str] = set()
        """Files that did not exist before, relative to the folder."""
        self._asked: dict[str, st.CallStep] = {}
        self._children: dict[str, str] = {}
        self._step, self._model, self._usage = "", "", Usage()

    def records(self, path: Path) -> Iterator[tuple[st.SourceRecord, int]]:
        return line_records(json_lines(path), self._ids, self._record)

    def _record(self, line: JsonLine) -> st.SourceRecord:
        value: dict[str, Any] = line.value
        steps = tuple(self._steps(value))
        rest: Value | msgspec.Raw = without_fields(value, _HELD) if steps else line.whole
        return st.SourceRecord(self._ids.unique(digest(line.raw)), steps, microseconds(value.get("time")), rest)

    def _steps(self, value: dict[str, Any]) -> Iterator[st.Step]:
        match value.get("type"):
            case "context.append_message":
                yield from self._message(as_dict(value.get("message")))
            case "context.append_loop_event":
                yield from self._event(as_dict(value.get("event")))
            case "profile.bind" if text_in(value, "systemPrompt"):
                yield st.MessageStep("system", text_in(value, "systemPrompt"), name="instructions")
            case "llm.request":
                self._model = text_in(value, "model")
            case "usage.record":
                yield from self._used(value)
            case "subagent.spawned":
                child = f"{self._session}/{text_in(value, 'subagentId')}"
                self._children[text_in(value, "parentToolCallId")] = child
            case "file_history.tracked":
                if as_dict(value.get("entry")).get("key", "") is None:
                    self._new.add(text_in(value, "path"))
            case "context.apply_compaction":
                summary = value.get("summary")
                if text := text_of(summary.get("content") if isinstance(summary, dict) else summary):
                    yield st.CompactionStep(text)
            case "turn.ended":
                self._step = ""
                outcome = _ENDS.get(text_in(value, "reason"), "completed")
                yield st.TurnEndStep(outcome, "failed" if outcome == "failed" else "")

    def _message(self, message: dict[str, Any]) -> Iterator[st.Step]:
        """What the user typed starts a turn, and so does the task of a sub-agent. Kimi Code adds reminders."""
        content = join_texts(message.get("content"))
        if message.get("role") != "user" or not content:
            return
        if text_in(as_dict(message.get("origin")), "kind") == "injection":
            yield st.MessageStep("user", content, name="context")
        else:
            yield st.PromptStep(content)

    def _event(self, event: dict[str, Any]) -> Iterator[st.Step]:
        match event.get("type"):
            case "step.begin":
                self._step, self._usage = text_in(event, "uuid"), Usage()
            case "content.part":
                part = as_dict(event.get("part"))
                if text := text_in(part, "think"):
                    yield self._reply(event, thinking_block(text))
                elif text := text_in(part, "text"):
                    yield self._reply(event, text_block(text))
            case "tool.call":
                tool, args = text_in(event, "name") or "unknown", event.get("args")
                call = text_in(event, "toolCallId") or text_in(event, "uuid")
                ask = st.CallStep(call, tool, args, effect_of(tool, args), group=text_in(event, "stepUuid"))
                self._asked[call] = ask
                yield self._reply(event, call_block(call, tool))
                yield ask
            case "tool.result":
                yield from self._result(text_in(event, "toolCallId"), as_dict(event.get("result")))

    def _reply(self, event: dict[str, Any], block: dict[str, Value]) -> st.ReplyStep:
        id = text_in(event, "stepUuid") or self._step
        return st.ReplyStep(id, [block], model=self._model, usage=self._usage)

    def _used(self, value: dict[str, Any]) -> Iterator[st.Step]:
        usage, model = _usage(as_dict(value.get("usage"))), text_in(value, "model")
        if self._step and value.get("usageScope") == "turn":
            # The lines with the reply's content come after this one.
            self._usage = usage
            yield st.ReplyStep(self._step, [], model=self._model or model, usage=usage)
        else:
            yield st.CostStep(model, usage)

    def _result(self, call: str, result: dict[str, Any]) -> Iterator[st.Step]:
        ask = self._asked.pop(call, None)
        if ask is None:
            return
        output = join_texts(result.get("output"))
        is_error, took = result.get("isError") is True, result.get("durationMs")
        is_denied = is_error and _DENIED.match(text_of(output)) is not None
        yield st.ResultStep(
            call,
            output,
            "denied" if is_denied else "failed" if is_error else "succeeded",
            text_of(output)[-st.ERROR_MAX :] if is_error else "",
            () if is_error else tuple(self._changes(ask)),
            cost=Cost(duration_us=int(took * 1000)) if isinstance(took, int | float) and 0 < took < 1e9 else Cost(),
            child=self._children.pop(call, ""),
        )

    def _changes(self, ask: st.CallStep) -> Iterator[FileChanged]:
        data = as_dict(ask.input)
        path = text_in(data, "path")
        if ask.tool not in ("Write", "Edit") or not path:
            return
        if ask.tool == "Edit":
            old, new, every = text_in(data, "old_string"), text_in(data, "new_string"), data.get("replace_all")
            change = self._files.edit(path, old, new, all=every is True, folder=self._folder)
        else:
            before = self._files.text(path)
            after = data["content"] if isinstance(data.get("content"), str) else None
            if data.get("mode") == "append":
                after = before + after if before is not None and after is not None else None
            self._files.track(path, after)
            change = file_change(path, folder=self._folder, before=before, after=after)
            if before is None and change.path in self._new and after is not None:
                change = file_change(path, folder=self._folder, after=after, change="created")
        self._new.discard(change.path)
        yield change


def _usage(used: dict[str, Any]) -> Usage:
    names = {"input": "inputOther", "cache_read": "inputCacheRead", "cache_write": "inputCacheCreation"}
    return read_usage(used, **names, output="output")
