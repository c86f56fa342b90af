"""Events of OpenHands from v1 on: one JSON object per line, each with its `kind`.

`ActionEvent` is a call, `ObservationEvent` its result, `MessageEvent` a message of the user or the agent, and
`ConversationStateUpdateEvent` a change of the conversation's state: a key and its new value, or all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from wakelog.importers import steps as st
from wakelog.importers.common.amounts import micros, usage_growth, usage_sum
from wakelog.importers.common.chat import call_block, json_or_text, text_block, text_of, thinking_block
from wakelog.importers.common.file_changes import file_change
from wakelog.importers.common.foreign_state import ForeignState
from wakelog.importers.common.tools import effect_of
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_list, count_in, text_in, without_fields
from wakelog.model.usage import Usage
from wakelog.model.values import Value

_EFFECTS = {
    "terminal": "bash",
    "execute_bash": "bash",
    "file_editor": "str_replace_editor",
    "task_tracker": "update_plan",
}
_LOOKS = frozenset({"view", "undo_edit"})
_STATUS = {
    "finished": st.TurnEndStep(),
    "error": st.TurnEndStep("failed", "error"),
    "stuck": st.TurnEndStep("failed", "stuck"),
}


class EventReader:
    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        """The project's folder, if it is known: files inside are named relative to it."""
        self._calls: dict[str, str] = {}
        self._replies: set[str] = set()
        self._state = ForeignState()
        self._sum = (Usage(), 0)

    def read(self, id: str, event: dict[str, Any]) -> tuple[list[st.Step], Any]:
        steps = list(self._steps(id, event))
        if not steps:
            return [], event
        held: tuple[str, ...] = ("id", "timestamp")
        match event.get("kind"):
            case "ActionEvent":
                held = ("id", "timestamp", "thought", "tool_call", "reasoning_content", "tool_name")
            case "ConversationStateUpdateEvent":
                held = ("id", "timestamp", "value")
            case "MessageEvent":
                held = ("id", "timestamp", "llm_message")
        rest = without_fields(event, held)
        if event.get("kind") == "ObservationEvent":
            rest["observation"] = without_fields(
                as_dict(event.get("observation")), ("content", "output", "old_content", "new_content")
            )
        return steps, rest

    def _steps(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        match event.get("kind"):
            case "ActionEvent":
                yield from self._call_steps(id, event)
            case "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent":
                yield self._result(event)
            case "MessageEvent":
                yield from self._message_steps(id, event)
            case "SystemPromptEvent":
                yield st.MessageStep(
                    "system", text_of(as_dict(event.get("system_prompt")).get("text")), name="instructions"
                )
            case "ConversationStateUpdateEvent":
                yield from self._state_steps(event)
            case "Condensation" | "CondensationSummaryEvent" if text_in(event, "summary"):
                yield st.CompactionStep(event["summary"])
            case "PauseEvent":
                yield st.TurnEndStep("interrupted")
            case "ConversationErrorEvent":
                yield st.TurnEndStep("failed", (text_in(event, "detail") or text_in(event, "code"))[: st.ERROR_MAX])

    def _call_steps(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        tool = text_in(event, "tool_name") or "unknown"
        call = text_in(event, "tool_call_id") or f"call-{id}"
        reply = text_in(event, "llm_response_id") or f"e-{id}"
        self._calls[id] = call
        tool_call = as_dict(event.get("tool_call"))
        arguments = tool_call.get("arguments", as_dict(tool_call.get("function")).get("arguments"))
        value = json_or_text(arguments) if arguments is not None else event.get("action")
        # The calls of one reply come as separate events. The first one has the thinking and the text.
        if reply not in self._replies:
            self._replies.add(reply)
            yield st.ReplyStep(reply, _blocks(event, call, tool))
        yield st.CallStep(call, tool, value, effect_of(_EFFECTS.get(tool, tool), value), group=reply)

    def _result(self, event: dict[str, Any]) -> st.ResultStep:
        call = text_in(event, "tool_call_id") or self._calls.get(text_in(event, "action_id"), "unknown")
        observation = as_dict(event.get("observation"))
        output = _output(event, observation)
        text = text_of(output)
        outcome, is_edit = _outcome(event, observation), observation.get("command") not in _LOOKS
        return st.ResultStep(
            call,
            output,
            outcome,
            error="" if outcome == "succeeded" else text[-st.ERROR_MAX :],
            files=changed_file(observation, self._folder) if outcome == "succeeded" and is_edit else (),
        )

    def _message_steps(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        text = text_of(as_dict(event.get("llm_message")).get("content"))
        if event.get("source") == "user":
            yield st.PromptStep(text, id=id)
            if extended := text_of(event.get("extended_content")):
                yield st.MessageStep("user", extended, name="context", trust="unverified")
        elif event.get("source") == "agent":
            yield st.ReplyStep(text_in(event, "llm_response_id") or f"e-{id}", [text_block(text)], is_last=True)
        else:
            yield st.MessageStep("user", text, name="meta", trust="unverified")

    def _state_steps(self, event: dict[str, Any]) -> Iterator[st.Step]:
        key, value = text_in(event, "key"), event.get("value")
        if key == "full_state" and isinstance(value, dict):
            for name, part in value.items():
                yield from self._state.put(name, part)
            yield from self._cost_steps(value.get("stats"))
            return
        if key:
            yield from self._state.put(key, value)
        if key == "stats":
            yield from self._cost_steps(value)
        if key in ("execution_status", "agent_status") and isinstance(value, str) and value in _STATUS:
            yield _STATUS[value]

    def _cost_steps(self, stats: Any) -> Iterator[st.Step]:
        """The usage since the last report: the state has totals only."""
        (used, cost), (before, paid) = _total_cost(stats), self._sum
        new = usage_growth(used, before)
        if new.is_known or cost > paid:
            self._sum = (used, max(cost, paid))
            yield st.CostStep("", new, max(0, cost - paid))


def _blocks(event: dict[str, Any], call: str, tool: str) -> list[dict[str, Value]]:
    thinking = text_in(event, "reasoning_content") or "\n".join(
        text_in(as_dict(b), "thinking") for b in as_list(event.get("thinking_blocks"))
    )
    text = text_of(event.get("thought"))
    blocks: list[dict[str, Value]] = [thinking_block(thinking)] if thinking.strip() else []
    if text.strip():
        blocks.append(text_block(text))
    return [*blocks, call_block(call, tool)]


def _output(event: dict[str, Any], seen: dict[str, Any]) -> Value:
    if event.get("kind") == "UserRejectObservation":
        return event.get("rejection_reason")
    if event.get("kind") == "AgentErrorEvent":
        return event.get("error")
    for key in ("content", "output", "error"):
        if text := text_of(seen.get(key)):
            return text
    return "" if "content" in seen else seen.get("output")


def _outcome(event: dict[str, Any], seen: dict[str, Any]) -> st.Outcome:
    if event.get("kind") == "UserRejectObservation":
        return "denied"
    if seen.get("timeout") is True:
        return "timed_out"
    code = seen.get("exit_code", as_dict(seen.get("metadata")).get("exit_code"))
    if type(code) is int and code != 0:
        return "timed_out" if code == -1 else "failed"
    is_error = seen.get("is_error") is True or bool(seen.get("error"))
    return "failed" if is_error or event.get("kind") == "AgentErrorEvent" else "succeeded"


def changed_file(seen: dict[str, Any], folder: str = "") -> tuple[FileChanged, ...]:
    """The file that an observation reports as edited, in either version's form."""
    path, after, before = text_in(seen, "path"), seen.get("new_content"), seen.get("old_content")
    if not path or not isinstance(after, str):
        return ()
    is_new = seen.get("prev_exist") is False
    before = before if isinstance(before, str) and not is_new else None
    kind: Literal["created", "modified"] = "created" if is_new else "modified"
    return (file_change(path, folder=folder, before=before, after=after, change=kind),)


def _total_cost(stats: Any) -> tuple[Usage, int]:
    """The total usage and cost of a conversation so far."""
    used, cost = Usage(), 0
    for entry in as_dict(as_dict(stats).get("usage_to_metrics")).values():
        metrics = as_dict(entry)
        cost += micros(metrics.get("accumulated_cost"))
        more = as_dict(metrics.get("accumulated_token_usage"))
        cached, written = count_in(more, "cache_read_tokens"), count_in(more, "cache_write_tokens")
        tokens_in = max(0, count_in(more, "prompt_tokens") - cached - written)
        tokens_out = count_in(more, "completion_tokens")
        used = usage_sum(used, Usage(input=tokens_in, cache_read=cached, cache_write=written, output=tokens_out))
    return used, cost
