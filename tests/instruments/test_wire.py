"""Requests as they are read: whatever a program sends, and the same thing said in other bytes."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wakelog.instruments.conversation import Conversation
from wakelog.instruments.model_request import read_request, shape_of
from wakelog.model.parts import parts_of

PATHS = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/gemini:generateContent"]
WORDS = ("role", "content", "parts", "type", "text", "input", "id", "call_id", "function", "name", "arguments", "user")
TYPES = (
    "tool_result",
    "tool_use",
    "function_call_output",
    "message",
    "image",
    "thinking",
    "assistant",
    "tool",
    "model",
)
leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(WORDS + TYPES) | st.text(max_size=3)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from((*WORDS, "tool_calls", "functionResponse", "tool_use_id")), inner, max_size=4)
    ),
    max_leaves=12,
)
BODIES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("model", "messages", "input", "contents", "system", "tool_choice", "tools"), values)
)


@pytest.mark.parametrize("path", PATHS)
@given(body=BODIES, answer=values)
@example(body={}, answer={"tool_calls": True, "role": None})
def test_whatever_is_sent_can_be_read(path: str, body: dict[str, Any], answer: Any) -> None:
    request = read_request(path, body)
    assert request is not None
    conversation = Conversation()
    for item in request.items:
        conversation.note_calls(item, is_first=True)
    conversation.take_request(request, conversation.results(request.items))
    conversation.take_answer(answer)
    assert conversation.results(request.items) == [] or any(not r.id for i in request.items for r in i.results)
    conversation.new_items(request)
    parts_of(body)


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/openai/deployments/gpt/chat/completions?api-version=1", "openai.chat"),
        ("/v1/responses", "openai.responses"),
        ("/v1/responses/compact", None),
        ("/v1/messages?beta=true", "anthropic.messages"),
        ("/v1/messages/count_tokens", None),
        ("/v1/threads/t1/messages", None),
        ("publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "google.content"),
        ("models/gemini:countTokens", None),
        ("/v1/embeddings", None),
    ],
)
def test_a_path_tells_what_is_asked(path: str, shape: str | None) -> None:
    assert shape_of(path) == shape


def test_a_cache_mark_that_moves_does_not_make_a_message_another() -> None:
    def message(marked: bool) -> dict[str, Any]:
        block = {"type": "text", "text": "hello"} | ({"cache_control": {"type": "ephemeral"}} if marked else {})
        return {"messages": [{"role": "user", "content": [block]}]}

    first, second = (read_request("/v1/messages", message(marked)) for marked in (True, False))
    plain = read_request("/v1/messages", {"messages": [{"role": "user", "content": "hello"}]})
    assert first is not None
    assert second is not None
    assert plain is not None
    assert first.items[0].digest == second.items[0].digest == plain.items[0].digest


def test_words_beside_the_result_of_a_tool_are_a_message_of_the_user() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": "t", "content": "12"}, {"type": "text", "text": "Be quick."}]
    request = read_request("/v1/messages", {"messages": [{"role": "user", "content": blocks}]})
    assert request is not None
    (item,) = request.items
    assert (item.role, item.content) == ("user", "Be quick.")
    assert [(r.id, r.output) for r in item.results] == [("t", "12")]
