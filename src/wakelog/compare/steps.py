"""Steps: what an agent did, one thing at a time, so that two courses can be compared.

A step is what a person would count as one: a call with its tries and its outcome, the input of a turn, a message, a
decision, a fact, a changed file. The events of one call are one step. A message that answers a call belongs to the
call, and a user's message that repeats a turn's input belongs to the input. Bookkeeping (leases, checkpoints,
redactions) is not a step.

Each step has a `key`: kind, name and input, without what differs every time (normal_form.py). Its outcome is separate,
in `result`. For a model call, the key does not include what the model was shown, because that differs whenever anything
before it did; it is compared separately. Of an erased or pruned event only the header is left: it is a step with `gone`
set, equal only to itself.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.compare.normal_form import digest, locate_payloads, normalize_payloads, normalize_volatile
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.calls import BEGIN_KINDS, END_KINDS, Call, Calls, outcome_of
from wakelog.model.document import agent_ops
from wakelog.model.events import KINDS, Cost
from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.payloads import is_erased
from wakelog.model.trust import distrust
from wakelog.model.values import Value
from wakelog.timeline.slices import tool_of

Ranges = tuple[tuple[Seq, Seq], ...]
WHOLE_BYTES = 1 << 20
"""Payloads up to this size are fetched and compared; larger ones are compared by hash."""


class Try(msgspec.Struct, frozen=True):
    """One try of a call."""

    number: int
    outcome: str
    error: Value
    at: int
    ended_at: int


_UNNAMED = "model"
"""The name of a model call whose model was not recorded."""


class Step(msgspec.Struct, frozen=True):
    """One thing that was done. Large values are references to their payloads, with the event to fetch them from."""

    kind: str
    """In words: input, model, tool, message, decision, fact, file, data, …"""
    name: str
    """The tool, model, role, key or path."""
    seq: Seq
    seqs: tuple[Seq, ...]
    """All its events, in order."""
    turn: int
    attempt: int
    at: int
    ended_at: int
    input: Value
    output: Value
    outcome: str
    error: Value
    said: tuple[Value, ...]
    """The messages that a call produced."""
    params: dict[str, Value]
    context_hash: str
    cause: Seq
    derived_from: Ranges
    tries: tuple[Try, ...]
    reused: Seq
    cost: Cost
    trust: str
    source: str
    why: str
    gone: str
    """`erased` or `pruned` when its content is no longer there."""
    key: bytes
    exact_key: bytes
    result: bytes
    exact_result: bytes

    @property
    def last(self) -> Seq:
        return self.seqs[-1]

    @property
    def model(self) -> str:
        """The model of a model call; empty if it was not recorded."""
        named = str(self.params.get("model") or self.name)
        return "" if named == _UNNAMED else named

    @property
    def duration_us(self) -> int:
        """The reported duration, else the time from its first to its last event."""
        return self.cost.duration_us or self.ended_at - self.at


class Gathered(msgspec.Struct, frozen=True):
    """The steps among some events, and what was spent outside of steps."""

    steps: tuple[Step, ...]
    apart: Cost


def gather(log: Log, entries: Iterable[Entry]) -> Gathered:
    """Groups the events of a session into steps, in order."""
    builder = _StepBuilder(log)
    for entry in entries:
        builder.take(entry)
    return Gathered(tuple(_finish_step(step) for step in builder.steps), builder.apart)


# kind of event → (word, field with the name, fields of the input, fields of the result). The value of a single field is
# used as it is; several become an object.
_SHAPES: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "turn.started": ("input", "", ("input",), ()),
    "turn.ended": ("end", "", (), ("outcome", "error")),
    "message.added": ("message", "role", ("content",), ()),
    "decision.made": ("decision", "", ("choice",), ("because", "alternatives", "assumptions")),
    "fact.recorded": ("fact", "key", ("value",), ()),
    "fact.retracted": ("retraction", "key", (), ()),
    "dead_end.noted": ("dead end", "", ("tried",), ("learned",)),
    "artefact.recorded": ("artefact", "name", ("uri", "media", "content"), ()),
    "file.changed": ("file", "path", ("change", "added", "removed", "after"), ()),
    "resource.touched": ("resource", "resource", ("category", "mode"), ()),
    "subagent.spawned": ("sub-agent", "", ("task",), ()),
    "subagent.returned": ("sub-agent", "", (), ("outcome", "output")),
    "context.evicted": ("evicted", "key", (), ()),
    "context.restored": ("restored", "key", (), ()),
    "state.patched": ("data", "", ("delta",), ()),
    "input.requested": ("question", "", ("prompt", "options"), ()),
    "input.answered": ("question", "", (), ("answer",)),
    "goal.set": ("goal", "", ("goal",), ()),
    "labels.set": ("labels", "", ("labels",), ()),
    "budget.set": ("budget", "", ("limits",), ()),
    "budget.reached": ("budget", "limit", (), ()),
    "flag.raised": ("flag", "flag", ("rule", "message", "severity"), ()),
    "flag.cleared": ("flag cleared", "flag", (), ()),
    "gap.noted": ("gap", "source", ("missed",), ()),
    "history.compacted": ("compaction", "", ("summary",), ()),
    "history.adopted": ("adoption", "session", ("hash",), ()),
}
_SPEAKERS = frozenset({"user", "human", "assistant", "ai", "tool", "system"})
_AMOUNTS = tuple(name for name in Cost.__struct_fields__ if name != "price")
_DEFAULTS: dict[str, dict[str, Value]] = {
    "turn.ended": {"outcome": "completed"},
    "subagent.returned": {"outcome": "completed"},
    "file.changed": {"change": "modified"},
    "resource.touched": {"category": "data_source", "mode": "read"},
}


class _OpenStep(msgspec.Struct):
    """A step while its events are read."""

    kind: str
    name: str
    first: Entry
    seqs: list[Seq]
    trust: str
    source: str
    input: Value = None
    output: Value = None
    outcome: str = ""
    error: Value = None
    said: list[Value] = []
    params: dict[str, Value] = {}
    context_hash: str = ""
    tries: list[Try] = []
    asked_by: Seq = 0
    """The model's answer that requested the call."""
    reused: Seq = 0
    cost: Cost = Cost()
    gone: str = ""
    ended_at: int = 0
    why: str = ""


