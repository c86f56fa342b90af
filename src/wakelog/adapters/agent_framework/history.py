"""The framework's history provider: messages of an agent's session become turns and calls of `agent-framework/<id>`."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from wakelog.model.json_fields import as_dict, count_in
from wakelog.model.usage import Usage
from wakelog.runtime.bridge import in_thread

FORMAT = "agent-framework"
NO_SESSION = "default"
_INPUTS = ("arguments", "inputs", "commands", "actions")
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
    contents = message.get("contents") or ()
    asked = {content.get("call_id") for content in contents if content.get("type") == "function_call"}
    blocks = [block for content in contents for block in _blocks(content, role == "tool", asked)]
    shaped: dict[str, Any] = {"role": "user" if role == "tool" else role, "content": blocks}
    if message.get("message_id"):
        shaped["id"] = message["message_id"]
    return shaped


def _blocks(content: dict[str, Any], is_tool: bool, asked: Collection[Any]) -> Iterator[dict[str, Any]]:
    kind = str(content.get("type"))
    call = as_dict(content.get("function_call"))
    match kind:
        case "text":
            yield {"type": "text", "text": content.get("text") or ""}
        case "text_reasoning":
            yield {"type": "thinking", "thinking": content.get("text") or "", "signature": ""}
        case "data" | "uri" if str(content.get("media_type")).startswith("image/"):
            yield {"type": "image", "image_url": content.get("uri")}
        case "data" | "uri" | "hosted_file":
            about = ("media_type", "name", "file_id") if kind != "uri" else ("uri",)
            named = " ".join(str(content[name]) for name in about if content.get(name))
            yield {"type": "document", "source": {}, "title": named or "file"}
        case "error":
            yield {"type": "text", "text": f"(error: {content.get('message') or content.get('error_code')})"}
        case "function_call":
            yield _call("tool_use", content)
        case "function_result":
            failed = content.get("exception")
            result = content.get("result") if failed is None else str(failed)
            yield _result("tool_result", content, result) | {"is_error": failed is not None}
        case "function_approval_request":
            if call.get("call_id") not in asked:
                yield _call("tool_use", call)
            yield {"type": "approval_request", "tool_use_id": call.get("call_id") or ""}
        case "function_approval_response":
            approved = content.get("approved") is True
            yield {"type": "approval_response", "tool_use_id": call.get("call_id") or "", "approved": approved}
        case _ if kind.endswith("_tool_call"):
            yield _call(
                "server_tool_use", {"name": content.get("tool_name") or kind.removesuffix("_tool_call"), **content}
            )
        case _ if kind.endswith("_tool_result"):
            given = next((content[name] for name in ("result", "output", "outputs") if content.get(name)), None)
            yield _result("tool_result" if is_tool else "server_tool_result", content, given)
        case _:
            yield content


def _call(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """A call, of which each kind of tool has the input in a field of its own."""
    given = next((content[name] for name in _INPUTS if content.get(name) is not None), None)
    id = content.get("call_id") or content.get("image_id") or ""
    return {"type": kind, "id": id, "name": content.get("name") or "unknown", "input": _parsed_arguments(given)}


def _result(kind: str, content: dict[str, Any], output: Any) -> dict[str, Any]:
    return {"type": kind, "tool_use_id": content.get("call_id") or content.get("image_id") or "", "content": output}


def _parsed_arguments(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return stored_form(json.loads(arguments), "arguments") if arguments.strip() else {}
    except ValueError:
        return arguments
