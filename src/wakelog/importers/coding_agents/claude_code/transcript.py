"""Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, one JSON object per line.

The file is a tree: each line names its parent. It grows in order of time, so it is read from top to bottom. A prompt
whose parent lies before an earlier prompt means that the user went back. One reply of the model is written as several
lines with the same message id, each repeating the usage so far. Sub-agents have their own files
(`<session>/subagents/agent-<id>.jsonl`), or are side chains in the same file.

Lines of other types (progress, snapshots, attachments …) add nothing; they are kept unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.coding_agents.claude_code.results import beyond_result, is_id, result_of
from wakelog.importers.coding_agents.claude_code.user_lines import ended_task, typed_words, written_as
from wakelog.importers.common.chat import blocks_text, text_block
from wakelog.importers.common.file_changes import is_inside
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import (
    JsonLine,
    RecordIds,
    Sample,
    digest,
    files_in,
    json_lines,
    line_records,
    moved_folders,
    read_beside,
)
from wakelog.importers.source.timestamps import microseconds
from wakelog.importers.writer.imported_records import COMMON
from wakelog.model.json_fields import as_dict, as_list, dicts_in, text_in, without_fields
from wakelog.model.late_value import LateValue
from wakelog.model.usage import Usage, usage_of
from wakelog.model.values import Value

NAME = "claude-code"
TITLE = "Claude Code"
_TYPES = frozenset({"user", "assistant", "system", "summary", "progress", "file-history-snapshot", "queue-operation"})
_AGENT_FILE = re.compile(r"agent-([0-9A-Za-z_-]+)$")
_COMMON = ("sessionId", "cwd", "version", "gitBranch", "userType", "isSidechain", "entrypoint", "slug", "agentId")
_HELD = frozenset({"uuid", "message", *_COMMON})
_MESSAGE_HELD = frozenset({"role", "model", "type", "content"})
_CONVERSATION = frozenset({st.PromptStep, st.ReplyStep, st.ResultStep})
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_RANKS = ("", *_TITLES)
"""Where a title may come from; the user's own counts most."""
_LABELS = {"cwd": "project", "gitBranch": "branch", "version": "agent_version"}


def find_in_home(home: Path) -> Iterator[Path]:
    settings = [home / ".claude", home / ".config/claude", *moved_folders(home, "CLAUDE_CONFIG_DIR")]
    # `**` does not follow links, and a project's folder may be one.
    folders = [project for each in settings for project in sorted(each.glob("projects/*/"))]
    # The journal of a workflow says which of its sub-agents ran.
    return (path for path in files_in(folders, "**/*.jsonl") if path.name != "journal.jsonl")


def recognises(sample: Sample) -> bool:
    for line in sample.lines:
        kind = text_in(line, "type")
        if kind not in _TYPES:
            continue
        if ("sessionId" in line and ("uuid" in line or "operation" in line)) or "leafUuid" in line:
            return True
        if kind == "file-history-snapshot" and "snapshot" in line:
            return True
        if kind in ("user", "assistant") and isinstance(line.get("message"), dict):
            return True
    return False


def transcripts(path: Path) -> Iterator[st.Transcript]:
    first: dict[str, Any] = {}
    for number, line in enumerate(json_lines(path)):
        value = line.value or {}
        for key in ("sessionId", "agentId", "cwd", "gitBranch", "version"):
            if isinstance(value.get(key), str):
                first.setdefault(key, value[key])
        for key in ("isSidechain", "forkedFrom"):
            if key in value:
                first.setdefault(key, value[key])
        if number > 200 or {"sessionId", "cwd", "version"} <= first.keys():
            break
    session = first["sessionId"] if is_id(first.get("sessionId")) else path.stem
    agent = _AGENT_FILE.search(path.stem)
    labels = {label: first.get(key, "") for key, label in _LABELS.items()}
    if agent and (first.get("isSidechain") or first.get("agentId")):
        above = text_in(read_beside(path.with_suffix(".meta.json")), "parentAgentId")
        parent = f"{session}/agent-{above}" if is_id(above) else session
        head = st.TranscriptHead(f"{session}/agent-{agent[1]}", NAME, labels=labels, parent=parent)
    else:
        # A session that continues in a new file repeats the old ids there. The file name tells them apart.
        own = path.stem if re.fullmatch(r"[0-9a-f-]{36}", path.stem) else session
        labels["forked_from"] = text_in(as_dict(first.get("forkedFrom")), "sessionId")
        head = st.TranscriptHead(own, NAME, labels=labels)
    folder = path.parent if head.parent else path.with_suffix("") / "subagents"
    yield st.Transcript(head, lambda: EntryReader(head, folder).records(path))


