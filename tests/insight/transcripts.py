"""Reads foreign transcripts into the blocks that the rules read, for tests.

Beside each block stands the position that the labels use (see the corpus): a line, a message, a call of a message.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakelog.insight.blocks import Block, Did, Speaker, SpokenText, TurnBlocks

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("WAKELOG_CORPUS") or ROOT.parent / "shared" / "corpus")

_READS = {"Read", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "TodoWrite", "read_file", "update_plan", "view_image"}
_WRITES = {"Edit", "Write", "MultiEdit", "NotebookEdit", "replace", "write_file", "apply_patch", "edit", "create"}
_FENCE = re.compile(r"^```bash\n(.*?)^```", re.DOTALL | re.MULTILINE)
_ANY_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Transcript:
    """A transcript as turns, with the position of each block in its file."""

    def __init__(self) -> None:
        self.turns: list[TurnBlocks] = []
        self.place: dict[tuple[int, int], str] = {}
        """(seq, block) of a text, and (seq, -1) of a call, to the position in the file."""
        self.same: dict[str, str] = {}
        """The position of a call's result to the position of the call."""
        self._blocks: list[Block] = []
        self._seq = 0
        self._batch = 0

    def say(self, who: Speaker, text: str, at: str, block: int = 0, *, same: bool = False) -> None:
        if not text.strip():
            return
        if who == "user":
            self.cut()
        if not same or not self._seq:
            self._seq += 1
        self._batch = self._seq
        self.place[(self._seq, block)] = at
        self._blocks.append(SpokenText(self._seq, block, who, text))

    def do(self, tool: str, given: Any, outcome: str, output: str, at: str, batch: Any = None) -> None:
        self._seq += 1
        self.place[(self._seq, -1)] = at
        files: tuple[str, ...] = ()
        path = (
            given.get("file_path") or given.get("absolute_path") or given.get("notebook_path")
            if isinstance(given, dict)
            else None
        )
        if tool in _WRITES and outcome == "succeeded" and isinstance(path, str):
            files = (path,)
        effect = (
            "read"
            if tool in _READS or re.match(r"(get|search|list|find|calculate|think)", tool)
            else "write"
            if tool in _WRITES
            else "external"
        )
        self._blocks.append(Did(self._seq, tool, effect, given, outcome, output, files, batch or self._batch))

    def cut(self) -> None:
        if self._blocks:
            self.turns.append(TurnBlocks(len(self.turns) + 1, tuple(self._blocks)))
        self._blocks = []

    def done(self) -> Transcript:
        self.cut()
        return self


def read_transcript(name: str, corpus: Path = CORPUS) -> Transcript:
    """A transcript of the corpus by the name that the labels give it."""
    file, _, run = name.partition("::")
    text = (corpus / file).read_text(encoding="utf-8")
    match file.split("/")[0]:
        case "claude-code" | "entire-checkpoints":
            return _claude(text)
        case "codex-rollout":
            return _codex(text)
        case "codex-exec-json":
            return _codex_exec(text)
        case "gemini-cli":
            return _gemini(json.loads(text))
        case "swe-agent":
            return _swe(json.loads(text))
        case "mini-swe-agent":
            return _mini(json.loads(text))
        case "tau-bench":
            return _tau(json.loads(text)[int(run)], f"r{run}.")
    raise AssertionError(f"no reader for {name}")


def _lines(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield number, value


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            _text(c.get("text") or c.get("content") or "") if isinstance(c, dict) else str(c) for c in content
        )
    return "" if content is None else json.dumps(content)


# Claude Code

_NOT_WORDS = re.compile(
    r"\s*(<(command-name|command-message|local-command|bash-|task-notification|system-reminder)"
    r"|\[Request interrupted|Caveat:)"
    r"(?!.*<command-args>[^<])",
    re.DOTALL,
)
_SAID = re.compile(r"the user said:\s*\n?(.*)", re.DOTALL)


