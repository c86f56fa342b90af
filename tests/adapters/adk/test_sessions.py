"""What a run of ADK is in the log, and what wakelog adds to it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events import Event, EventActions
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, Session
from google.adk.tools import ToolContext
from google.genai import types

import wakelog
from tests.adapters.adk.fake_model import ScriptedLlm, asks, says
from wakelog.adapters.adk import WakelogSessionService
from wakelog.adapters.adk import sessions as adk_sessions
from wakelog.adapters.adk.errors import StaleSessionError
from wakelog.errors import InvalidInputError
from wakelog.importers.transcript_import import import_transcript
from wakelog.store import Store

ME: Any = {"app_name": "shop", "user_id": "ann@example.org"}
NAME = "adk/shop/ann%40example.org/s1"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def service(store: Store) -> WakelogSessionService:
    return WakelogSessionService(store)


def weather(city: str, tool_context: ToolContext) -> dict[str, Any]:
    """Tells the weather."""
    tool_context.state["city"] = city
    tool_context.state["user:home"] = city
    return {"sky": "blue"}


def fails(city: str) -> dict[str, Any]:
    """Never works."""
    return {"error": f"no {city}"}


def converse(service: WakelogSessionService, model: ScriptedLlm, *messages: str, id: str = "s1") -> Session:
    """Runs ADK's own runner, one invocation for each message."""

    async def main() -> Session:
        agent = LlmAgent(name="clerk", model=model, tools=[weather, fails])
        runner = Runner(app_name="shop", agent=agent, session_service=service)
        if await service.get_session(**ME, session_id=id) is None:
            await service.create_session(**ME, session_id=id)
        for text in messages:
            content = types.Content(role="user", parts=[types.Part(text=text)])
            async for _ in runner.run_async(user_id=ME["user_id"], session_id=id, new_message=content):
                pass
        found = await service.get_session(**ME, session_id=id)
        assert found is not None
        return found

    return asyncio.run(main())


def test_an_invocation_is_a_turn_with_calls_costs_and_changes(service, store) -> None:
    converse(service, ScriptedLlm.of(asks("weather", city="Bern"), says("It is blue."), says("Bye.")), "Hi", "Bye")
    session = store.resume(NAME)
    state = session.state()
    assert (state.turn.number, state.turn.status) == (2, "completed")
    assert {name: use.calls for name, use in state.tools_used.items()} == {"model": 3, "weather": 1}
    assert state.pending_actions == {}
    assert state.data == {"city": "Bern"}
    assert session.messages()[0].text == "Hi"
    assert session.messages()[-1].text == "Bye."
    spent = store.cost(NAME).total
    assert (spent.tokens_in, spent.tokens_out) == (3000, 150)
    changed = {change.pointer: change for change in session.diff("@1").changes}
    assert changed["/data/city"].after == "Bern"
    why = session.why("/data/city")
    assert "weather" in str(why)
    assert state.labels["adk.user"] == "ann@example.org"
    assert session.verify().ok


def test_the_shared_state_of_users_and_apps_is_a_session_too(service, store) -> None:
    converse(service, ScriptedLlm.of(asks("weather", city="Bern"), says("Blue.")), "Hi")
    assert store.resume("adk-state/shop/ann%40example.org").state().data == {"home": "Bern"}


def test_a_tool_that_reports_an_error_is_a_failed_call(service, store) -> None:
    converse(service, ScriptedLlm.of(asks("fails", city="Bern"), says("Sorry.")), "Hi")
    state = store.resume(NAME).state()
    assert state.tools_used["fails"].errors == 1
    assert state.last_error is not None
    assert state.last_error["message"] == "no Bern"


def test_a_turn_that_was_cut_is_interrupted_when_the_next_begins(service, store) -> None:
    async def test() -> None:
        session = await service.create_session(**ME, session_id="s1")
        call = types.Part(function_call=types.FunctionCall(id="c", name="pay", args={}))
        for event in (
            Event(author="user", invocation_id="1", content=_text("Hi")),
            Event(author="clerk", invocation_id="1", content=types.Content(role="model", parts=[call])),
            Event(author="user", invocation_id="2", content=_text("Are you there?")),
            Event(author="clerk", invocation_id="2", content=_text("Yes.")),
            Event(author="user", invocation_id="3", content=_text("Good.")),
        ):
            await service.append_event(session, event)

    asyncio.run(test())
    session = store.resume(NAME)
    ended = [e.body.get("outcome", "completed") for e in session.log.entries() if e.kind == "turn.ended"]
    assert ended == ["interrupted", "completed"]
    assert list(session.state().pending_actions) == ["c"]


