"""Flags, budgets and costs; and settling pending calls: approve, deny, reconcile, answer."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wakelog.engines.remote.wire import Question
from wakelog.http.routes import VerbRequest, route, time_of
from wakelog.http.shapes import EventRecord, Limits, NotEmpty, Position, Query, record_of
from wakelog.http.verbs.records import Recorded
from wakelog.index.results import Costs
from wakelog.model.events import Severity
from wakelog.model.values import Value


class SetBudget(Limits, frozen=True):
    why: str = ""


class FlagsAnswer(msgspec.Struct, frozen=True):
    """The open flags, by name."""

    flags: dict[str, dict[str, Any]]


class Flag(Question, frozen=True):
    """Something to point out, about the session or one event."""

    name: NotEmpty
    message: str = ""
    severity: Severity = "warning"
    on: str = ""


class ClearFlag(Question, frozen=True):
    name: NotEmpty
    why: str = ""


class CostQuery(Query, frozen=True):
    by: NotEmpty = "turn"
    """turn, tool, model, session, agent, day or `label:NAME`."""
    first_turn: Position | None = None
    last_turn: Position | None = None
    since: str = ""


class CostAllQuery(Query, frozen=True):
    session: tuple[str, ...] = ()
    """Only these sessions, with their sub-agents; may be repeated."""
    by: NotEmpty = "session"
    since: str = ""
    until: str = ""


class Decide(Question, frozen=True):
    """A pending call, and who decides about it."""

    action: NotEmpty
    by: str = ""
    why: str = ""


class GiveAnswer(Question, frozen=True):
    """If the question has options, the answer must be one of them."""

    request: NotEmpty
    answer: Value
    by: str = ""
    why: str = ""


class Reconcile(Decide, frozen=True):
    """The outcome of an uncertain call. If it is empty, the report of a late worker decides."""

    outcome: Literal["", "succeeded", "failed", "never_ran"] = ""
    output: Value = None


class Recover(Question, frozen=True):
    why: str = ""
    force: bool = False
    """Also if the process of the open turn is alive."""


class Uncertain(msgspec.Struct, frozen=True):
    """The calls with an unknown outcome."""

    actions: tuple[str, ...]


class Evidence(msgspec.Struct, frozen=True):
    events: tuple[EventRecord, ...]


@route("GET", "/sessions/{session}/flags", by_head=True)
def flags(call: VerbRequest) -> FlagsAnswer:
    """Lists the open flags that rules and people have raised."""
    return FlagsAnswer(call.session().log.state()["flags"])


@route("POST", "/sessions/{session}/flag", scope="write")
def flag(call: VerbRequest, body: Flag) -> Recorded:
    """Raises a flag."""
    return Recorded(call.session().monitors.flag(**call.kwargs(body)))


@route("POST", "/sessions/{session}/clear-flag", scope="write")
def clear_flag(call: VerbRequest, body: ClearFlag) -> Recorded:
    """Clears a flag; its history stays in the log."""
    return Recorded(call.session().monitors.clear_flag(**call.kwargs(body)))


@route("POST", "/sessions/{session}/budget", scope="write")
def set_budget(call: VerbRequest, body: SetBudget) -> Recorded:
    """Sets limits. What was already spent counts; reaching a limit pauses the session."""
    return Recorded(call.session().budget.set(why=body.why, **body.as_dict()))


@route("GET", "/sessions/{session}/cost")
def cost(call: VerbRequest, query: CostQuery) -> Costs:
    """Sums up what a session and its sub-agents cost. Each amount counts once."""
    turns = None
    if query.first_turn is not None or query.last_turn is not None:
        turns = (query.first_turn or 0, query.last_turn if query.last_turn is not None else 1 << 53)
    return call.session().budget.cost(query.by, turns=turns, since=time_of(query.since, call.now))


@route("GET", "/cost")
def cost_of_all(call: VerbRequest, query: CostAllQuery) -> Costs:
    """Sums up what was spent in the namespace. Each amount counts once."""
    return call.space.store.cost(**call.kwargs(query, session="sessions"))


@route("POST", "/sessions/{session}/approve", scope="write")
def approve(call: VerbRequest, body: Decide) -> Recorded:
    """Approves a call that waits for approval."""
    return Recorded(call.session().calls.approve(**call.kwargs(body)))


@route("POST", "/sessions/{session}/deny", scope="write")
def deny(call: VerbRequest, body: Decide) -> Recorded:
    """Refuses a call that waits for approval."""
    return Recorded(call.session().calls.deny(**call.kwargs(body)))


@route("POST", "/sessions/{session}/reconcile", scope="write")
def reconcile(call: VerbRequest, body: Reconcile) -> Recorded:
    """Records the outcome of an uncertain call."""
    return Recorded(call.session().calls.reconcile(**call.kwargs(body)))


@route("POST", "/sessions/{session}/answer", scope="write")
def answer(call: VerbRequest, body: GiveAnswer) -> Recorded:
    """Answers a question that an agent asked a person."""
    return Recorded(call.session().calls.answer(**call.kwargs(body, answer="given")))


@route("POST", "/sessions/{session}/abandon", scope="write")
def abandon(call: VerbRequest, body: Decide) -> Recorded:
    """Abandons a pending call."""
    return Recorded(call.session().calls.abandon(body.action, why=body.why))


@route("GET", "/sessions/{session}/evidence/{action}", by_head=True)
def evidence(call: VerbRequest) -> Evidence:
    """Lists what late or fenced workers have reported about a pending call."""
    session = call.session()
    tools: dict[str, str] = {}
    return Evidence(tuple(record_of(session.log, e, tools) for e in session.calls.evidence(call.path["action"])))


@route("POST", "/sessions/{session}/recover", scope="write")
def recover(call: VerbRequest, body: Recover) -> Uncertain:
    """Settles the calls that a dead process left open, by the policy of each call. Use it only if no other process
    works on the session."""
    return Uncertain(tuple(call.session().calls.recover(**call.kwargs(body))))