class _StepBuilder:
    """One pass over events."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.steps: list[_OpenStep] = []
        self.apart = Cost()
        self._questions: dict[tuple[str, str], _OpenStep] = {}
        self._calls = Calls(Call)
        self._by_request: dict[Seq, _OpenStep] = {}
        self._tools: dict[str, str] = {}

    def take(self, entry: Entry) -> None:
        kind = entry.kind
        if kind.startswith("action."):
            self._take_action(entry)
        elif kind == "budget.spent":
            self.apart = add_cost(self.apart, cost_of(entry))
        elif kind in ("subagent.returned", "input.answered"):
            self._take_answer(entry)
        elif (kind == "message.added" and self._join_message(entry)) or (
            kind == "state.patched" and _is_bookkeeping(entry)
        ):
            pass
        elif kind in _SHAPES or kind not in KINDS:
            step = self._begin(entry, *_shape(entry))
            if kind in ("subagent.spawned", "input.requested"):
                self._questions[_question_key(entry)] = step

    def _begin(self, entry: Entry, kind: str, name: str, input: Value, result: Value) -> _OpenStep:
        body = entry.body
        step = _OpenStep(
            kind, name, entry, [], "trusted", "", locate_payloads(input, entry.seq), why=text_in(body, "why")
        )
        step.output = locate_payloads(result, entry.seq)
        if kind == "end" and type(result) is dict:
            step.outcome, step.error, step.output = text_in(result, "outcome"), result.get("error"), None
        self.steps.append(step)
        self._join(step, entry)
        return step

    def _join(self, step: _OpenStep, entry: Entry) -> None:
        header = entry.header
        step.seqs.append(entry.seq)
        step.ended_at = header.at
        if not entry.is_intact:
            step.gone = "erased" if entry.record.body else "pruned"
        if distrust(header.trust) > distrust(step.trust):
            step.trust, step.source = header.trust, header.source
        if entry.kind != "action.recorded" or not entry.body.get("reused"):
            step.cost = add_cost(step.cost, cost_of(entry))

    def _take_action(self, entry: Entry) -> None:
        call = self._calls.take(entry.seq, entry.kind, entry.header, entry.body)
        if call is None:
            # The request is before these events. A call that a fork inherited and abandoned is not a step.
            if entry.kind not in END_KINDS or entry.body.get("inherited"):
                return
            step = self._begin_from_outcome(entry)
        elif entry.kind in BEGIN_KINDS:
            step = self._begin_call(entry, call)
        else:
            step = self._by_request[call.request]
            self._join(step, entry)
        if entry.kind == "action.started":
            at = entry.header.at
            step.tries = [*step.tries, Try(entry.body.get("attempt", 1), "", None, at, at)]
        elif entry.kind in END_KINDS or entry.kind == "action.uncertain":
            self._end(step, entry, outcome_of(entry.kind, entry.body))

    def _begin_call(self, entry: Entry, call: Call) -> _OpenStep:
        body = entry.body
        tool = tool_of(self.log, entry, self._tools)
        step = self._begin(entry, "model" if call.is_model else "tool", tool, body.get("input"), None)
        step.params = body["params"] if type(body.get("params")) is dict else {}
        step.context_hash = text_in(body, "context_hash")
        step.reused = body.get("reused", 0)
        if (answer := self._calls.by_action.get(text_in(body, "group"))) is not None:
            step.asked_by = answer.request
        self._by_request[call.request] = step
        return step

    def _begin_from_outcome(self, entry: Entry) -> _OpenStep:
        """Begins the step of a call whose request is before these events."""
        step = self._begin(entry, "tool", tool_of(self.log, entry, self._tools), None, None)
        if entry.header.cause:
            request = self.log.entry(entry.header.cause)
            step.kind = "model" if request.body.get("effect") == "model" else "tool"
            step.input = locate_payloads(request.body.get("input"), request.seq)
            if request.kind in BEGIN_KINDS:
                self._calls.take(request.seq, request.kind, request.header, request.body)
                self._by_request[request.seq] = step
        return step

    def _end(self, step: _OpenStep, entry: Entry, outcome: str) -> None:
        body = entry.body
        step.outcome, step.error = outcome, body.get("error")
        step.output = locate_payloads(body.get("output", body.get("output_summary") or None), entry.seq)
        if not step.tries or step.tries[-1].outcome:
            number = step.tries[-1].number if step.tries else 0
            step.tries = [*step.tries, Try(number + 1, "", None, step.first.header.at, 0)]
        ended = msgspec.structs.replace(step.tries[-1], outcome=outcome, error=step.error, ended_at=entry.header.at)
        step.tries = [*step.tries[:-1], ended]
        if body.get("retry"):
            step.outcome = "retried"  # until the next try ends

    def _take_answer(self, entry: Entry) -> None:
        step = self._questions.get(_question_key(entry))
        word, _, _, result = _shape(entry)
        if step is None:
            step = self._begin(entry, word, "", None, None)
        else:
            self._join(step, entry)
        if type(result) is dict and "outcome" in result:
            step.outcome, result = text_in(result, "outcome"), result.get("output")
        step.output = locate_payloads(result, entry.seq)

    def _join_message(self, entry: Entry) -> bool:
        """Adds a message to the step it belongs to: the call that produced it, or the turn's input that it repeats.
        False if it is a step itself."""
        body = entry.body
        call = self._calls.by_action.get(text_in(body, "action"))
        before = self.steps[-1] if self.steps else None
        if call is not None:
            step = self._by_request[call.request]
            step.said = [*step.said, locate_payloads(body.get("content"), entry.seq)]
        elif (
            before is not None
            and before.kind == "input"
            and len(before.seqs) == 1
            and body.get("role") == "user"
            and normalize_payloads(body.get("content")) == normalize_payloads(before.input)
        ):
            step = before
        else:
            return False
        self._join(step, entry)
        return True


def _question_key(entry: Entry) -> tuple[str, str]:
    """What a question and its answer have in common: the sub-agent's session, or the request."""
    family = entry.kind.partition(".")[0]
    return family, text_in(entry.body, "session" if family == "subagent" else "request")


