"""The history provider and the session store, with a real agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

import wakelog
from tests.adapters.store_urls import store_url as store_url
from wakelog.adapters.agent_framework import WakelogHistoryProvider
from wakelog.errors import InvalidInputError
from wakelog.store import Store


class ScriptedClient(FunctionInvocationLayer, BaseChatClient):  # type: ignore[misc]  # Any where it is not installed
    """Gives one answer of the script after another, and remembers what it was sent."""

    def __init__(self, *script: list[Any]) -> None:
        super().__init__()
        self.script = list(script)
        self.sent: list[list[str]] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        self.sent.append([message.text for message in messages])

        async def answer() -> ChatResponse:
            used: Any = {"input_token_count": 100, "output_token_count": 10}
            said = Message("assistant", self.script.pop(0))
            return ChatResponse(messages=[said], usage_details=used, model="gpt-4.1-mini")

        return answer()


@tool(approval_mode="never_require")
def weather(city: str) -> str:
    """Tells the weather."""
    return f"sunny in {city}"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with wakelog.open(store_url) as opened:
        yield opened


def asks(name: str, arguments: str) -> Content:
    return Content.from_function_call(call_id="c1", name=name, arguments=arguments)


def converse(store: Store, client: ScriptedClient, *messages: str, id: str = "s1") -> None:
    async def main() -> None:
        provider = WakelogHistoryProvider(store)
        agent = Agent(client, tools=[weather], context_providers=[provider])
        session = AgentSession(session_id=id)
        for text in messages:
            await agent.run(text, session=session)

    asyncio.run(main())


def test_a_run_of_an_agent_is_a_turn_with_calls_and_costs(store) -> None:
    client = ScriptedClient([asks("weather", '{"city": "Bern"}')], ["It is sunny."], ["Bye."])
    converse(store, client, "What is the weather?", "Bye")
    session = store.resume("agent-framework/s1")
    state = session.state()
    assert (state.turn.number, state.turn.status) == (2, "completed")
    assert state.tools_used["weather"].calls == 1
    assert state.pending_actions == {}
    assert [m.text for m in session.messages() if m.role == "user"] == ["What is the weather?", "Bye"]
    assert session.messages()[-1].text == "Bye."
    assert store.cost("agent-framework/s1").total.tokens_in > 0
    assert client.sent[-1][0] == "What is the weather?"


@tool(approval_mode="always_require")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@pytest.mark.parametrize("approved", [True, False])
def test_a_call_that_a_person_decides_about_stays_in_its_turn(store, approved) -> None:
    async def main() -> None:
        client = ScriptedClient([asks("pay", '{"amount": 5}')], ["Done."])
        agent = Agent(client, tools=[pay], context_providers=[WakelogHistoryProvider(store)])
        session = AgentSession(session_id="s1")
        [request] = (await agent.run("Pay 5", session=session)).user_input_requests
        [pending] = store.resume("agent-framework/s1").state().pending_actions.values()
        assert pending.status == "waiting"
        await agent.run(Message("user", [request.to_function_approval_response(approved)]), session=session)

    asyncio.run(main())
    session = store.resume("agent-framework/s1")
    state = session.state()
    assert (state.turn.number, state.turn.status, state.pending_actions) == (1, "completed", {})
    kinds = [entry.kind for entry in session.log.entries()]
    assert ("action.approved" in kinds, "action.denied" in kinds) == (approved, not approved)
    assert ("action.succeeded" in kinds) == approved


def test_pictures_files_and_calls_of_the_provider_are_no_raw_json(store) -> None:
    ran = [
        Content.from_mcp_server_tool_call(call_id="m1", tool_name="echo", server_name="s", arguments={"a": 1}),
        Content.from_mcp_server_tool_result(call_id="m1", output=[Content.from_text("1")]),
        Content.from_code_interpreter_tool_call(call_id="i1", inputs=[Content.from_text("print(1)")]),
        Content.from_code_interpreter_tool_result(call_id="i1", outputs=[Content.from_text("1")]),
        Content.from_text("ok"),
    ]
    picture = Content.from_data(data=b"\x00\x01", media_type="image/png")
    given = [
        Message("user", [Content.from_text("Look:"), picture, Content.from_hosted_file("file_1")]),
        Message("assistant", ran),
    ]
    asyncio.run(WakelogHistoryProvider(store).save_messages("s1", given))
    session = store.resume("agent-framework/s1")
    assert session.messages()[0].text.split("\n") == ["Look:", "(an image)", "(a document: file_1)"]
    used = session.state().tools_used
    assert (used["echo"].calls, used["code_interpreter"].calls) == (1, 1)
    assert session.state().turn.status == "completed"


def test_another_process_goes_on_with_the_conversation(store) -> None:
    converse(store, ScriptedClient(["One."]), "1")
    client = ScriptedClient(["Two."])
    converse(store, client, "2")
    assert client.sent == [["1", "One.", "2"]]


def test_a_rewind_takes_messages_out_of_the_history(store) -> None:
    converse(store, ScriptedClient(["One."], ["Two."]), "1", "2")
    store.resume("agent-framework/s1").rewind("@1")
    client = ScriptedClient(["Three."])
    converse(store, client, "3")
    assert client.sent == [["1", "One.", "3"]]


def test_every_kind_of_content_comes_back(store) -> None:
    contents = [
        Content.from_text("words"),
        Content.from_text_reasoning(text="hm"),
        Content.from_data(data=b"\x00\x01", media_type="image/png"),
        Content.from_uri("https://example.org/x.png", media_type="image/png"),
        Content.from_function_call(call_id="c1", name="f", arguments={"a": [1, 2.0, None]}),
        Content.from_function_result(call_id="c1", result="done"),
        Content.from_function_result(call_id="c2", exception="it broke"),
    ]
    said = Message("assistant", contents, author_name="bot", message_id="m1", additional_properties={"k": {"n": 2**70}})
    user = Message("user", ["hi"], message_id="m0")

    async def test() -> None:
        provider = WakelogHistoryProvider(store)
        await provider.save_messages("s1", [user, said])
        found = await WakelogHistoryProvider(store).get_messages("s1")
        assert [m.to_dict() for m in found] == [user.to_dict(), said.to_dict()]

    asyncio.run(test())


def test_a_conversation_that_is_given_again_is_stored_once(store) -> None:
    async def test() -> None:
        provider = WakelogHistoryProvider(store)
        first = [Message("user", ["hi"], message_id="1"), Message("assistant", ["hello"], message_id="2")]
        await provider.save_messages("s1", first)
        await provider.save_messages("s1", [*first, Message("user", ["more"], message_id="3")])
        assert [m.text for m in await provider.get_messages("s1")] == ["hi", "hello", "more"]

    asyncio.run(test())


@pytest.mark.parametrize("id", ["e86", "@5", None, "a/b", "x" * 400])
def test_any_id_has_a_history_of_its_own(store, id) -> None:
    async def test() -> None:
        provider = WakelogHistoryProvider(store)
        await provider.save_messages(id, [Message("user", [f"of {id}"])])
        await provider.save_messages("another", [Message("user", ["another"])])
        assert [m.text for m in await provider.get_messages(id)] == [f"of {id}"]
        assert await provider.get_messages("never") == []

    asyncio.run(test())


def test_a_value_that_cannot_be_stored_is_refused_with_its_path(store) -> None:
    async def test() -> None:
        provider = WakelogHistoryProvider(store)
        with pytest.raises(InvalidInputError, match=r"messages\[0\]\.contents\[0\]\.text"):
            await provider.save_messages("s1", [Message("user", ["\ud800"])])

    asyncio.run(test())


def test_excluded_messages_are_left_out_where_that_is_wanted(store) -> None:
    async def test() -> None:
        hidden = Message("user", ["hidden"], additional_properties={"_excluded": True})
        await WakelogHistoryProvider(store).save_messages("s1", [hidden, Message("user", ["shown"])])
        found = await WakelogHistoryProvider(store, skip_excluded=True).get_messages("s1")
        assert [m.text for m in found] == ["shown"]

    asyncio.run(test())


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_snapshots_of_sessions_are_kept(store) -> None:
    from wakelog.adapters.agent_framework import WakelogAgentSessionStore

    async def test() -> None:
        snapshots = WakelogAgentSessionStore(store)
        assert await snapshots.get("e86") is None
        session = AgentSession(session_id="inner")
        session.state = {"n": 1, "said": [Message("user", ["hi"])]}
        await snapshots.set("e86", session)
        session.state["n"] = 2
        found = await WakelogAgentSessionStore(store).get("e86")
        assert found is not None
        assert (found.session_id, found.state["n"], found.state["said"][0].text) == ("inner", 1, "hi")
        await snapshots.set("e86", session)
        found = await snapshots.get("e86")
        assert found is not None
        assert found.state["n"] == 2
        with pytest.raises(ValueError):
            await snapshots.get("")
        await snapshots.delete("e86")
        await snapshots.delete("e86")
        assert await snapshots.get("e86") is None

    asyncio.run(test())


def test_a_session_that_is_not_of_the_framework_is_not_written_to(store: Store) -> None:
    made = store.session(WakelogHistoryProvider.name_of("s1"), data={"mine": 1})
    with pytest.raises(InvalidInputError, match="not a session of agent-framework") as refused:
        asyncio.run(WakelogHistoryProvider(store).save_messages("s1", [Message("user", ["hello"])]))
    assert refused.value.kind == "foreign-session"
    assert made.head.seq == 1
