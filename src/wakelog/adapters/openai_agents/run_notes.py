"""What the tracer saw of a run, until the session writes the matching items.

A run of the SDK is one trace. Its spans have the usage of a reply, and how long a tool ran and whether it failed. Its
items, which reach the session a moment later, have the content. Spans and items are matched by call ids and texts.
Replies and calls without an item, which come from an agent used as a tool, are recorded separately.
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
"""How many runs are remembered. A run whose end is never reported is dropped at some point."""


class TracedReply(msgspec.Struct):
    """A model's answer."""

    id: str
    model: str
    usage: Usage
    output: list[dict[str, Any]]
    keys: frozenset[str]
    duration_us: int = 0
    error: str = ""


class TracedCall(msgspec.Struct):
    """A tool call."""

    tool: str
    input: str
    output: str
    duration_us: int = 0
    error: str = ""


class RunNotes:
    """What the tracer knows about one run."""

    def __init__(self, trace_id: str, group_id: str = "", workflow: str = "") -> None:
        self.trace_id = trace_id
        self.group_id = group_id
        self.workflow = workflow
        self.recorder: Recorder | None = None
        self.is_session = False
        """True if a `WakelogSession` gets the items. Otherwise they are taken from what the model was sent."""
        self.nested: set[str] = set()
        """Spans inside a tool call: those of another agent."""
        self.replies: list[TracedReply] = []
        self.calls: list[TracedCall] = []
        self.drafts: list[EventDraft] = []
        self.error = ""
        self.turn = 0
        self.lock = threading.RLock()

    def take_reply(self, items: Sequence[dict[str, Any]], recorder: Recorder) -> ReplyFacts | None:
        """Removes and returns the facts about the reply that these items belong to."""
        keys = reply_keys(items)
        with self.lock:
            found = next((r for r in self.replies if r.keys & keys), None)
            if found is None:
                return None
            self.replies.remove(found)
        return recorder.facts(found.model, found.usage, id=found.id, duration_us=found.duration_us)

    def take_calls(self, items: Sequence[dict[str, Any]], known: Sequence[dict[str, Any]]) -> dict[str, CallFacts]:
        """Removes and returns the facts about the calls whose results are among `items`. `known` are earlier items."""
        requests = {i.get("call_id"): i for i in (*known, *items) if i.get("type") == "function_call"}
        out: dict[str, CallFacts] = {}
        with self.lock:
            for item in items:
                request = requests.get(item.get("call_id"))
                if item.get("type") != "function_call_output" or request is None:
                    continue
                name, arguments = request.get("name"), request.get("arguments")
                same = (c for c in self.calls if c.tool == name and c.input == arguments)
                if (found := next(same, None)) is not None:
                    self.calls.remove(found)
                    out[str(item["call_id"])] = _call_facts(found, item.get("output"))
        return out

    def take_rest(self, recorder: Recorder) -> list[EventDraft]:
        """Removes and returns the events for everything without an item, and for guardrails and handoffs."""
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


def _call_facts(call: TracedCall, told: Any = None) -> CallFacts:
    """The facts about a call. `told` is what the model was told; of a failure it says more than the trace."""
    cost = Cost(duration_us=call.duration_us)
    if not call.error:
        return CallFacts(cost=cost)
    return CallFacts("failed", told if isinstance(told, str) and told else call.error, cost)


def reply_keys(items: Sequence[dict[str, Any]]) -> frozenset[str]:
    """The keys by which the items of a reply are recognised: call ids and texts."""
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
