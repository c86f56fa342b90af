"""Reads OpenTelemetry's spans of generative AI, by the names of their attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wakelog.importers import steps as st
from wakelog.importers.common.chat import call_block, json_or_text, text_block, thinking_block
from wakelog.importers.common.tools import effect_of
from wakelog.model.events import Cost
from wakelog.model.json_fields import as_dict, as_list, as_text, count_in, dicts_in, text_in
from wakelog.model.usage import Usage
from wakelog.model.values import Value

_CHATS = frozenset({"chat", "generate_content", "text_completion"})
_FAILED = (2, "STATUS_CODE_ERROR")
_NO_CONTENT: list[dict[str, Value]] = [text_block("")]
"""The content of a reply whose text was not recorded."""


def operation_of(attributes: dict[str, Any], name: str) -> str:
    """The operation that a span measures. Empty if it is not about generative AI."""
    operation = text_in(attributes, "gen_ai.operation.name")
    if operation or not any(key.startswith("gen_ai.") for key in attributes):
        return operation
    return name.partition(" ")[0]


class SpanReader:
    """Reads spans in the order they started. Each has `attributes`, `operation`, `start`, `end`, and `late`: whether
    other spans of its file were imported before it arrived."""

    def __init__(self, spans: list[dict[str, Any]]) -> None:
        self._spans = spans
        self._by_id = {text_in(s, "spanId"): s for s in spans if text_in(s, "spanId")}
        self._last: dict[str, int] = {}
        """For each agent, the number of its last span, which ends it."""
        for number, span in enumerate(spans):
            for agent in self._agents(span):
                self._last[agent] = number
        self._asked: set[str] = set()
        self._users = 0
        has_late = any(s["late"] for s in spans)
        self._known_results = {
            text_in(part, "id")
            for s in spans
            if has_late and not s["late"]
            for part in _results_in(_messages(s["attributes"].get("gen_ai.input.messages")))
        }
        """If there are late spans: calls whose result is in the input of a model call that was not late."""
        self._has_content = any(s["attributes"].get("gen_ai.output.messages") is not None for s in spans)
        self._is_noted = False
        self._is_open = False

    def steps(self, number: int) -> Iterator[st.Step]:
        span = self._spans[number]
        operation = span["operation"]
        inside = next((a for a in self._agents(span)[:-1] if a != span.get("spanId")), "")
        if operation in _CHATS:
            yield from self._chat(span, inside)
        elif operation == "execute_tool":
            yield from self._tool(span, inside)
        elif operation in ("invoke_agent", "invoke_workflow"):
            yield from self._agent(span, inside)
        for agent in self._agents(span):
            if self._last.get(agent) == number:
                yield from self._end_agent(self._by_id[agent])

    def _agents(self, span: dict[str, Any]) -> list[str]:
        """The agents around a span, the nearest first. The last one is the agent of the turn."""
        results: list[str] = []
        seen: set[str] = set()
        at: dict[str, Any] | None = span
        while at is not None:
            id = text_in(at, "spanId")
            if id in seen:
                break  # the trace has a cycle
            seen.add(id)
            if id and at["operation"] in ("invoke_agent", "invoke_workflow"):
                results.append(id)
            at = self._by_id.get(text_in(at, "parentSpanId"))
        return results

    # Agents

    def _agent(self, span: dict[str, Any], inside: str) -> Iterator[st.Step]:
        attributes = span["attributes"]
        given = _messages(attributes.get("gen_ai.input.messages"))
        agents = self._agents(span)
        if len(agents) > 1:
            yield from self._start_turn()
            name = text_in(attributes, "gen_ai.agent.name") or text_in(span, "name") or "agent"
            asked: Value = {"prompt": _text(given[-1])} if given else None
            self._asked.add(agents[0])
            yield st.CallStep(agents[0], f"agent:{name}", asked, "pure", inside=inside)
            return
        if span["late"] and any(not s["late"] and agents[0] in self._agents(s) for s in self._spans):
            # Its work was imported before it: the turn exists, and now its end is known.
            yield st.TurnEndStep("failed" if _failure(span) else "completed", _failure(span))
            return
        yield from self._instruction_steps(attributes)
        self._is_open = False
        yield from self._prompt_steps(given or self._first_input(agents))

    def _first_input(self, agents: list[str]) -> list[dict[str, Any]]:
        """The input of an agent's first model call, if the agent's own span has none."""
        for span in self._spans if self._has_content else ():
            if span["operation"] in _CHATS and self._agents(span) == agents:
                return _messages(span["attributes"].get("gen_ai.input.messages"))
        return []

    def _end_agent(self, span: dict[str, Any]) -> Iterator[st.Step]:
        id, failure = text_in(span, "spanId"), _failure(span)
        if id in self._asked:
            self._asked.discard(id)
            answer = _messages(span["attributes"].get("gen_ai.output.messages"))
            output = _text(answer[-1]) if answer else None
            yield st.ResultStep(id, output, "failed" if failure else "succeeded", failure, cost=_cost_of(span))
        elif len(self._agents(span)) == 1:
            yield from self._start_turn()
            yield st.TurnEndStep("failed" if failure else "completed", failure)
            self._is_open = False

    def _start_turn(self) -> Iterator[st.Step]:
        """Starts a turn without recorded input, and notes the gap once."""
        if not self._has_content and not self._is_noted:
            self._is_noted = True
            yield st.GapStep("what was said: these spans hold no messages")
        if not self._is_open:
            self._is_open = True
            yield st.PromptStep("")

    # Replies of models

    def _chat(self, span: dict[str, Any], inside: str) -> Iterator[st.Step]:
        attributes = span["attributes"]
        given = _messages(attributes.get("gen_ai.input.messages"))
        id = text_in(attributes, "gen_ai.response.id") or text_in(span, "spanId")
        for part in _results_in(given):
            call = text_in(part, "id")
            if call in self._asked:
                self._asked.discard(call)
                yield st.ResultStep(call, part.get("response", part.get("result")))
        if not inside:
            yield from self._instruction_steps(attributes)
            yield from self._prompt_steps(given)
        yield from self._start_turn()
        failure = _failure(span)
        said = [p for m in _messages(attributes.get("gen_ai.output.messages"))[:1] for p in _parts(m)]
        asks = []
        for number, part in enumerate(p for p in said if p.get("type") == "tool_call"):
            call, tool = text_in(part, "id") or f"{id}.{number}", text_in(part, "name") or "unknown"
            arguments = json_or_text(part.get("arguments"))
            asks.append(st.CallStep(call, tool, arguments, effect_of(tool, arguments), group=id, inside=inside))
            self._asked.add(call)
        if failure and not said:
            yield st.MessageStep("assistant", failure, name="error")
            return
        stops = [as_text(s) for s in as_list(attributes.get("gen_ai.response.finish_reasons"))]
        yield st.ReplyStep(
            id,
            [*_blocks(said), *(call_block(a.id, a.tool) for a in asks)] or _NO_CONTENT,
            model=text_in(attributes, "gen_ai.response.model") or text_in(attributes, "gen_ai.request.model"),
            usage=_usage(attributes),
            stop_reason=stops[0] if stops else "",
            inside=inside,
        )
        yield from asks

    def _instruction_steps(self, attributes: dict[str, Any]) -> Iterator[st.Step]:
        parts = _messages(attributes.get("gen_ai.system_instructions"))
        text = "\n".join(text_in(p, "content") for p in parts if text_in(p, "content"))
        if text and text not in self._asked:
            self._asked.add(text)
            yield st.MessageStep("system", text, name="instructions")

    def _prompt_steps(self, given: list[dict[str, Any]]) -> Iterator[st.Step]:
        """Starts a turn if the user said something since the last call. Each call repeats the whole conversation."""
        users = [m for m in given if m.get("role") == "user"]
        if not users or (self._is_open and len(users) <= self._users):
            self._users = max(self._users, len(users))
            return
        self._users = len(users)
        self._is_open = True
        yield st.PromptStep(_text(users[-1]))

    # Calls

    def _tool(self, span: dict[str, Any], inside: str) -> Iterator[st.Step]:
        attributes = span["attributes"]
        call = text_in(attributes, "gen_ai.tool.call.id") or text_in(span, "spanId")
        tool = text_in(attributes, "gen_ai.tool.name") or text_in(span, "name").partition(" ")[2] or "unknown"
        yield from self._start_turn()
        if span["late"] and call in self._known_results:
            return
        if call not in self._asked:
            arguments = json_or_text(attributes.get("gen_ai.tool.call.arguments"))
            yield st.CallStep(call, tool, arguments, effect_of(tool, arguments), inside=inside)
        self._asked.discard(call)
        failure = _failure(span)
        outcome: st.Outcome = "failed" if failure else "succeeded"
        if failure and "timeout" in text_in(attributes, "error.type").lower():
            outcome = "timed_out"
        yield st.ResultStep(
            call, json_or_text(attributes.get("gen_ai.tool.call.result")), outcome, failure, cost=_cost_of(span)
        )


def _messages(given: Any) -> list[dict[str, Any]]:
    """Messages in an attribute: structured, or as a JSON string."""
    messages = json_or_text(given) if isinstance(given, str) else given
    return dicts_in(messages)


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    return dicts_in(message.get("parts"))


def _results_in(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results of calls in a model's input."""
    return [p for m in messages for p in _parts(m) if p.get("type") == "tool_call_response"]


