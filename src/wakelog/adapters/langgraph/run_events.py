"""What a graph did, in the words of the log: turns, messages, calls of models and tools, questions to people.

An invocation with an input is a turn. It ends when no node is due, or when a task fails; an invocation that resumes
goes on with the turn that was cut. Messages in any channel become events when they are first seen, in what a task wrote
or in a checkpoint, and only once each: they are known by their ids. A model's message is a call of a model, with its
usage, and what it asks for are calls of tools, answered by the messages of those tools. An interrupt is a question.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.adapters.langgraph.thread_data import ThreadCopy
from wakelog.importers.frameworks.langgraph.messages import message_kind, reply_of
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.json_fields import as_text
from wakelog.model.records import EventDraft
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
        return bool(self._turn["status"] == "open")

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
            event = ev.MessageAdded(role=role, content=item["content"], name=as_text(name))
            self.add(event, actor="user" if role == "user" else "agent")

    def _reply(self, item: dict[str, Value]) -> None:
        said = reply_of(item)
        action = said.id if said.id and said.id not in self._pending else f"model-{self._at}-{len(self.drafts)}"
        answer = {"type": "message", "role": "assistant", "content": said.content}
        event = ev.ActionRecorded(
            action=action,
            tool="model",
            effect="model",
            output={**answer, "model": said.model} if said.model else answer,
            cost=self._costs.cost(said.model, said.usage, 0, self._at),
            params={"model": said.model} if said.model else {},
            stop_reason=said.stop_reason,
        )
        self.add(event)
        for call in said.calls:
            if call["id"] not in self._pending:
                self._wait_for(call["id"], call["name"])
                self.add(ev.ActionRequested(action=call["id"], tool=call["name"], input=call.get("args"), group=action))

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


def _text(value: Value) -> str:
    return value if type(value) is str else msgspec.json.encode(value).decode()
