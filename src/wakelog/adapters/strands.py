"""Strands Agents: a session repository, and a session manager that uses it.

    from wakelog.adapters.strands import WakelogSessionManager

    agent = Agent(session_manager=WakelogSessionManager("s1", "agents.db"))

A Strands session is the session `strands/<id>`; graphs and swarms are its data. Each agent has its own session
`strands/<id>/<agent>`, linked as a sub-agent: its messages are turns, calls and outcomes, its state is `/data/state`.
Everything else that Strands keeps of an agent is bookkeeping, and is stored under a key that commands leave out.
"""

from __future__ import annotations

from typing import Any

from wakelog.adapters import frameworks
from wakelog.model.json_fields import as_dict

try:
    from strands.session.repository_session_manager import RepositorySessionManager
    from strands.session.session_repository import SessionRepository
    from strands.types.exceptions import SessionException
    from strands.types.session import Session as StrandsSession
    from strands.types.session import SessionAgent, SessionMessage
except ImportError as exc:
    raise frameworks.missing("Strands Agents", "strands") from exc

from wakelog.adapters.compound_names import compound_name, ids_of, is_hashed
from wakelog.adapters.exact_values import from_stored, stored_form
from wakelog.adapters.held_logs import HeldLog, HeldLogs, merge_data, replace_data
from wakelog.adapters.item_log import KeptItem
from wakelog.adapters.message_events import ReplyFacts
from wakelog.adapters.shaped_items import ShapedItems, items_of
from wakelog.adapters.stores import Place
from wakelog.errors import ConflictError
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.usage import Usage
from wakelog.state.diff import diff

frameworks.warn_outside("strands-agents", oldest="1.50.0", newest="1.62.0")

FORMAT = "strands"
_UPDATED = "x.strands.message_updated"
_OWN = "$strands"
"""The key of an agent's data for everything but its state."""
_END_STATUSES = ("completed", "failed", "interrupted")


