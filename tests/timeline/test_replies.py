"""What models answered through `session.model`, among the messages: each reply once."""

from collections.abc import Iterator
from typing import Any

import pytest

import wakelog
from wakelog.session import Session

CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {"where": "north"}}
CLAUDE = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "I will look"}, CALL],
    "stop_reason": "tool_use",
}
CHAT = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "I will look"}}],
}
RESPONSE = {
    "object": "response",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I will look"}]}],
}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "I will look"}]}}]}


@pytest.fixture
def session() -> Iterator[Session[Any]]:
    with wakelog.open("memory:") as store:
        yield store.session("agent")


def said(session: Session[Any]) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in session.messages()]


@pytest.mark.parametrize("answer", [CHAT, RESPONSE, GEMINI, "I will look"])
def test_a_reply_is_among_the_messages_as_its_text(session: Session[Any], answer: Any) -> None:
    with session.turn("hi"):
        session.model(lambda messages: answer, [])
    assert said(session) == [("user", "hi"), ("assistant", "I will look")]


def test_a_reply_that_asks_for_a_call_keeps_it(session: Session[Any]) -> None:
    with session.turn("hi"):
        session.model(lambda messages: CLAUDE, [])
    reply = session.messages()[-1]
    assert reply.content == [{"type": "text", "text": "I will look"}, CALL]
    assert reply.text == 'I will look\n(asks for look: {"where":"north"})'


@pytest.mark.parametrize("recorded", ["I will look", CLAUDE["content"], CLAUDE])
def test_a_reply_that_the_agent_records_itself_is_there_once(session: Session[Any], recorded: Any) -> None:
    with session.turn("hi"):
        session.model(lambda messages: CLAUDE, [])
        session.message("assistant", recorded)
        session.message("assistant", "something else")
    assert [m.seq for m in session.messages()] == [e.seq for e in session.events(kind="message.added")]


def test_the_same_reply_twice_with_one_message_is_there_twice(session: Session[Any]) -> None:
    with session.turn("hi"):
        session.model(lambda messages: CHAT, [])
        session.message("assistant", "I will look")
        session.model(lambda messages: CHAT, [])
    with session.turn("again"):
        session.model(lambda messages: CHAT, [])
    assert [text for role, text in said(session) if role == "assistant"] == ["I will look"] * 3


def test_a_failed_call_and_a_tools_result_are_no_replies(session: Session[Any]) -> None:
    def broken(messages: Any) -> Any:
        raise ConnectionError("gone")

    with session.turn("hi"):
        with pytest.raises(ConnectionError):
            session.model(broken, [])
        session.call(lambda where: CHAT, {"where": "north"})
    assert said(session) == [("user", "hi")]


def test_what_is_said_in_several_events_of_a_turn_is_found_once() -> None:
    with wakelog.open("memory:") as store:
        session = store.session("agent")

        @session.tool(effect="read")
        def look(where: str) -> str:
            return f"a giraffe stands {where}"

        with session.turn("count the animals"):
            session.model(lambda messages: CLAUDE, [])
            session.message("assistant", "I will look")
            outcome = session.call(look, {"where": "north"}, id="t1")
            session.message("tool", outcome.result, action="t1")
        for words in ("animals", "will", "giraffe"):
            (hit,) = store.index.search(words)
            assert hit.kind == "message.added"
        assert [hit.kind for hit in store.index.search("giraffe", kind="action")] == ["action.succeeded"]
        assert len(store.index.search("giraffe", limit=1)) == 1


def test_what_is_said_twice_is_found_twice() -> None:
    with wakelog.open("memory:") as store:
        session = store.session("agent")
        for _ in range(2):
            with session.turn():
                session.message("user", "the same zebra")
                session.message("user", "the same zebra")
        assert len(store.index.search("zebra")) == 4