def test_a_run_that_raised_is_a_failed_turn(service, store) -> None:
    with pytest.raises(IndexError):
        converse(service, ScriptedLlm.of(asks("weather", city="Bern")), "Hi")
    assert store.resume(NAME).state().turn.status == "failed"


def test_what_a_person_rewound_is_not_in_the_session_any_more(service, store) -> None:
    before = converse(service, ScriptedLlm.of(says("One."), asks("weather", city="Bern"), says("Two.")), "1", "2")
    store.resume(NAME).rewind("@1")
    found = asyncio.run(service.get_session(**ME, session_id="s1"))
    assert [e.content.parts[0].text for e in found.events] == ["1", "One."]
    assert found.state == {"user:home": "Bern"}
    with pytest.raises(StaleSessionError):
        asyncio.run(service.append_event(before, Event(author="user", invocation_id="i")))
    model = ScriptedLlm.of(says("Three."))
    after = converse(service, model, "3")
    assert model.sent == [["1", "One.", "3"]]
    assert [e.content.parts[0].text for e in after.events] == ["1", "One.", "3", "Three."]
    store.resume(NAME).undo()


def test_a_rewind_by_adk_is_a_rewind_in_the_log_and_its_events_stay(service, store) -> None:
    session = converse(service, ScriptedLlm.of(says("One."), asks("weather", city="Bern"), says("Two.")), "1", "2")
    second = next(e.invocation_id for e in session.events if e.content.parts[0].text == "2")

    async def rewind() -> Session | None:
        runner = Runner(app_name="shop", agent=LlmAgent(name="clerk", model="m"), session_service=service)
        await runner.rewind_async(user_id=ME["user_id"], session_id="s1", rewind_before_invocation_id=second)
        return await service.get_session(**ME, session_id="s1")

    found = asyncio.run(rewind())
    assert found is not None
    assert len(found.events) == len(session.events) + 1
    assert found.events[-1].actions.rewind_before_invocation_id == second
    assert found.state.get("city") is None
    assert [m.text for m in store.resume(NAME).messages()] == ["1", "One."]
    model = ScriptedLlm.of(says("Three."))
    converse(service, model, "3")
    assert model.sent == [["1", "One.", "3"]]


def test_a_fork_is_a_session_of_adk(service, store) -> None:
    converse(service, ScriptedLlm.of(says("One."), says("Two.")), "1", "2")
    name = service.name_of(**ME, session_id="try 2")
    store.resume(NAME).fork("@1", name=name)
    model = ScriptedLlm.of(says("Another."))
    found = converse(service, model, "other", id="try 2")
    assert model.sent == [["1", "One.", "other"]]
    assert [e.content.parts[0].text for e in found.events] == ["1", "One.", "other", "Another."]
    listed = asyncio.run(service.list_sessions(**ME)).sessions
    assert sorted(s.id for s in listed) == ["s1", "try 2"]


@pytest.mark.parametrize("id", ["e86", "@5", "@", "turn:3", "s_01JCX4", "../x", "a/b", "-x", " %2F", "ü" * 300, "a\nb"])
def test_any_id_names_a_session_of_its_own(service, store, id) -> None:
    async def test() -> None:
        me = {"app_name": id, "user_id": id}
        session = await service.create_session(**me, session_id=id, state={"id": id})
        await service.append_event(session, Event(author="user", invocation_id="i"))
        found = await service.get_session(**me, session_id=id.strip())
        assert found is not None
        assert (found.state, found.id) == ({"id": id}, id.strip())
        assert [s.id for s in (await service.list_sessions(**me)).sessions] == [id.strip()]
        name = service.name_of(**me, session_id=id.strip())
        assert store.resume(name).head.seq > 1
        assert service.ids_of(name) in ((id, id, id.strip()), None)

    asyncio.run(test())


