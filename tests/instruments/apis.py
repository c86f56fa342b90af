"""What the four APIs answer, told in one way: a text, or a call of a tool; at once, or as a stream; or an error.

Each `Api` knows how its real client is made and asked, so that a test says once what must hold for all of them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from tests.runtime.providers import Play, Provider

QUESTION = "What is the weather in Bern?"
CALL = ("call_1", "get_weather", {"city": "Bern"})
RESULT = "12 degrees"
ANSWER = "It is 12 degrees in Bern."


def has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


# Answers at once


def _chat(text: str = "", call: bool = False) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if call:
        given = {"name": CALL[1], "arguments": msgspec.json.encode(CALL[2]).decode()}
        message["tool_calls"] = [{"id": CALL[0], "type": "function", "function": given}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4.1-2025-04-14",
        "choices": [choice],
        "usage": usage,
    }


def _response(text: str = "", call: bool = False) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        output.append({"id": "o1", "type": "message", "role": "assistant", "status": "completed", "content": content})
    if call:
        given = {"call_id": CALL[0], "name": CALL[1], "arguments": msgspec.json.encode(CALL[2]).decode()}
        output.append({"id": "o2", "type": "function_call", "status": "completed", **given})
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 110,
    }
    return {
        "id": "r2" if text else "r1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4.1-2025-04-14",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _message(text: str = "", call: bool = False) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    if call:
        content.append({"type": "tool_use", "id": CALL[0], "name": CALL[1], "input": CALL[2]})
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": content,
        "stop_reason": "tool_use" if call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


def _content(text: str = "", call: bool = False) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    if call:
        parts.append({"functionCall": {"name": CALL[1], "args": CALL[2]}})
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}


# The same as streams


def _pieces(text: str) -> list[str]:
    return [word if n == 0 else f" {word}" for n, word in enumerate(text.split(" "))] if text else []


def _chat_parts(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    frame = {**whole, "object": "chat.completion.chunk", "usage": None}
    choice = whole["choices"][0]
    message = choice["message"]
    yield {**frame, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    for piece in _pieces(message["content"] or ""):
        yield {**frame, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
    if "tool_calls" in message:
        calls = [{"index": n, **call} for n, call in enumerate(message["tool_calls"])]
        yield {**frame, "choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}]}
    yield {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {**frame, "choices": [], "usage": whole["usage"]}


def _response_parts(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "output": [], "usage": None}}]
    for place, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": place}
        if item["type"] == "message":
            empty = {"type": "output_text", "text": "", "annotations": []}
            events.append(
                {"type": "response.output_item.added", "output_index": place, "item": {**item, "content": []}}
            )
            events.append({"type": "response.content_part.added", **at, "content_index": 0, "part": empty})
            for piece in _pieces(item["content"][0]["text"]):
                delta = {"content_index": 0, "delta": piece, "logprobs": []}
                events.append({"type": "response.output_text.delta", **at, **delta})
        else:
            events.append({"type": "response.output_item.added", "output_index": place, "item": item})
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": whole})
    yield from ({**event, "sequence_number": n} for n, event in enumerate(events))


def _message_parts(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    start = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 100, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
            for piece in _pieces(block["text"]):
                delta = {"type": "text_delta", "text": piece}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            given = {"type": "input_json_delta", "partial_json": msgspec.json.encode(block["input"]).decode()}
            yield {"type": "content_block_delta", "index": index, "delta": given}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 10}}
    yield {"type": "message_stop"}


def _content_parts(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    candidate = whole["candidates"][0]
    for part in candidate["content"]["parts"]:
        pieces = [{"text": piece} for piece in _pieces(part["text"])] if "text" in part else [part]
        for piece in pieces:
            yield {**whole, "usageMetadata": {}, "candidates": [{"content": {"role": "model", "parts": [piece]}}]}
    last = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}
    yield {**whole, "candidates": [last]}


# Clients


class Api(msgspec.Struct):
    """One API with its real client. `ask` sends a conversation and returns what was said and asked for."""

    library: str
    """As `instrument` calls it."""
    module: str
    whole: Callable[..., dict[str, Any]]
    parts: Callable[[dict[str, Any]], Iterator[dict[str, Any]]]
    ask: Callable[..., str]
    ask_async: Callable[..., Any]
    first: Callable[[], list[Any]]
    """The conversation with its first question."""
    then: Callable[[], list[Any]]
    """What the next request adds: the model's call, and its result."""
    is_named: bool = True
    model: str = "gpt-4.1"

    def says(self, text: str = "", *, call: bool = False) -> Play:
        return Play([], answer=self.whole(text, call))

    def streams(self, text: str = "", *, call: bool = False, upto: int = 99, ending: Any = "whole") -> Play:
        if self.library == "google-genai" and ending == "whole":
            ending = "quiet"  # it has no last word
        return Play(list(self.parts(self.whole(text, call)))[:upto], ending, is_named=self.is_named)

    def fails(self, status: int) -> Play:
        error = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down", "code": status}}
        return Play([], answer=error, status=status)


def _openai(remote: Provider) -> Any:
    import openai

    # Without certificates, which take longer to load than all the rest.
    http = openai.DefaultHttpxClient(verify=False)
    return openai.OpenAI(api_key="none", base_url=f"{remote.url}/v1", max_retries=0, http_client=http)


def _openai_async(remote: Provider) -> Any:
    import openai

    http = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(api_key="none", base_url=f"{remote.url}/v1", max_retries=0, http_client=http)


def _of_chat(chunk: Any) -> str:
    return (chunk.choices[0].delta.content or "") if chunk.choices else ""


