"""Assembles a streamed answer from its parts, and splits an answer into parts again.

The log stores a stream as the answer that the provider would have given without streaming, so all other code reads it
like any other answer. To return it as a stream, the answer is split into parts: fewer and larger than the original
ones, but in the same order and of the same kinds.

The format is recognised by the parts, not by the object that yields them: a part may be a client's object or plain
JSON. A provider's stream says when it is complete. A stream that stops before that was cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from wakelog.model.events import Failure
from wakelog.model.values import Value

_NAMES = frozenset({"role", "id", "type", "name", "index"})
"""Fields whose text is sent whole. Text of other fields is sent in pieces and joined."""


class Assembly(Protocol):
    """An answer that is being assembled."""

    shape: str

    def add(self, part: Value) -> None: ...

    def answer(self) -> Value:
        """Returns the answer made of the parts so far."""

    @property
    def is_whole(self) -> bool:
        """Whether the stream said that it is complete."""

    @property
    def error(self) -> Failure | None:
        """The error that the provider reported in the stream."""


def choose_assembly(part: Value) -> Assembly:
    """Returns the assembly for a stream that starts with this part."""
    if isinstance(part, str):
        return StreamedText()
    if isinstance(part, dict):
        kind = part.get("type")
        if part.get("object") == "chat.completion.chunk":
            return Chat()
        if kind == "message_start":
            return Blocks()
        if isinstance(kind, str) and kind.startswith("response."):
            return Response()
        if isinstance(part.get("candidates"), list):
            return Candidates()
    return Items()


class StreamedText:
    """A stream of text."""

    shape, error, is_whole = "text", None, False

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, part: Value) -> None:
        self._pieces.append(str(part))

    def answer(self) -> Value:
        return "".join(self._pieces)


class Items:
    """Any other stream: a list of its parts."""

    shape, error, is_whole = "items", None, False

    def __init__(self) -> None:
        self._items: list[Value] = []

    def add(self, part: Value) -> None:
        self._items.append(part)

    def answer(self) -> Value:
        return list(self._items)


class Chat:
    """OpenAI's chat completions."""

    shape, error = "openai.chat", None

    def __init__(self) -> None:
        self._whole: dict[str, Value] = {}
        self._choices: dict[int, dict[str, Value]] = {}

    def add(self, part: Value) -> None:
        for name, value in part.items():
            if value is not None and name not in ("object", "choices"):
                self._whole[name] = value
        for place, delta in enumerate(part.get("choices") or ()):
            index = delta.get("index", place)
            choice = self._choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
            _merge(choice["message"], delta.get("delta") or {})
            choice["finish_reason"] = delta.get("finish_reason") or choice["finish_reason"]

    def answer(self) -> Value:
        choices = []
        for _, choice in sorted(self._choices.items()):
            message = {"role": "assistant", "content": None, **choice["message"]}
            if "tool_calls" in message:
                message["tool_calls"] = [{k: v for k, v in c.items() if k != "index"} for c in message["tool_calls"]]
            choices.append({**choice, "message": message})
        return {**self._whole, "object": "chat.completion", "choices": choices}

    @property
    def is_whole(self) -> bool:
        return bool(self._choices) and all(choice["finish_reason"] for choice in self._choices.values())


def _merge(into: dict[str, Value], delta: dict[str, Value]) -> None:
    for name, value in delta.items():
        known = into.get(name)
        if value is None:
            continue
        if isinstance(value, str) and isinstance(known, str) and name not in _NAMES:
            into[name] = known + value
        elif isinstance(value, dict) and isinstance(known, dict):
            _merge(known, value)
        elif isinstance(value, list):
            listed = into.setdefault(name, [])
            for place, item in enumerate(value):
                index = item.get("index", place) if isinstance(item, dict) else None
                same = next((i for i in listed if isinstance(i, dict) and i.get("index") == index), None)
                if index is None or same is None:
                    listed.append({} if index is not None else item)
                    same = listed[-1]
                if index is not None:
                    _merge(same, {**item, "index": index})
        elif value != "" or known is None:
            into[name] = {} if isinstance(value, dict) else value
            if isinstance(value, dict):
                _merge(into[name], value)