def _claude(text: str) -> Transcript:
    out = Transcript()
    records = list(_lines(text))
    answers: dict[str, tuple[str, str]] = {}
    lines: dict[str, int] = {}
    for number, record in records:
        content = record.get("message", {}).get("content") if isinstance(record.get("message"), dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                lines[block.get("tool_use_id", "")] = number
                outcome = "failed" if block.get("is_error") else "succeeded"
                answers[block.get("tool_use_id", "")] = (outcome, _text(block.get("content")))
    message, first = None, 0
    is_main = any(r.get("type") == "user" and not r.get("isSidechain") for _, r in records)
    for number, record in records:
        if is_main and record.get("isSidechain"):
            continue
        kind = record.get("type")
        body = record.get("message")
        if kind not in ("user", "assistant") or not isinstance(body, dict) or record.get("isMeta"):
            continue
        content = body.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list):
            continue
        for index, block in enumerate(blocks):
            if not isinstance(block, dict):
                continue
            at = f"L{number}" if len(blocks) == 1 else f"L{number}#b{index}"
            if kind == "user":
                if block.get("type") == "text" and not record.get("isCompactSummary"):
                    words = block.get("text", "")
                    if not _NOT_WORDS.match(words):
                        out.say("user", words, at)
                elif block.get("type") == "tool_result" and block.get("is_error"):
                    said = _SAID.search(_text(block.get("content")))
                    if said:
                        out.say("user", said[1], at)
                continue
            if message != body.get("id") or message is None:
                message, first = body.get("id"), out._seq + 1
            match block.get("type"):
                case "text":
                    out.say("agent", block.get("text", ""), at)
                case "thinking":
                    out.say("thinking", block.get("thinking", ""), at)
                case "tool_use":
                    outcome, answer = answers.get(block.get("id", ""), ("succeeded", ""))
                    out.do(block.get("name", ""), block.get("input"), outcome, answer, at, first)
                    out.same[f"L{lines.get(block.get('id', ''), 0)}"] = at
    return out.done()


# Codex


def _codex(text: str) -> Transcript:
    out = Transcript()
    records = list(_lines(text))
    answers, lines = {}, {}
    for number, record in records:
        body = record.get("payload") or {}
        if body.get("type") in ("function_call_output", "custom_tool_call_output"):
            lines[body.get("call_id")] = number
            answers[body.get("call_id")] = body.get("output")
    batch = 0
    for number, record in records:
        body = record.get("payload") or {}
        if record.get("type") != "response_item":
            if record.get("type") == "turn_context" or body.get("type") == "token_count":
                batch = 0
            continue
        match body.get("type"):
            case "message":
                parts = body.get("content") or []
                for index, part in enumerate(parts):
                    at = f"L{number}" if len(parts) == 1 else f"L{number}#b{index}"
                    words = part.get("text", "")
                    if body.get("role") == "user":
                        if not re.match(r"\s*<(environment_context|user_instructions|turn_aborted|permissions)", words):
                            out.say("user", words, at)
                    elif body.get("role") == "assistant":
                        out.say("agent", words, at)
            case "reasoning":
                parts = body.get("summary") or []
                for index, part in enumerate(parts):
                    at = f"L{number}" if len(parts) == 1 else f"L{number}#b{index}"
                    out.say("thinking", part.get("text", ""), at)
            case "function_call" | "custom_tool_call":
                given: Any = body.get("arguments", body.get("input"))
                with contextlib.suppress(ValueError, TypeError):
                    given = json.loads(given)
                batch = batch or out._seq + 1
                outcome, answer = _codex_answer(answers.get(body.get("call_id")))
                out.do(body.get("name", ""), given, outcome, answer, f"L{number}", batch)
                out.same[f"L{lines.get(body.get('call_id'), 0)}"] = f"L{number}"
    return out.done()


def _codex_answer(given: Any) -> tuple[str, str]:
    text, code = _text(given), None
    try:
        value = json.loads(text)
        if isinstance(value, dict) and "output" in value:
            text, code = _text(value["output"]), (value.get("metadata") or {}).get("exit_code")
    except ValueError:
        pass
    found = re.match(r"(?:.*\n)?(?:Process exited with code|Exit code:) (\d+)", text)
    code = int(found[1]) if code is None and found else code
    failed = bool(code) or text.startswith(("failed", "execution error"))
    return "failed" if failed else "succeeded", text


def _codex_exec(text: str) -> Transcript:
    out = Transcript()
    for number, record in _lines(text):
        item = record.get("item")
        if record.get("type") != "item.completed" or not isinstance(item, dict):
            continue
        match item.get("type"):
            case "agent_message":
                out.say("agent", _text(item.get("text")), f"L{number}")
            case "reasoning":
                out.say("thinking", _text(item.get("text")), f"L{number}")
            case "command_execution":
                outcome = "failed" if item.get("exit_code") else "succeeded"
                given = {"command": item.get("command", "")}
                out.do("shell", given, outcome, _text(item.get("aggregated_output")), f"L{number}")
            case "file_change":
                paths = [c.get("path", "") for c in item.get("changes") or [] if isinstance(c, dict)]
                outcome = "failed" if item.get("status") == "failed" else "succeeded"
                out.do("apply_patch", {"file_path": paths[0] if paths else ""}, outcome, "", f"L{number}")
    return out.done()


# Gemini


