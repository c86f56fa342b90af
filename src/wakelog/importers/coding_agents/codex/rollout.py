"""Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, or `.jsonl.zst` for old sessions.

Each line is `{timestamp, type, payload}`. A `response_item` is what the model read or said. An `event_msg` shows most
of that again, for the screen. The items are imported; of the events only what they alone know: which message a user
wrote, tokens, ends of turns, exit codes. One reply of the model is several items, up to the result of its first call.

A fork, and a sub-agent that starts with its parent's history, repeats that history at its start. It is kept as records
without events: the parent's session has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.coding_agents.codex.calls import (
    arguments_of,
    call_of,
    details_of,
    patch_of,
    plain_content,
    result_of,
)
from wakelog.importers.coding_agents.codex.forks import ReplayedHistory
from wakelog.importers.coding_agents.codex.patch_envelope import PatchedFiles
from wakelog.importers.coding_agents.codex.prompts import PromptQueue
from wakelog.importers.coding_agents.codex.usage import TokenCount
from wakelog.importers.common.amounts import usage_sum
from wakelog.importers.common.chat import blocks_text, call_block, text_block, thinking_block
from wakelog.importers.common.file_changes import is_inside
from wakelog.importers.source.files import (
    JsonLine,
    RecordIds,
    Sample,
    digest,
    files_in,
    json_lines,
    line_records,
    moved_folders,
)
from wakelog.importers.source.timestamps import microseconds
from wakelog.importers.steps import Outcome, ResultStep, ReturnStep
from wakelog.model.json_fields import as_count, as_dict, as_list, dicts_in, text_in, without_fields
from wakelog.model.usage import Usage
from wakelog.model.values import Value

NAME = "codex-rollout"
PROGRAM = "exec"
"""The tool that runs a program of the model, which makes calls of its own."""
TITLE = "Codex"
_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_ITEMS = frozenset({"message", "reasoning", "function_call", "function_call_output", "local_shell_call"})
_HELD = frozenset({"content", "summary", "name", "arguments", "input", "output", "call_id", "action"})
_FOLDERS = ("sessions", "archived_sessions")
_READ_ROLES = ("user", "developer", "system")
_ROLLOUT = re.compile(r"rollout-[\dT-]+?-([0-9a-f]{8}-[0-9a-f-]{27})")


def find_in_home(home: Path) -> Iterator[Path]:
    folders = [home / ".codex", *moved_folders(home, "CODEX_HOME")]
    paths = list(files_in(folders, *(f"{each}/**/rollout-*.jsonl{end}" for each in _FOLDERS for end in ("", ".zst"))))
    plain = set(paths)
    return (path for path in paths if path.suffix != ".zst" or path.with_suffix("") not in plain)


def recognises(sample: Sample) -> bool:
    for line in sample.lines:
        if text_in(line, "type") in _TYPES and isinstance(line.get("payload"), dict):
            return True
        if line.get("record_type") == "state" or {"id", "timestamp", "instructions"} <= line.keys():
            return True
    return False


def transcripts(path: Path) -> Iterator[st.Transcript]:
    meta: dict[str, Any] = {}
    for line in json_lines(path):
        kind, payload = _unwrap(line.value or {})
        if kind == "session_meta":
            meta = payload
        if meta or line.number > 100:
            break
    match = _ROLLOUT.search(path.name)
    origin = text_in(meta, "id") or (match[1] if match else path.name.split(".")[0])
    forked, parent = text_in(meta, "forked_from_id"), _parent(meta)
    labels = {
        "project": text_in(meta, "cwd"),
        "branch": text_in(as_dict(meta.get("git")), "branch"),
        "agent_version": text_in(meta, "cli_version"),
        "forked_from": forked,
    }
    head = st.TranscriptHead(origin, "codex", labels=labels, parent=parent)
    is_mirrored = bool(meta.get("cli_version"))
    yield st.Transcript(head, lambda: _Reader(origin, labels["project"], is_mirrored=is_mirrored).records(path))


class _Reader:
    def __init__(self, origin: str, folder: str, *, is_mirrored: bool) -> None:
        self._origin = origin
        self._folder = self._project = folder
        self._ids, self._call_ids = RecordIds(), RecordIds()
        self._prompts = PromptQueue(is_mirrored=is_mirrored)
        self._tokens = TokenCount()
        self._files = PatchedFiles()
        self._subagents = StartedSubagents()
        self._calls: dict[str, tuple[str, str, str, str]] = {}
        """Calls without a result, by the tool's id: id here, tool, patch, folder."""
        self._answered: set[str] = set()
        self._ran = ""
        """The last program of the model that ran in this turn."""
        self._details: dict[str, dict[str, Any]] = {}
        self._unmatched_texts: list[str] = []
        """Text that was shown, but did not come as an item yet."""
        self._model = self._turn = self._prompted = ""
        self._reply, self._is_new_reply, self._usage = 0, True, Usage()
        self._before_prompts: list[str] = []
        self._record_id = ""
        self._context: dict[str, Any] = {}
        self._metadata: Value = None
        self._replay = ReplayedHistory(origin)

    def records(self, path: Path) -> Iterator[tuple[st.SourceRecord, int]]:
        return line_records(json_lines(path), self._ids, self._record)

    def _record(self, line: JsonLine) -> st.SourceRecord:
        value: dict[str, Any] = line.value
        before, self._record_id = self._record_id, self._ids.unique(digest(line.raw))
        kind, payload = _unwrap(value)
        at = microseconds(value.get("timestamp"))
        if self._replay.covers(kind, payload, at):
            if payload.get("type") == "token_count":
                self._tokens.count(payload.get("info"), is_replayed=True)
            return st.SourceRecord(self._record_id, (), at, line.whole)
        steps = [*self._replay.note(), *self._steps(kind, payload)]
        if any(isinstance(step, st.PromptStep) for step in steps):
            self._before_prompts.append(before)
        return st.SourceRecord(self._record_id, tuple(steps), at, self._rest(line, kind, payload, bool(steps)))

    def _rest(self, line: JsonLine, kind: str, payload: dict[str, Any], has_steps: bool) -> Value | msgspec.Raw:
        if kind == "turn_context":
            changed = {k: v for k, v in payload.items() if k not in self._context or self._context[k] != v}
            self._context = payload
            return line.value | {"payload": changed}
        if kind != "response_item" or not has_steps or payload.get("role") in _READ_ROLES:
            return line.whole
        rest: dict[str, Any] = without_fields(payload, _HELD)
        if self._metadata is not None:
            rest["metadata"], self._metadata = self._metadata, None
        return {"type": kind, "payload": rest}

    def _steps(self, kind: str, payload: dict[str, Any]) -> Iterator[st.Step]:
        match kind:
            case "response_item":
                yield from self._item(payload)
            case "event_msg":
                yield from self._event(payload)
            case "turn_context":
                self._turn = text_in(payload, "turn_id") or self._turn
                self._model = text_in(payload, "model") or self._model
                folder = text_in(payload, "cwd")
                if folder and folder != self._folder:
                    is_same = is_inside(folder, self._project)
                    self._folder = folder
                    if not is_same:
                        self._project = folder
                        yield st.LabelsStep({"project": folder})
            case "compacted":
                yield from self._prompts.settle(self._turn)
                self._is_new_reply = True
                yield st.CompactionStep(_summary(payload))
            case "token_usage_record":
                yield from self._used(self._tokens.record(payload.get("usage")))

    # What the model read and said

    def _item(self, item: dict[str, Any]) -> Iterator[st.Step]:
        kind = text_in(item, "type") or ("message" if "role" in item else "")
        role = text_in(item, "role")
        if kind == "message" and role in _READ_ROLES:
            yield from self._prompts.add(role, item.get("content"))
            yield from self._subagents.told(blocks_text(plain_content(item.get("content"))))
            return
        yield from self._prompts.settle(self._turn)
        if kind == "message":
            text = blocks_text(item.get("content"))
            if self._unmatched_texts:
                self._unmatched_texts.remove(text if text in self._unmatched_texts else self._unmatched_texts[0])
            yield self._say(text_block(text))
        elif kind == "agent_message":
            if self._turn and self._turn != self._prompted:  # another agent, not a user, gave the task
                self._prompted = self._turn
                yield st.PromptStep(None, id=self._turn)
            yield st.MessageStep("user", plain_content(item.get("content")), name="agent", trust="unverified")
        elif kind == "reasoning":
            thought = "\n\n".join(t for t in (blocks_text(item.get("summary")), blocks_text(item.get("content"))) if t)
            yield self._say(*([thinking_block(thought)] if thought else []))
        elif kind in _CALLS:
            yield from self._call(kind, item)
        elif kind in _RESULTS:
            yield from self._call_result(item)

    def _say(self, *blocks: dict[str, Value]) -> st.ReplyStep:
        if self._is_new_reply:
            self._reply, self._is_new_reply, self._usage = self._reply + 1, False, Usage()
        return st.ReplyStep(f"reply-{self._reply}", list(blocks), model=self._model, usage=self._usage)

    def _call(self, kind: str, item: dict[str, Any]) -> Iterator[st.Step]:
        given_id = text_in(item, "call_id") or text_in(item, "id") or f"call-{self._record_id}"
        tool = text_in(item, "name") or _CALLS[kind]
        space = text_in(item, "namespace")
        value = arguments_of(next((item[k] for k in ("arguments", "input", "action") if item.get(k) is not None), None))
        yield from self._asked(given_id, f"{space}.{tool}" if space else tool, value)
        if kind in _DONE_AT_ONCE:
            outcome: st.Outcome = "failed" if item.get("status") == "failed" else "succeeded"
            yield self._match_result(given_id, st.ResultStep("", item.get("result"), outcome))

    def _asked(self, given_id: str, tool: str, given: Value, inside: str = "") -> Iterator[st.Step]:
        id = self._call_ids.unique(given_id)
        yield self._say(call_block(id, tool)) if not inside else self._say()
        folder = text_in(given, "workdir") if isinstance(given, dict) else ""
        self._calls[given_id] = id, tool, patch_of(tool, given), folder or self._folder
        yield call_of(id, tool, given, f"reply-{self._reply}", inside)

    def _call_result(self, item: dict[str, Any]) -> Iterator[st.Step]:
        given_id = text_in(item, "call_id") or text_in(item, "id")
        tool = self._calls[given_id][1] if given_id in self._calls else "unknown"
        output = item.get("output", item.get("tools"))
        result, self._metadata = result_of(given_id, output, self._details.pop(given_id, {}), tool)
        self._is_new_reply = True
        yield self._match_result(given_id, result)

    def _match_result(self, given_id: str, result: st.ResultStep) -> st.ResultStep:
        id, tool, patch, folder = self._calls.pop(given_id, (given_id or f"call-{self._record_id}", "", "", ""))
        self._answered.add(given_id)
        self._ran = id if tool == PROGRAM else self._ran
        files = self._files.apply(patch, folder) if patch and result.outcome == "succeeded" else ()
        return self._subagents.note(msgspec.structs.replace(result, id=id, files=files))

    # What only the events know

    def _event(self, event: dict[str, Any]) -> Iterator[st.Step]:
        match event.get("type"):
            case "user_message":
                images = [{"image_url": url} for url in as_list(event.get("images"))]
                yield from self._user_message(event.get("message"), images)
            case "agent_message" if isinstance(event.get("message"), str):
                self._unmatched_texts.append(event["message"])
            case "token_count":
                yield from self._used(self._tokens.count(event.get("info")))
            case "task_started" | "turn_started":
                self._turn = text_in(event, "turn_id") or self._turn
            case "task_complete" | "turn_complete":
                yield from self._prompts.settle(self._turn)
                yield from self._say_unmatched_texts()
                error = as_dict(event.get("error"))
                yield st.TurnEndStep("failed", text_in(error, "message")) if error else st.TurnEndStep()
            case "turn_aborted":
                yield from self._prompts.settle(self._turn)
                yield from self._say_unmatched_texts()
                self._is_new_reply = True
                yield st.TurnEndStep("interrupted")
            case "thread_rolled_back":
                yield from self._roll_back(event.get("num_turns"))
            case "thread_name_updated" if isinstance(event.get("thread_name"), str):
                yield st.LabelsStep({"title": event["thread_name"][:200]})
            case "error" | "stream_error" if isinstance(event.get("message"), str):
                yield st.MessageStep("system", event["message"], name="error")
            case "patch_apply_end" if self._is_unknown(text_in(event, "call_id")):
                yield from self._patched(text_in(event, "call_id"), event)
            case "exec_command_end" | "mcp_tool_call_end" | "patch_apply_end":
                self._details[text_in(event, "call_id")] = details_of(event)
            case "item_completed" if isinstance(event.get("item"), dict):
                yield from self._completed(event["item"])

    def _user_message(self, message: Any, images: list[Any]) -> Iterator[st.Step]:
        yield from self._say_unmatched_texts()
        self._ran = ""
        content = [{"text": message}, *images] if images else message
        is_queued = bool(self._turn) and self._turn == self._prompted
        yield from self._prompts.confirm(content, self._turn, is_queued=is_queued)
        self._prompted = self._turn
        self._is_new_reply = True

    def _say_unmatched_texts(self) -> Iterator[st.Step]:
        """Text that was shown, but never came as an item."""
        for text in self._unmatched_texts:
            yield self._say(text_block(text))
        self._unmatched_texts.clear()

    def _used(self, usage: Usage) -> Iterator[st.Step]:
        if usage.is_known:
            # A usage that comes before the reply's items belongs to that reply, and is reported again with them.
            self._say()
            self._usage = usage_sum(self._usage, usage)
            yield self._say()

    def _completed(self, item: dict[str, Any]) -> Iterator[st.Step]:
        given_id = text_in(item, "id")
        match str(item.get("type")):
            case "UserMessage":
                blocks = dicts_in(item.get("content"))
                yield from self._user_message(blocks_text(blocks), [b for b in blocks if "image_url" in b])
            case "CommandExecution" | "McpToolCall" | "FileChange" if given_id in self._calls:
                self._details[given_id] = details_of(item)
            # What a program of the model did has no item of its own.
            case "CommandExecution" if self._is_unknown(given_id):
                data = {"command": item.get("command"), "workdir": item.get("cwd")}
                yield from self._asked(given_id, "exec_command", data, self._program())
                result, _ = result_of(given_id, item.get("aggregated_output"), details_of(item), "exec_command")
                yield self._match_result(given_id, result)
            case "FileChange" if self._is_unknown(given_id):
                yield from self._patched(given_id, item)

    def _is_unknown(self, given_id: str) -> bool:
        return bool(given_id) and given_id not in self._calls and given_id not in self._answered

    def _program(self) -> str:
        """The call that runs a program of the model, or ran it last."""
        return next(reversed(self._calls.values()), ("",))[0] or self._ran

    def _patched(self, given_id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        changes = as_dict(event.get("changes"))
        data = {path: text_in(as_dict(change), "type") for path, change in changes.items()}
        yield from self._asked(given_id, "apply_patch", {"changes": data}, self._program())
        result, _ = result_of(given_id, event.get("stdout") or event.get("stderr"), details_of(event), "apply_patch")
        result = self._match_result(given_id, result)
        files = self._files.apply_changes(changes, self._folder) if result.outcome == "succeeded" else ()
        yield msgspec.structs.replace(result, files=files)

    def _roll_back(self, turns: Any) -> Iterator[st.Step]:
        count = as_count(turns)
        if 0 < count < len(self._before_prompts):
            to = self._before_prompts[-count]
            del self._before_prompts[-count:]
            yield st.RewindStep(to)
        elif count:
            yield st.MessageStep("system", "The user took back every turn so far.", name="rollback")


_CALLS = {
    "function_call": "unknown",
    "custom_tool_call": "unknown",
    "local_shell_call": "local_shell",
    "tool_search_call": "tool_search",
    "web_search_call": "web_search",
    "image_generation_call": "image_generation",
}
_DONE_AT_ONCE = ("web_search_call", "image_generation_call")
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})