class Response:
    """OpenAI's responses."""

    shape = "openai.responses"

    def __init__(self) -> None:
        self._whole: dict[str, Value] = {}
        self._output: dict[int, dict[str, Value]] = {}
        self.is_whole = False
        self.error: Failure | None = None

    def add(self, part: Value) -> None:
        kind, place = str(part.get("type")), part.get("output_index", 0)
        if isinstance(part.get("response"), dict):
            self._whole = part["response"]
            self.is_whole = kind in ("response.completed", "response.incomplete")
            if kind == "response.failed":
                error = self._whole.get("error") or {}
                self.error = Failure(str(error.get("code") or "failed"), str(error.get("message") or ""))
        elif kind == "error":
            self.error = Failure(str(part.get("code") or "error"), str(part.get("message") or ""))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._output[place] = part["item"]
        elif kind == "response.content_part.added":
            self._item(place).setdefault("content", []).append(part["part"])
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            name = "text" if "text" in kind else "refusal"
            content = self._item(place).setdefault("content", [])
            if not content:
                content.append({"type": "output_text" if name == "text" else name, name: ""})
            content[-1][name] = content[-1].get(name, "") + part["delta"]
        elif kind == "response.function_call_arguments.delta":
            item = self._item(place)
            item["arguments"] = item.get("arguments", "") + part["delta"]

    def _item(self, place: int) -> dict[str, Value]:
        return self._output.setdefault(place, {"type": "message", "role": "assistant", "content": []})

    def answer(self) -> Value:
        if self.is_whole or self._whole.get("output"):
            return self._whole
        return {"object": "response", **self._whole, "output": [item for _, item in sorted(self._output.items())]}


class Blocks:
    """Anthropic's messages."""

    shape, error = "anthropic.messages", None

    def __init__(self) -> None:
        self._message: dict[str, Value] = {}
        self._blocks: dict[int, dict[str, Value]] = {}
        self._json: dict[int, str] = {}
        self.is_whole = False

    def add(self, part: Value) -> None:
        match part.get("type"):
            case "message_start":
                self._message = part["message"]
            case "content_block_start":
                self._blocks[part["index"]] = dict(part["content_block"])
            case "content_block_delta":
                self._delta(part["index"], part["delta"])
            case "message_delta":
                self._message.update({k: v for k, v in part["delta"].items() if v is not None})
                usage = self._message.setdefault("usage", {})
                usage.update({k: v for k, v in (part.get("usage") or {}).items() if v is not None})
            case "message_stop":
                self.is_whole = True

    def _delta(self, index: int, delta: dict[str, Value]) -> None:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        match delta.get("type"):
            case "input_json_delta":
                self._json[index] = self._json.get(index, "") + delta["partial_json"]
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
            case _:
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        block[name] = (block.get(name) or "") + delta[name]

    def answer(self) -> Value:
        content = []
        for index, block in sorted(self._blocks.items()):
            given = self._json.get(index)
            content.append(block if given is None else {**block, "input": _input(given)})
        return {**self._message, "content": content}


def _input(text: str) -> Value:
    """Decodes a call's input. Input that was cut off stays text."""
    try:
        return msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        return text


class Candidates:
    """Google's generated content."""

    shape, error = "google.content", None

    def __init__(self) -> None:
        self._whole: dict[str, Value] = {}
        self._candidates: dict[int, dict[str, Value]] = {}

    def add(self, part: Value) -> None:
        self._whole.update({k: v for k, v in part.items() if v is not None and k != "candidates"})
        for place, new in enumerate(part.get("candidates") or ()):
            known = self._candidates.setdefault(new.get("index") or place, {"content": {"role": "model", "parts": []}})
            known.update({k: v for k, v in new.items() if v is not None and k != "content"})
            for piece in (new.get("content") or {}).get("parts") or ():
                _add_piece(known["content"]["parts"], {k: v for k, v in piece.items() if v is not None})

    def answer(self) -> Value:
        return {**self._whole, "candidates": [c for _, c in sorted(self._candidates.items())]}

    @property
    def is_whole(self) -> bool:
        ends = [c.get("finishReason") or c.get("finish_reason") for c in self._candidates.values()]
        return bool(ends) and all(ends)