def _text(message: dict[str, Any]) -> str:
    parts = [text_in(p, "content") for p in _parts(message) if p.get("type") == "text"]
    return "\n".join(p for p in parts if p) or text_in(message, "content")


def _blocks(parts: list[dict[str, Any]]) -> list[dict[str, Value]]:
    blocks: list[dict[str, Value]] = []
    for part in parts:
        text = text_in(part, "content")
        if text and part.get("type") == "reasoning":
            blocks.append(thinking_block(text))
        elif text and part.get("type") == "text":
            blocks.append(text_block(text))
    return blocks


def _usage(attributes: dict[str, Any]) -> Usage:
    tokens_in, tokens_out = _count(attributes, "input_tokens"), _count(attributes, "output_tokens")
    read, written = _count(attributes, "cache_read.input_tokens"), _count(attributes, "cache_creation.input_tokens")
    return Usage(input=max(0, tokens_in - read - written), cache_read=read, cache_write=written, output=tokens_out)


def _count(attributes: dict[str, Any], name: str) -> int:
    return count_in(attributes, f"gen_ai.usage.{name}")


def _failure(span: dict[str, Any]) -> str:
    status = as_dict(span.get("status"))
    kind = as_text(span["attributes"].get("error.type"))
    if status.get("code") not in _FAILED and not kind:
        return ""
    return (text_in(status, "message") or kind or "error")[: st.ERROR_MAX]


def _cost_of(span: dict[str, Any]) -> Cost:
    return Cost(duration_us=max(0, span["end"] - span["start"]) // 1000) if span["end"] else Cost()
