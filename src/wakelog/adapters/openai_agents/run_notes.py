"""What the tracer saw of a run, until the session writes the items that it belongs to.

A run of the SDK is one trace. Its spans tell what a reply used, how long a tool ran and whether it failed; its items,
which reach the session a moment later, tell what was said. They are matched by the ids of calls and by the words.
Replies and calls that no item tells of, those of an agent that is used as a tool, are recorded by themselves.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec

from wakelog.adapters.message_events import CallFacts, ReplyFacts
from wakelog.adapters.recorder import Recorder
from wakelog.model import events as ev
from wakelog.model.events import Cost
from wakelog.model.records import EventDraft
from wakelog.model.usage import Usage

RUNS_MAX = 1024
"""Runs that are remembered; one whose end is never told is forgotten at last."""


class TracedReply(msgspec.Struct):
    """An answer of a model."""

    id: str
    model: str
    usage: Usage
    output: list[dict[str, Any]]
    keys: frozenset[str]
    duration_us: int = 0
    error: str = ""


class TracedCall(msgspec.Struct):
    """A call of a tool."""

    tool: str
    input: str
    output: str
    duration_us: int = 0
    error: str = ""


class RunNotes:
    """What is known of one run."""

    def __init__(self, trace_id: str, group_id: str = "", workflow: str = "") -> None:
        self.trace_id = trace_id
        self.group_id = group_id
        self.workflow = workflow
        self.recorder: Recorder | None = None
        self.is_session = False
        """Whether a session of ours is told the items. Else they are taken from what the model was sent."""
        self.nested: set[str] = set()
        """Spans inside a tool: another agent's."""
        self.replies: list[TracedReply] = []
        self.calls: list[TracedCall] = []
        self.drafts: list[EventDraft] = []
        self.error = ""
        self.turn = 0
        self.lock = threading.RLock()

    def take_reply(self, items: Sequence[dict[str, Any]], recorder: Recorder) -> ReplyFacts | None:
        """What is known of the reply that some items are, once."""
        keys = reply_keys(items)
        with self.lock:
            found = next((r for r in self.replies if r.keys & keys), None)
            if found is None:
                return None
            self.replies.remove(found)
        return recorder.facts(found.model, found.usage, id=found.id, duration_us=found.duration_us)

    def take_calls(self, items: Sequence[dict[str, Any]], known: Sequence[dict[str, Any]]) -> dict[str, CallFacts]:
        """What is known of the calls whose results are among some items. `known` are items from before."""
        asked = {i.get("call_id"): i for i in (*known, *items) if i.get("type") == "function_call"}
        out: dict[str, CallFacts] = {}
        with self.lock:
            for item in items:
                ask = asked.get(item.get("call_id"))
                if item.get("type") != "function_call_output" or ask is None:
                    continue
                same = (c for c in self.calls if c.tool == ask.get("name") and c.input == ask.get("arguments"))
                if (found := next(same, None)) is not None:
                    self.calls.remove(found)
                    out[str(item["call_id"])] = _call_facts(found)
        return out

    def left(self, recorder: Recorder) -> list[EventDraft]:
        """Events for what no item told of, and for guardrails and handoffs; each is given once."""
        with self.lock:
            drafts, self.drafts = self.drafts, []
            calls, self.calls = self.calls, []
            replies, self.replies = self.replies, []
        for reply in replies:
            facts = recorder.facts(reply.model, reply.usage, duration_us=reply.duration_us)
            event: ev.Event = ev.ActionRecorded(
                action=reply.id or f"model-{len(drafts)}-{self.trace_id[-8:]}",
                tool="model",
                effect="model",
                outcome="failed" if reply.error else "succeeded",
                error=ev.Failure("error", reply.error) if reply.error else None,
                output={"type": "message", "role": "assistant", "content": reply.output},
                params={"model": reply.model} if reply.model else {},
                cost=facts.cost,
            )
            drafts.append(EventDraft(event))
        for number, call in enumerate(calls):
            known = _call_facts(call)
            event = ev.ActionRecorded(
                action=f"call-{number}-{self.trace_id[-8:]}-{recorder.session.head.seq}",
                tool=call.tool,
                outcome=known.outcome,
                error=ev.Failure("error", call.error) if call.error else None,
                input=call.input,
                output=call.output,
                cost=known.cost,
            )
            drafts.append(EventDraft(event, actor="tool", trust="unverified", source=call.tool))
        return drafts


def _call_facts(call: TracedCall) -> CallFacts:
    cost = Cost(duration_us=call.duration_us)
    return CallFacts("failed", call.error, cost) if call.error else CallFacts(cost=cost)


def reply_keys(items: Sequence[dict[str, Any]]) -> frozenset[str]:
    """By what the items of a reply are known: ids of calls, and words."""
    found: set[str] = set()
    for item in items:
        if isinstance(call := item.get("call_id"), str) and not str(item.get("type", "")).endswith("_output"):
            found.add(f"call:{call}")
        for call in item.get("tool_calls") or ():
            found.add(f"call:{call.get('id')}")
        if item.get("role") == "assistant":
            content = item.get("content")
            texts = (
                [content] if isinstance(content, str) else [b.get("text") for b in content or () if isinstance(b, dict)]
            )
            found.update(f"says:{text}" for text in texts if text)
    return frozenset(found)


class Runs:
    """The runs of this process, by trace."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, RunNotes] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, notes: RunNotes) -> None:
        with self._lock:
            self._runs[notes.trace_id] = notes
            while len(self._runs) > RUNS_MAX:
                self._runs.popitem(last=False)

    def find(self, trace_id: str) -> RunNotes | None:
        return self._runs.get(trace_id)

    def end(self, trace_id: str) -> RunNotes | None:
        with self._lock:
            return self._runs.pop(trace_id, None)


RUNS = Runs()