def _gemini(data: Any) -> Transcript:
    out = Transcript()
    for number, message in enumerate(data["messages"]):
        if message.get("type") == "user":
            out.say("user", _text(message.get("content")), f"m{number}")
            continue
        if message.get("type") != "gemini":
            continue
        for index, thought in enumerate(message.get("thoughts") or []):
            out.say(
                "thinking", f"{thought.get('subject', '')}: {thought.get('description', '')}", f"m{number}#t{index}"
            )
        out.say("agent", _text(message.get("content")), f"m{number}")
        batch = out._seq + 1
        for index, call in enumerate(message.get("toolCalls") or []):
            answer = "\n".join(
                _text(
                    r.get("functionResponse", {}).get("response", {}).get("output")
                    or r.get("functionResponse", {}).get("response", {}).get("error")
                )
                for r in call.get("result") or []
            )
            code = re.search(r"Exit Code: (\d+)", answer)
            failed = call.get("status") != "success" or (code and code[1] != "0")
            out.do(
                call.get("name", ""),
                call.get("args"),
                "failed" if failed else "succeeded",
                answer,
                f"m{number}!{index}",
                batch,
            )
    return out.done()


# SWE-agent and mini-swe-agent


def _swe(data: Any) -> Transcript:
    out = Transcript()
    history = data["history"]
    opened = ""
    steps = iter(data.get("trajectory") or [])
    for number, message in enumerate(history):
        if message.get("is_demo") or message.get("role") == "system":
            continue
        if message.get("role") == "user" or message.get("role") == "tool":
            if not out._seq:
                out.say("user", _text(message.get("content")), f"h{number}")
            continue
        text = message.get("thought") or _text(message.get("content"))
        out.say("agent", text, f"h{number}")
        step: Any = next(steps, {})
        action = message.get("action") or step.get("action") or ""
        if not action:
            fences = _ANY_FENCE.findall(_text(message.get("content")))
            action = fences[-1] if fences else ""
        if not action.strip():
            continue
        answer = _text(history[number + 1].get("content")) if number + 1 < len(history) else ""
        out.same[f"h{number + 1}"] = f"h{number}!"
        state = step.get("state")
        try:
            state = json.loads(state) if isinstance(state, str) else state
        except ValueError:
            state = None
        opened = (state or {}).get("open_file") or opened
        verb = action.split()[0]
        failed = bool(re.search(r"has NOT been applied|Traceback \(most recent|command not found|No such file", answer))
        if verb in ("edit", "create", "str_replace_editor"):
            out.do(
                "edit" if verb != "create" else "create",
                {"command": action.strip(), "file_path": opened},
                "failed" if failed else "succeeded",
                answer,
                f"h{number}!",
            )
        else:
            out.do("bash", {"command": action.strip()}, "failed" if failed else "succeeded", answer, f"h{number}!")
    return out.done()


def _mini(data: Any) -> Transcript:
    out = Transcript()
    messages = data["messages"] if isinstance(data, dict) else data
    for number, message in enumerate(messages):
        content = _text(message.get("content"))
        if message.get("role") == "user":
            if not out._seq:
                out.say("user", content, f"m{number}")
            continue
        if message.get("role") != "assistant":
            continue
        out.say("agent", content, f"m{number}")
        fences = _FENCE.findall(content)
        if not fences:
            continue
        answer = _text(messages[number + 1].get("content")) if number + 1 < len(messages) else ""
        out.same[f"m{number + 1}"] = f"m{number}!"
        code = re.search(r"<returncode>(-?\d+)</returncode>", answer)
        out.do(
            "bash", {"command": fences[0]}, "failed" if code and code[1] != "0" else "succeeded", answer, f"m{number}!"
        )
    return out.done()


# tau-bench


def _tau(run: Any, prefix: str) -> Transcript:
    out = Transcript()
    messages = run["traj"]
    for number, message in enumerate(messages):
        if message.get("role") == "user":
            out.say("user", _text(message.get("content")), f"{prefix}m{number}")
        elif message.get("role") == "assistant":
            out.say("agent", _text(message.get("content")), f"{prefix}m{number}")
            for index, call in enumerate(message.get("tool_calls") or []):
                after = messages[number + index + 1] if number + index + 1 < len(messages) else {}
                answer = _text(after.get("content")) if after.get("role") == "tool" else ""
                try:
                    given = json.loads(call["function"]["arguments"])
                except ValueError:
                    given = call["function"]["arguments"]
                failed = answer.startswith("Error")
                if call["function"]["name"] == "think" and isinstance(given, dict):
                    out.say("thinking", str(given.get("thought", "")), f"{prefix}m{number}!{index}")
                    continue
                out.same[f"{prefix}m{number + index + 1}"] = f"{prefix}m{number}!{index}"
                out.do(
                    call["function"]["name"],
                    given,
                    "failed" if failed else "succeeded",
                    answer,
                    f"{prefix}m{number}!{index}",
                )
    return out.done()