class WakelogSessionRepository(SessionRepository):  # type: ignore[misc]  # Any if it is not installed
    """Stores Strands sessions in a wakelog store."""

    def __init__(self, store: Place = None) -> None:
        """`store` is an open store, or an argument of `wakelog.open`."""
        self._logs = HeldLogs(store, FORMAT)
        self.store = self._logs.store
        self._costs = ReplyCosts(self.store)

    @staticmethod
    def name_of(session_id: str, agent_id: str | None = None) -> str:
        """The name of a session, or of an agent in it, in the store."""
        return compound_name(FORMAT, session_id) if agent_id is None else compound_name(FORMAT, session_id, agent_id)

    @staticmethod
    def ids_of(name: str) -> tuple[str, ...] | None:
        """The session, or session and agent, of a name; None if the name is not Strands'."""
        return ids_of(FORMAT, name)

    def close(self) -> None:
        """Closes the store if the repository opened it."""
        self._logs.close()

    # Sessions

    def create_session(self, session: StrandsSession, **kwargs: Any) -> StrandsSession:
        name = self.name_of(session.session_id)
        data = {"session": stored_form(session.to_dict(), "session")}
        labels = {"framework": FORMAT, "strands.session": session.session_id}
        try:
            if self._logs.find(name) is not None:
                raise SessionException(f"Session {session.session_id} already exists")
            self._logs.create(name, ev.SessionOpened(name=name, labels=labels, data=data))
        except ConflictError:
            raise SessionException(f"Session {session.session_id} already exists") from None
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> StrandsSession | None:
        held = self._logs.find(self.name_of(session_id))
        stored = held.log.state()["data"].get("session") if held is not None else None
        return StrandsSession.from_dict(from_stored(stored)) if stored is not None else None

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Deletes a session and its agents."""
        name = self.name_of(session_id)
        if self._logs.find(name) is None:
            raise SessionException(f"Session {session_id} does not exist")
        for head in list(self.store.sessions()):
            if self._is_agent_of(head.name, session_id):
                self._logs.delete(head.name, why="deleted through Strands")
        self._logs.delete(name, why="deleted through Strands")

    def _is_agent_of(self, name: str, session_id: str) -> bool:
        if is_hashed(FORMAT, name):  # ids that are too long for a name are in its labels
            held = self._logs.find(name, is_listed=True)
            labels = held.log.part("labels") if held is not None else {}
            return labels.get("strands.session") == session_id and "strands.agent" in labels
        ids = ids_of(FORMAT, name)
        return ids is not None and len(ids) == 2 and ids[0] == session_id

    # Agents

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        data = _to_data(session_agent)
        name = self.name_of(session_id, session_agent.agent_id)
        parent = self._logs.find(self.name_of(session_id))
        agent = session_agent.agent_id
        labels = {"strands.session": session_id, "strands.agent": agent}
        spawner = f"{parent.log.id}@{parent.log.head().seq}" if parent is not None else ""
        is_new = self._logs.find(name) is None
        held = self._logs.open(name, labels, agent=agent, data=data, spawner=spawner)
        if is_new and parent is not None:
            spawned = ev.SubagentSpawned(session=held.log.id, task=agent)
            parent.log.append(EventDraft(spawned, actor="runtime"))
        _write_data(held, data)

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        held = self._logs.find(self.name_of(session_id, agent_id))
        data = held.log.state()["data"] if held is not None else None
        return SessionAgent.from_dict(_from_data(data)) if data else None

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        held = self._agent(session_id, session_agent.agent_id)
        session_agent.created_at = _from_data(held.log.state()["data"]).get("created_at", session_agent.created_at)
        _write_data(held, _to_data(session_agent))

    def _agent(self, session_id: str, agent_id: str) -> HeldLog:
        held = self._logs.find(self.name_of(session_id, agent_id))
        if held is None:
            raise SessionException(f"Agent {agent_id} in session {session_id} does not exist")
        return held

    # Messages

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        value = stored_form(session_message.to_dict(), "message")
        id = str(_checked_id(session_message.message_id))
        items = self._items(self._agent(session_id, agent_id), session_id, agent_id)

        def choose(known: list[KeptItem]) -> list[tuple[Any, str]]:
            before = next((item for item in known if item.id == id), None)
            if before is None:
                return [(value, id)]
            if before.original["message"] == from_stored(value)["message"]:
                return []
            raise SessionException(
                f"Message {id} of agent {agent_id} in session {session_id} already exists: another process continued"
                " this session. Read it again."
            )

        items.add(choose, reply=self._facts(value["message"]))

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        _checked_id(message_id)
        if self._logs.find(self.name_of(session_id, agent_id)) is None:
            return None
        return self._messages(session_id, agent_id).get(message_id)

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        id = _checked_id(session_message.message_id)
        previous = self.read_message(session_id, agent_id, id)
        if previous is None:
            raise SessionException(f"Message {id} does not exist")
        session_message.created_at = previous.created_at
        held = self._agent(session_id, agent_id)
        data = {"id": id, "message": stored_form(session_message.to_dict(), "message")}
        items = self._items(held, session_id, agent_id).items()
        first = next((item.first for item in items if item.id == str(id)), 0)
        held.log.append(
            EventDraft(ev.Foreign(foreign_kind=_UPDATED, data=data), actor="runtime"),
            EventDraft(ev.NoteAdded(text="this message was replaced, as by a guardrail", on=first), actor="runtime"),
        )

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        found = self._messages(session_id, agent_id)
        ordered = [found[id] for id in sorted(found)]
        return ordered[offset:] if limit is None else ordered[offset : offset + limit]

    def _messages(self, session_id: str, agent_id: str) -> dict[int, SessionMessage]:
        held = self._agent(session_id, agent_id)
        items = self._items(held, session_id, agent_id).items()
        found = {int(item.id): item.original for item in items}
        firsts = {int(item.id): item.first for item in items}
        for seq, id, value in self._updates(held):
            if seq > firsts.get(id, seq):  # else the update belongs to a rewound message with the same number
                found[id] = value
        return {id: SessionMessage.from_dict(value) for id, value in found.items()}

    def _updates(self, held: HeldLog) -> list[tuple[Seq, int, dict[str, Any]]]:
        """The updates of messages that are in view. Most sessions have none."""
        return [
            (entry.seq, entry.body["id"], from_stored(entry.body["message"]))
            for low, high in held.log.view()
            for entry in held.log.entries(after=low - 1, upto=high)
            if entry.kind == _UPDATED and "id" in entry.body
        ]

    def _items(self, held: HeldLog, session_id: str, agent_id: str) -> ShapedItems:
        return items_of(held, self.store, self.name_of(session_id, agent_id), FORMAT, to_anthropic)

    def _facts(self, message: dict[str, Any]) -> ReplyFacts | None:
        used = as_dict(message.get("metadata")).get("usage")
        if not isinstance(used, dict):
            return None
        numbers = {key: value for key, value in used.items() if type(value) is int and value > 0}
        usage = Usage(
            input=numbers.get("inputTokens", 0),
            output=numbers.get("outputTokens", 0),
            cache_read=numbers.get("cacheReadInputTokens", 0),
            cache_write=numbers.get("cacheWriteInputTokens", 0),
        )
        return ReplyFacts(cost=self._costs.cost("", usage, 0, self.store.clock()))

    # Graphs and swarms

    def create_multi_agent(self, session_id: str, multi_agent: Any, **kwargs: Any) -> None:
        self._set_multi_agent(session_id, multi_agent)

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> dict[str, Any] | None:
        held = self._logs.find(self.name_of(session_id))
        kept = held.log.state()["data"].get("multi_agents", {}) if held is not None else {}
        found: dict[str, Any] | None = from_stored(kept[multi_agent_id]) if multi_agent_id in kept else None
        return found

    def update_multi_agent(self, session_id: str, multi_agent: Any, **kwargs: Any) -> None:
        if self.read_multi_agent(session_id, multi_agent.id) is None:
            raise SessionException(f"MultiAgent state {multi_agent.id} in session {session_id} does not exist")
        self._set_multi_agent(session_id, multi_agent)

    def _set_multi_agent(self, session_id: str, multi_agent: Any) -> None:
        state = stored_form(multi_agent.serialize_state(), f"multi_agents.{multi_agent.id}")
        held = self._logs.find(self.name_of(session_id))
        if held is None:
            raise SessionException(f"Session {session_id} does not exist")
        status, task = str(state.get("status", "")), state.get("current_task")

        def attempt() -> None:
            seq, parts, data = held.log.look("turn", data=("multi_agents",))
            kept = data.get("multi_agents", {})
            patch = diff(data, {"multi_agents": {**kept, multi_agent.id: state}}, "/data")
            if not patch:
                return
            is_open = parts["turn"]["status"] == "open"
            drafts: list[EventDraft] = []
            if not is_open and status and status != "pending":
                drafts.append(EventDraft(ev.TurnStarted(input=task if isinstance(task, str) else None), actor="user"))
                is_open = True
            drafts.append(EventDraft(ev.StatePatched(patch=patch, why=f"{multi_agent.id} is {status}")))
            if is_open and status in _END_STATUSES:
                ended = ev.TurnEnded(outcome=status)  # type: ignore[arg-type]  # one of the three
                drafts.append(EventDraft(ended, actor="runtime"))
            held.log.append(*drafts, expect=seq)

        retry_on_moved_head(held.log.id, "to store a multi-agent state", attempt)


class WakelogSessionManager(RepositorySessionManager):  # type: ignore[misc]  # Any if it is not installed
    """A session manager whose sessions are in a store."""

    def __init__(self, session_id: str, store: Place = None, **kwargs: Any) -> None:
        """`store` is an open store, or an argument of `wakelog.open`."""
        super().__init__(session_id=session_id, session_repository=WakelogSessionRepository(store), **kwargs)


def _to_data(agent: SessionAgent) -> dict[str, Any]:
    """An agent as the data of its session."""
    own = stored_form(agent.to_dict(), "agent")
    return {"state": own["state"], _OWN: {name: value for name, value in own.items() if name != "state"}}


def _from_data(data: dict[str, Any]) -> dict[str, Any]:
    """The agent in its session's data. Earlier versions stored its fields side by side."""
    own = {**data[_OWN], "state": data.get("state", {})} if _OWN in data else data
    found: dict[str, Any] = from_stored(own)
    return found