def _is_bookkeeping(entry: Entry) -> bool:
    """Whether a patch only has an adapter's private data and perhaps messages, which have their own events."""
    ops = agent_ops(entry.delta)
    return len(ops) < len(entry.delta) and all(op["op"] != "remove" and _is_message(op.get("value")) for op in ops)


def _is_message(value: Value) -> bool:
    """Whether a value is a message of a conversation, or a list of them."""
    if type(value) is list:
        return all(map(_is_message, value))
    return type(value) is dict and "content" in value and (value.get("role") or value.get("type")) in _SPEAKERS


def _shape(entry: Entry) -> tuple[str, str, Value, Value]:
    """Kind, name, input and result of a step that is one event."""
    body = {**_DEFAULTS.get(entry.kind, {}), **entry.body} if entry.record.body else {}
    if entry.kind not in _SHAPES:
        return entry.kind, "", {k: v for k, v in body.items() if k not in ("why", "occurred_at")}, None
    if entry.kind == "state.patched" and "delta" in body:
        body["delta"] = agent_ops(body["delta"])
    word, name, inputs, results = _SHAPES[entry.kind]
    return word, text_in(body, name) if name else "", _fields(body, inputs), _fields(body, results)


def _fields(body: dict[str, Value], names: tuple[str, ...]) -> Value:
    if len(names) == 1:
        return body.get(names[0])
    return {name: body[name] for name in names if body.get(name) is not None} or None