def _add_piece(parts: list[dict[str, Value]], piece: dict[str, Value]) -> None:
    last = parts[-1] if parts else {}
    if "text" in piece and "text" in last and {**piece, "text": ""} == {**last, "text": ""}:
        last["text"] += piece["text"]
    else:
        parts.append(dict(piece))


# Splitting an answer into parts


def split_answer(shape: str, answer: Value) -> list[Value]:
    """Splits an answer into the parts of a stream."""
    match shape:
        case "text":
            return [answer] if answer else []
        case "openai.chat":
            return list(_chat_parts(answer))
        case "openai.responses":
            return [{**part, "sequence_number": n} for n, part in enumerate(_response_parts(answer))]
        case "anthropic.messages":
            return list(_block_parts(answer))
        case "google.content":
            return [answer]
    return list(answer)


def _chat_parts(answer: dict[str, Value]) -> Iterator[Value]:
    frame = {k: v for k, v in answer.items() if k not in ("choices", "usage")} | {"object": "chat.completion.chunk"}
    started, ended = [], []
    for choice in answer.get("choices") or ():
        delta = dict(choice["message"])
        if delta.get("tool_calls"):
            delta["tool_calls"] = [{"index": n, **call} for n, call in enumerate(delta["tool_calls"])]
        started.append({"index": choice["index"], "delta": delta, "finish_reason": None})
        if choice.get("finish_reason"):
            ended.append({"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]})
    if started:
        yield {**frame, "choices": started}
    if ended:
        yield {**frame, "choices": ended}
    if answer.get("usage"):
        yield {**frame, "choices": [], "usage": answer["usage"]}


def _response_parts(answer: dict[str, Value]) -> Iterator[Value]:
    yield {"type": "response.created", "response": {**answer, "output": [], "status": "in_progress", "usage": None}}
    for place, item in enumerate(answer.get("output") or ()):
        at = {"item_id": item.get("id") or "", "output_index": place}
        content = item.get("content") if item.get("type") == "message" else None
        yield {"type": "response.output_item.added", "output_index": place, "item": _emptied(item)}
        for number, each in enumerate(content if isinstance(content, list) else ()):
            name = "refusal" if each.get("type") == "refusal" else "text"
            kind = "refusal" if name == "refusal" else "output_text"
            here = {**at, "content_index": number}
            yield {"type": "response.content_part.added", **here, "part": {**each, name: ""}}
            extra: dict[str, Value] = {"logprobs": []} if kind == "output_text" else {}
            yield {"type": f"response.{kind}.delta", **here, "delta": each.get(name, ""), **extra}
            yield {"type": f"response.{kind}.done", **here, name: each.get(name, ""), **extra}
            yield {"type": "response.content_part.done", **here, "part": each}
        if item.get("type") == "function_call":
            data = {"arguments": item.get("arguments", ""), "name": item.get("name", "")}
            yield {"type": "response.function_call_arguments.delta", **at, "delta": item.get("arguments", "")}
            yield {"type": "response.function_call_arguments.done", **at, **data}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    if answer.get("status") in ("completed", "incomplete", "failed"):
        yield {"type": f"response.{answer['status']}", "response": answer}


def _emptied(item: dict[str, Value]) -> dict[str, Value]:
    if item.get("type") == "function_call":
        return {**item, "arguments": ""}
    return {**item, "content": []} if item.get("type") == "message" else item


def _block_parts(answer: dict[str, Value]) -> Iterator[Value]:
    ended = {"stop_reason": answer.get("stop_reason"), "stop_sequence": answer.get("stop_sequence")}
    empty = {**answer, "content": [], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": empty}
    for index, block in enumerate(answer.get("content") or ()):
        first, deltas = dict(block), []
        for name in ("text", "thinking", "signature"):
            if isinstance(first.get(name), str):
                deltas.append({"type": f"{name}_delta", name: first[name]})
                first[name] = ""
        if "input" in first:
            given = first["input"]
            text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
            deltas.append({"type": "input_json_delta", "partial_json": text})
            first["input"] = {}
        yield {"type": "content_block_start", "index": index, "content_block": first}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if ended["stop_reason"]:
        yield {"type": "message_delta", "delta": ended, "usage": answer.get("usage") or {"output_tokens": 0}}
        yield {"type": "message_stop"}
