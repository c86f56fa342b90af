"""Reads blocks from a log: the words of a turn and the calls it made, from every kind of recording.

Words are the input of a turn, messages, and the answers of models; the same words recorded twice in a turn count once.
The texts of one event are numbered in order (`texts_of`), so that a span can find its words again. Erased and pruned
events have no texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from wakelog.insight.blocks import Block, Did, Speaker, SpokenText, TextSpan, TurnBlocks
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.calls import ANSWERS, Call, Calls
from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.parts import Text, parts_of, text_of
from wakelog.model.records import Head
from wakelog.model.values import Value
from wakelog.timeline.messages import content_of
from wakelog.timeline.points import Ranges, Span, accepted_attempt, attempts_of

HEAD: Final = 4000
TAIL: Final = 4000
"""How many characters of a call's result are read, from the start and from the end."""

NEXT_WITHIN: Final = 10
"""Within so many events behind a turn the next one begins, if a queued prompt begins it."""
_THINKS: Final = frozenset({"think", "thinking", "sequentialthinking"})
_FIELDS: Final = {"turn.started": "input", "message.added": "content"}

Spoken = tuple[Speaker, str]


def turn_blocks(log: Log, turn: int, head: Head | None = None, view: Ranges | None = None) -> TurnBlocks:
    """What was said and done in a turn, in the attempt in view. Pass `head` and `view` if you have them already."""
    return read_span(log, accepted_attempt(log, attempts_of(log, turn, head), view))


def read_span(log: Log, span: Span) -> TurnBlocks:
    """One attempt at a turn: the events of the span that belong to it."""
    reader = _TurnReader(log)
    for entry in log.entries(after=span.first - 1, upto=span.last, payloads=True):
        if entry.header.turn == span.turn and entry.header.attempt == span.attempt:
            reader.take(entry)
    blocks = tuple(reader.finish())
    if any(isinstance(block, SpokenText) and block.is_queued for block in blocks):
        after = _next_prompt(log, span)
        blocks = tuple(b for b in blocks if not (isinstance(b, SpokenText) and b.is_queued and b.text.strip() == after))
    return TurnBlocks(span.turn, blocks, span.outcome != "open")


def _next_prompt(log: Log, span: Span) -> str:
    """The words that began the next turn. A text that waited until then was queued in the turn before as well."""
    for entry in log.entries(after=span.last, upto=span.last + NEXT_WITHIN, payloads=True):
        if entry.kind == "turn.started":
            return "\n".join(text for _, text in texts_of(log, entry)).strip()
    return ""


def quote(log: Log, span: TextSpan) -> str:
    """The words at a span, as they are in the log now; empty if they are gone."""
    if span.start == span.end:
        return ""
    texts = texts_of(log, log.entry(span.seq))
    return texts[span.block][1][span.start : span.end] if span.block < len(texts) else ""


def texts_of(log: Log, entry: Entry, models: Mapping[Seq, bool] | None = None) -> list[Spoken]:
    """The texts of an event in order, and who says each. Calls of tools have none, except for thinking tools. `models`
    says which requests that were read before are model calls."""
    if entry.kind in _FIELDS:
        return _message_texts(log, entry)
    if entry.kind not in ANSWERS and entry.kind != "action.requested":
        return []
    if text_in(entry.body, "tool") in _THINKS:
        value = content_of(log, entry, "input")
        thought = value.get("thought") or value.get("text") if isinstance(value, dict) else None
        return [("thinking", thought)] if isinstance(thought, str) and thought.strip() else []
    if entry.kind == "action.requested" or not _is_model(log, entry, models or {}):
        return []
    return [spoken for spoken in _spoken(content_of(log, entry, "output"), "agent") if spoken[1].strip()]


def _is_model(log: Log, entry: Entry, models: Mapping[Seq, bool]) -> bool:
    if entry.kind == "action.recorded":
        return entry.body.get("effect") == "model"
    cause = entry.header.cause
    if cause in models:
        return models[cause]
    return bool(cause) and log.entry(cause).body.get("effect") == "model"


def _message_texts(log: Log, entry: Entry) -> list[Spoken]:
    role = "user" if entry.kind == "turn.started" else text_in(entry.body, "role")
    if role not in ("user", "assistant", "model", "agent"):
        return []
    content = content_of(log, entry, _FIELDS[entry.kind])
    return [s for s in _spoken(content, "user" if role == "user" else "agent") if s[1].strip()]


