"""Turns one ADK event into events of a log.

An invocation is a turn. The model's answer is a model call, with its cost. A function call is a requested action, and
its response is the outcome. Texts are messages, a change of the state is a patch of `data`, an artifact is recorded by
name. The last event of the commit, `items.kept`, holds the rest (ids, branch, actions) and says how event_reader.py can
rebuild the ADK event. Nothing is stored twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from google.adk.events.event import Event

from wakelog.adapters.adk.state_values import ScopedState, stored_value
from wakelog.adapters.compound_names import compound_name
from wakelog.codec.canonical import hash_value
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.usage import usage_of
from wakelog.model.values import Value

FORMAT = "adk"
"""The format of the `items.kept` that holds the rest of an ADK event."""
LABELS = ("adk.app", "adk.user", "adk.session")
Parts = list[dict[str, Any]]


class SessionPlace(msgspec.Struct, frozen=True):
    """The session before the event: its ids, the turn, the open calls, and the values that the event changes."""

    ids: tuple[str, str, str]
    has_turn: bool
    invocation: str
    """The invocation of the event before."""
    was_final: bool
    pending: Mapping[str, Any]
    data: dict[str, Value]


class EventDrafts:
    """Makes the drafts for one ADK event."""

    def __init__(self, event: Event, change: ScopedState, place: SessionPlace, costs: ReplyCosts) -> None:
        self._event = event
        self._change = change
        self._place = place
        self._costs = costs
        self._at = micros(event.timestamp)
        self._drafts: list[EventDraft] = []
        self._rest: dict[str, Any] = {}
        self._tool: tuple[str, Seq] | None = None
        """The tool whose response this is, and the event of its call; None for several responses or none."""

    def make(self) -> list[EventDraft]:
        event = self._event
        content = event.content.model_dump(mode="json", exclude_none=True) if event.content is not None else None
        words, calls, answers, order = split_parts((content or {}).get("parts") or [])
        if content is not None:
            self._rest["content"] = {key: value for key, value in content.items() if key != "parts"}
            if order:
                self._rest["order"] = order
            elif "parts" in content:
                self._rest["content"]["parts"] = []
        self._begin_turn(content, words)
        if "home" not in self._rest:
            self._put_words(content, words, calls, answers)
        self._request_calls(calls)
        self._record_responses(answers)
        self._record_artifacts()
        if patch := self._change.patch(self._place.data):
            # A state change that comes with a tool's response was made by that tool.
            tool, cause = self._tool if self._tool is not None else ("", 0)
            self._put(ev.StatePatched(patch=patch), actor="tool" if tool else "agent", source=tool, cause=cause)
        self._keep_rest()
        self._end_turn()
        return self._drafts

    def _put(self, event: ev.Event, actor: str = "agent", source: str = "", cause: Seq = 0) -> None:
        event = msgspec.structs.replace(event, occurred_at=self._at)
        trust: Literal["trusted", "unverified"] = "unverified" if source else "trusted"
        self._drafts.append(EventDraft(event, actor=actor, source=source, trust=trust, cause=cause))

    # Turns

    def _begin_turn(self, content: dict[str, Any] | None, words: Parts) -> None:
        event, place = self._event, self._place
        if place.has_turn and event.invocation_id == place.invocation:
            return
        if place.has_turn:
            outcome: Literal["completed", "interrupted"] = "completed" if place.was_final else "interrupted"
            self._put(ev.TurnEnded(outcome=outcome), actor="runtime")
        input: Value = None
        if event.author == "user" and words:
            input = message_content(content, words)
            self._rest["home"] = "turn"
        self._put(ev.TurnStarted(input=input), actor="user" if input is not None else "runtime")

    def _end_turn(self) -> None:
        """Ends the turn after a final answer of the root agent. After an answer of another agent more may follow, so
        the turn ends when the next one starts."""
        event = self._event
        path = getattr(getattr(event, "node_info", None), "path", "")
        if event.author == "user" or not path or "/" in path or not event.is_final_response():
            return
        if event.long_running_tool_ids:
            return
        failure = self._failure()
        self._put(ev.TurnEnded(outcome="failed" if failure else "completed", error=failure), actor="runtime")

    # Texts and model calls

    def _put_words(self, content: dict[str, Any] | None, words: Parts, calls: Parts, answers: Parts) -> None:
        event = self._event
        is_user = event.author == "user"
        is_model = event.model_version or event.usage_metadata or event.finish_reason or event.error_code or calls
        if is_model and not is_user and not answers:
            self._rest["home"] = "model"
            self._put(self._model_call(content, words))
        elif words:
            self._rest["home"] = "message"
            role = "user" if is_user else "assistant"
            message = ev.MessageAdded(role=role, content=message_content(content, words), name=event.author)
            self._put(message, actor="user" if is_user else "agent")

    def _model_call(self, content: dict[str, Any] | None, words: Parts) -> ev.ActionRecorded:
        event = self._event
        model = event.model_version or ""
        used = event.usage_metadata.model_dump(mode="json", exclude_none=True) if event.usage_metadata else None
        cost = self._costs.cost(model, usage_of({"usage_metadata": used}), 0, self._at)
        failure = self._failure()
        answer = {"candidates": [{"content": {"role": (content or {}).get("role", "model"), "parts": words}}]}
        return ev.ActionRecorded(
            action=self._model_action,
            tool="model",
            effect="model",
            outcome="failed" if failure else "succeeded",
            output=stored_value(answer, "content") if words else None,
            error=failure,
            cost=cost,
            params={key: value for key, value in (("model", model), ("agent", event.author)) if value},
            stop_reason=_enum_text(event.finish_reason),
        )

    @property
    def _model_action(self) -> str:
        return f"adk:{self._event.id}"

    def _failure(self) -> ev.Failure | None:
        event = self._event
        return ev.Failure(_enum_text(event.error_code), event.error_message or "") if event.error_code else None

    # Calls

    def _request_calls(self, calls: Parts) -> None:
        requested_ids: set[str] = set()
        for number, call in enumerate(calls):
            action = call.get("id") or f"{self._event.id}/{number}"
            if action in self._place.pending or action in requested_ids:
                action = f"{action}/{self._event.id}/{number}"
            requested_ids.add(action)
            given = stored_value(call["args"], f"the arguments of {call.get('name')}") if "args" in call else None
            requested = ev.ActionRequested(
                action=action,
                tool=call.get("name") or "unknown",
                input=given,
                input_hash=hash_value(given),
                group=self._model_action if self._rest.get("home") == "model" else "",
            )
            self._put(requested)
            self._put(ev.ActionStarted(action=action), actor="runtime")

    def _record_responses(self, answers: Parts) -> None:
        shells, settled = [], set()
        for answer in answers:
            id, name = answer.get("id") or "", answer.get("name") or "unknown"
            shell = {key: value for key, value in answer.items() if key in ("id", "name")}
            rest = {key: value for key, value in answer.items() if key not in ("id", "name")}
            is_bare = rest.keys() == {"response"}
            shells.append(shell if is_bare else shell | {"is_whole": True})
            output = stored_value(rest["response"] if is_bare else rest, f"the response of {name}")
            call = self._place.pending.get(id) if id not in settled else None
            settled.add(id)
            if call is None:
                # No open call matches: a long-running tool sent more, or the call is in another session.
                message = ev.MessageAdded(role="tool", content=output, name=name, action=id)
                self._put(message, actor="tool", source=name)
                continue
            failure = _error_in(rest.get("response"))
            outcome: ev.Event = ev.ActionSucceeded(action=id, output=output)
            if failure is not None:
                outcome = ev.ActionFailed(action=id, error=failure, output=output)
            self._put(outcome, actor="tool", source=name, cause=call["seq"])
            if len(answers) == 1:
                self._tool = name, call["seq"]
        if shells:
            self._rest["answers"] = shells

    def _record_artifacts(self) -> None:
        for name, version in self._event.actions.artifact_delta.items():
            ids = self._place.ids[:2] if name.startswith("user:") else self._place.ids
            place = compound_name("adk-artifacts", *ids)
            self._put(ev.ArtefactRecorded(name=name, uri=f"{place}?version={version}"))

    # The rest

    def _keep_rest(self) -> None:
        event = self._event
        fields = event.model_dump(
            mode="json", exclude_none=True, exclude_defaults=True, exclude={"content": True, "actions": {"state_delta"}}
        )
        fields |= {"id": event.id, "timestamp": event.timestamp}
        if not fields.get("actions"):
            fields.pop("actions", None)
        if self._change.session:
            self._rest["state"] = list(self._change.session)
        if shared := self._change.shared:
            self._rest["shared"] = shared
        if event.is_final_response():
            self._rest["is_final"] = True
        rest = {"event": stored_value(fields, "event"), **self._rest}
        line = msgspec.json.encode(rest).decode()
        self._put(ev.ItemsKept(format=FORMAT, counts=(len(self._drafts),), rest=line, ids=(event.id,)), actor="runtime")


def split_parts(parts: Parts) -> tuple[Parts, Parts, Parts, str]:
    """Splits parts into words, calls and answers. Words include the calls, without their arguments. The text gives the
    order of words (`w`) and answers (`a`)."""
    words: Parts = []
    calls: Parts = []
    answers: Parts = []
    order = ""
    for part in parts:
        if isinstance(answer := part.get("function_response"), dict) and len(part) == 1:
            answers.append(answer)
            order += "a"
            continue
        if isinstance(call := part.get("function_call"), dict):
            calls.append(call)
            part = part | {"function_call": {key: value for key, value in call.items() if key != "args"}}
        words.append(part)
        order += "w"
    return words, calls, answers, order


def message_content(content: dict[str, Any] | None, words: Parts) -> Value:
    """Plain text as a text; anything else in ADK's form."""
    if len(words) == 1 and words[0].keys() == {"text"}:
        return words[0]["text"]
    role = (content or {}).get("role")
    return stored_value({"role": role, "parts": words} if role else {"parts": words}, "content")


def micros(timestamp: float) -> int:
    return max(0, round(timestamp * 1e6))


def _error_in(response: Any) -> ev.Failure | None:
    """The failure in a response: ADK reports an exception of a tool as `{"error": …}`."""
    if not isinstance(response, dict) or not response.get("error") or "result" in response:
        return None
    return ev.Failure("error", str(response["error"])[:2000])


def _enum_text(value: Any) -> str:
    """An enum's value, or the text itself."""
    return str(getattr(value, "value", value) or "")
