"""Agent2Agent (A2A): stores the tasks of a server.

    from wakelog.adapters.a2a import WakelogTaskStore

    handler = DefaultRequestHandler(agent_executor=executor, task_store=WakelogTaskStore("agents.db"), …)

A task is the session `a2a/<owner>/<task id>`. The messages of its history are turns. Its status, artifacts and metadata
are the session's data, of which only changes are stored. The id of its context is a label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wakelog.adapters import frameworks

try:
    from a2a.server.owner_resolver import resolve_user_scope
    from a2a.server.tasks import InMemoryTaskStore, TaskStore
    from a2a.types.a2a_pb2 import Task
    from google.protobuf.json_format import MessageToDict, ParseDict
except ImportError as exc:
    raise frameworks.missing("The A2A SDK", "a2a") from exc

from wakelog.adapters.compound_names import compound_name, ids_of, is_hashed
from wakelog.adapters.exact_values import from_stored, stored_form
from wakelog.adapters.held_logs import HeldLog, LogsAdapter
from wakelog.adapters.shaped_items import ShapedItems, TurnOutcome, items_of
from wakelog.adapters.stores import Place
from wakelog.errors import ConflictError
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.json_fields import as_dict
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread, in_thread_to_the_end
from wakelog.state.diff import diff

frameworks.warn_outside("a2a-sdk", oldest="1.3.0", newest="1.3.0")

FORMAT = "a2a"
_OUTCOMES: dict[str, TurnOutcome] = {
    "TASK_STATE_COMPLETED": "completed",
    "TASK_STATE_FAILED": "failed",
    "TASK_STATE_REJECTED": "failed",
    "TASK_STATE_CANCELED": "interrupted",
}
"""How a turn ends with a task. In other states the task goes on."""


class WakelogTaskStore(LogsAdapter, TaskStore):  # type: ignore[misc]  # Any if it is not installed
    """Stores the tasks of an A2A server as sessions of a wakelog store."""

    framework = FORMAT

    def __init__(
        self,
        store: Place = None,
        *,
        owner_resolver: Callable[[Any], str] = resolve_user_scope,
    ) -> None:
        """`store` is an open store, or an argument of `wakelog.open`. `owner_resolver` is the SDK's: it says whose
        tasks a call may see."""
        super().__init__(store)
        self._owner = owner_resolver

    @staticmethod
    def name_of(owner: str, task_id: str) -> str:
        """The name of a task's session in the store."""
        return compound_name(FORMAT, owner, task_id)

    async def save(self, task: Task, context: Any) -> None:
        await in_thread_to_the_end(self._save, self._owner(context), task.id, stored_form(MessageToDict(task), "task"))

    async def get(self, task_id: str, context: Any) -> Task | None:
        return await in_thread(self._get, self.name_of(self._owner(context), task_id))

    async def list(self, params: Any, context: Any) -> Any:
        # The SDK's own store in memory does the filtering, ordering and paging.
        memory = InMemoryTaskStore(owner_resolver=self._owner)
        for task in await in_thread(self._all, self._owner(context)):
            await memory.save(task, context)
        return await memory.list(params, context)

    async def delete(self, task_id: str, context: Any) -> None:
        name = self.name_of(self._owner(context), task_id)
        await in_thread(self._logs.delete, name, why="deleted through A2A")

    def _save(self, owner: str, id: str, task: dict[str, Value]) -> None:
        name = self.name_of(owner, id)
        labels = {"a2a.owner": owner, "a2a.task": id, "a2a.context": task.get("contextId", "")}
        held = self._logs.open(name, {label: value for label, value in labels.items() if value})
        history = [(message, str(message.get("messageId", ""))) for message in task.pop("history", [])]
        items, state = self._items(held, name), str(as_dict(task.get("status")).get("state", ""))

        def patch(back: Seq | None) -> list[EventDraft]:
            seq, now = held.log.now()
            if seq != items.log.seen:  # another writer came first
                raise ConflictError(f"session {held.log.id} moved on", kind="head-moved")
            before = now if back is None else held.log.state(back)
            changes = diff(before["data"], task, "/data")
            return [EventDraft(ev.StatePatched(patch=changes, why=state))] if changes else []

        with held.lock:
            items.replace(history, patch, ends=_OUTCOMES.get(state), why="the history of the task was changed")

    def _get(self, name: str) -> Task | None:
        held = self._logs.find(name)
        if held is None:
            return None
        with held.lock:
            items = self._items(held, name)
            history = [item.original for item in items.items()]
            task = from_stored(held.log.state(items.log.seen)["data"])
        return ParseDict(task | ({"history": history} if history else {}), Task()) if task else None

    def _all(self, owner: str) -> Sequence[Task]:
        found = []
        for head in self.store.sessions():
            if self._owner_of(head.name) == owner and (task := self._get(head.name)) is not None:
                found.append(task)
        return found

    def _owner_of(self, name: str) -> str | None:
        """Whose task a session is; None if it is not a task."""
        if is_hashed(FORMAT, name):  # ids that are too long for a name are in its labels
            held = self._logs.find(name, is_listed=True)
            return held.log.part("labels").get("a2a.owner", "") if held is not None else None
        ids = ids_of(FORMAT, name)
        return ids[0] if ids is not None and len(ids) == 2 else None

    def _items(self, held: HeldLog, name: str) -> ShapedItems:
        return items_of(held, self.store, name, FORMAT, to_anthropic)


def to_anthropic(message: dict[str, Any]) -> dict[str, Any]:
    """Converts a message to the shape of Anthropic's messages."""
    role = "user" if message.get("role") == "ROLE_USER" else "assistant"
    shaped = {"role": role, "content": [_block(part) for part in message.get("parts") or ()]}
    return shaped | ({"id": message["messageId"]} if message.get("messageId") else {})


def _block(part: dict[str, Any]) -> dict[str, Any]:
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    return {"type": "json", "json": part}