def test_a_crash_between_event_and_shared_state_is_mended_at_the_next_look(service, store, monkeypatch) -> None:
    class Crash(BaseException):
        pass

    def crash(*_: Any, **__: Any) -> None:
        raise Crash

    async def test() -> None:
        session = await service.create_session(**ME, session_id="s1")
        change = EventActions(state_delta={"user:u": 1, "app:a": 2, "own": 3})
        with monkeypatch.context() as patch, pytest.raises(Crash):
            patch.setattr(adk_sessions, "merge_data", crash)
            await service.append_event(session, Event(author="agent", invocation_id="i", actions=change))
        again = WakelogSessionService(store)
        found = await again.get_session(**ME, session_id="s1")
        assert found is not None
        assert found.state == {"user:u": 1, "app:a": 2, "own": 3}
        other = await again.create_session(**ME, session_id="s2", state={"user:u": 9})
        found = await WakelogSessionService(store).get_session(**ME, session_id="s1")
        assert found is not None
        assert found.state["user:u"] == other.state["user:u"] == 9

    asyncio.run(test())


def test_a_value_that_is_no_json_is_named_by_its_path(service) -> None:
    async def test() -> None:
        with pytest.warns(UserWarning, match=r"state\['f'\]\['deep'\]\[1\] is a builtin_function_or_method"):
            await service.create_session(**ME, session_id="s1", state={"f": {"deep": [1, print]}})
        session = await service.get_session(**ME, session_id="s1")
        assert session is not None
        change = EventActions(state_delta={"a": {"b": "\ud800"}})
        with pytest.raises(InvalidInputError, match=r"state /a"):
            await service.append_event(session, Event(author="agent", invocation_id="i", actions=change))
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert found.events == []

    asyncio.run(test())


def test_a_growing_list_is_stored_by_what_is_new(service, store) -> None:
    async def test() -> None:
        session = await service.create_session(**ME, session_id="s1")
        for n in range(50):
            change = EventActions(state_delta={"list": [{"n": i, "text": "x" * 100} for i in range(n + 1)]})
            await service.append_event(session, Event(author="agent", invocation_id="i", actions=change))

    asyncio.run(test())
    sizes = [len(e.record.body) for e in store.resume(NAME).log.entries() if e.kind == "state.patched"]
    assert len(sizes) == 50
    assert max(sizes) < 400


def test_an_event_that_is_sent_again_is_stored_once(service) -> None:
    async def test() -> None:
        session = await service.create_session(**ME, session_id="s1")
        event = Event(author="user", invocation_id="i", actions=EventActions(state_delta={"n": 1}))
        await service.append_event(session, event)
        await service.append_event(session, event.model_copy(deep=True))
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert len(found.events) == len(session.events) == 1

    asyncio.run(test())


def test_parallel_appends_with_one_session_object_all_land(service) -> None:
    async def test() -> None:
        session = await service.create_session(**ME, session_id="s1")
        events = [Event(author="agent", invocation_id="i", content=_text(str(n))) for n in range(40)]
        await asyncio.gather(*(service.append_event(session, event) for event in events))
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert sorted(e.id for e in found.events) == sorted(e.id for e in events)

    asyncio.run(test())


def test_a_service_that_knows_less_than_the_caller_looks_before_it_refuses(service, store) -> None:
    async def test() -> None:
        session = await service.create_session(**ME, session_id="s1")
        await service.append_event(session, Event(author="user", invocation_id="1"))
        other = WakelogSessionService(wakelog.open(store.engine.abilities.path.parent))
        fresh = await other.get_session(**ME, session_id="s1")
        assert fresh is not None
        await other.append_event(fresh, Event(author="user", invocation_id="2"))
        await service.append_event(fresh, Event(author="user", invocation_id="3"))
        with pytest.raises(StaleSessionError):
            await service.append_event(session, Event(author="user", invocation_id="4"))
        other.store.close()
        found = await service.get_session(**ME, session_id="s1")
        assert found is not None
        assert [e.invocation_id for e in found.events] == ["1", "2", "3"]

    asyncio.run(test())


WRITER = """
import asyncio, sys
from wakelog.adapters.adk.errors import StaleSessionError
from google.adk.events import Event, EventActions
from google.genai import types
from wakelog.adapters.adk import WakelogSessionService

async def main():
    url, me = sys.argv[1:]
    service = WakelogSessionService(url)
    ids = {"app_name": "shop", "user_id": "ann@example.org", "session_id": "s1"}
    for n in range(10):
        while True:
            session = await service.get_session(**ids)
            change = EventActions(state_delta={f"{me}": n, "app:last": me, f"user:{me}": n})
            content = types.Content(role="user", parts=[types.Part(text=f"{me} {n}")])
            try:
                event = Event(author="user", invocation_id=me, content=content, actions=change)
                await service.append_event(session, event)
                break
            except StaleSessionError:
                continue
    await service.close()

asyncio.run(main())
"""


