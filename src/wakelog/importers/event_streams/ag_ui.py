"""AG-UI: the events that an agent streams to a user interface, as JSON lines, an array, or raw server-sent events.

A thread is a session, and a run in it a turn. Messages, thoughts and arguments of calls come in pieces: the event that
ends one produces the step for the whole. Snapshots of the messages repeat the stream, and add what it lacks: the user's
input, and the results of tools that run in the interface.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.common.chat import call_block, json_or_text, text_block, text_of, thinking_block
from wakelog.importers.common.foreign_state import ForeignState
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import (
    RecordIds,
    Sample,
    decode_json,
    home_files,
    is_document,
    json_digest,
    json_lines,
    path_digest,
    read_document,
    storable,
)
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.json_fields import as_dict, as_list, dicts_in, text_in

NAME = "ag-ui"
TITLE = "AG-UI"
find_in_home = home_files()
_TYPE = re.compile(
    rb'"type"\s*:\s*"(RUN_STARTED|TEXT_MESSAGE_(START|CONTENT|CHUNK)|TOOL_CALL_START|STATE_SNAPSHOT|MESSAGES_SNAPSHOT)"'
)
_FRAME = (b"event:", b"id:", b"retry:", b":")


def recognises(sample: Sample) -> bool:
    # A page or a program may quote an event. A stream begins with one, or with a field of a server-sent event.
    begins = sample.first in (b"{", b"[") or sample.start.lstrip().startswith((b"data:", *_FRAME))
    return begins and _TYPE.search(sample.start[: 64 << 10]) is not None


def transcripts(path: Path) -> Iterator[st.Transcript]:
    """One transcript per thread, in the order they start."""
    threads: dict[str, list[tuple[Any, str, int]]] = {}
    current = ""
    for event, why, size in _events(path):
        if isinstance(event, dict):
            current = _text_of_first(event, "threadId", "thread_id") or current
        threads.setdefault(current, []).append((event, why, size))
    early = threads.pop("", [])
    if early:
        # Events before the first thread id belong to the first thread.
        first = next(iter(threads), "")
        threads = {first: early + threads.get(first, []), **{k: v for k, v in threads.items() if k != first}}
    for thread, events in threads.items():
        own = thread or f"{path.stem}-{path_digest(path)}"
        yield _transcript(own, events)


def _transcript(thread: str, events: list[tuple[Any, str, int]]) -> st.Transcript:
    return st.Transcript(st.TranscriptHead(thread, NAME), lambda: ThreadReader().records(events))


def _events(path: Path) -> Iterator[tuple[Any, str, int]]:
    """Each event with its size; or a text that is not an event, with the reason."""
    lines = list(json_lines(path))
    if is_document(lines) and not any(line.raw.startswith(b"data:") for line in lines):
        given = read_document(path)
        given = given.get("events", given) if isinstance(given, dict) else given
        for event in as_list(given):
            why = "" if isinstance(event, dict) else "an event is not an object"
            yield storable(event), why, len(str(event))
        return
    for line in lines:
        if line.value is not None:
            yield storable(line.value), "", len(line.raw)
        elif line.raw.startswith(b"data:"):
            yield from _decode_data_line(line.raw, line.number)
        elif not line.raw.startswith(_FRAME):
            yield line.text, line.broken, len(line.raw)


def _decode_data_line(raw: bytes, number: int) -> Iterator[tuple[Any, str, int]]:
    """Decodes an event from a `data:` line of the stream."""
    try:
        event = decode_json(raw[5:])
    except ValueError as exc:
        yield raw.decode(errors="replace"), f"line {number} is not JSON: {exc}", len(raw)
        return
    yield event, "" if isinstance(event, dict) else f"line {number} is not an object", len(raw)


class ThreadReader:
    """Reads the events of one thread. They may come in several batches, in order."""

    def __init__(self) -> None:
        self._ids = RecordIds()
        self._calls = RecordIds()
        self._texts: dict[str, list[str]] = {}
        self._roles: dict[str, str] = {}
        self._open: dict[str, tuple[str, str]] = {}
        """Calls whose arguments are still streaming: tool, and the message that requested it."""
        self._asked: set[str] = set()
        self._seen: set[str] = set()
        self._state = ForeignState()
        self._spans: dict[str, str] = {}
        self._chunk = ""
        self._is_open = False
        """A turn continues over several runs while a call waits for the interface."""
        self._run = ""
        """A run that has started, but without any user input so far."""

    def records(self, events: Iterable[tuple[Any, str, int]]) -> Iterator[tuple[st.SourceRecord, int]]:
        for event, why, size in events:
            id = self._ids.unique(json_digest(event))
            if why or not isinstance(event, dict):
                yield st.SourceRecord(id, rest=event, broken=why or "an event is not an object"), size
                continue
            steps = tuple(self._steps(event))
            for step in steps:
                self._is_open = isinstance(step, st.PromptStep) or (
                    self._is_open and not isinstance(step, st.TurnEndStep)
                )
            yield st.SourceRecord(id, steps, microseconds(event.get("timestamp")), rest=event), size

    def _steps(self, event: dict[str, Any]) -> Iterator[st.Step]:
        kind = text_in(event, "type")
        if self._chunk and not kind.endswith("_CHUNK"):
            yield from self._end_piece(self._chunk)
        message = _text_of_first(event, "messageId", "message_id")
        if not message and kind.endswith("_MESSAGE_CHUNK") and self._chunk not in self._open:
            message = self._chunk  # only the first chunk must name its message
        if kind.startswith(("TEXT_MESSAGE_", "THINKING_TEXT_MESSAGE_", "REASONING_MESSAGE_")):
            yield from self._text(kind, event, message or kind.partition("_")[0])
        elif kind.startswith("TOOL_CALL_"):
            yield from self._call(kind, event)
        match kind:
            case "RUN_STARTED":
                self._run = "" if self._is_open else _text_of_first(event, "runId", "run_id") or "run"
                data = as_dict(event.get("input"))
                yield from self._snapshot(data.get("messages"))
            case "RUN_FINISHED":
                yield from self._start_turn()
                if not self._asked - set(self._spans.values()):
                    yield st.TurnEndStep()
            case "RUN_ERROR":
                yield from self._start_turn()
                yield st.TurnEndStep("failed", text_in(event, "message")[: st.ERROR_MAX] or "error")
            case "MESSAGES_SNAPSHOT":
                yield from self._snapshot(event.get("messages"))
            case "STATE_SNAPSHOT":
                yield from self._state.put("state", event.get("snapshot"))
            case "STATE_DELTA":
                yield from self._state.patch(event.get("delta"), "state")
            case "STEP_STARTED" | "STEP_FINISHED":
                yield from self._step(kind, _text_of_first(event, "stepName", "step_name") or "step")

    def _start_turn(self) -> Iterator[st.Step]:
        """Starts a turn for a run whose stream does not have the user's input."""
        if self._run:
            run, self._run = self._run, ""
            yield st.PromptStep("", id=run)

    # Pieces

    def _text(self, kind: str, event: dict[str, Any], id: str) -> Iterator[st.Step]:
        family, _, what = kind.rpartition("_")
        if what in ("START", "CHUNK") and isinstance(event.get("role"), str):
            self._roles[id] = event["role"]
        if what == "CHUNK":
            if self._chunk and self._chunk != id:
                yield from self._end_piece(self._chunk)
            self._chunk = id
        if not family.startswith("TEXT"):
            self._roles[id] = "reasoning"
        self._texts.setdefault(id, []).append(text_in(event, "delta"))
        if what == "END":
            yield from self._end_piece(id)

    def _end_piece(self, id: str) -> Iterator[st.Step]:
        self._chunk = ""
        if id in self._open:
            yield from self._call_steps(id)
            return
        text, role = "".join(self._texts.pop(id, ())), self._roles.pop(id, "assistant")
        self._seen.add(id)
        if role == "user":
            self._run = ""
            yield st.PromptStep(text, id=id)
        elif text and role in ("assistant", "reasoning"):
            yield from self._start_turn()
            block = thinking_block(text) if role == "reasoning" else text_block(text)
            yield st.ReplyStep(id, [block])
        elif text:
            yield st.MessageStep("system", text, name="instructions")

    def _call(self, kind: str, event: dict[str, Any]) -> Iterator[st.Step]:
        id = _text_of_first(event, "toolCallId", "tool_call_id") or self._chunk
        if not id:
            return
        if kind in ("TOOL_CALL_START", "TOOL_CALL_CHUNK") and id not in self._open:
            if self._chunk and self._chunk != id:
                yield from self._end_piece(self._chunk)
            tool = _text_of_first(event, "toolCallName", "tool_call_name") or "unknown"
            self._open[id] = (tool, _text_of_first(event, "parentMessageId", "parent_message_id") or f"asks-{id}")
        if kind == "TOOL_CALL_CHUNK":
            self._chunk = id
        if kind in ("TOOL_CALL_ARGS", "TOOL_CALL_CHUNK"):
            self._texts.setdefault(id, []).append(text_in(event, "delta"))
        if kind == "TOOL_CALL_END" and id in self._open:
            yield from self._call_steps(id)
        if kind == "TOOL_CALL_RESULT":
            yield self._result(id, event.get("content"), "")

    def _call_steps(self, id: str) -> Iterator[st.Step]:
        tool, message = self._open.pop(id)
        value = json_or_text("".join(self._texts.pop(id, ())) or "{}")
        yield from self._start_turn()
        self._asked.add(id)
        self._seen.add(id)
        yield st.ReplyStep(message, [call_block(id, tool)])
        yield st.CallStep(id, tool, value, effect_of(tool, value), group=message)

    def _result(self, id: str, content: Any, error: str) -> st.ResultStep:
        self._asked.discard(id)
        self._seen.add(f"{id} answered")
        return st.ResultStep(id, content, "failed" if error else "succeeded", error[: st.ERROR_MAX])

    def _step(self, kind: str, name: str) -> Iterator[st.Step]:
        if kind == "STEP_STARTED":
            yield from self._start_turn()
            id = self._spans[name] = self._calls.unique(f"step-{name}")
            self._asked.add(id)
            yield st.CallStep(id, f"step:{name}", {"span": name}, "pure")
        elif (id := self._spans.pop(name, "")) in self._asked:
            yield self._result(id, None, "")

    # What a list of messages adds to the stream

    def _snapshot(self, messages: Any) -> Iterator[st.Step]:
        new = dicts_in(messages)
        last = max((n for n, m in enumerate(new) if m.get("role") == "user"), default=-1)
        for number, message in enumerate(new):
            id, role = text_in(message, "id") or json_digest(message), message.get("role")
            content = message.get("content")
            call = _text_of_first(message, "toolCallId", "tool_call_id")
            if role == "tool" and call:
                if f"{call} answered" not in self._seen and call in self._asked:
                    yield self._result(call, content, text_in(message, "error"))
                continue
            if id in self._seen or id in self._texts:
                continue
            self._seen.add(id)
            if role == "user":
                if number == last:
                    self._run = ""
                    yield st.PromptStep(content, id=id)
                else:
                    yield st.MessageStep("user", content, name="history")
            elif role == "assistant":
                yield from self._reply_steps(id, message)
            elif role in ("system", "developer"):
                yield st.MessageStep("system", content, name="instructions")

    def _reply_steps(self, id: str, message: dict[str, Any]) -> Iterator[st.Step]:
        """A reply that the stream did not have."""
        text = text_of(message.get("content"))
        if text:
            yield st.ReplyStep(id, [text_block(text)])
        for call in as_list(message.get("toolCalls", message.get("tool_calls"))):
            fields = as_dict(call)
            own, function = text_in(fields, "id"), as_dict(fields.get("function"))
            if own and own not in self._seen and own not in self._open:
                self._open[own] = (text_in(function, "name") or "unknown", id)
                self._texts[own] = [text_in(function, "arguments")]
                yield from self._call_steps(own)


def _text_of_first(event: dict[str, Any], *names: str) -> str:
    return next((event[n] for n in names if isinstance(event.get(n), str)), "")
