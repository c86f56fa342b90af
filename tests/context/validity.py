"""What providers accept, said twice: by their own packages' types, and by the rules their servers enforce."""

import functools
import json
import re
from collections.abc import Iterable
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


@functools.cache
def _adapter(shape: str) -> Any:
    # Imported by the processes that check something, not by every one that lists the tests: they take a second.
    from anthropic.types import MessageParam
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputItemParam
    from pydantic import ConfigDict, TypeAdapter

    types = {"openai": ChatCompletionMessageParam, "responses": ResponseInputItemParam, "anthropic": MessageParam}
    return TypeAdapter(list[types[shape]], config=ConfigDict(extra="forbid"))  # type: ignore[valid-type]


def _typed(shape: str, value: Any) -> None:
    """Validates, and walks the result: pydantic looks into an Iterable only when somebody takes from it."""
    _walk(_adapter(shape).validate_python(value))


def _walk(value: Any) -> None:
    if isinstance(value, dict):
        for inner in value.values():
            _walk(inner)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for inner in value:
            _walk(inner)


def check(context: Any) -> None:
    """Checks a context in the shape it has."""
    json.dumps(list(context))
    {"openai": check_openai, "responses": check_responses, "anthropic": check_anthropic}[context.shape](context)


def check_openai(context: Any) -> None:
    messages = list(context)
    _typed("openai", messages)
    assert messages
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "a result without its call"
            waiting.remove(message["tool_call_id"])
            assert message["content"].strip()
            continue
        assert not waiting, f"calls without a result: {waiting}"
        calls = message.get("tool_calls", [])
        assert calls or _is_said(message["content"]), f"nothing is said in {message}"
        assert message["content"] is None or _is_said(message["content"])
        for call in calls:
            waiting.append(call["id"])
            assert call["id"] not in seen
            assert 0 < len(call["id"]) <= 40
            seen.add(call["id"])
            assert NAME.fullmatch(call["function"]["name"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert not waiting
    assert any(message["role"] != "system" for message in messages)


def _is_said(content: Any) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return bool(content) and all(b["type"] != "text" or b["text"].strip() for b in content)


def check_responses(context: Any) -> None:
    items = list(context)
    _typed("responses", items)
    waiting: list[str] = []
    seen: set[str] = set()
    for item in items:
        if item["type"] == "function_call":
            assert item["call_id"] not in seen
            seen.add(item["call_id"])
            waiting.append(item["call_id"])
            assert NAME.fullmatch(item["name"])
        elif item["type"] == "function_call_output":
            waiting.remove(item["call_id"])
            assert item["output"].strip()
        else:
            assert not waiting
            assert item["content"]
    assert items
    assert not waiting


def check_anthropic(context: Any) -> None:
    messages = list(context)
    _typed("anthropic", messages)
    assert isinstance(context.system, str)
    assert messages
    assert messages[0]["role"] == messages[-1]["role"] == "user"
    asked: list[str] = []
    seen: set[str] = set()
    for before, message in zip([None, *messages], messages, strict=False):
        assert before is None or before["role"] != message["role"], "speakers take turns"
        blocks = message["content"]
        assert blocks
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert results == asked, "results stand right after their calls, all of them and no others"
        assert [b["type"] for b in blocks[: len(results)]] == ["tool_result"] * len(results), "results come first"
        asked = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert not asked or message["role"] == "assistant"
        assert not seen.intersection(asked)
        assert len(set(asked)) == len(asked)
        seen.update(asked)
        for block in blocks:
            _check_block(block)
        if message["role"] == "assistant":
            assert blocks[-1]["type"] not in ("thinking", "redacted_thinking")
    assert not asked


def _check_block(block: dict[str, Any]) -> None:
    if block["type"] == "text":
        assert block["text"].strip()
    elif block["type"] == "tool_use":
        assert ANTHROPIC_ID.fullmatch(block["id"])
        assert NAME.fullmatch(block["name"])
        assert isinstance(block["input"], dict)
    elif block["type"] == "tool_result":
        assert block["content"].strip()
