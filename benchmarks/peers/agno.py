"""Agno: what its agent stores after a run, one row for the run and the whole session state again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Self

from benchmarks.protocol import Contender, Settings, Unsupported, pragmas
from benchmarks.turns import State, Turn, apply, delta, new_state


class AgnoSqlite(Contender):
    def __init__(self, place: str, session: str = "bench", beside: Self | None = None) -> None:
        from agno.db.sqlite import SqliteDb
        from agno.session import AgentSession

        super().__init__(place, session)
        self.db: Any = beside.db if beside else SqliteDb(db_file=str(Path(place) / "agno.db"))
        self._session: Any = AgentSession(
            session_id=session,
            agent_id="agent",
            session_data={"session_state": new_state()},
            runs=[],
            created_at=int(time.time()),
        )

    def append(self, turn: Turn) -> None:
        from agno.models.message import Message
        from agno.run.agent import RunOutput

        apply(self._session.session_data["session_state"], delta(turn))
        calls = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["input"]}}
            for call in turn["tools"]
        ]
        said = turn["message"]
        messages = [Message(role=said["role"], content=said["text"]), Message(role="assistant", tool_calls=calls)]
        for call in turn["tools"]:
            known = {"tool_call_id": call["id"], "tool_name": call["name"]}
            messages.append(Message(role="tool", content=call["output"], **known))
        known = {"run_id": f"{self.session}-{turn['n']}", "session_id": self.session, "agent_id": "agent"}
        if turn["n"] == 1:
            self.db.upsert_session(self._session, deserialize=False)
        run = RunOutput(**known, messages=messages, content=said["text"])
        self.db.upsert_run(run, session_id=self.session, run_index=turn["n"])
        self.db.upsert_session(self._session, deserialize=False)

    def load(self, at: int | None = None) -> State:
        from agno.db.base import SessionType

        if at is not None:
            raise Unsupported
        session = self.db.get_session(self.session, session_type=SessionType.AGENT)  # with all runs, as its agent does
        state: State = session.session_data["session_state"]
        return state

    def settings(self) -> Settings:
        from sqlalchemy import text

        with self.db.db_engine.connect() as connection:
            return pragmas(lambda statement: connection.execute(text(statement)).scalar())

    def close(self) -> None:
        self.db.db_engine.dispose()