def test_four_processes_lose_nothing(service, store, tmp_path) -> None:
    asyncio.run(service.create_session(**ME, session_id="s1"))
    command = [sys.executable, "-c", WRITER, str(tmp_path / "store")]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in ("a", "b", "c", "d")]
    for writer in writers:
        _, errors = writer.communicate(timeout=300)
        assert writer.returncode == 0, errors.decode()
    found = asyncio.run(service.get_session(**ME, session_id="s1"))
    texts = [event.content.parts[0].text for event in found.events]
    for name in ("a", "b", "c", "d"):
        assert [t for t in texts if t.startswith(name)] == [f"{name} {n}" for n in range(10)]
        assert found.state[name] == found.state[f"user:{name}"] == 9


def _text(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def run_in_database(path: Path) -> None:
    """Two turns in a database of ADK's own."""

    async def main() -> None:
        service = DatabaseSessionService(f"sqlite+aiosqlite:///{path}")
        agent = LlmAgent(
            name="clerk",
            model=ScriptedLlm.of(asks("weather", city="Bern"), says("Blue."), says("Bye.")),
            tools=[weather],
        )
        await service.create_session(**ME, session_id="s1", state={"began": 1, "app:a": 2})
        runner = Runner(app_name="shop", agent=agent, session_service=service)
        for text in ("Hi", "Bye"):
            content = types.Content(role="user", parts=[types.Part(text=text)])
            async for _ in runner.run_async(user_id=ME["user_id"], session_id="s1", new_message=content):
                pass
        await service.close()

    asyncio.run(main())


def test_sessions_of_another_service_are_taken_over_and_go_on(service, store, tmp_path) -> None:
    run_in_database(tmp_path / "adk.db")

    async def take() -> list[int]:
        other = DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/adk.db")
        copied = [await service.take_over(other, app_name="shop") for _ in range(2)]
        theirs = await other.get_session(**ME, session_id="s1")
        ours = await service.get_session(**ME, session_id="s1")
        assert theirs is not None
        assert ours is not None
        assert ours.events == theirs.events
        assert ours.state == theirs.state
        assert ours.last_update_time == theirs.events[-1].timestamp
        await other.close()
        return copied

    assert asyncio.run(take()) == [1, 0]
    model = ScriptedLlm.of(says("Yes."))
    converse(service, model, "Still there?")
    assert model.sent[0][0] == "Hi"
    assert store.resume(NAME).state().turn.number == 3


def test_a_database_of_adk_is_imported(store, tmp_path) -> None:
    run_in_database(tmp_path / "adk.db")
    report = import_transcript(store, tmp_path / "adk.db")
    assert report.format == "adk"
    assert report.broken == ()
    session = store.resume(report.sessions[0].name)
    state = session.state()
    assert state.turn.number == 2
    assert state.tools_used["weather"].calls == 1
    assert state.data == {"began": 1, "city": "Bern", "user:home": "Bern"}


def test_bytes_that_are_no_text_are_refused_with_their_place(service) -> None:
    async def main() -> None:
        session = await service.create_session(**ME)
        change = EventActions(state_delta={"deep": [{"raw": b"\xff"}]})
        with pytest.raises(InvalidInputError, match=r"state\['deep'\]\[0\]\['raw'\] cannot be stored"):
            await service.append_event(session, Event(author="agent", invocation_id="i", actions=change))
        found = await service.get_session(**ME, session_id=session.id)
        assert (found.state, found.events) == ({}, [])

    asyncio.run(main())


def test_a_session_that_is_not_of_adk_is_not_written_to(store: Store, service: WakelogSessionService) -> None:
    made = store.session(NAME, data={"mine": 1})

    async def write() -> None:
        lent = Session(**ME, id="s1", last_update_time=0.0)
        await service.append_event(lent, Event(author="user", invocation_id="i1"))

    with pytest.raises(InvalidInputError, match="not a session of adk") as refused:
        asyncio.run(write())
    assert refused.value.kind == "foreign-session"
    assert made.head.seq == 1
    assert asyncio.run(service.list_sessions(**ME)).sessions == []
