"""The session store: snapshots of agent sessions, as the data of sessions named `agent-framework-session/<id>`.

Only what changed since the snapshot before is stored, so every earlier one can be looked at.
"""

from __future__ import annotations

from typing import Any

from agent_framework import AgentSession, SessionStore

from wakelog.adapters.compound_names import compound_name
from wakelog.adapters.exact_values import from_stored, to_stored
from wakelog.adapters.held_logs import HeldLogs
from wakelog.adapters.stores import Place
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.values import Value, check_value
from wakelog.runtime.bridge import in_thread
from wakelog.state.diff import diff

SNAPSHOTS = "agent-framework-session"


class WakelogAgentSessionStore(SessionStore):  # type: ignore[misc]  # Any where it is not installed
    """Keeps snapshots of agent sessions in a store."""

    def __init__(self, store: Place = None) -> None:
        """`store` is a store, or the url of one as for `wakelog.open`."""
        self._logs = HeldLogs(store, "agent-framework")
        self.store = self._logs.store

    @staticmethod
    def name_of(session_id: str) -> str:
        """The name of the session in the store."""
        return compound_name(SNAPSHOTS, session_id)

    async def get(self, session_id: str) -> AgentSession | None:
        SessionStore.validate_session_id(session_id)
        return await in_thread(self._get, session_id)

    async def set(self, session_id: str, session: AgentSession) -> None:
        SessionStore.validate_session_id(session_id)
        await in_thread(self._set, session_id, check_value(to_stored(session.to_dict()), "session"))

    async def delete(self, session_id: str) -> None:
        SessionStore.validate_session_id(session_id)
        await in_thread(self._logs.delete, self.name_of(session_id), why="deleted through the framework")

    async def close(self) -> None:
        """Closes the store, if it was opened here."""
        await in_thread(self._logs.close)

    def _get(self, session_id: str) -> AgentSession | None:
        held = self._logs.find(self.name_of(session_id))
        data = from_stored(held.log.state()["data"]) if held is not None else None
        return AgentSession.from_dict(data) if data else None

    def _set(self, session_id: str, data: dict[str, Value]) -> None:
        held = self._logs.open(self.name_of(session_id), {"agent-framework.session": session_id})

        def attempt() -> None:
            seq, state = held.log.now()
            before: dict[str, Any] = state["data"]
            if patch := diff(before, data, "/data"):
                held.log.append(ev.StatePatched(patch=patch), expect=seq)

        # The framework's own stores let the last writer win; so does this one, and keeps what it replaced.
        retry_on_moved_head(held.log.id, "to store a snapshot", attempt)