def _unwrap(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Type and content of a line. The oldest versions wrote bare items after a line about the session."""
    payload = value.get("payload")
    if isinstance(payload, dict):
        return text_in(value, "type"), payload
    if text_in(value, "type") in _ITEMS:
        return "response_item", value
    if "instructions" in value and "id" in value:
        return "session_meta", value
    return text_in(value, "type"), {}


def _parent(meta: dict[str, Any]) -> str:
    """The thread that started this one as a sub-agent."""
    spawn = as_dict(as_dict(meta.get("source")).get("subagent")).get("thread_spawn")
    return text_in(spawn if isinstance(spawn, dict) else meta, "parent_thread_id")


def _summary(payload: dict[str, Any]) -> Value:
    """The summary that replaces the history, or the last message of the new history if there is no separate summary."""
    if isinstance(payload.get("message"), str) and payload["message"].strip():
        return payload["message"]
    texts = [blocks_text(item.get("content")) for item in dicts_in(payload.get("replacement_history"))]
    return next((t for t in reversed(texts) if t), "The summary is not readable in the transcript.")


_NOTICE = re.compile(r"\s*<subagent_notification>\s*(\{.*\})\s*</subagent_notification>\s*$", re.DOTALL)
_ENDS: dict[str, Outcome] = {
    "completed": "succeeded",
    "errored": "failed",
    "interrupted": "interrupted",
    "shutdown": "cancelled",
}


class StartedSubagents:
    """Those that have not been told to have stopped."""

    def __init__(self) -> None:
        self._running: set[str] = set()

    def note(self, result: ResultStep) -> ResultStep:
        """Notes the sub-agent that a call started, if it did."""
        if result.child:
            self._running.add(result.child)
        return result

    def told(self, text: str) -> Iterator[ReturnStep]:
        """The end of a sub-agent, if this is the notice of one."""
        notice = _NOTICE.match(text)
        fields = as_dict(arguments_of(notice[1])) if notice else {}
        child, status = text_in(fields, "agent_path"), fields.get("status")
        name = status if isinstance(status, str) else next(iter(as_dict(status)), "")
        if child in self._running and name in _ENDS:
            self._running.remove(child)
            yield ReturnStep(child, _ENDS[name], text_in(as_dict(status), name) or None)