def _spoken(value: Value, who: Speaker) -> Iterator[Spoken]:
    """The texts of a message or of a model's whole answer, including thoughts."""
    if isinstance(value, list) and value and all(isinstance(b, dict) for b in value):
        for block in value:
            yield from _block(block, who)
    elif isinstance(value, dict):
        yield from _answer(value, who)
    elif isinstance(value, str):
        yield who, value


def _answer(answer: dict[str, Any], who: Speaker) -> Iterator[Spoken]:
    if answer.keys() & {"$erased", "gone"}:
        return
    choices, candidates, output = answer.get("choices"), answer.get("candidates"), answer.get("output")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        yield from _spoken(choices[0].get("message"), who)
    elif isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        content = candidates[0].get("content")
        yield from _spoken(content.get("parts") if isinstance(content, dict) else None, who)
    elif isinstance(output, list):
        yield from _spoken(output, who)
    elif "content" in answer:
        reasoning = answer.get("reasoning_content") or answer.get("reasoning")
        if isinstance(reasoning, str):
            yield "thinking", reasoning
        yield from _spoken(answer.get("content"), who)
    else:
        yield from _block(answer, who)


def _block(block: dict[str, Any], who: Speaker) -> Iterator[Spoken]:
    kind = block.get("type")
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        yield "thinking", block["thinking"]
    elif kind == "reasoning":
        for part in block.get("summary") or block.get("content") or ():
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield "thinking", part["text"]
    elif block.get("thought") is True and isinstance(block.get("text"), str):
        yield "thinking", block["text"]
    elif kind == "message":
        yield from _spoken(block.get("content"), who)
    elif kind in ("text", "input_text", "output_text", "refusal", None):
        text = block.get("text") if kind != "refusal" else block.get("refusal")
        if isinstance(text, str):
            yield who, text


class _TurnReader:
    """Makes blocks from the events of a turn."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._calls = Calls(Call)
        self._blocks: list[Block | Call] = []
        self._said: set[tuple[Speaker, str]] = set()
        self._input: dict[Seq, Value] = {}
        self._output: dict[Seq, str] = {}
        self._files: dict[Seq, list[str]] = {}
        self._batch = 0
        self._asked: dict[Seq, Seq] = {}
        self._models: dict[Seq, bool] = {}

    def take(self, entry: Entry) -> None:
        if entry.kind == "action.requested":
            self._models[entry.seq] = entry.body.get("effect") == "model"
        for number, (who, text) in enumerate(texts_of(self._log, entry, self._models)):
            if (who, text.strip()) not in self._said:
                self._said.add((who, text.strip()))
                is_queued = who == "user" and text_in(entry.body, "name") == "queued"
                self._blocks.append(SpokenText(entry.seq, number, who, text, is_queued))
        call = self._calls.take(entry.seq, entry.kind, entry.header, entry.body)
        if entry.kind == "file.changed":
            self._take_file(entry, call)
        elif call is not None and call.is_model:
            self._batch = entry.seq
        elif call is not None and call.tool not in _THINKS:
            self._take_call(entry, call)

    def _take_call(self, entry: Entry, call: Call) -> None:
        if entry.seq == call.request:
            self._blocks.append(call)
            self._asked[call.request] = self._batch
            self._input[call.request] = content_of(self._log, entry, "input")
        if "output" in entry.body or "error" in entry.body:
            output, error = content_of(self._log, entry, "output"), entry.body.get("error")
            parts = [p.text for p in parts_of(output) if isinstance(p, Text)]
            if isinstance(error, dict):
                parts.insert(0, text_of(error.get("message", "")))
            text = "\n".join(parts)
            self._output[call.request] = text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n…\n{text[-TAIL:]}"

    def _take_file(self, entry: Entry, call: Call | None) -> None:
        path = text_in(entry.body, "path")
        if call is not None:
            self._files.setdefault(call.request, []).append(path)
        elif path:
            self._blocks.append(Did(entry.seq, "", "write", None, "succeeded", files=(path,), batch=self._batch))

    def finish(self) -> Iterator[Block]:
        for block in self._blocks:
            if isinstance(block, Call):
                seq = block.request
                yield Did(
                    seq,
                    block.tool,
                    block.effect,
                    self._input.get(seq),
                    block.outcome or block.status,
                    self._output.get(seq, ""),
                    tuple(self._files.get(seq, ())),
                    self._asked.get(seq, 0) or seq,
                )
            else:
                yield block