def _finish_step(step: _OpenStep) -> Step:
    header = step.first.header
    output = normalize_payloads(step.output)
    said = [message for message in map(normalize_payloads, step.said) if message != output]
    result = (step.outcome, step.error, step.output, *said)
    what = ("model",) if step.kind == "model" else (step.kind, step.name, step.input)
    key = digest(*map(normalize_volatile, what)), digest(*map(normalize_payloads, what))
    result_key = digest(normalize_volatile(result)), digest(normalize_payloads(result))
    if step.gone:
        mark = digest("gone", step.first.session, step.seqs)  # equal only to itself
        result_key = mark, mark
        key = key if step.first.is_intact else result_key
    return Step(
        kind=step.kind,
        name=step.name,
        seq=step.first.seq,
        seqs=tuple(step.seqs),
        turn=header.turn,
        attempt=header.attempt,
        at=header.at,
        ended_at=step.ended_at,
        input=step.input,
        output=step.output,
        outcome=step.outcome,
        error=step.error,
        said=tuple(step.said),
        params=step.params,
        context_hash=step.context_hash,
        cause=header.cause if header.cause and header.cause not in step.seqs else step.asked_by,
        derived_from=header.derived_from,
        tries=tuple(step.tries),
        reused=step.reused,
        cost=step.cost,
        trust=step.trust,
        source=step.source,
        why=step.why,
        gone=step.gone,
        key=key[0],
        exact_key=key[1],
        result=result_key[0],
        exact_result=result_key[1],
    )


def cost_of(entry: Entry) -> Cost:
    """The cost that an event records."""
    cost = entry.body.get("cost")
    if type(cost) is not dict or is_erased(cost):
        return Cost()
    return msgspec.convert({k: v for k, v in cost.items() if k in _AMOUNTS and type(v) is int}, Cost)


def add_cost(a: Cost, b: Cost) -> Cost:
    return msgspec.convert({name: getattr(a, name) + getattr(b, name) for name in _AMOUNTS}, Cost)


def fetch_payloads(log: Log, value: Value) -> Value:
    """The value with its payloads fetched, up to the size limit."""
    return log.whole(value, WHOLE_BYTES)


def is_whole(value: Value) -> bool:
    """Whether a value has no payload reference left in it."""
    if type(value) is not dict:
        return True
    return "$payload" not in value and all(is_whole(item) for item in value.values() if type(item) is dict)
