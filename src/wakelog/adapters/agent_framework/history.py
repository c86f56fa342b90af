"""The framework's history provider: messages of an agent's session become turns and calls of `agent-framework/<id>`."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Mapping, Sequence
from typing import Any

import agent_framework._sessions as framework_sessions
from agent_framework import HistoryProvider, Message

from wakelog.adapters.compound_names import compound_name, ids_of
from wakelog.adapters.exact_values import stored_form
from wakelog.adapters.held_logs import LogsAdapter
from wakelog.adapters.message_events import ReplyFacts
from wakelog.adapters.shaped_items import ShapedItems, items_of
from wakelog.adapters.stores import Place
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.model.json_fields import count_in
from wakelog.model.usage import Usage
from wakelog.runtime.bridge import in_thread

FORMAT = "agent-framework"
NO_SESSION = "default"
_response: contextvars.ContextVar[Any] = contextvars.ContextVar("wakelog.agent_framework.response", default=None)


class WakelogHistoryProvider(LogsAdapter, HistoryProvider):  # type: ignore[misc]  # Any if it is not installed
    """Stores the messages of agents as sessions of a wakelog store."""

    framework = FORMAT
    DEFAULT_SOURCE_ID = "wakelog"

    def __init__(
        self,
        store: Place = None,
        *,
        source_id: str = DEFAULT_SOURCE_ID,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
    ) -> None:
        """`store` is an open store, or an argument of `wakelog.open`. The other keywords are the framework's."""
        LogsAdapter.__init__(self, store)
        HistoryProvider.__init__(
            self,
            source_id=source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self.skip_excluded = skip_excluded
        self._costs = ReplyCosts(self.store)

    @staticmethod
    def name_of(session_id: str | None) -> str:
        """The name of the session in the store, for `store.resume` and the command line."""
        return compound_name(FORMAT, session_id or NO_SESSION)

    @staticmethod
    def id_of(name: str) -> str | None:
        """The framework's session id for a name; None if the name belongs to something else."""
        ids = ids_of(FORMAT, name)
        return ids[0] if ids is not None else None

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        messages = await in_thread(self._read, session_id)
        if self.skip_excluded:
            return [m for m in messages if not m.additional_properties.get("_excluded", False)]
        return messages

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if messages:
            await in_thread(self._write, session_id, list(messages), _response.get())

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        token = _response.set(context.response)
        try:
            await super().after_run(agent=agent, session=session, context=context, state=state)
        finally:
            _response.reset(token)

    def _read(self, session_id: str | None) -> list[Message]:
        name = self.name_of(session_id)
        held = self._logs.find(name)
        if held is None:
            return []
        return [Message.from_dict(item.original) for item in self._items(name).items()]

    def _write(self, session_id: str | None, messages: list[Message], response: Any) -> None:
        stored = {id(message): stored_form(message.to_dict(), f"messages[{n}]") for n, message in enumerate(messages)}
        items = self._items(self.name_of(session_id), session_id or NO_SESSION)

        def choose(known: list[Any]) -> list[tuple[Any, str]]:
            # The framework may pass the whole conversation again. Only new messages are stored.
            before = [Message.from_dict(item.original) for item in known]
            new = framework_sessions.filter_new_messages(before, messages)
            return [(stored[id(message)], message.message_id or "") for message in new]

        items.add(choose, reply=self._facts(response))

    def _items(self, name: str, session_id: str = "") -> ShapedItems:
        held = self._logs.open(name, {"agent-framework.session": session_id})
        return items_of(held, self.store, name, FORMAT, to_anthropic)

    def _facts(self, response: Any) -> ReplyFacts | None:
        """Facts about an answer that its messages do not have."""
        used = getattr(response, "usage_details", None)
        if not isinstance(used, Mapping):
            return None
        model = str(getattr(response, "model", None) or getattr(response, "model_id", None) or "")
        cached = count_in(used, "cache_read_input_token_count")
        usage = Usage(
            input=max(0, count_in(used, "input_token_count") - cached),
            cache_read=cached,
            output=max(0, count_in(used, "output_token_count") - count_in(used, "reasoning_output_token_count")),
            reasoning=count_in(used, "reasoning_output_token_count"),
        )
        return ReplyFacts(model=model, cost=self._costs.cost(model, usage, 0, self.store.clock()))


def to_anthropic(message: dict[str, Any]) -> dict[str, Any]:
    """Converts a message to the shape of Anthropic's messages."""
    role = message.get("role")
    blocks = [_block(content) for content in message.get("contents") or ()]
    shaped: dict[str, Any] = {"role": "user" if role == "tool" else role, "content": blocks}
    if message.get("message_id"):
        shaped["id"] = message["message_id"]
    return shaped


def _block(content: dict[str, Any]) -> dict[str, Any]:
    match content.get("type"):
        case "text":
            return {"type": "text", "text": content.get("text") or ""}
        case "text_reasoning":
            return {"type": "thinking", "thinking": content.get("text") or "", "signature": ""}
        case "function_call":
            return {
                "type": "tool_use",
                "id": content.get("call_id") or "",
                "name": content.get("name") or "unknown",
                "input": _parsed_arguments(content.get("arguments")),
            }
        case "function_result":
            failed = content.get("exception")
            return {
                "type": "tool_result",
                "tool_use_id": content.get("call_id") or "",
                "content": content.get("result") if failed is None else str(failed),
                "is_error": failed is not None,
            }
    return content


def _parsed_arguments(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return stored_form(json.loads(arguments), "arguments") if arguments.strip() else {}
    except ValueError:
        return arguments
