"""What a graph did, in the words of the log: turns, messages, calls of models and tools, questions to people.

An invocation with an input is a turn. It ends when no node is due, or when a task fails; an invocation that resumes goes
on with the turn that was cut. Messages in any channel become events when they are first seen, in what a task wrote or in
a checkpoint, and only once each: they are known by their ids. A model's message is a call of a model, with its usage,
and what it asks for are calls of tools, answered by the messages of those tools. An interrupt is a question.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.adapters.langgraph.thread_data import ThreadCopy
from wakelog.importers.reply_costs import ReplyCosts
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.usage import Usage
from wakelog.model.values import Value

_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "tool": "tool"}
_INPUT = "input"


class RunEvents:
    """The events of one commit, in order."""

    def __init__(self, thread: ThreadCopy, costs: ReplyCosts, at: int) -> None:
        self.drafts: list[EventDraft] = []
        self._thread = thread
        self._turn = dict(thread.turn)
        self._pending = dict(thread.pending)
        self._costs = costs
        self._at = at

    def done(self) -> list[EventDraft]:
        """The events. The thread knows now what they tell."""
        self._thread.turn, self._thread.pending = self._turn, self._pending
        return self.drafts

    @property
    def _is_open(self) -> bool:
        return self._turn["status"] == "open"

    def add(self, event: ev.Event, *, actor: str = "agent", trust: Any = "trusted", source: str = "") -> None:
        self.drafts.append(EventDraft(event, actor=actor, trust=trust, source=source))

    # Turns

    def begin_turn(self, asked: Value, *, why: str = "") -> None:
        """Begins a turn; one that is open was left."""
        if self._is_open:
            self.end_turn("interrupted")
        self._thread.asked = asked
        self.add(ev.TurnStarted(input=asked, why=why), actor="user")
        self._turn = {"number": self._turn["number"] + 1, "status": "open", "attempt": 1}

    def go_on(self, asked: Value = None) -> None:
        """Goes on with the turn that is open, or with one that failed; else begins one."""
        if self._is_open:
            return
        if self._turn["status"] == "failed" and asked is None:
            self.add(ev.TurnStarted(retry=True, resumes=self._turn["attempt"]), actor="runtime")
            self._turn |= {"status": "open", "attempt": self._turn["attempt"] + 1}
        else:
            self.begin_turn(asked)

    def end_turn(self, outcome: Any = "completed", error: ev.Failure | None = None) -> None:
        if not self._is_open:
            return
        if outcome != "failed":  # after a failure the graph may be resumed, and then they are answered
            self.abandon(after=0)
        self.add(ev.TurnEnded(outcome=outcome, error=error), actor="runtime")
        self._turn["status"], self._thread.asked = outcome, None

    def abandon(self, *, after: Seq) -> None:
        """Gives up what was asked for after an event and never answered."""
        for action, pending in list(self._pending.items()):
            if pending["seq"] > after:
                del self._pending[action]
                self.add(ev.ActionAbandoned(action=action), actor="runtime")

    # Messages

    def items(self, items: list[Value], *, only_named: bool = False) -> None:
        """Tells of those among some values that are messages. With `only_named`, of those that have an id."""
        for item in items:
            kind = message_kind(item)
            if not kind or (only_named and not item.get("id")):
                continue
            id = item.get("id")
            if type(id) is str and id:
                if id in self._thread.told:
                    continue
                self._thread.told.add(id)
            self._message(kind, item)

    def _message(self, kind: str, item: dict[str, Value]) -> None:
        role = _ROLES.get(kind, kind)
        asked = self._thread.asked
        if role == "user" and self._is_open and asked is not None and asked == item["content"]:
            self._thread.asked = None  # the turn began with it
        elif role == "assistant":
            self._reply(item)
        elif role == "tool" and type(item.get("tool_call_id")) is str:
            self._answer(item)
        else:
            name = item.get("name")
            event = ev.MessageAdded(role=role, content=item["content"], name=name if type(name) is str else "")
            self.add(event, actor="user" if role == "user" else "agent")

    def _reply(self, item: dict[str, Value]) -> None:
        said = item["content"]
        content = list(said) if type(said) is list else [{"type": "text", "text": said}] if said else []
        calls = [c for c in item.get("tool_calls") or () if type(c) is dict and type(c.get("name")) is str]
        known = {block.get("id") for block in content if type(block) is dict}
        for call in calls:
            if call.get("id") not in known:
                content.append({"type": "tool_use", "id": call.get("id"), "name": call["name"]})
        about = item.get("response_metadata")
        about = about if type(about) is dict else {}
        model = next((m for key in ("model_name", "model") if type(m := about.get(key)) is str), "")
        stop = next((s for key in ("finish_reason", "stop_reason") if type(s := about.get(key)) is str), "")
        id = item.get("id")
        action = id if type(id) is str and id and id not in self._pending else ""
        event = ev.ActionRecorded(
            action=action or f"model-{self._at}-{len(self.drafts)}",
            tool="model",
            effect="model",
            output={"type": "message", "role": "assistant", "content": content, **({"model": model} if model else {})},
            cost=self._costs.cost(model, usage_of_message(item), 0, self._at),
            params={"model": model} if model else {},
            stop_reason=stop,
        )
        self.add(event)
        for call in calls:
            if type(call.get("id")) is str and call["id"] not in self._pending:
                self._wait_for(call["id"], call["name"])
                request = ev.ActionRequested(
                    action=call["id"], tool=call["name"], input=call.get("args"), group=event.action
                )
                self.add(request)

    def _answer(self, item: dict[str, Value]) -> None:
        action, output = item["tool_call_id"], item["content"]
        failed = item.get("status") == "error"
        error = ev.Failure("error", _text(output)[:500]) if failed else None
        pending = self._pending.pop(action, None)
        name = item.get("name")
        tool = pending["tool"] if pending else name if type(name) is str and name else "unknown"
        event: ev.Event
        if pending is None:
            event = ev.ActionRecorded(
                action=action, tool=tool, outcome="failed" if failed else "succeeded", output=output, error=error
            )
        elif error is not None:
            event = ev.ActionFailed(action=action, error=error, output=output)
        else:
            event = ev.ActionSucceeded(action=action, output=output)
        self.add(event, actor="tool", trust="unverified", source=tool)

    def _wait_for(self, action: str, tool: str) -> None:
        self._pending[action] = {"tool": tool, "seq": self._thread.seq + 1}

    # Questions and failures

    def ask(self, request: str, question: Value) -> None:
        if request and request not in self._pending:
            self._wait_for(request, _INPUT)
            self.add(ev.InputRequested(request=request, prompt=_text(question)))

    def answer(self, requests: list[str], answer: Value) -> None:
        """Answers the questions named; without names, the one that is open."""
        asked = [request for request, pending in self._pending.items() if pending.get("tool") == _INPUT]
        if not requests and len(asked) == 1:
            requests = asked
        for request in requests:
            if request in asked:
                del self._pending[request]
                self.add(ev.InputAnswered(request=request, answer=answer), actor="user")

    def fail(self, error: Value) -> None:
        text = _text(error)
        name, bracket, _ = text.partition("(")
        kind = name if bracket and name.isidentifier() else "error"
        self.end_turn("failed", ev.Failure(kind, text[:2000]))


def message_kind(item: Value) -> str:
    """The kind of a message in its stored form; empty for what is none."""
    if type(item) is not dict or "content" not in item:
        return ""
    if "$object" in item:
        kind = item.get("type")
        if type(kind) is not str or type(item.get("response_metadata", {})) is not dict:
            return ""
        kind = kind.removesuffix("MessageChunk").lower()
        return kind if kind in ("human", "ai", "system", "tool", "function", "chat") else ""
    role = item.get("role")
    return role if role in ("user", "assistant", "system", "tool") else ""


def usage_of_message(item: dict[str, Value]) -> Usage:
    """What a model's message says it used, each token counted once."""
    told = item.get("usage_metadata")
    if type(told) is not dict:
        return Usage()
    heard, said = told.get("input_token_details"), told.get("output_token_details")
    read, written = _count(heard, "cache_read"), _count(heard, "cache_creation")
    thought = _count(said, "reasoning")
    return Usage(
        input=max(0, _count(told, "input_tokens") - read - written),
        cache_read=read,
        cache_write=written,
        output=max(0, _count(told, "output_tokens") - thought),
        reasoning=thought,
    )


def input_of(start: Value) -> Value:
    """What an invocation was given, as a person would say it: the words of its one message, or all of it."""
    if type(start) is dict and type(start.get("messages")) is list and start["messages"]:
        last = start["messages"][-1]
        if message_kind(last):
            return last["content"]
        if type(last) is list and len(last) == 2:
            return last[1]
        if type(last) is str:
            return last
    return start


def _count(told: Any, name: str) -> int:
    count = told.get(name) if type(told) is dict else None
    return count if type(count) is int and count > 0 else 0


def _text(value: Value) -> str:
    return value if type(value) is str else msgspec.json.encode(value).decode()
