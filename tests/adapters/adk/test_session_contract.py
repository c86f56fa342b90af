"""The contract of a session service, held by ADK's own services and by ours, on every kind of store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.adk.events import Event, EventActions
from google.adk.sessions import DatabaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.genai import types

from tests.engines.on_postgres import postgres_url
from wakelog.adapters.adk import WakelogSessionService
from wakelog.adapters.adk.errors import AlreadyExistsError, SessionNotFoundError, StaleSessionError
from wakelog.http.server import serving
from wakelog.http.state import Settings

ME: Any = {"app_name": "shop", "user_id": "ann@example.org"}
Open = Callable[[], Any]
Test = Callable[[BaseSessionService], Awaitable[None]]


SERVICES = ["adk-memory", "adk-database", "sqlite", "postgres", "http"]
IN_STORES = pytest.mark.parametrize("opened", SERVICES[1:], indirect=True)
"""For what ADK's own service in memory does not do: find stale writers, and store values as JSON."""


@pytest.fixture(params=SERVICES)
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a service; the same store again when called again."""
    if request.param == "adk-memory":
        memory = InMemorySessionService()
        yield lambda: memory
    elif request.param == "adk-database":
        yield lambda: DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/adk.db")
    elif request.param == "http":
        with serving(Settings(url=str(tmp_path / "served"), rate=0)) as running:
            monkeypatch.setenv("WAKELOG_KEY", running.key)
            yield lambda: WakelogSessionService(running.url)
    else:
        url = postgres_url(request, tmp_path) if request.param == "postgres" else str(tmp_path / "store")
        yield lambda: WakelogSessionService(url)


def run(opened: Open, test: Test) -> None:
    async def main() -> None:
        async with closing(opened()) as service:
            await test(service)

    asyncio.run(main())


@asynccontextmanager
async def closing(service: Any) -> AsyncIterator[Any]:
    try:
        yield service
    finally:
        if hasattr(service, "close"):
            await service.close()


def said(text: str, author: str = "user", *, at: float | None = None, **more: Any) -> Event:
    content = types.Content(role="user" if author == "user" else "model", parts=[types.Part(text=text)])
    when = {"timestamp": at} if at is not None else {}
    return Event(author=author, invocation_id="inv", content=content, **when, **more)


def changing(**state: Any) -> Event:
    return Event(author="agent", invocation_id="inv", actions=EventActions(state_delta=state))


def test_a_session_that_was_created_is_read_back(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        made = await service.create_session(**ME, session_id="s1", state={"a": 1, "deep": {"list": [1, {"b": None}]}})
        assert (made.id, made.app_name, made.user_id, made.events) == ("s1", ME["app_name"], ME["user_id"], [])
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert found.state == made.state == {"a": 1, "deep": {"list": [1, {"b": None}]}}
        assert found.last_update_time == made.last_update_time

    run(opened, test)


def test_a_session_without_an_id_gets_one_and_one_that_exists_is_refused(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        first, second = await service.create_session(**ME), await service.create_session(**ME)
        assert first.id
        assert first.id != second.id
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**ME, session_id=first.id)

    run(opened, test)


def test_what_does_not_exist_is_none_and_can_be_deleted(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        assert await service.get_session(**ME, session_id="nowhere") is None
        await service.delete_session(**ME, session_id="nowhere")
        await service.create_session(**ME, session_id="s1")
        other = {**ME, "user_id": "bob"}
        assert await service.get_session(**other, session_id="s1") is None

    run(opened, test)


def test_a_deleted_session_is_gone_and_its_id_is_free(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        session = await service.create_session(**ME, session_id="s1", state={"a": 1})
        await service.append_event(session, said("hi"))
        await service.delete_session(**ME, session_id="s1")
        assert await service.get_session(**ME, session_id="s1") is None
        assert (await service.list_sessions(**ME)).sessions == []
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, said("still there?"))
        again = await service.create_session(**ME, session_id="s1")
        assert again.state == {}
        assert again.events == []

    run(opened, test)


def test_an_append_to_a_session_never_stored_is_refused(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        with pytest.raises(SessionNotFoundError):
            await service.append_event(Session(id="never", **ME), said("hi"))
        assert (await service.list_sessions(**ME)).sessions == []

    run(opened, test)


def test_events_come_back_as_they_were(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        session = await service.create_session(**ME, session_id="s1")
        for event in EVERYTHING():
            await service.append_event(session, event)
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert found.events == EVERYTHING()
        assert found.state == session.state
        assert found.last_update_time == EVERYTHING()[-1].timestamp

    run(opened, test)


def EVERYTHING() -> list[Event]:
    """An invocation with all that an event may hold."""
    call = types.FunctionCall(id="c1", name="look", args={"city": "Bern", "n": 1.5, "none": None})
    bare = types.FunctionCall(name="plain")
    answer = types.FunctionResponse(id="c1", name="look", response={"sky": ["blue"], "deep": {"x": None}})
    failed = types.FunctionResponse(id="c2", name="break", response={"error": "it broke"})
    late = types.FunctionResponse(id="c1", name="look", response={"more": True})
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=5)
    known: Any = {"invocation_id": "i1", "timestamp": 1_700_000_000.25}
    text, image = types.Part(text="hé"), types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x00\xff1"))
    return [
        Event(id="e1", author="user", content=types.Content(role="user", parts=[text]), **known),
        Event(
            id="e2",
            author="agent",
            content=types.Content(
                role="model",
                parts=[
                    types.Part(text="let me think", thought=True, thought_signature=b"\xfe\xff"),
                    types.Part(text="I look."),
                    types.Part(function_call=call),
                    types.Part(function_call=types.FunctionCall(id="c2", name="break", args={})),
                    types.Part(function_call=bare),
                ],
            ),
            usage_metadata=usage,
            model_version="gemini-2.5-flash",
            finish_reason=types.FinishReason.STOP,
            long_running_tool_ids={"c1"},
            branch="agent.sub",
            custom_metadata={"k": {"n": [1, 2]}},
            **known,
        ),
        Event(
            id="e3",
            author="agent",
            content=types.Content(
                role="user",
                parts=[types.Part(function_response=answer), text, types.Part(function_response=failed)],
            ),
            actions=EventActions(
                state_delta={"a": {"b": [1, 2]}, "gone": None, "app:x": 1, "user:y": [2]},
                artifact_delta={"report.txt": 0},
                transfer_to_agent="other",
                skip_summarization=True,
            ),
            **known,
        ),
        Event(id="e4", author="user", content=types.Content(role="user", parts=[image, text]), **known),
        Event(
            id="e5",
            author="user",
            content=types.Content(role="user", parts=[types.Part(function_response=late)]),
            **known,
        ),
        Event(id="e6", author="agent", error_code="SAFETY", error_message="no", **known),
        Event(id="e7", author="agent", content=types.Content(role="model", parts=[]), turn_complete=True, **known),
        Event(id="e8", author="agent", actions=EventActions(state_delta={"a": {"b": [1, 2, 3]}}), **known),
        Event(
            id="e9", author="other", content=types.Content(parts=[types.Part(text="done")]), output={"n": 1}, **known
        ),
    ]


def test_prefixes_scope_the_state(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        state = {"app:a": 1, "user:u": 2, "temp:t": 3, "s": 4}
        one = await service.create_session(**ME, session_id="one", state=state)
        assert one.state == {"app:a": 1, "user:u": 2, "s": 4}
        two = await service.create_session(**ME, session_id="two")
        assert two.state == {"app:a": 1, "user:u": 2}
        bob = await service.create_session(app_name="shop", user_id="bob", session_id="three")
        assert bob.state == {"app:a": 1}
        other = await service.create_session(app_name="bank", user_id=ME["user_id"], session_id="four")
        assert other.state == {}
        event = changing(**{"app:a": 10, "user:u": 20, "temp:t": 30, "s": 40})
        await service.append_event(two, event)
        assert two.state["temp:t"] == 30
        assert "temp:t" not in event.actions.state_delta
        found = await service.get_session(**ME, session_id="two")
        assert found is not None
        assert found.state == {"app:a": 10, "user:u": 20, "s": 40}
        assert found.events[-1].actions.state_delta == {"app:a": 10, "user:u": 20, "s": 40}
        found = await service.get_session(**ME, session_id="one")
        assert found is not None
        assert found.state == {"app:a": 10, "user:u": 20, "s": 4}
        assert await service.get_user_state(**ME) == {"u": 20}
        assert await service.get_user_state(app_name="shop", user_id="nobody") == {}

    run(opened, test)


def test_the_time_of_a_session_is_that_of_its_last_event_and_lists_are_oldest_first(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        for name, at in (("late", 3e9), ("early", 2e9)):
            session = await service.create_session(**ME, session_id=name, state={"n": name})
            await service.append_event(session, said("hi", at=at + 0.25))
            assert session.last_update_time == at + 0.25
        await service.create_session(app_name="shop", user_id="bob", session_id="of bob")
        await service.create_session(app_name="bank", user_id=ME["user_id"], session_id="elsewhere")
        listed = (await service.list_sessions(**ME)).sessions
        assert [(s.id, s.last_update_time) for s in listed] == [("early", 2e9 + 0.25), ("late", 3e9 + 0.25)]
        assert all(s.events == [] for s in listed)
        assert [s.state for s in listed] == [{"n": "early"}, {"n": "late"}]
        everyone = (await service.list_sessions(app_name="shop")).sessions
        assert [s.id for s in everyone] == ["of bob", "early", "late"]
        assert (await service.list_sessions(app_name="shop", user_id="")).sessions == []
        assert (await service.list_sessions(app_name="nothing")).sessions == []

    run(opened, test)


def test_a_reader_can_ask_for_the_newest_events(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        session = await service.create_session(**ME, session_id="s1")
        for n in range(1, 61):
            event = said(f"event {n}", at=float(n))
            event.actions.state_delta["n"] = n
            await service.append_event(session, event)

        async def ask(**config: Any) -> list[Any]:
            found = await service.get_session(**ME, session_id="s1", config=GetSessionConfig(**config))
            assert found is not None
            assert found.state == {"n": 60}
            return [event.actions.state_delta["n"] for event in found.events]

        assert await ask() == list(range(1, 61))
        assert await ask(num_recent_events=3) == [58, 59, 60]
        assert await ask(num_recent_events=0) == []
        assert await ask(num_recent_events=500) == list(range(1, 61))
        assert await ask(after_timestamp=58.0) == [58, 59, 60]
        assert await ask(num_recent_events=2, after_timestamp=58.0) == [59, 60]

    run(opened, test)


def test_a_partial_event_is_not_stored(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        session = await service.create_session(**ME, session_id="s1")
        event = said("half a", "agent", partial=True)
        assert await service.append_event(session, event) is event
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert found.events == session.events == []

    run(opened, test)


@IN_STORES
def test_a_stale_writer_is_refused_and_stores_nothing(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        await service.create_session(**ME, session_id="s1")
        fresh = await service.get_session(**ME, session_id="s1")
        stale = await service.get_session(**ME, session_id="s1")
        assert fresh is not None
        assert stale is not None
        await service.append_event(fresh, said("first", at=10.0))
        with pytest.raises(StaleSessionError):
            await service.append_event(stale, said("second", at=10.0))
        await service.append_event(fresh, said("third", at=11.0))
        read = await service.get_session(**ME, session_id="s1")
        assert read is not None
        assert [e.content.parts[0].text for e in read.events] == ["first", "third"]
        await service.append_event(read, said("fourth", at=12.0))

    run(opened, test)


@IN_STORES
def test_a_session_made_by_hand_is_taken_where_it_knows_the_last_event(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        session = await service.create_session(**ME, session_id="s1")
        first = await service.append_event(session, said("first"))
        with pytest.raises(StaleSessionError):
            await service.append_event(Session(id="s1", **ME, last_update_time=1.0), said("behind"))
        by_hand = Session(id="s1", **ME, last_update_time=1.0, events=[first])
        await service.append_event(by_hand, said("second"))
        read = await service.get_session(**ME, session_id="s1")
        assert read is not None
        assert len(read.events) == 2

    run(opened, test)


def test_another_process_finds_what_this_one_stored(opened) -> None:
    async def write(service: BaseSessionService) -> None:
        session = await service.create_session(**ME, session_id="s1", state={"user:u": 1})
        for event in EVERYTHING():
            await service.append_event(session, event)

    async def read(service: BaseSessionService) -> None:
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert found.events == EVERYTHING()
        await service.append_event(found, said("and on"))

    run(opened, write)
    run(opened, read)


def test_large_numbers_and_odd_floats_come_back(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        state = {"big": 2**70, "list": [2**63, 1.5, {"deep": -(2**60)}], "whole": 2.0}
        session = await service.create_session(**ME, session_id="s1", state=state)
        await service.append_event(session, changing(big=2**71, more=[1.0, 2**65]))
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert found.state == {**state, "big": 2**71, "more": [1.0, 2**65]}

    run(opened, test)


@pytest.mark.filterwarnings("ignore")
@IN_STORES
def test_a_value_without_a_json_form_is_stored_as_its_text(opened) -> None:
    async def test(service: BaseSessionService) -> None:
        session = await service.create_session(**ME, session_id="s1", state={"f": print})
        await service.append_event(session, changing(g=[print]))
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert found.state == {"f": str(print), "g": [str(print)]}

    run(opened, test)
