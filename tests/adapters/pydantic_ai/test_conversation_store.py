"""The conversation store of Pydantic AI, beside the one that the framework ships."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai.conversation_store", reason="Pydantic AI has conversation stores since 2.66")

from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults, ImageUrl, ToolDenied
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

import wakelog
from tests.adapters.store_urls import store_url as store_url
from wakelog.adapters.pydantic_ai import WakelogCapability, WakelogConversationStore
from wakelog.errors import InvalidInputError
from wakelog.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
    last = messages[-1].parts[-1]
    usage = RequestUsage(input_tokens=30, output_tokens=4)
    if isinstance(last, UserPromptPart) and "weather" in str(last.content):
        return ModelResponse(parts=[ToolCallPart("weather", {"city": "Paris"})], usage=usage, model_name="gpt-4o")
    return ModelResponse(parts=[TextPart(f"said after {len(messages)}")], usage=usage, model_name="gpt-4o")


agent = Agent(FunctionModel(answer), system_prompt="Be brief.")


@agent.tool_plain
def weather(city: str) -> dict[str, Any]:
    return {"city": city, "sky": "sunny"}


_MESSAGES: list[Any] = [
    ModelRequest(
        parts=[SystemPromptPart("be nice"), UserPromptPart(["look", BinaryContent(b"\x00x", media_type="image/png")])]
    ),
    ModelResponse(
        parts=[
            ThinkingPart("hm"),
            TextPart("let me"),
            ToolCallPart("f", {"a": 1.5}, "c1"),
            ToolCallPart("g", '{"a": 1}', "c2"),
        ],
        usage=RequestUsage(input_tokens=3, output_tokens=2),
        model_name="gpt-4o",
        timestamp=datetime(2026, 11, 16, tzinfo=UTC),
    ),
    ModelRequest(parts=[ToolReturnPart("f", {"r": [1]}, "c1"), ToolReturnPart("g", "no", "c2", outcome="failed")]),
    ModelResponse(parts=[TextPart("done")], model_name="gpt-4o"),
]


# As the framework itself reads back what it writes: it narrows the class of a picture.
MESSAGES: list[Any] = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(_MESSAGES))


def test_conversations_are_saved_and_loaded_as_by_their_store(store_url: str) -> None:
    async def run(conversations: Any) -> list[Any]:
        seen: list[Any] = []
        await conversations.save(Conversation(messages=list(MESSAGES), conversation_id="a"), scope="me")
        loaded = await conversations.load("a")
        assert loaded.messages == MESSAGES
        for said in ("weather?", "thanks"):
            result = await agent.run(said, conversation=await conversations.load("a", scope="me"))
            await conversations.save(result)
        whole = await conversations.load("a")
        seen.append([m.parts[-1].part_kind for m in whole.messages])
        seen.append(whole.usage.requests)
        seen.append(len((await conversations.load("a", limit=3)).messages))
        seen.append(await conversations.load("a", scope="other"))
        seen.append([r.conversation_id for r in await conversations.list_conversations(scope="me")])
        entries = await conversations.load_entries("a")
        assert [e.message for e in entries] == whole.messages
        assert (await conversations.read_entry(entries[2].id)) == entries[2]
        return seen

    ours = WakelogConversationStore(store_url)
    assert asyncio.run(run(ours)) == asyncio.run(run(InMemoryConversationStore()))
    assert asyncio.run(WakelogConversationStore(ours.store).load("a")) == asyncio.run(ours.load("a"))
    ours.close()


def test_messages_become_turns_calls_and_outcomes(store: Store) -> None:
    conversations = WakelogConversationStore(store)

    async def run() -> None:
        await conversations.save(Conversation(messages=list(MESSAGES), conversation_id="a"))
        loaded = await conversations.load("a")
        await conversations.save(await agent.run("weather?", conversation=loaded))

    asyncio.run(run())
    session = conversations.session("a")
    entries = list(session.log.entries())
    assert [e.header.turn for e in entries if e.kind == "turn.ended"] == [1, 2]
    asked = [e.body for e in entries if e.kind == "action.requested"]
    assert [(a["tool"], a["input"]) for a in asked] == [
        ("f", {"a": 1.5}),
        ("g", {"a": 1}),
        ("weather", {"city": "Paris"}),
    ]
    ended = [e.kind for e in entries if e.kind in ("action.succeeded", "action.failed")]
    assert ended == ["action.succeeded", "action.failed", "action.succeeded"]
    assert store.cost(session.id).total.tokens_in == 63
    assert session.log.part("pending_actions") == {}
    assert session.verify().ok


def test_a_save_after_somebody_elses_is_a_conflict_and_leaves_nothing(store: Store) -> None:
    async def run() -> None:
        one, two = WakelogConversationStore(store), WakelogConversationStore(store)
        await one.save(Conversation(messages=MESSAGES[:1], conversation_id="a"))
        mine, other = await one.load("a"), await two.load("a")
        mine.messages.append(MESSAGES[1])
        other.messages.append(MESSAGES[3])
        await one.save(mine)
        before = one.session("a").head.seq
        with pytest.raises(ConversationConflict):
            await two.save(other)
        with pytest.raises(ConversationConflict):
            await two.save(Conversation(messages=MESSAGES[:1], conversation_id="a"))
        assert one.session("a").head.seq == before
        assert (await two.load("a")).messages == MESSAGES[:2]
        with pytest.raises(ConversationConflict):
            record = ConversationRecord(conversation_id="b", head_id="nowhere")
            await one.write_record(record, expected_revision=None)

    asyncio.run(run())


def test_writers_at_once_get_a_conflict_or_are_kept(store: Store) -> None:
    async def one(number: int) -> int:
        conversations, kept = WakelogConversationStore(store), 0
        for n in range(5):
            while True:
                loaded = await conversations.load("a") or Conversation(conversation_id="a")
                loaded.messages.append(ModelRequest(parts=[UserPromptPart(f"{number}.{n}")]))
                try:
                    await conversations.save(loaded)
                except ConversationConflict:
                    continue
                kept += 1
                break
        return kept

    async def run() -> None:
        assert await asyncio.gather(*(one(n) for n in range(3))) == [5, 5, 5]
        loaded = await WakelogConversationStore(store).load("a")
        said = [m.parts[0].content for m in loaded.messages]
        assert sorted(said) == sorted(f"{number}.{n}" for number in range(3) for n in range(5))

    asyncio.run(run())


WRITER = """
import asyncio, sys
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelRequest, UserPromptPart
from wakelog.adapters.pydantic_ai import WakelogConversationStore

