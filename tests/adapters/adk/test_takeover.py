"""Databases that ADK's own services wrote, taken over by `wakelog import`: agents go on where they were."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events import Event, EventActions
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

import wakelog
from tests.adapters.adk.fake_model import ScriptedLlm, asks, says
from tests.adapters.command_line import command
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.adapters.adk import WakelogSessionService
from wakelog.adapters.adk.takeover import take_over

ME: Any = {"app_name": "shop", "user_id": "ann"}


def weather(city: str) -> dict[str, Any]:
    """Tells the weather."""
    return {"sky": f"blue over {city}"}


async def talk(service: Any, model: ScriptedLlm, *messages: str, id: str) -> None:
    runner = Runner(
        app_name="shop", agent=LlmAgent(name="clerk", model=model, tools=[weather]), session_service=service
    )
    for text in messages:
        content = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id="ann", session_id=id, new_message=content):
            pass


async def set_state(service: Any, id: str, **change: Any) -> None:
    session = await service.get_session(**ME, session_id=id)
    event = Event(author="clerk", invocation_id=f"set-{id}", actions=EventActions(state_delta=change))
    await service.append_event(session, event)


async def use(service: Any) -> None:
    """Two sessions that change what they share in turn: the one that was used last is not the one that changed it
    last."""
    await service.create_session(**ME, session_id="first", state={"began": 1, "app:motto": "hello"})
    await service.create_session(**ME, session_id="second")
    await talk(service, ScriptedLlm.of(asks("weather", city="Bern"), says("Blue.")), "Hi", id="first")
    await set_state(service, "first", **{"user:home": "Bern", "step": 1})
    await set_state(service, "second", **{"user:home": "Rome"})
    await set_state(service, "first", step=2)


@pytest.fixture(params=["database", "sqlite", ON_POSTGRES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "adk.db"
    if request.param == "sqlite":
        asyncio.run(use(SqliteSessionService(str(file))))
        yield str(file)
        return
    address = f"sqlite+aiosqlite:///{file}"
    shown = str(file)
    if request.param == "postgres":
        shown = postgres_url(request, tmp_path).partition("?")[0]
        address = shown.replace("postgresql://", "postgresql+asyncpg://")

    async def main() -> None:
        async with DatabaseSessionService(address) as service:
            await use(service)

    asyncio.run(main())
    yield shown


def test_agents_go_on_after_the_import(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    assert "and 1 more" in command("import", place, "--store", str(folder))
    assert "everything was there already" in command("import", place, "--store", str(folder))
    with wakelog.open(folder) as store:

        async def go_on() -> None:
            service = WakelogSessionService(store)
            first = await service.get_session(**ME, session_id="first")
            second = await service.get_session(**ME, session_id="second")
            assert first is not None
            assert second is not None
            assert first.state == {"began": 1, "step": 2, "app:motto": "hello", "user:home": "Rome"}
            assert second.state["user:home"] == "Rome"
            model = ScriptedLlm.of(says("Still here."))
            await talk(service, model, "Still there?", id="first")
            assert model.sent[0][0] == "Hi"

        asyncio.run(go_on())
        state = store.resume("adk/shop/ann/first").state()
        assert state.tools_used["weather"].calls == 1
    assert "gone on here since" in command("import", place, "--store", str(folder))


def test_a_session_that_was_deleted_stays_so_unless_it_is_asked_for(tmp_path: Path) -> None:
    file = str(tmp_path / "adk.db")
    asyncio.run(use(SqliteSessionService(file)))
    before = Path(file).read_bytes()
    with wakelog.open(tmp_path / "store") as store:
        take_over(store, file)
        asyncio.run(WakelogSessionService(store).delete_session(**ME, session_id="first"))
        report = take_over(store, file)
        assert report.deleted == ("adk/shop/ann/first",)
        assert [each.name for each in report.sessions] == ["adk/shop/ann/second"]
        assert len(take_over(store, file, again=True).sessions) == 2
    assert Path(file).read_bytes() == before
