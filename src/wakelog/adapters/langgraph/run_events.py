"""Turns what a graph did into events: turns, messages, model and tool calls, questions to people.

An invocation with an input is a turn. The turn ends when no node is due, or when a task fails; an invocation that
resumes continues it. A message in any channel becomes an event when it is first seen, in a task's writes or in a
checkpoint, and only once: its id is remembered. A model's message is a model call, with its usage. The tool calls in it
are answered by the messages of those tools. An interrupt is a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from wakelog.adapters.langgraph.interrupts import interrupt_ids, question_text
from wakelog.adapters.langgraph.thread_data import ROOT, CheckpointDraft, ThreadCopy, added_items, channel_path
from wakelog.adapters.langgraph.waiting_writes import TaskWrites
from wakelog.importers.frameworks.langgraph.messages import input_of, message_kind, reply_of
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.json_fields import as_text
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.state.patch import Delta

_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "tool": "tool"}
_INPUT = "input"


class RunEvents:
    """The events of one commit, in order."""

    def __init__(self, thread: ThreadCopy, costs: ReplyCosts, at: int) -> None:
        self._drafts: list[EventDraft] = []
        self._thread = thread
        self._turn = dict(thread.turn)
        self._pending = dict(thread.pending)
        self._costs = costs
        self._at = at

    def finish(self) -> list[EventDraft]:
        """Returns the events, and updates the thread's turn and pending calls."""
        self._thread.turn, self._thread.pending = self._turn, self._pending
        return self._drafts

    @property
    def _is_open(self) -> bool:
        return bool(self._turn["status"] == "open")

    def add(self, event: ev.Event, *, actor: str = "agent", trust: Any = "trusted", source: str = "") -> None:
        self._drafts.append(EventDraft(event, actor=actor, trust=trust, source=source))

    # Checkpoints and writes

    def add_checkpoint(self, ns: str, draft: CheckpointDraft, changes: Delta, *, is_readable: bool) -> None:
        """Adds the turn and the messages of a checkpoint. `changes` are the operations on its channels."""
        if ns:
            self._add_messages(added_items(changes), only_named=True)
            return
        added = added_items([op for op in changes if not op["path"].startswith(ROOT)])
        request = next((item["content"] for item in added if message_kind(item) in ("human", "user")), None)
        if draft.source == "input":
            start = [op.get("value") for op in changes if op["path"] == channel_path("", "__start__")]
            self._begin_turn(input_of(start[0]) if start and is_readable else request)
        elif draft.source == "fork":
            self._begin_turn(None, why=f"replays from checkpoint {draft.parent}")
        elif draft.source == "loop":
            self._continue_turn(request)
        self._add_messages(added)

    def add_writes(self, writes: TaskWrites, new: Sequence[tuple[int, str, Value]], entries: dict[str, Any]) -> None:
        """Adds what a task wrote. `new` is the part that is not stored yet, `entries` everything that it wrote."""
        root = self._thread.graphs.get("")
        if root is not None and not root.is_at_rest:
            self._continue_turn()
        for _, channel, value in new:
            if channel == INTERRUPT:
                for request, question in writes.questions:
                    self._ask(request, question)
            elif channel == RESUME:
                answer = value[-1] if type(value) is list and value else value
                self._answer_questions(interrupt_ids(entries, writes.task), answer)
            elif channel == ERROR:
                if not any(c == "__error_source_node__" for _, c, _ in new):
                    self._fail(value)
            elif not channel.startswith("__"):
                self._add_messages(value if type(value) is list else [value], only_named=True)

    # Turns

    def _begin_turn(self, input: Value, *, why: str = "") -> None:
        """Starts a turn. A turn that is still open was interrupted."""
        if self._is_open:
            self.end_turn("interrupted")
        self._thread.turn_input = input
        self.add(ev.TurnStarted(input=input, why=why), actor="user")
        self._turn = {"number": self._turn["number"] + 1, "status": "open", "attempt": 1}

    def _continue_turn(self, input: Value = None) -> None:
        """Continues the open turn, or retries the one that failed; otherwise starts one."""
        if self._is_open:
            return
        if self._turn["status"] == "failed" and input is None:
            self.add(ev.TurnStarted(retry=True, resumes=self._turn["attempt"]), actor="runtime")
            self._turn |= {"status": "open", "attempt": self._turn["attempt"] + 1}
        else:
            self._begin_turn(input)

    def end_turn(self, outcome: Any = "completed", error: ev.Failure | None = None) -> None:
        if not self._is_open:
            return
        if outcome != "failed":  # a failed graph may be resumed, and then its calls are answered
            self.abandon(after=0)
        self.add(ev.TurnEnded(outcome=outcome, error=error), actor="runtime")
        self._turn["status"], self._thread.turn_input = outcome, None

    def abandon(self, *, after: Seq) -> None:
        """Abandons the calls and questions that were asked after an event and never answered."""
        for action, pending in list(self._pending.items()):
            if pending["seq"] > after:
                del self._pending[action]
                self.add(ev.ActionAbandoned(action=action), actor="runtime")

    # Messages

    def _add_messages(self, items: list[Value], *, only_named: bool = False) -> None:
        """Adds the items that are messages and are not recorded yet. With `only_named`, only those that have an id."""
        for item in items:
            kind = message_kind(item)
            if not kind or (only_named and not item.get("id")):
                continue
            id = item.get("id")
            if type(id) is str and id:
                if id in self._thread.recorded_messages:
                    continue
                self._thread.recorded_messages.add(id)
            self._add_message(kind, item)

    def _add_message(self, kind: str, item: dict[str, Value]) -> None:
        role = _ROLES.get(kind, kind)
        input = self._thread.turn_input
        if role == "user" and self._is_open and input is not None and input == item["content"]:
            self._thread.turn_input = None  # the event that started the turn has it
        elif role == "assistant":
            self._add_reply(item)
        elif role == "tool" and type(item.get("tool_call_id")) is str:
            self._add_tool_result(item)
        else:
            event = ev.MessageAdded(role=role, content=item["content"], name=as_text(item.get("name")))
            self.add(event, actor="user" if role == "user" else "agent")

    def _add_reply(self, item: dict[str, Value]) -> None:
        reply = reply_of(item)
        action = reply.id if reply.id and reply.id not in self._pending else f"model-{self._at}-{len(self._drafts)}"
        answer = {"type": "message", "role": "assistant", "content": reply.content}
        event = ev.ActionRecorded(
            action=action,
            tool="model",
            effect="model",
            output={**answer, "model": reply.model} if reply.model else answer,
            cost=self._costs.cost(reply.model, reply.usage, 0, self._at),
            params={"model": reply.model} if reply.model else {},
            stop_reason=reply.stop_reason,
        )
        self.add(event)
        for call in reply.calls:
            if call["id"] not in self._pending:
                self._add_pending(call["id"], call["name"])
                self.add(ev.ActionRequested(action=call["id"], tool=call["name"], input=call.get("args"), group=action))

    def _add_tool_result(self, item: dict[str, Value]) -> None:
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

    def _add_pending(self, action: str, tool: str) -> None:
        self._pending[action] = {"tool": tool, "seq": self._thread.seq + 1}

    # Questions and failures

    def _ask(self, request: str, question: Value) -> None:
        if request and request not in self._pending:
            self._add_pending(request, _INPUT)
            self.add(ev.InputRequested(request=request, prompt=question_text(question)))

    def _answer_questions(self, requests: list[str], answer: Value) -> None:
        """Answers these questions; without any, the only one that is open."""
        open_requests = [request for request, pending in self._pending.items() if pending.get("tool") == _INPUT]
        if not requests and len(open_requests) == 1:
            requests = open_requests
        for request in requests:
            if request in open_requests:
                del self._pending[request]
                self.add(ev.InputAnswered(request=request, answer=answer), actor="user")

    def _fail(self, error: Value) -> None:
        text = _text(error)
        name, bracket, _ = text.partition("(")
        kind = name if bracket and name.isidentifier() else "error"
        self.end_turn("failed", ev.Failure(kind, text[:2000]))


def _text(value: Value) -> str:
    return value if type(value) is str else msgspec.json.encode(value).decode()