class EntryReader:
    """Reads the records of one transcript, in order."""

    def __init__(self, head: st.TranscriptHead, subagents: Path | None = None) -> None:
        """`subagents` is the folder with the transcripts of its sub-agents."""
        self._folder = subagents
        self._origin = head.origin.rpartition("/agent-")[0] if head.parent else head.origin
        self._is_agent = bool(head.parent)
        self._ids = RecordIds()
        self._parents: dict[str, str] = {}
        self._path: dict[str, int] = {}
        """The lines of the conversation, by uuid, numbered,"""
        self._last_said = 0
        """and the number of the last one that says something."""
        self._has_parents = False
        self._is_working = False
        """Whether a turn runs."""
        self._last: dict[str, Any] = {}
        """The last values of the fields that become labels."""
        self._seen_label_fields: list[Any] = []
        self._cached_usage_fields: Any = None
        self._cached_usage = Usage()
        self._lanes: dict[str, str] = {}
        self._tasks: dict[str, str] = {}
        """Calls that start a sub-agent, by their prompt,"""
        self._children: dict[str, str] = {}
        """and the side chains that started with such a prompt, by call."""
        self._started: dict[str, str] = {}
        """Sub-agents that work in the background, by task."""
        self._queued: list[str] = []
        """What was said to be typed while the agent worked."""
        self._title = ""
        """Where the title comes from."""
        self._summaries: dict[str, str] = {}
        """Summaries whose last line did not come yet."""

    def records(self, path: Path) -> Iterator[tuple[st.SourceRecord, int]]:
        return line_records(json_lines(path), self._ids, self.record)

    def record(self, line: JsonLine) -> st.SourceRecord:
        """Reads the next line."""
        value: dict[str, Any] = line.value
        uuid = value.get("uuid")
        is_named = is_id(uuid)
        id = self._ids.unique(str(uuid) if is_named else digest(line.raw))
        lane = self._lane(value)
        # A line that repeats a uuid is kept, but produces no steps.
        steps = [] if is_named and id != uuid else self._steps(value, lane)
        self._remember(value, steps)
        rest: Any = msgspec.Raw(line.raw)
        if line.is_odd:
            rest = line.text
        elif steps and value.get("type") in ("user", "assistant"):
            rest = _rest(value, steps)
        return st.SourceRecord(id, tuple(steps), microseconds(value.get("timestamp")), rest, lane)

    def _lane(self, value: dict[str, Any]) -> str:
        """The side chain that a line belongs to, named after the chain's first line."""
        if self._is_agent or value.get("isSidechain") is not True:
            return ""
        uuid, parent = str(value.get("uuid")), value.get("parentUuid")
        agent = value.get("agentId")
        lane = f"{self._origin}/agent-{agent}" if is_id(agent) else self._lanes.get(str(parent))
        if lane is None:
            lane = f"{self._origin}/side-{uuid[:8]}"
            message = value.get("message")
            words = message.get("content") if isinstance(message, dict) else None
            if isinstance(words, str) and (call := self._tasks.pop(words, "")):
                self._children[call] = lane
        self._lanes[uuid] = lane
        return lane

    def _remember(self, value: dict[str, Any], steps: list[st.Step]) -> None:
        uuid = value.get("uuid")
        if not isinstance(uuid, str):
            return
        parent = str(value.get("parentUuid") or value.get("logicalParentUuid") or "")
        self._parents[uuid] = parent
        if steps and value.get("isSidechain") is not True:
            self._has_parents = self._has_parents or bool(parent)
            self._path[uuid] = len(self._path) + 1
            if not _CONVERSATION.isdisjoint(map(type, steps)):
                self._last_said = self._path[uuid]

    def _steps(self, value: dict[str, Any], lane: str) -> list[st.Step]:
        steps: list[st.Step] = []
        if not lane:
            self._changed_labels(value, steps)
        match value.get("type"):
            case "user":
                steps += self._user(value, lane)
            case "assistant":
                steps += self._assistant(value)
            case "system" if value.get("subtype") == "turn_duration":
                steps.append(st.TurnEndStep())
            case "system" if value.get("subtype") == "local_command" and isinstance(value.get("content"), str):
                steps.append(st.MessageStep("system", value["content"], name="command"))
            case "summary" | "ai-title" | "custom-title" as kind:
                steps += self._titled(kind, text_in(value, _TITLES[kind]), text_in(value, "leafUuid"))
            case "queue-operation" if value.get("operation") == "enqueue" and isinstance(value.get("content"), str):
                steps += self._enqueued(value["content"])
            case "attachment" if isinstance(value.get("attachment"), dict):
                steps += self._attached(value, value["attachment"], lane)
        if not lane:
            if self._summaries:
                steps += self._titled("summary", self._summaries.pop(str(value.get("uuid")), ""))
            self._notice_work(steps)
        return steps

    def _titled(self, kind: str, title: str, about: str = "") -> Iterator[st.Step]:
        """A title, unless a better one is known. A summary may be of another session, whose last line it names."""
        if about and about not in self._parents:
            self._summaries[about] = title
        elif title and _RANKS.index(kind) >= _RANKS.index(self._title):
            self._title = kind
            yield st.LabelsStep({"title": title[:200]})

    def _enqueued(self, words: str) -> Iterator[st.Step]:
        """A text is put into the queue. Every prompt passes through it, but waits there only while the agent works. A
        notice comes again as a line of its own when the agent reads it."""
        if self._is_working and written_as({}, words) != "notice":
            self._queued.append(words)
            yield st.MessageStep("user", words, name="queued")

    def _attached(self, value: dict[str, Any], attached: dict[str, Any], lane: str) -> Iterator[st.Step]:
        """The agent reads a queued text in the middle of a turn. Other attachments are for the program."""
        words = attached.get("prompt")
        text = blocks_text(words)
        if attached.get("type") != "queued_command" or not (text.strip() or _has_other_than_text(words)):
            return
        if text in self._queued:
            self._queued.remove(text)
        elif written_as(attached, text) in ("notice", "meta"):
            yield from self._notice(value, words, text, lane)
        else:
            yield st.MessageStep("user", words, name="queued")

    def _notice_work(self, steps: list[st.Step]) -> None:
        for step in steps:
            if isinstance(step, st.PromptStep):
                self._is_working = True
            elif isinstance(step, st.ReplyStep):
                self._is_working = not step.is_last
            elif isinstance(step, st.TurnEndStep):
                self._is_working = False

    def _changed_labels(self, value: dict[str, Any], steps: list[st.Step]) -> None:
        fields = [value.get(key) for key in _LABELS]
        if fields == self._seen_label_fields:
            return  # as in nearly every line
        self._seen_label_fields = fields
        last = self._last
        changed: dict[str, str] = {}
        for key, label in _LABELS.items():
            given = value.get(key)
            if given != last.get(key) and isinstance(given, str) and given:
                if key == "cwd" and is_inside(given, last.get(key, "")):
                    continue  # a command changed into a folder of the project: the project is the same
                if key in last:
                    changed[label] = given
                last[key] = given
        if changed:
            steps.append(st.LabelsStep(changed))

    def _user(self, value: dict[str, Any], lane: str) -> Iterator[st.Step]:
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if value.get("isCompactSummary"):
            yield st.CompactionStep(content)
            return
        blocks = as_list(content)
        results = [b for b in blocks if _is_result(b)]
        for block in results:
            structured = value.get("toolUseResult") if len(results) == 1 else None
            folder = self._last.get("cwd") or str(value.get("cwd") or "")
            answer = result_of(block, structured, folder, self._origin, text_in(value, "toolDenialKind"))
            if not answer.child and answer.id in self._children:
                answer = msgspec.structs.replace(answer, child=self._children[answer.id])
            if answer.child and answer.is_launch:
                self._started[answer.child.rpartition("/agent-")[2]] = answer.child
            yield answer
        words: Any = [b for b in blocks if not _is_result(b)] if results else content
        text = blocks_text(words)
        if not words or not (text.strip() or _has_other_than_text(words)):
            return
        match "meta" if results else written_as(value, text):
            case "interrupt":
                yield st.MessageStep("user", words, name="interrupt")
                yield st.TurnEndStep("interrupted")
            case "notice":
                yield from self._notice(value, words, text, lane)
            case "meta":
                yield st.MessageStep("user", words, name="meta", trust="unverified")
            case "command":
                yield st.MessageStep("user", words, name="command")
            case "prompt":
                if not lane:
                    yield from self._detect_rewind(value)
                yield st.PromptStep(typed_words(words), id=_turn_id(value))

    def _notice(self, value: dict[str, Any], words: Value, text: str, lane: str) -> Iterator[st.Step]:
        """The program tells the agent something. If the agent was idle, this starts a turn that no person asked for."""
        if not self._is_working and not lane:
            yield from self._detect_rewind(value)
            yield st.PromptStep(None, id=_turn_id(value))
        yield st.MessageStep("user", words, name="notice", trust="unverified")
        yield from self._returned(text)

    def _returned(self, text: str) -> Iterator[st.Step]:
        """The sub-agent that a notice reports as ended."""
        task = ended_task(text)
        if task is not None and task.id in self._started:
            yield st.ReturnStep(self._started.pop(task.id), task.outcome, task.result or None)

    def _detect_rewind(self, value: dict[str, Any]) -> Iterator[st.Step]:
        """Detects that a prompt follows an earlier line than the last one. A prompt without a parent, in a file whose
        other lines have parents, goes back to the start."""
        parent = value.get("parentUuid")
        if parent is None and "parentUuid" in value and self._last_said and self._has_parents:
            yield st.RewindStep("")
            return
        back = self._ancestor(str(parent or ""))
        if back and self._path[back] < self._last_said:
            yield st.RewindStep(back)

    @LateValue
    def _agent_of_call(self) -> dict[str, str]:
        """The sub-agents that say which call started them, by call: its result, which names one too, may never come."""
        if self._folder is None:
            return {}
        fields = {path: read_beside(path.with_suffix(".meta.json")) for path in self._folder.glob("agent-*.jsonl")}
        return {text_in(told, "toolUseId"): f"{self._origin}/{path.stem}" for path, told in fields.items()}

    def _usage_of(self, fields: Any) -> Usage:
        """The usage of a reply. Each of its lines repeats it, so the last one is cached."""
        if fields != self._cached_usage_fields:
            self._cached_usage_fields, self._cached_usage = fields, usage_of({"usage": fields})
        return self._cached_usage

    def _ancestor(self, uuid: str) -> str:
        """The nearest ancestor that is a line of the conversation. Empty if there is none, also where parents form a
        circle."""
        passed = set()
        while uuid and uuid not in self._path:
            passed.add(uuid)
            uuid = self._parents.get(uuid, "")
            if uuid in passed:
                return ""
        return uuid

    def _assistant(self, value: dict[str, Any]) -> Iterator[st.Step]:
        message = value.get("message")
        if not isinstance(message, dict):
            return
        content = message.get("content")
        blocks = [text_block(content)] if isinstance(content, str) else dicts_in(content)
        id = str(message.get("id") or value.get("uuid") or "")
        model = str(message.get("model") or "")
        if model == "<synthetic>" or value.get("isApiErrorMessage"):
            name = "" if value.get("isApiErrorMessage") is False else "error"
            yield st.MessageStep("assistant", blocks_text(blocks), name=name)
            if value.get("isApiErrorMessage"):  # after its own retries: the agent stops here
                yield st.TurnEndStep("failed", blocks_text(blocks)[: st.ERROR_MAX])
            return
        kept = [without_fields(b, ("input",)) if b.get("type") == "tool_use" else b for b in blocks]
        stop = str(message.get("stop_reason") or "")
        yield st.ReplyStep(
            id,
            kept,
            model=model,
            usage=self._usage_of(message.get("usage")),
            stop_reason=stop,
            is_last=stop in ("end_turn", "stop_sequence"),
        )
        for block in blocks:
            if block.get("type") == "tool_use":
                tool, given, call = str(block.get("name") or "unknown"), block.get("input"), str(block.get("id") or "")
                child = ""
                if tool in ("Task", "Agent") and isinstance(given, dict) and isinstance(given.get("prompt"), str):
                    self._tasks[given["prompt"]] = call
                    child = self._agent_of_call.get(call, "")
                yield st.CallStep(call, tool, given, effect_of(tool, given), group=id, child=child)