def ask_chat(remote: Provider, messages: list[Any], *, stream: bool = False, **more: Any) -> str:
    with _openai(remote) as client:
        given = {"model": "gpt-4.1", "messages": messages, **more}
        if stream:
            options = {"include_usage": True}
            parts = client.chat.completions.create(**given, stream=True, stream_options=options)
            return "".join(map(_of_chat, parts))
        return client.chat.completions.create(**given).choices[0].message.content or ""


async def ask_chat_async(remote: Provider, messages: list[Any], *, stream: bool = False) -> str:
    async with _openai_async(remote) as client:
        given = {"model": "gpt-4.1", "messages": messages}
        if stream:
            parts = await client.chat.completions.create(**given, stream=True)
            return "".join([_of_chat(part) async for part in parts])
        return (await client.chat.completions.create(**given)).choices[0].message.content or ""


def _of_responses(part: Any) -> str:
    return part.delta if part.type == "response.output_text.delta" else ""


def ask_responses(remote: Provider, messages: list[Any], *, stream: bool = False, **more: Any) -> str:
    with _openai(remote) as client:
        given = {"model": "gpt-4.1", "input": messages, **more}
        if stream:
            return "".join(map(_of_responses, client.responses.create(**given, stream=True)))
        return str(client.responses.create(**given).output_text)


async def ask_responses_async(remote: Provider, messages: list[Any], *, stream: bool = False) -> str:
    async with _openai_async(remote) as client:
        given = {"model": "gpt-4.1", "input": messages}
        if stream:
            parts = await client.responses.create(**given, stream=True)
            return "".join([_of_responses(part) async for part in parts])
        return str((await client.responses.create(**given)).output_text)


def ask_messages(remote: Provider, messages: list[Any], *, stream: bool = False, **more: Any) -> str:
    import anthropic

    http = anthropic.DefaultHttpxClient(verify=False)
    with anthropic.Anthropic(api_key="none", base_url=remote.url, max_retries=0, http_client=http) as client:
        given: dict[str, Any] = {"model": "claude-test", "messages": messages, "max_tokens": 99, **more}
        if stream:
            with client.messages.stream(**given) as parts:
                return "".join(parts.text_stream)
        return "".join(block.text for block in client.messages.create(**given).content if block.type == "text")


async def ask_messages_async(remote: Provider, messages: list[Any], *, stream: bool = False) -> str:
    import anthropic

    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    async with anthropic.AsyncAnthropic(api_key="none", base_url=remote.url, max_retries=0, http_client=http) as client:
        given: dict[str, Any] = {"model": "claude-test", "messages": messages, "max_tokens": 99}
        if stream:
            async with client.messages.stream(**given) as parts:
                return "".join([text async for text in parts.text_stream])
        said = await client.messages.create(**given)
        return "".join(block.text for block in said.content if block.type == "text")


def _genai(remote: Provider) -> Any:
    from google import genai

    how: Any = {"base_url": remote.url, "client_args": {"verify": False}, "async_client_args": {"verify": False}}
    return genai.Client(api_key="none", http_options=how)


def ask_content(remote: Provider, contents: list[Any], *, stream: bool = False, **more: Any) -> str:
    client = _genai(remote)
    given = {"model": "gemini-2.5-flash", "contents": contents, **more}
    try:
        if stream:
            return "".join(part.text or "" for part in client.models.generate_content_stream(**given))
        said = client.models.generate_content(**given).candidates[0].content.parts
        return "".join(part.text or "" for part in said)
    finally:
        client.close()


async def ask_content_async(remote: Provider, contents: list[Any], *, stream: bool = False) -> str:
    client = _genai(remote)
    given = {"model": "gemini-2.5-flash", "contents": contents}
    try:
        if stream:
            parts = await client.aio.models.generate_content_stream(**given)
            return "".join([part.text or "" async for part in parts])
        said = (await client.aio.models.generate_content(**given)).candidates[0].content.parts
        return "".join(part.text or "" for part in said)
    finally:
        await client.aio.aclose()
        client.close()


def _question() -> list[Any]:
    return [{"role": "user", "content": QUESTION}]


APIS = {
    "chat": Api(
        "openai",
        "openai",
        _chat,
        _chat_parts,
        ask_chat,
        ask_chat_async,
        _question,
        lambda: [
            _chat(call=True)["choices"][0]["message"],
            {"role": "tool", "tool_call_id": CALL[0], "content": RESULT},
        ],
        is_named=False,
    ),
    "responses": Api(
        "openai",
        "openai",
        _response,
        _response_parts,
        ask_responses,
        ask_responses_async,
        _question,
        lambda: [
            *_response(call=True)["output"],
            {"type": "function_call_output", "call_id": CALL[0], "output": RESULT},
        ],
    ),
    "messages": Api(
        "anthropic",
        "anthropic",
        _message,
        _message_parts,
        ask_messages,
        ask_messages_async,
        _question,
        lambda: [
            {"role": "assistant", "content": _message(call=True)["content"]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": CALL[0], "content": RESULT}]},
        ],
        model="claude-test",
    ),
    "content": Api(
        "google-genai",
        "google.genai",
        _content,
        _content_parts,
        ask_content,
        ask_content_async,
        lambda: [{"role": "user", "parts": [{"text": QUESTION}]}],
        lambda: [
            {"role": "model", "parts": [{"function_call": {"name": CALL[1], "args": CALL[2]}}]},
            {"role": "user", "parts": [{"function_response": {"name": CALL[1], "response": {"result": RESULT}}}]},
        ],
        is_named=False,
        model="gemini-2.5-flash",
    ),
}
