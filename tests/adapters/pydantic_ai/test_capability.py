"""The capability that records runs of Pydantic AI as they go."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

import wakelog
from wakelog.adapters.pydantic_ai import WakelogCapability
from wakelog.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with wakelog.open("memory:") as opened:
        yield opened


@pytest.fixture
def conversations(store: Store) -> Any:
    pytest.importorskip("pydantic_ai.conversation_store", reason="Pydantic AI has conversation stores since 2.66")
    from wakelog.adapters.pydantic_ai import WakelogConversationStore

    return WakelogConversationStore(store)


def conversation(id: str) -> Any:
    from pydantic_ai.conversation import Conversation

    return Conversation(conversation_id=id)


def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
    last = messages[-1].parts[-1]
    usage = RequestUsage(input_tokens=30, output_tokens=4)
    if isinstance(last, UserPromptPart):
        return ModelResponse(parts=[ToolCallPart("send", {"to": "Ann"}, "c1")], usage=usage, model_name="gpt-4o")
    return ModelResponse(parts=[TextPart("sent")], usage=usage, model_name="gpt-4o")


def build(target: Any, tool: Any) -> Any:
    made = Agent(FunctionModel(answer), capabilities=[WakelogCapability(target)])
    made.tool_plain(tool, name="send")
    return made


def test_a_run_is_recorded_and_a_call_is_durable_before_it_runs(store: Store) -> None:
    session = store.session("run")
    seen: list[Any] = []

    def send(to: str) -> str:
        seen.extend(p["tool"] for p in store.resume("run").log.part("pending_actions").values())
        return "ok"

    made = build(session, send)
    history = asyncio.run(made.run("mail Ann")).all_messages()
    asyncio.run(made.run("and again", message_history=history))
    assert seen == ["send", "send"]
    kinds = [e.kind for e in session.log.entries() if e.kind not in ("items.kept", "session.opened")]
    turn = ["turn.started", "action.recorded", "action.requested", "action.started"]
    turn += ["action.succeeded", "action.recorded", "turn.ended"]
    assert kinds == [*turn, *turn]
    assert store.cost(session.id).total.tokens_in == 120


def test_a_run_that_fails_is_a_failed_turn(store: Store) -> None:
    session = store.session("run")

    def send(to: str) -> str:
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError):
        asyncio.run(build(session, send).run("mail Ann"))
    [ended] = [e.body for e in session.log.entries() if e.kind == "turn.ended"]
    assert (ended["outcome"], ended["error"]["type"]) == ("failed", "RuntimeError")


def test_beside_a_conversation_store_it_records_calls_before_they_run(conversations: Any) -> None:
    seen: list[Any] = []

    def send(to: str) -> str:
        pending = conversations.session("talk").log.part("pending_actions")
        seen.extend((p["tool"], p["status"]) for p in pending.values())
        return "ok"

    async def run() -> None:
        await conversations.save(await build(conversations, send).run("mail Ann", conversation=conversation("talk")))
        assert len((await conversations.load("talk")).messages) == 4

    asyncio.run(run())
    assert seen == [("send", "running")]
    session = conversations.session("talk")
    assert [e.kind for e in session.log.entries() if e.body.get("action") == "c1"] == [
        *("action.requested", "action.started", "action.succeeded")
    ]
    assert session.log.part("pending_actions") == {}
    assert session.log.part("turn")["status"] == "completed"
    assert {e.header.turn for e in session.log.entries() if e.body.get("action") == "c1"} == {1}


def test_beside_a_conversation_store_each_run_is_one_turn_also_after_a_failure(conversations: Any) -> None:
    fails = [False, True, False]

    def send(to: str) -> str:
        if fails.pop(0):
            raise RuntimeError("no network")
        return "ok"

    async def run(prompt: str) -> None:
        talk = await conversations.load("talk") or conversation("talk")
        await conversations.save(await build(conversations, send).run(prompt, conversation=talk))

    asyncio.run(run("mail Ann"))
    with pytest.raises(RuntimeError):
        asyncio.run(run("mail Bob"))
    asyncio.run(run("mail Cid"))
    session = conversations.session("talk")
    ends = [e.body.get("outcome", "completed") for e in session.log.entries() if e.kind == "turn.ended"]
    assert ends == ["completed", "failed", "completed"]
    assert session.log.part("turn")["number"] == 3


def test_a_release_without_conversation_stores_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.conversation_store", None)
    monkeypatch.delitem(sys.modules, "wakelog.adapters.pydantic_ai.conversation_store", raising=False)
    with pytest.raises(ImportError, match=r"WakelogConversationStore needs Pydantic AI 2\.66"):
        from wakelog.adapters.pydantic_ai import WakelogConversationStore  # noqa: F401