def _turn_id(value: dict[str, Any]) -> str:
    return str(value.get("promptId") or value.get("uuid") or "")


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _has_other_than_text(words: Any) -> bool:
    """Whether there is more than text: an image, a document."""
    return isinstance(words, list) and any(not isinstance(b, dict) or b.get("type") != "text" for b in words)


def _rest(value: dict[str, Any], steps: list[st.Step]) -> dict[str, Value]:
    """What the steps do not cover of a line."""
    rest = without_fields(value, _HELD)
    rest[COMMON] = {k: value[k] for k in _COMMON if k in value}
    message = value.get("message")
    if isinstance(message, dict):
        rest["message"] = without_fields(message, _MESSAGE_HELD)
        if "content" in message and not _is_held(message["content"], steps):
            rest["message"]["content"] = message["content"]
    elif message is not None:
        rest["message"] = message
    if "toolUseResult" in rest:
        answers = [step for step in steps if isinstance(step, st.ResultStep)]
        rest["toolUseResult"] = beyond_result(rest["toolUseResult"], answers[0] if len(answers) == 1 else None)
    return rest


def _is_held(content: Any, steps: list[st.Step]) -> bool:
    """Whether the steps hold a message's content unchanged."""
    for step in steps:
        match step:
            case st.ReplyStep():
                return isinstance(content, str) or dicts_in(content) == content
            case st.PromptStep(content=None):
                continue  # a message follows
            case st.PromptStep() | st.MessageStep() | st.CompactionStep():
                held = step.summary if isinstance(step, st.CompactionStep) else step.content
                return held == content or any(isinstance(s, st.ResultStep) for s in steps)
    return any(isinstance(step, st.ResultStep) for step in steps) and all(map(_is_result, content))
