"""OpenHands: the events of one conversation, in order.

Up to 2025 (v0) they are one JSON array. An event is an action with `args`, or an observation with `content` and
`extras`, whose `cause` names its action. From v1 on they are JSON lines, each with a `kind`. Both say which reply of
the model an action came from, and repeat that reply in every event of it; it is imported once.

The state of a v1 conversation comes as a stream of changes, each a key and its new value.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.coding_agents.openhands.conversation import is_event_file
from wakelog.importers.coding_agents.openhands.events_v1 import EventReader, changed_file
from wakelog.importers.common.chat import call_block, first_choice, json_or_text, text_block, text_of
from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import (
    RecordIds,
    Sample,
    bad_transcript,
    digest,
    home_files,
    is_document,
    json_digest,
    json_lines,
    read_document,
    storable,
)
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.json_fields import as_dict, as_list, dicts_in, text_in, without_fields
from wakelog.model.usage import usage_of

NAME = "openhands"
TITLE = "OpenHands"
find_in_home = home_files(".openhands/**/events.jsonl", ".openhands/**/trajectory*.json")
_ASIDE = frozenset({"null", "change_agent_state", "agent_state_changed", "", "recall", "system"})
_TOOLS = {"run": "execute_bash", "edit": "str_replace_editor", "run_ipython": "execute_ipython_cell"}
_EFFECTS = {"execute_bash": "bash", "execute_ipython_cell": "bash"}
_KINDS = (b'"ActionEvent"', b'"ObservationEvent"', b'"MessageEvent"', b'"ConversationStateUpdateEvent"')


def recognises(sample: Sample) -> bool:
    if is_event_file(sample.path) or sample.first not in (b"{", b"["):
        return False
    if any(word in sample.start for word in _KINDS) and sample.has(b'"kind"', b'"source"'):
        return True
    if sample.first != b"[" or not sample.has(b'"source"', b'"timestamp"'):
        return False
    return sample.has(b'"observation"') or sample.has(b'"action"', b'"args"')


def transcripts(path: Path) -> Iterator[st.Transcript]:
    lines = list(json_lines(path))
    given = read_document(path) if len(lines) == 1 or is_document(lines) else None
    if isinstance(given, dict) and "kind" not in given:
        given = given.get("trajectory", given.get("history", given.get("events")))
    if given is not None and not isinstance(given, list | dict):
        raise bad_transcript(f"{path} has no list of events", "is the file complete?")
    events: list[tuple[Any, str, int]] = (
        [(event, "", len(str(event))) for event in as_list(given)]
        if isinstance(given, list)
        else [(line.value if line.value is not None else line.text, line.broken, len(line.raw)) for line in lines]
    )
    events = [(storable(event) if not why else event, why, size) for event, why, size in events]
    head = _head(path, [event for event, _, _ in events if isinstance(event, dict)])
    yield st.Transcript(head, lambda: _records(events))


def _head(path: Path, events: list[dict[str, Any]]) -> st.TranscriptHead:
    """A conversation is named after its folder. The first event's time and id tell it from others."""
    first = events[0] if events else {}
    identity = f"{first.get('id')} {first.get('timestamp')} {json_digest(first)}"
    name = path.parent.name if path.stem in ("events", "trajectory") else path.stem
    version = next((text_in(e, "version") for e in events[:50] if e.get("version")), "")
    origin = f"{name}-{digest(identity, 8)}"
    return st.TranscriptHead(origin, NAME, labels={"agent_version": version}, name=name)


def _records(events: list[tuple[Any, str, int]]) -> Iterator[tuple[st.SourceRecord, int]]:
    ids = RecordIds()
    v0, v1 = _ArrayReader(), EventReader()
    for number, (event, why, size) in enumerate(events):
        if not isinstance(event, dict):
            id = ids.unique(digest(msgspec.json.encode(event) if not isinstance(event, bytes) else event))
            yield st.SourceRecord(id, rest=event, broken=why or f"event {number} is not an object"), size
            continue
        given_id = event.get("id")
        id = ids.unique(str(given_id) if isinstance(given_id, str | int) else json_digest(event))
        reader = v1 if isinstance(event.get("kind"), str) else v0
        steps, rest = reader.read(id, event)
        yield st.SourceRecord(id, tuple(steps), microseconds(event.get("timestamp")), rest), size