async def main():
    conversations, me = WakelogConversationStore(sys.argv[1]), sys.argv[2]
    for n in range(5):
        while True:
            loaded = await conversations.load("a") or Conversation(conversation_id="a")
            loaded.messages.append(ModelRequest(parts=[UserPromptPart(f"{me}{n}")]))
            try:
                await conversations.save(loaded)
                break
            except ConversationConflict:
                pass

asyncio.run(main())
"""


def test_four_processes_lose_nothing(tmp_path: Path) -> None:
    place = str(tmp_path / "store")
    wakelog.open(place).close()
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, place, name]) for name in "abcd"]
    assert [writer.wait(timeout=300) for writer in writers] == [0] * 4
    with wakelog.open(place) as opened:
        loaded = asyncio.run(WakelogConversationStore(opened).load("a"))
    assert loaded is not None
    said = [message.parts[0].content for message in loaded.messages]
    assert sorted(said) == sorted(f"{name}{n}" for name in "abcd" for n in range(5))


def test_a_branch_is_a_rewind_and_can_be_gone_back_to(store: Store) -> None:
    async def run() -> None:
        conversations = WakelogConversationStore(store)
        await conversations.save(Conversation(messages=list(MESSAGES), conversation_id="a"))
        first = await conversations.load("a")
        [*_, tip] = await conversations.load_entries("a")
        branched = await conversations.branch("a", at=1, expected_revision=first.revision)
        assert branched.messages == MESSAGES[:1]
        branched.messages.append(MESSAGES[3])
        await conversations.save(branched)
        assert (await conversations.load("a")).messages == [MESSAGES[0], MESSAGES[3]]
        record = await conversations.read_record("a")
        assert record.branches == [tip.id]
        kinds = [e.kind for e in conversations.session("a").log.entries()]
        assert "history.rewound" in kinds
        back = await conversations.branch("a", from_entry=tip.id, expected_revision=record.revision)
        assert back.messages == (await WakelogConversationStore(store).load("a")).messages == MESSAGES
        with pytest.raises(ConversationConflict):
            await conversations.branch("a", at=1, expected_revision=first.revision)
        empty = await conversations.branch("a", at=0, expected_revision=back.revision)
        assert empty.messages == []
        assert (await conversations.load("a")).messages == []

    asyncio.run(run())


@pytest.mark.parametrize("theirs", [False, True])
def test_a_deleted_conversation_can_be_started_again_from_a_fork_of_it(store: Store, theirs: bool) -> None:
    async def run() -> None:
        conversations: Any = InMemoryConversationStore() if theirs else WakelogConversationStore(store)
        await conversations.save(Conversation(conversation_id="a", messages=MESSAGES[:2]), scope="old")
        await conversations.fork("a", new_conversation_id="b", scope="new")
        await conversations.delete("a")
        again = await conversations.fork("b", new_conversation_id="a")
        assert again.messages == MESSAGES[:2]
        again.messages.append(MESSAGES[2])
        await conversations.save(again)
        loaded = await conversations.load("a", scope="new")
        assert loaded is not None
        assert loaded.messages == MESSAGES[:3]

    asyncio.run(run())


def test_a_fork_is_a_fork_and_outlives_its_source(store: Store) -> None:
    async def run() -> None:
        conversations = WakelogConversationStore(store)
        await conversations.save(Conversation(messages=list(MESSAGES), conversation_id="a"), scope="me")
        forked = await conversations.fork("a", at=2, new_conversation_id="b")
        assert conversations.session("b").head.fork is not None
        forked.messages.append(MESSAGES[3])
        await conversations.save(forked)
        with pytest.raises(ConversationConflict):
            await conversations.fork("a", new_conversation_id="b")
        assert sorted(r.conversation_id for r in await conversations.list_conversations(scope="me")) == ["a", "b"]
        await conversations.delete("a")
        assert await conversations.load("a") is None
        other = WakelogConversationStore(store)
        assert (await other.load("b")).messages == [*MESSAGES[:2], MESSAGES[3]]
        assert [r.conversation_id for r in await other.list_conversations()] == ["b"]
        with pytest.raises(UserError):
            await other.fork("a")
        await other.save(Conversation(messages=MESSAGES[:1], conversation_id="a"))
        assert (await conversations.load("a")).messages == MESSAGES[:1]

    asyncio.run(run())


def test_a_rewind_of_the_session_takes_the_conversation_back(store: Store) -> None:
    async def run() -> None:
        conversations = WakelogConversationStore(store)
        await conversations.save(Conversation(messages=list(MESSAGES), conversation_id="a"))
        later = await agent.run("more", conversation=await conversations.load("a"))
        await conversations.save(later)
        session = conversations.session("a")
        session.rewind("@1")
        assert (await conversations.load("a")).messages == MESSAGES
        with pytest.raises(ConversationConflict):
            await conversations.save(later.conversation)
        asked = next(e.seq for e in session.log.entries() if e.kind == "action.succeeded")
        session.rewind(asked - 1)
        loaded = await conversations.load("a")
        assert loaded.messages == MESSAGES[:2]
        loaded.messages.append(MESSAGES[2])
        await conversations.save(loaded)
        assert (await WakelogConversationStore(store).load("a")).messages == MESSAGES[:3]

    asyncio.run(run())


@pytest.mark.parametrize("id", ["e86", "@5", "a b@c", "x" * 300])
def test_an_id_that_is_a_selector_is_a_conversation_like_any_other(store: Store, id: str) -> None:
    async def run() -> None:
        conversations = WakelogConversationStore(store)
        await conversations.save(Conversation(messages=MESSAGES[:1], conversation_id=id))
        assert (await WakelogConversationStore(store).load(id)).messages == MESSAGES[:1]
        assert [r.conversation_id for r in await conversations.list_conversations()] == [id]

    asyncio.run(run())


def test_what_cannot_be_written_is_refused_with_its_path(store: Store) -> None:
    async def run() -> None:
        conversations = WakelogConversationStore(store)
        bad = ModelRequest(parts=[UserPromptPart("x"), ToolReturnPart("f", object(), "c1")])
        with pytest.raises(InvalidInputError, match=r"entries\[1\]\.message\.parts\[1\]"):
            await conversations.save(Conversation(messages=[MESSAGES[0], bad], conversation_id="a"))
        assert await conversations.load("a") is None
        entry = ConversationEntry(parent_id=None, message=MESSAGES[0])
        await conversations.write_record(
            ConversationRecord(conversation_id="a", head_id=entry.id), new_entries=[entry], expected_revision=None
        )
        assert (await conversations.load("a")).messages == MESSAGES[:1]

    asyncio.run(run())


def test_what_cannot_be_stored_beside_the_parts_is_named_too(store: Store) -> None:
    request = ModelRequest(parts=[UserPromptPart("hi")], metadata={"f": print})
    with pytest.raises(InvalidInputError, match=r"message\.metadata cannot be stored"):
        asyncio.run(WakelogConversationStore(store).save(Conversation(messages=[request], conversation_id="m")))


def test_a_session_that_is_not_a_conversation_is_not_written_to(store: Store) -> None:
    made = store.session("c1", data={"mine": 1})
    now = datetime.now(UTC)
    record = ConversationRecord(conversation_id="c1", revision="r1", head_id=None, updated_at=now)
    with pytest.raises(InvalidInputError, match="not a session of pydantic-ai") as refused:
        asyncio.run(WakelogConversationStore(store).write_record(record, expected_revision=None))
    assert refused.value.kind == "foreign-session"
    assert made.head.seq == 1


def test_numbers_that_json_readers_round_come_back_as_they_were(store: Store) -> None:
    id = 1_234_567_890_123_456_789
    messages = [
        ModelRequest(parts=[UserPromptPart("Who wrote it?")]),
        ModelResponse(
            parts=[ToolCallPart("find", {"post": id}, "c1"), ToolCallPart("find", f'{{"post": {id}}}', "c2")]
        ),
        ModelRequest(parts=[ToolReturnPart("find", {"author": id + 1}, "c1"), ToolReturnPart("find", id, "c2")]),
    ]
    ids = [f"m{n}" for n in range(len(messages))]
    links = zip(ids, [None, *ids], messages, strict=False)
    entries = [ConversationEntry(id=id, parent_id=parent, message=message) for id, parent, message in links]
    record = ConversationRecord(conversation_id="c", head_id=ids[-1])

    async def check() -> None:
        await WakelogConversationStore(store).write_record(record, new_entries=entries, expected_revision=None)
        other = WakelogConversationStore(store)
        assert [entry.message for entry in await other.read_history(ids[-1])] == messages

    asyncio.run(check())


def asks_to_pay(messages: list[Any], info: Any) -> ModelResponse:
    is_answered = isinstance(messages[-1].parts[-1], ToolReturnPart)
    return ModelResponse([TextPart("Done.") if is_answered else ToolCallPart("pay", {"n": 5}, tool_call_id="c1")])


@pytest.mark.parametrize("is_recorded_live", [False, True])
@pytest.mark.parametrize("approved", [True, False])
def test_a_call_that_a_person_decides_about_waits(store: Store, approved: bool, is_recorded_live: bool) -> None:
    conversations = WakelogConversationStore(store)
    capabilities = [WakelogCapability(conversations)] if is_recorded_live else []
    model = FunctionModel(asks_to_pay)
    agent: Any = Agent(model, output_type=[str, DeferredToolRequests], capabilities=capabilities)
    statuses: list[str] = []

    @agent.tool_plain(requires_approval=True)
    def pay(n: int) -> str:
        statuses.extend(p.status for p in conversations.session("c").state().pending_actions.values())
        return f"paid {n}"

    async def main() -> None:
        await conversations.save(await agent.run("Pay", conversation=Conversation(conversation_id="c")))
        [pending] = conversations.session("c").state().pending_actions.values()
        assert pending.status == "waiting"
        results = DeferredToolResults(approvals={"c1": True if approved else ToolDenied("no")})
        loaded = await conversations.load("c")
        await conversations.save(await agent.run(deferred_tool_results=results, conversation=loaded))

    asyncio.run(main())
    session = conversations.session("c")
    assert (session.state().turn.number, session.state().turn.status) == (1, "completed")
    assert session.state().pending_actions == {}
    kinds = [entry.kind for entry in session.log.entries()]
    assert kinds.count("action.approved" if approved else "action.denied") == 1
    assert kinds.count("action.started") == (1 if approved else 0)
    assert statuses == ([] if not approved else ["running"] if is_recorded_live else ["waiting"])


def test_pictures_and_files_are_no_raw_json(store: Store) -> None:
    said = ["Look:", BinaryContent(b"\x89PNG", media_type="image/png"), ImageUrl("https://example.org/a.png")]
    conversations = WakelogConversationStore(store)

    async def main() -> None:
        prompt = [*said, BinaryContent(b"%PDF", media_type="application/pdf")]
        result = await Agent("test").run(prompt, conversation=Conversation(conversation_id="c"))
        await conversations.save(result)

    asyncio.run(main())
    shown = conversations.session("c").messages()[0].text
    assert shown.split("\n") == ["Look:", "(an image)", "(an image)", "(a document: application/pdf)"]
