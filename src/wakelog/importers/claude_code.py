"""Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, one JSON object a line.

The file is a tree: each line names its parent. It grows in the order of time, so it is read as it stands, and a prompt
whose parent lies before an earlier prompt means that the person went back. One answer of the model is written as
several lines with the same message id, each repeating the usage so far. Sub-agents have files of their own
(`<session>/subagents/agent-<id>.jsonl`), or stand in the same file as side chains.

Lines of other types (progress, snapshots, attachments …) say nothing that the rest does not; they are kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers.claude_results import answer_of
from wakelog.importers.files import JsonLine, RecordIds, Sample, digest, json_lines
from wakelog.importers.moments import microseconds
from wakelog.importers.steps import (
    Ask,
    Compaction,
    Labels,
    Prompt,
    Reply,
    Rewind,
    SourceRecord,
    Step,
    Transcript,
    TranscriptHead,
    TurnDone,
    Words,
)
from wakelog.importers.tools import effect_of
from wakelog.model.usage import usage_of
from wakelog.model.values import Value

NAME = "claude-code"
TITLE = "Claude Code"
_TYPES = frozenset({"user", "assistant", "system", "summary", "progress", "file-history-snapshot", "queue-operation"})
_AGENT_FILE = re.compile(r"agent-([0-9A-Za-z_-]+)$")
_STICKY = ("sessionId", "cwd", "version", "gitBranch", "userType", "isSidechain", "entrypoint", "slug", "agentId")
_HELD = frozenset({"uuid", "type", "timestamp", "message", *_STICKY})
_LABELS = {"cwd": "project", "gitBranch": "branch", "version": "agent_version"}
_ASIDE = re.compile(
    r"\s*<(local-command-stdout|local-command-stderr|local-command-caveat|bash-input|bash-stdout|bash-stderr"
    r"|task-notification|system-reminder|user-memory-input)>"
)
_COMMAND = re.compile(r"\s*<command-(name|message)>")
_NAME = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_GIVEN = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_ARGS = re.compile(r"<command-args>\s*[^\s<]")
_BUILT_IN = re.compile(
    r"<command-name>/?(clear|compact|model|config|cost|login|logout|mcp|resume|status|help|exit|doctor|memory|hooks"
    r"|permissions|agents|vim|theme|terminal-setup|context|usage|plugin|ide|add-dir|export|rename|fast)\s*</command-name>"
)
INTERRUPTED = "[Request interrupted by user"


def places(home: Path) -> Iterator[Path]:
    """Where its transcripts are."""
    yield from sorted((home / ".claude" / "projects").glob("**/*.jsonl"))


def recognises(found: Sample) -> bool:
    for line in found.lines:
        if not isinstance(line, dict) or line.get("type") not in _TYPES:
            continue
        if ("sessionId" in line and ("uuid" in line or "operation" in line)) or "leafUuid" in line:
            return True
        if line["type"] == "file-history-snapshot" and "snapshot" in line:
            return True
        if line["type"] in ("user", "assistant") and isinstance(line.get("message"), dict):
            return True
    return False


def transcripts(path: Path) -> Iterator[Transcript]:
    first: dict[str, Any] = {}
    goal = ""
    for number, line in enumerate(json_lines(path)):
        value = line.value or {}
        for key in ("sessionId", "agentId", "cwd", "gitBranch", "version"):
            if isinstance(value.get(key), str):
                first.setdefault(key, value[key])
        if "isSidechain" in value:
            first.setdefault("isSidechain", value["isSidechain"])
        if number > 200 or {"sessionId", "cwd", "version"} <= first.keys():
            break
    session = first.get("sessionId") or path.stem
    agent = _AGENT_FILE.search(path.stem)
    labels = {label: first[key] for key, label in _LABELS.items() if first.get(key)}
    if agent and (first.get("isSidechain") or first.get("agentId")):
        head = TranscriptHead(f"{session}/agent-{agent[1]}", NAME, goal, labels, parent=session)
    else:
        # A session that goes on in a new file repeats the old one's ids there: the file's own name tells them apart.
        own = path.stem if re.fullmatch(r"[0-9a-f-]{36}", path.stem) else session
        head = TranscriptHead(own, NAME, goal, labels)
    yield Transcript(head, lambda: _Reader(head).records(path))


class _Reader:
    def __init__(self, head: TranscriptHead) -> None:
        self._origin = head.parent or head.origin
        self._is_agent = bool(head.parent)
        self._ids = RecordIds()
        self._parents: dict[str, str] = {}
        self._path: dict[str, int] = {}
        """Records of the conversation, by the number of the prompt that they follow."""
        self._prompts = 0
        self._last: dict[str, Any] = {}
        self._before = ""
        self._lanes: dict[str, str] = {}

    def records(self, path: Path) -> Iterator[tuple[SourceRecord, int]]:
        for line in json_lines(path):
            yield (self._broken(line) if line.broken else self._record(line)), len(line.raw)

    def _broken(self, line: JsonLine) -> SourceRecord:
        return SourceRecord(self._ids.unique(digest(line.raw)), rest=line.text, broken=line.broken)

    def _record(self, line: JsonLine) -> SourceRecord:
        value: dict[str, Any] = line.value
        uuid = value.get("uuid")
        id = self._ids.unique(uuid if isinstance(uuid, str) else digest(line.raw))
        lane = self._lane(value)
        steps = [] if id != uuid and isinstance(uuid, str) else self._steps(value, lane)
        self._remember(value, steps)
        at = microseconds(value.get("timestamp"))
        if steps and value.get("type") in ("user", "assistant"):
            return SourceRecord(id, tuple(steps), at, self._rest(value), lane)
        for key in _STICKY:
            if key in value:
                self._last[key] = value[key]
        self._before = uuid if isinstance(uuid, str) else self._before
        return SourceRecord(id, tuple(steps), at, msgspec.Raw(line.raw), lane)

    def _rest(self, value: dict[str, Any]) -> dict[str, Value]:
        """What the steps do not hold. Fields that every line repeats are there when they change."""
        rest = {k: v for k, v in value.items() if k not in _HELD}
        for key in _STICKY:
            if key in value and self._last.get(key) != value[key]:
                rest[key] = self._last[key] = value[key]
        if rest.get("parentUuid") == self._before:
            del rest["parentUuid"]
        self._before = value.get("uuid") or self._before
        rest["type"] = value["type"]
        message = value.get("message")
        if isinstance(message, dict):
            is_typed = isinstance(message.get("content"), str) and _COMMAND.match(message["content"])
            inside = {"role", "model", "type", "id"} | (set() if is_typed else {"content"})
            about = {k: v for k, v in message.items() if k not in inside}
            if about:
                rest["message"] = about
        if "toolUseResult" in rest:
            rest["toolUseResult"] = _without_content(rest["toolUseResult"])
        return rest

    def _lane(self, value: dict[str, Any]) -> str:
        """The side chain that a line is in, told by its first line."""
        if self._is_agent or value.get("isSidechain") is not True:
            return ""
        uuid, parent = str(value.get("uuid")), value.get("parentUuid")
        agent = value.get("agentId")
        lane = f"{self._origin}/agent-{agent}" if agent else self._lanes.get(str(parent))
        self._lanes[uuid] = lane or f"{self._origin}/side-{uuid[:8]}"
        return self._lanes[uuid]

    def _remember(self, value: dict[str, Any], steps: list[Step]) -> None:
        uuid = value.get("uuid")
        if not isinstance(uuid, str):
            return
        self._parents[uuid] = str(value.get("parentUuid") or value.get("logicalParentUuid") or "")
        if steps and value.get("isSidechain") is not True:
            self._path[uuid] = self._prompts

    def _steps(self, value: dict[str, Any], lane: str) -> list[Step]:
        steps: list[Step] = []
        if not lane:
            changed = {
                label: value[key]
                for key, label in _LABELS.items()
                if isinstance(value.get(key), str) and value[key] and self._last.get(key) not in (None, value[key])
            }
            if changed:
                steps.append(Labels(changed))
        match value.get("type"):
            case "user":
                steps += self._user(value, lane)
            case "assistant":
                steps += _assistant(value)
            case "system" if value.get("subtype") == "turn_duration":
                steps.append(TurnDone())
            case "system" if value.get("subtype") == "local_command" and isinstance(value.get("content"), str):
                steps.append(Words("system", value["content"], name="command"))
            case "summary" if isinstance(value.get("summary"), str):
                steps.append(Labels({"title": value["summary"][:200]}))
            case "queue-operation" if value.get("operation") == "enqueue" and isinstance(value.get("content"), str):
                steps.append(Words("user", value["content"], name="queued"))
        return steps

    def _user(self, value: dict[str, Any], lane: str) -> Iterator[Step]:
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if value.get("isCompactSummary"):
            yield Compaction(content)
            return
        blocks = content if isinstance(content, list) else []
        results = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"]
        for block in results:
            structured = value.get("toolUseResult") if len(results) == 1 else None
            yield answer_of(block, structured, self._last.get("cwd") or str(value.get("cwd") or ""), self._origin)
        words: Any = [b for b in blocks if b not in results] if blocks else content
        text = words if isinstance(words, str) else _text(words)
        if not words or not (text.strip() or _has_image(words)):
            return
        if text.lstrip().startswith(INTERRUPTED):
            yield Words("user", words, name="interrupt")
            yield TurnDone("interrupted")
        elif value.get("isMeta") or results:
            yield Words("user", words, name="meta", trust="unverified")
        elif _ASIDE.match(text) or (_COMMAND.match(text) and _is_aside(text)):
            yield Words("user", words, name="command")
        else:
            yield from self._prompt(value, words, lane)

    def _prompt(self, value: dict[str, Any], words: Value, lane: str) -> Iterator[Step]:
        if not lane:
            back = self._ancestor(str(value.get("parentUuid") or ""))
            if back and self._path[back] < self._prompts:
                yield Rewind(back)
            self._prompts += 1
        if isinstance(words, str) and _COMMAND.match(words):
            words = _typed(words)
        yield Prompt(words, id=str(value.get("promptId") or value.get("uuid") or ""))

    def _ancestor(self, uuid: str) -> str:
        """The nearest record of the conversation on the way up from here."""
        while uuid and uuid not in self._path:
            uuid = self._parents.get(uuid, "")
        return uuid


def _assistant(value: dict[str, Any]) -> Iterator[Step]:
    message = value.get("message")
    if not isinstance(message, dict):
        return
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    blocks = [b for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []
    id = str(message.get("id") or value.get("uuid") or "")
    model = str(message.get("model") or "")
    if model == "<synthetic>" or value.get("isApiErrorMessage"):
        yield Words("assistant", _text(blocks), name="error")
        return
    calls = [b for b in blocks if b.get("type") == "tool_use"]
    kept = [_call_mention(b) if b in calls else b for b in blocks]
    stop = str(message.get("stop_reason") or "")
    yield Reply(
        id,
        kept,
        model=model,
        usage=usage_of({"usage": message.get("usage")}),
        stop_reason=stop,
        is_last=stop in ("end_turn", "stop_sequence"),
    )
    for block in calls:
        tool, given = str(block.get("name") or "unknown"), block.get("input")
        yield Ask(str(block.get("id") or ""), tool, given, effect_of(tool, given), group=id)


def _call_mention(block: dict[str, Any]) -> dict[str, Value]:
    return {k: v for k, v in block.items() if k != "input"}


def _typed(text: str) -> str:
    """A slash command as the person typed it."""
    name, args = _NAME.search(text), _GIVEN.search(text)
    return f"{name[1]} {args[1] if args else ''}".strip() if name else text


def _is_aside(text: str) -> bool:
    """A command of the program itself, which no model sees: it asks the agent for nothing."""
    return bool(_BUILT_IN.search(text)) and not _ARGS.search(text)


def _text(blocks: Any) -> str:
    if not isinstance(blocks, list):
        return ""
    return "\n".join(b["text"] for b in blocks if isinstance(b, dict) and isinstance(b.get("text"), str))


def _has_image(words: Any) -> bool:
    return isinstance(words, list) and any(isinstance(b, dict) and b.get("type") == "image" for b in words)


def _without_content(result: Any) -> Value:
    """A tool's structured result without what the answer and the file changes hold."""
    if not isinstance(result, dict):
        return None if isinstance(result, str) else result
    drop = {
        "originalFile",
        "originalFileContents",
        "content",
        "oldString",
        "newString",
        "stdout",
        "stderr",
        "file",
        "edits",
    }
    return {k: v for k, v in result.items() if k not in drop}
