"""Google ADK: session services.

A turn is three events, as its runner appends them: the message, the calls, their answers with the change of the state.
That change overwrites by key, so the documented way to keep a list is to set the whole list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from benchmarks.protocol import AsyncContender, Settings, pragmas
from benchmarks.turns import State, Turn, delta, new_state


class AdkSqlite(AsyncContender):
    service: Any
    _opened: Any = None

    async def aopen(self, beside: Self | None) -> None:
        self.service = beside.service if beside else self._serve()
        self._known = {"app_name": "bench", "user_id": "someone", "session_id": self.session}

    def _serve(self) -> Any:
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        return SqliteSessionService(self._file())

    def _file(self) -> str:
        return str(Path(self.place) / "adk.db")

    async def aappend(self, turn: Turn) -> None:
        try:
            await self._append(turn)
        except Exception:
            self._opened = None  # it is stale, and has to be read again
            raise

    async def _append(self, turn: Turn) -> None:
        from google.adk.events import Event, EventActions
        from google.genai import types

        if self._opened is None:
            found = await self.service.get_session(**self._known)
            self._opened = found or await self.service.create_session(**self._known, state={})
        session, append, message = self._opened, self.service.append_event, turn["message"]
        is_user, invocation = message["role"] == "user", f"turn-{turn['n']}"
        said = types.Content(role="user" if is_user else "model", parts=[types.Part(text=message["text"])])
        await append(session, Event(author="user" if is_user else "agent", invocation_id=invocation, content=said))
        calls, answers = [], []
        for call in turn["tools"]:
            known = {"id": call["id"], "name": call["name"]}
            calls.append(types.Part(function_call=types.FunctionCall(**known, args=call["input"])))
            response = types.FunctionResponse(**known, response={"result": call["output"]})
            answers.append(types.Part(function_response=response))
        called = types.Content(role="model", parts=calls)
        await append(session, Event(author="agent", invocation_id=invocation, content=called))
        answered = types.Content(role="user", parts=answers)
        actions = EventActions(state_delta=_change(session.state, turn))
        event = Event(author="agent", invocation_id=invocation, content=answered, actions=actions)
        await append(session, event)

    async def aload(self, at: int | None = None) -> State:
        """At a turn: what its own rewind does, reading the whole session and folding the changes up to there."""
        session = await self.service.get_session(**self._known)
        if at is None:
            return _state(session, session.state)
        kept: dict[str, Any] = {}
        for event in session.events:
            kept.update(event.actions.state_delta)
            if kept.get("turn") == at:
                break
        return _state(session, kept)

    def settings(self) -> Settings:
        return pragmas(lambda statement: self.run(self._ask(statement)))

    async def _ask(self, statement: str) -> Any:
        # It opens a new connection for every call, so this one is as any other.
        async with self.service._get_db_connection() as db, db.execute(statement) as cursor:
            return (await cursor.fetchone())[0]

    async def aclose(self) -> None:
        await self.service.close()


class AdkDatabase(AdkSqlite):
    def _serve(self) -> Any:
        from google.adk.sessions import DatabaseSessionService

        return DatabaseSessionService(self._url())

    def _url(self) -> str:
        return f"sqlite+aiosqlite:///{self._file()}"

    async def _ask(self, statement: str) -> Any:
        from sqlalchemy import text

        async with self.service.db_engine.connect() as connection:
            return (await connection.execute(text(statement))).scalar()


class AdkPostgres(AdkDatabase):
    def _url(self) -> str:
        return self.place.replace("postgresql://", "postgresql+asyncpg://")

    def settings(self) -> Settings:
        return {"synchronous_commit": self.run(self._ask("show synchronous_commit"))}


def _change(state: Any, turn: Turn) -> dict[str, Any]:
    change = delta(turn)
    pending = [*state.get("pending_actions", []), turn["push"]]
    made = {
        "turn": turn["n"],
        "tools_used": state.get("tools_used", []) + change["tools_used"],
        "files_modified": [*state.get("files_modified", []), turn["file"]],
        "pending_actions": [action for action in pending if action["id"] != turn["pop"]],
    }
    if turn["decision"]:
        made["decisions"] = [*state.get("decisions", []), turn["decision"]]
    return made


def _state(session: Any, kept: Any) -> State:
    state = {part: kept.get(part, empty) for part, empty in new_state().items()}
    said = [event for event in session.events if event.content.parts[0].text]
    messages = [
        {"role": "user" if event.author == "user" else "assistant", "text": event.content.parts[0].text}
        for event in said
    ]
    return {**state, "messages": messages[: state["turn"]]}