class _ArrayReader:
    """Reads events of v0."""

    def __init__(self) -> None:
        self._calls: dict[Any, str] = {}
        """The call of each action, by event id."""
        self._replies: set[str] = set()
        self._is_begun = False

    def read(self, id: str, event: dict[str, Any]) -> tuple[list[st.Step], Any]:
        steps = list(self._steps(id, event))
        if not steps:
            return [], event
        metadata = as_dict(event.get("tool_call_metadata"))
        held = [getattr(step, "content", getattr(step, "output", None)) for step in steps]
        rest = without_fields(
            event, ("id", "timestamp", "content") if event.get("content") in held else ("id", "timestamp")
        )
        if "args" in rest:
            rest["args"] = without_fields(as_dict(event["args"]), ("thought", "content", "command"))
        if "extras" in rest:
            rest["extras"] = without_fields(as_dict(event["extras"]), ("old_content", "new_content", "command"))
        if metadata:
            # The reply step holds the model's answer. The first event of a reply keeps the other fields of it.
            response = as_dict(metadata.get("model_response"))
            is_first = any(isinstance(step, st.ReplyStep) for step in steps)
            fields = without_fields(response, ("choices",)) if is_first else response.get("id")
            rest["tool_call_metadata"] = metadata | {"model_response": fields}
        return steps, rest

    def _steps(self, id: str, event: dict[str, Any]) -> Iterator[st.Step]:
        args, source = as_dict(event.get("args")), event.get("source")
        action, observation = event.get("action"), event.get("observation")
        if isinstance(action, str):
            match action:
                case "message" if source == "user":
                    self._is_begun = True
                    yield st.PromptStep(args.get("content", event.get("message")), id=id)
                case "message":
                    text = text_in(args, "content") or text_in(event, "message")
                    yield st.ReplyStep(f"e{id}", [text_block(text)], is_last=True)
                case "system":
                    yield st.MessageStep("system", args.get("content"), name="instructions")
                case "finish" | "reject":
                    yield from self._finish_steps(id, event, args)
                case _ if action in _ASIDE:
                    yield from _state_steps(args)
                case _:
                    yield from self._call_steps(id, event, action, args)
        elif isinstance(observation, str):
            if observation in ("agent_state_changed", "null", ""):
                yield from _state_steps(as_dict(event.get("extras")))
            elif observation == "condense":
                yield st.CompactionStep(event.get("content"))
            elif observation == "recall":
                yield st.MessageStep("user", event.get("content"), name="context", trust="unverified")
            else:
                yield from self._result_steps(event, observation)

    def _call_steps(self, id: str, event: dict[str, Any], action: str, args: dict[str, Any]) -> Iterator[st.Step]:
        metadata = as_dict(event.get("tool_call_metadata"))
        tool = text_in(metadata, "function_name") or _TOOLS.get(action, action)
        call = text_in(metadata, "tool_call_id") or f"call-{id}"
        response = as_dict(metadata.get("model_response"))
        reply = text_in(response, "id") or f"e{id}"
        value = _input_of(response, call)
        if value is None:
            value = without_fields(args, ("thought", "confirmation_state", "hidden"))
        self._calls[_key(event.get("id"))] = call
        if reply not in self._replies:
            self._replies.add(reply)
            yield _reply(reply, response, text_in(args, "thought"), [(call, tool)])
        if event.get("source") == "user":
            tool = f"user:{tool}"
        yield st.CallStep(call, tool, value, effect_of(_EFFECTS.get(tool, tool), value), group=reply)

    def _result_steps(self, event: dict[str, Any], observation: str) -> Iterator[st.Step]:
        metadata, extras = as_dict(event.get("tool_call_metadata")), as_dict(event.get("extras"))
        call = text_in(metadata, "tool_call_id") or self._calls.get(_key(event.get("cause")), "")
        content = event.get("content")
        if not call:
            if text_of(content).strip():
                yield st.MessageStep("user", content, name=observation[:60], trust="unverified")
            return
        outcome = _outcome(event, observation, extras)
        files = changed_file(extras) if outcome == "succeeded" else ()
        shown = extras.get("formatted_output_and_error") if files else None
        yield st.ResultStep(
            call,
            shown if isinstance(shown, str) and shown else content,
            outcome,
            error="" if outcome == "succeeded" else text_of(content)[-st.ERROR_MAX :],
            files=files,
        )

    def _finish_steps(self, id: str, event: dict[str, Any], args: dict[str, Any]) -> Iterator[st.Step]:
        metadata = as_dict(event.get("tool_call_metadata"))
        response = as_dict(metadata.get("model_response"))
        reply = text_in(response, "id") or f"e{id}"
        text = text_in(args, "final_thought") or text_in(args, "thought") or text_in(event, "message")
        if reply not in self._replies:
            self._replies.add(reply)
            yield msgspec.structs.replace(_reply(reply, response, text, []), is_last=True)
        yield st.TurnEndStep("completed" if event.get("action") == "finish" else "failed")


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int) else None