def _write_data(held: HeldLog, data: dict[str, Any]) -> None:
    if _OWN in held.log.look(data=(_OWN,))[2]:
        merge_data(held.log, data)
    else:
        replace_data(held.log, data)


def to_anthropic(item: dict[str, Any]) -> dict[str, Any]:
    """Converts a message from the shape of Amazon Bedrock, which Strands uses, to the shape of Anthropic's messages."""
    message = item["message"]
    shaped = {"role": message.get("role"), "content": [_block(block) for block in message.get("content") or ()]}
    return shaped | ({"id": message["tracking_id"]} if message.get("tracking_id") else {})


def _block(block: dict[str, Any]) -> dict[str, Any]:
    if isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    if isinstance(call := block.get("toolUse"), dict):
        name = call.get("name") or "unknown"
        return {"type": "tool_use", "id": call.get("toolUseId") or "", "name": name, "input": call.get("input")}
    if isinstance(result := block.get("toolResult"), dict):
        return {
            "type": "tool_result",
            "tool_use_id": result.get("toolUseId") or "",
            "content": [_block(part) for part in result.get("content") or ()],
            "is_error": result.get("status") == "error",
        }
    if isinstance(thought := block.get("reasoningContent"), dict):
        text = as_dict(thought.get("reasoningText"))
        return {"type": "thinking", "thinking": text.get("text") or "", "signature": text.get("signature") or ""}
    if "json" in block:
        return {"type": "json", "json": block["json"]}
    return {"type": next(iter(block), "empty"), **block}


def _checked_id(id: Any) -> int:
    if not isinstance(id, int):
        raise ValueError(f"message_id=<{id}> | message id must be an integer")
    return id
