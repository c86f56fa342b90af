"""Agent2Agent (A2A): the tasks of a server in a store.

    from wakelog.adapters.a2a import WakelogTaskStore

    handler = DefaultRequestHandler(agent_executor=executor, task_store=WakelogTaskStore("agents.db"), …)

A task is the session `a2a/<owner>/<task id>`. The messages of its history are turns; its status, artifacts and metadata
are the session's data, stored by what changed. The id of its context is a label.
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

from wakelog.adapters.compound_names import compound_name, ids_of
from wakelog.adapters.exact_values import from_stored, to_stored
from wakelog.adapters.held_logs import HeldLog, HeldLogs
from wakelog.adapters.item_log import KeptItem
from wakelog.adapters.shaped_items import ShapedItems, items_of
from wakelog.adapters.stores import Place
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.values import Value, check_value
from wakelog.runtime.bridge import in_thread
from wakelog.state.diff import diff

frameworks.warn_outside("a2a-sdk", oldest="1.3.0", newest="1.3.0")

FORMAT = "a2a"


class WakelogTaskStore(TaskStore):  # type: ignore[misc]  # Any where it is not installed
    """Keeps the tasks of an A2A server in a store."""

    def __init__(
        self,
        store: Place = None,
        *,
        owner_resolver: Callable[[Any], str] = resolve_user_scope,
    ) -> None:
        """`store` is a store, or the url of one as for `wakelog.open`. `owner_resolver` is the SDK's: it tells whose
        tasks a call may see."""
        self._owner = owner_resolver
        self._logs = HeldLogs(store, FORMAT)
        self.store = self._logs.store

    @staticmethod
    def name_of(owner: str, task_id: str) -> str:
        """The name of a task's session in the store."""
        return compound_name(FORMAT, owner, task_id)

    async def save(self, task: Task, context: Any) -> None:
        told = check_value(to_stored(MessageToDict(task)), "task")
        await in_thread(self._save, self._owner(context), task.id, told)

    async def get(self, task_id: str, context: Any) -> Task | None:
        return await in_thread(self._get, self.name_of(self._owner(context), task_id))

    async def list(self, params: Any, context: Any) -> Any:
        # The SDK's own store knows how to filter, order and page; it is given what there is.
        held = InMemoryTaskStore(owner_resolver=self._owner)
        for task in await in_thread(self._all, self._owner(context)):
            await held.save(task, context)
        return await held.list(params, context)

    async def delete(self, task_id: str, context: Any) -> None:
        name = self.name_of(self._owner(context), task_id)
        await in_thread(self._logs.delete, name, why="deleted through A2A")

    async def close(self) -> None:
        """Closes the store, if it was opened here."""
        await in_thread(self._logs.close)

    def _save(self, owner: str, id: str, told: dict[str, Value]) -> None:
        name = self.name_of(owner, id)
        labels = {"a2a.owner": owner, "a2a.task": id, "a2a.context": told.get("contextId", "")}
        held = self._logs.open(name, {label: value for label, value in labels.items() if value})
        history = told.pop("history", [])
        items = self._items(held, name)
        shared = _shared(items.items(), history)
        if shared < len(items.items()):
            items.log.write(lambda parts: [], keep=shared, why="the history of the task was changed")

        def choose(known: list[KeptItem]) -> list[tuple[Any, str]]:
            return [(message, str(message.get("messageId", ""))) for message in history[_shared(known, history) :]]

        items.add(choose)

        def attempt() -> None:
            seq, state = held.log.now()
            if patch := diff(state["data"], told, "/data"):
                status = told.get("status")
                why = str(status.get("state", "")) if isinstance(status, dict) else ""
                held.log.append(ev.StatePatched(patch=patch, why=why), expect=seq)

        retry_on_moved_head(held.log.id, "to save a task", attempt)

    def _get(self, name: str) -> Task | None:
        held = self._logs.find(name)
        if held is None:
            return None
        told = from_stored(held.log.state()["data"])
        if not told:
            return None
        history = [from_stored(item.value) for item in self._items(held, name).items()]
        return ParseDict(told | ({"history": history} if history else {}), Task())

    def _all(self, owner: str) -> Sequence[Task]:
        found = []
        for head in self.store.sessions():
            ids = ids_of(FORMAT, head.name)
            if ids is not None and len(ids) == 2 and ids[0] == owner and (task := self._get(head.name)) is not None:
                found.append(task)
        return found

    def _items(self, held: HeldLog, name: str) -> ShapedItems:
        return items_of(held, self.store, name, FORMAT, shaped)


def _shared(known: list[KeptItem], history: list[Any]) -> int:
    """How many messages both begin with."""
    count = 0
    for item, message in zip(known, history, strict=False):
        if item.value != message:
            break
        count += 1
    return count


def shaped(message: dict[str, Any]) -> dict[str, Any]:
    """A message of A2A in the shape of Anthropic's."""
    role = "user" if message.get("role") == "ROLE_USER" else "assistant"
    made = {"role": role, "content": [_block(part) for part in message.get("parts") or ()]}
    return made | ({"id": message["messageId"]} if message.get("messageId") else {})


def _block(part: dict[str, Any]) -> dict[str, Any]:
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    return {"type": "json", "json": part}