def _input_of(response: dict[str, Any], call: str) -> Any:
    """The input of a call, as the model wrote it."""
    for choice in as_list(response.get("choices")):
        for asked in as_list(as_dict(as_dict(choice).get("message")).get("tool_calls")):
            if as_dict(asked).get("id") == call:
                return json_or_text(as_dict(as_dict(asked).get("function")).get("arguments"))
    return None


def _reply(id: str, response: dict[str, Any], thought: str, calls: list[tuple[str, str]]) -> st.ReplyStep:
    choice = first_choice(response)
    message = as_dict(choice.get("message"))
    text = text_of(message.get("content")) or thought
    tool_calls = dicts_in(message.get("tool_calls"))
    calls = [(text_in(call, "id"), text_in(as_dict(call.get("function")), "name")) for call in tool_calls] or calls
    texts = [text_block(text)] if text.strip() else []
    return st.ReplyStep(
        id,
        [*texts, *(call_block(call, tool) for call, tool in calls)],
        model=text_in(response, "model"),
        usage=usage_of({"usage": _usage(as_dict(response.get("usage")))}),
        stop_reason=text_in(choice, "finish_reason"),
    )


def _usage(usage: dict[str, Any]) -> dict[str, Any]:
    """Usage in the form of the OpenAI API. Tokens written to a cache are reported beside it, and are part of the
    prompt."""
    details = as_dict(usage.get("prompt_tokens_details"))
    return usage | {"prompt_tokens_details": details | {"cache_write_tokens": usage.get("cache_creation_input_tokens")}}


def _state_steps(fields: dict[str, Any]) -> Iterator[st.Step]:
    """A change of the agent's state. Only the end of a turn is news."""
    match fields.get("agent_state"):
        case "finished":
            yield st.TurnEndStep()
        case "error":
            yield st.TurnEndStep("failed", text_in(fields, "reason")[: st.ERROR_MAX] or "error")
        case "stopped":
            yield st.TurnEndStep("interrupted")
        case "rejected":
            yield st.TurnEndStep("failed", "rejected")


def _outcome(event: dict[str, Any], observation: str, extras: dict[str, Any]) -> st.Outcome:
    if observation == "user_rejected":
        return "denied"
    if observation == "error" or (event.get("success") is False and observation != "run"):
        return "failed"
    code = as_dict(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
    if type(code) is int and code != 0:
        # -1: the command is still running, and the wait for it timed out.
        return "timed_out" if code == -1 else "failed"
    if text_of(event.get("content")).startswith("ERROR:"):
        return "failed"
    return "succeeded"
