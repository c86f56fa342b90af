"""The framework's session store: a snapshot of an agent session is the data of `agent-framework-session/<id>`.

Only the difference to the previous snapshot is stored, and earlier ones stay readable.
"""

from __future__ import annotations

from agent_framework import AgentSession, SessionStore

from wakelog.adapters.compound_names import compound_name
from wakelog.adapters.exact_values import from_stored, stored_form
from wakelog.adapters.held_logs import LogsAdapter, replace_data
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread

SNAPSHOTS = "agent-framework-session"


class WakelogAgentSessionStore(LogsAdapter, SessionStore):  # type: ignore[misc]  # Any if it is not installed
    """Stores snapshots of agent sessions in a wakelog store."""

    framework = "agent-framework"

    @staticmethod
    def name_of(session_id: str) -> str:
        """The name of the session in the store."""
        return compound_name(SNAPSHOTS, session_id)

    async def get(self, session_id: str) -> AgentSession | None:
        SessionStore.validate_session_id(session_id)
        return await in_thread(self._get, session_id)

    async def set(self, session_id: str, session: AgentSession) -> None:
        SessionStore.validate_session_id(session_id)
        await in_thread(self._set, session_id, stored_form(session.to_dict(), "session"))

    async def delete(self, session_id: str) -> None:
        SessionStore.validate_session_id(session_id)
        await in_thread(self._logs.delete, self.name_of(session_id), why="deleted through the framework")

    def _get(self, session_id: str) -> AgentSession | None:
        held = self._logs.find(self.name_of(session_id))
        data = from_stored(held.log.state()["data"]) if held is not None else None
        return AgentSession.from_dict(data) if data else None

    def _set(self, session_id: str, data: dict[str, Value]) -> None:
        held = self._logs.open(self.name_of(session_id), {"agent-framework.session": session_id})
        replace_data(held.log, data)  # like the framework's own stores, the last writer wins
