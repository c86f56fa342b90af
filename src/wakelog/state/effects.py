"""What each kind of event does to the state: one small function per kind, from state and event to delta.

The functions are pure. They run once, when the event is sealed; from then on the stored delta speaks for itself, so
that a reader in any language folds without knowing any of this, and changing a function here changes no old session.
A kind without a function leaves the state as it is. A delta holds JSON values only, because it is folded as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from wakelog.model import events as ev
from wakelog.model.calls import FAILURES
from wakelog.model.document import empty_document
from wakelog.model.machines import ACTION, SESSION
from wakelog.model.values import Value
from wakelog.state.patch import Delta, escape

Doc = dict[str, Value]


class EventPlace(msgspec.Struct, frozen=True, gc=False):
    """Where an event is about to stand."""

    seq: int
    turn: int
    source: str = ""
    trust: str = "trusted"


def effect_of(doc: Doc, event: ev.Event, place: EventPlace) -> Delta:
    """The delta of `event` on `doc`. The event must be legal here: log/seal.py has asked the machines."""
    delta: Delta = []
    kind = event.kind
    move = SESSION.get(kind)
    if move is not None and doc and doc["status"] != move[1]:
        delta.append(_put("/status", move[1]))
    effect = _EFFECTS.get(kind)
    if effect is not None:
        effect(doc, event, place, delta)
    if place.trust != "trusted" and kind != "state.patched":
        # A patch is stored as its own delta, with nothing beside it: what is folded now must be what is read later.
        delta.append(_put(f"/trust/{escape(place.source or kind)}", {"trust": place.trust, "seq": place.seq}))
    return delta


def _put(path: str, value: Value) -> dict[str, Value]:
    # In an object, RFC 6902's add also replaces: one operation says "this is now the value".
    return {"op": "add", "path": path, "value": value}


def _drop(path: str) -> dict[str, Value]:
    return {"op": "remove", "path": path}


def _opened(doc: Doc, e: ev.SessionOpened, at: EventPlace, out: Delta) -> None:
    first = empty_document()
    first.update(goal=e.goal, labels=dict(e.labels), data=e.data, budget={"limits": dict(e.limits), "spent": {}})
    if e.goal is not None and at.trust != "trusted":
        first["goal_from"] = _goal_from(at)
    out.append({"op": "replace", "path": "", "value": first})


def _forked(doc: Doc, e: ev.SessionForked, at: EventPlace, out: Delta) -> None:
    if doc["lease"]["epoch"]:
        out.append(_put("/lease", {"epoch": 0, "holder": ""}))
    if doc["turn"]["status"] == "open":
        _leave_turn(doc, "interrupted", out)


def _lease_taken(doc: Doc, e: ev.LeaseTaken, at: EventPlace, out: Delta) -> None:
    out.append(_put("/lease", {"epoch": e.epoch, "holder": e.holder}))


def _lease_released(doc: Doc, e: ev.LeaseReleased, at: EventPlace, out: Delta) -> None:
    out.append(_put("/lease/holder", ""))


def _goal(doc: Doc, e: ev.GoalSet, at: EventPlace, out: Delta) -> None:
    out.append(_put("/goal", e.goal))
    if at.trust != "trusted":
        out.append(_put("/goal_from", _goal_from(at)))
    elif "goal_from" in doc:
        out.append(_drop("/goal_from"))


def _goal_from(at: EventPlace) -> Value:
    return {"seq": at.seq, "trust": at.trust, "source": at.source}


def _labels(doc: Doc, e: ev.LabelsSet, at: EventPlace, out: Delta) -> None:
    _merge(doc["labels"], e.labels, "/labels", out)


def _merge(current: Doc, changes: dict[str, Any], path: str, out: Delta) -> None:
    for key, value in changes.items():
        if value is not None:
            out.append(_put(f"{path}/{escape(key)}", value))
        elif key in current:
            out.append(_drop(f"{path}/{escape(key)}"))


def _turn_started(doc: Doc, e: ev.TurnStarted, at: EventPlace, out: Delta) -> None:
    turn = doc["turn"]
    attempt = turn["attempt"] + 1 if e.retry else 1
    now: dict[str, Value] = {"number": at.turn, "attempt": attempt, "status": "open"}
    if e.holder:
        now["holder"] = e.holder
    out.append(_put("/turn", now))


def _turn_ended(doc: Doc, e: ev.TurnEnded, at: EventPlace, out: Delta) -> None:
    _leave_turn(doc, e.outcome, out)
    if e.error is not None:
        _error(e.error, at, out)


def _leave_turn(doc: Doc, status: str, out: Delta) -> None:
    """The turn is over, and nobody has it: two that ended alike are alike, whoever had them."""
    if "holder" in doc["turn"]:
        out.append(_drop("/turn/holder"))
    out.append(_put("/turn/status", status))


def _error(error: ev.Failure, at: EventPlace, out: Delta, tool: str = "") -> None:
    out.append(_put("/last_error", {"type": error.type, "message": error.message, "tool": tool, "seq": at.seq}))


def _requested(doc: Doc, e: ev.ActionRequested, at: EventPlace, out: Delta) -> None:
    pending = {
        "tool": e.tool,
        "status": "waiting" if e.approval else "requested",
        "effect": e.effect,
        "seq": at.seq,
        "turn": at.turn,
    }
    if e.key:
        pending["key"] = e.key
    if e.input_hash:
        pending["input_hash"] = e.input_hash
    out.append(_put(f"/pending_actions/{escape(e.action)}", pending))
    _use(doc, e.tool, at, out)


def _use(doc: Doc, tool: str, at: EventPlace, out: Delta, failed: int = 0) -> None:
    used = doc["tools_used"].get(tool)
    calls, errors = (used["calls"], used["errors"]) if used else (0, 0)
    out.append(_put(f"/tools_used/{escape(tool)}", {"calls": calls + 1, "errors": errors + failed, "last": at.seq}))


def _recorded(doc: Doc, e: ev.ActionRecorded, at: EventPlace, out: Delta) -> None:
    failed = e.outcome in FAILURES
    _use(doc, e.tool, at, out, failed)
    if failed:
        _error(e.error or ev.Failure("timeout" if e.outcome == "timed_out" else "error"), at, out, e.tool)
    if not e.reused:  # it was paid for when it ran; the rewind that began this attempt took the count back, not that
        _spend(doc, e.cost, out)


def _moved(doc: Doc, e: Any, at: EventPlace, out: Delta) -> None:
    """approved, uncertain: the action stays pending under another status."""
    out.append(_put(f"/pending_actions/{escape(e.action)}/status", ACTION[e.kind][1]))


def _started(doc: Doc, e: ev.ActionStarted, at: EventPlace, out: Delta) -> None:
    path = f"/pending_actions/{escape(e.action)}"
    out.append(_put(f"{path}/status", "running"))
    out.append(_put(f"{path}/attempt", e.attempt))


def _settled(doc: Doc, e: Any, at: EventPlace, out: Delta) -> None:
    """succeeded, denied, reconciled, abandoned: the action is no longer pending."""
    out.append(_drop(f"/pending_actions/{escape(e.action)}"))
    if type(e) is ev.ActionSucceeded:
        _spend(doc, e.cost, out)


def _failed(doc: Doc, e: ev.ActionFailed | ev.ActionTimedOut, at: EventPlace, out: Delta) -> None:
    tool = doc["pending_actions"][e.action]["tool"]
    path = f"/pending_actions/{escape(e.action)}"
    out.append(_put(f"{path}/status", "requested") if e.retry else _drop(path))
    used = doc["tools_used"].get(tool)
    if used:
        out.append(_put(f"/tools_used/{escape(tool)}/errors", used["errors"] + 1))
    _error(e.error if type(e) is ev.ActionFailed else ev.Failure("timeout"), at, out, tool)
    _spend(doc, e.cost, out)


def _input_requested(doc: Doc, e: ev.InputRequested, at: EventPlace, out: Delta) -> None:
    pending = {
        "tool": "input",
        "status": "waiting",
        "effect": "read",
        "seq": at.seq,
        "turn": at.turn,
        "prompt": e.prompt,
    }
    out.append(_put(f"/pending_actions/{escape(e.request)}", pending))


def _input_answered(doc: Doc, e: ev.InputAnswered, at: EventPlace, out: Delta) -> None:
    if e.request in doc["pending_actions"]:
        out.append(_drop(f"/pending_actions/{escape(e.request)}"))


def _decision(doc: Doc, e: ev.DecisionMade, at: EventPlace, out: Delta) -> None:
    decision: Doc = {"choice": e.choice, "turn": at.turn}
    if e.because:
        decision["because"] = e.because
    for name in ("alternatives", "assumptions", "evidence"):
        if value := getattr(e, name):
            decision[name] = list(value)
    out.append(_put(f"/decisions_made/{at.seq}", decision))


def _fact(doc: Doc, e: ev.FactRecorded, at: EventPlace, out: Delta) -> None:
    fact: Doc = {"value": e.value, "seq": at.seq}
    if at.trust != "trusted":
        fact["trust"] = at.trust
    out.append(_put(f"/facts/{escape(e.key)}", fact))


def _fact_retracted(doc: Doc, e: ev.FactRetracted, at: EventPlace, out: Delta) -> None:
    if e.key in doc["facts"]:
        out.append(_drop(f"/facts/{escape(e.key)}"))


def _dead_end(doc: Doc, e: ev.DeadEndNoted, at: EventPlace, out: Delta) -> None:
    out.append(_put(f"/dead_ends/{at.seq}", {"tried": e.tried, "learned": e.learned, "turn": at.turn}))


def _artefact(doc: Doc, e: ev.ArtefactRecorded, at: EventPlace, out: Delta) -> None:
    out.append(_put(f"/artefacts/{escape(e.name)}", {"uri": e.uri, "media": e.media, "seq": at.seq}))


def _file(doc: Doc, e: ev.FileChanged, at: EventPlace, out: Delta) -> None:
    path = escape(e.path)
    used = doc["files_modified"].get(e.path)
    changes = used["changes"] + 1 if used else 1
    out.append(_put(f"/files_modified/{path}", {"changes": changes, "last": at.seq, "change": e.change}))
    out.append(_put(f"/working_set/files/{path}", at.seq))


def _resource(doc: Doc, e: ev.ResourceTouched, at: EventPlace, out: Delta) -> None:
    part = {"file": "files", "app": "apps", "data_source": "data_sources"}[e.category]
    out.append(_put(f"/working_set/{part}/{escape(e.resource)}", at.seq))


def _spawned(doc: Doc, e: ev.SubagentSpawned, at: EventPlace, out: Delta) -> None:
    out.append(_put(f"/subagents/{escape(e.session)}", {"task": e.task, "status": "running", "seq": at.seq}))


def _returned(doc: Doc, e: ev.SubagentReturned, at: EventPlace, out: Delta) -> None:
    task = doc["subagents"].get(e.session, {}).get("task", "")
    out.append(_put(f"/subagents/{escape(e.session)}", {"task": task, "status": e.outcome, "seq": at.seq}))
    _spend(doc, e.cost, out)


def _evicted(doc: Doc, e: ev.ContextEvicted, at: EventPlace, out: Delta) -> None:
    out.append(_put(f"/evicted_keys/{escape(e.key)}", {"handle": e.handle, "tokens": e.tokens, "seq": at.seq}))


def _restored(doc: Doc, e: ev.ContextRestored, at: EventPlace, out: Delta) -> None:
    if e.key in doc["evicted_keys"]:
        out.append(_drop(f"/evicted_keys/{escape(e.key)}"))


def _compacted(doc: Doc, e: ev.HistoryCompacted, at: EventPlace, out: Delta) -> None:
    # Listed with its range, and itself as the handle: who reads a window knows what to leave out without a search, and
    # a rewind takes it back with the rest.
    key = f"e{at.seq}:e{e.first}..e{e.last}"
    out.append(_put(f"/evicted_keys/{key}", {"handle": at.seq, "tokens": 0, "seq": at.seq}))


def _expanded(doc: Doc, e: ev.HistoryExpanded, at: EventPlace, out: Delta) -> None:
    # Only a compaction is its own handle.
    listed = (k for k, v in doc["evicted_keys"].items() if v["handle"] == v["seq"] == e.compacted)
    out.extend(_drop(f"/evicted_keys/{escape(key)}") for key in listed)


def _patched(doc: Doc, e: ev.StatePatched, at: EventPlace, out: Delta) -> None:
    out.extend(e.patch)


def _budget_set(doc: Doc, e: ev.BudgetSet, at: EventPlace, out: Delta) -> None:
    _merge(doc["budget"]["limits"], e.limits, "/budget/limits", out)


def _budget_spent(doc: Doc, e: ev.BudgetSpent, at: EventPlace, out: Delta) -> None:
    _spend(doc, e.cost, out)


def _adopted(doc: Doc, e: ev.HistoryAdopted, at: EventPlace, out: Delta) -> None:
    _spend(doc, e.cost, out)


def _spend(doc: Doc, cost: ev.Cost, out: Delta) -> None:
    if not (cost.tokens_in or cost.tokens_out or cost.usd_micros or cost.duration_us):
        return
    amounts = {
        "tokens": cost.tokens_in + cost.tokens_out,
        "usd_micros": cost.usd_micros,
        "duration_us": cost.duration_us,
    }
    if any(amounts.values()):
        spent = doc["budget"]["spent"]
        out.append(_put("/budget/spent", {k: spent.get(k, 0) + v for k, v in amounts.items()}))


def _flag_raised(doc: Doc, e: ev.FlagRaised, at: EventPlace, out: Delta) -> None:
    flag = {"rule": e.rule, "message": e.message, "severity": e.severity, "seq": at.seq}
    if e.count > 1:
        flag["count"] = e.count
    out.append(_put(f"/flags/{escape(e.flag)}", flag))


def _flag_cleared(doc: Doc, e: ev.FlagCleared, at: EventPlace, out: Delta) -> None:
    if e.flag in doc["flags"]:
        out.append(_drop(f"/flags/{escape(e.flag)}"))


def _checkpoint(doc: Doc, e: ev.CheckpointNamed, at: EventPlace, out: Delta) -> None:
    path = f"/checkpoints/{escape(e.name)}"
    if not e.remove:
        out.append(_put(path, e.at))
    elif e.name in doc["checkpoints"]:
        out.append(_drop(path))


_EFFECTS: dict[str, Callable[[Doc, Any, EventPlace, Delta], None]] = {
    "session.opened": _opened,
    "session.forked": _forked,
    "lease.taken": _lease_taken,
    "lease.released": _lease_released,
    "goal.set": _goal,
    "labels.set": _labels,
    "turn.started": _turn_started,
    "turn.ended": _turn_ended,
    "action.requested": _requested,
    "action.recorded": _recorded,
    "action.approved": _moved,
    "action.denied": _settled,
    "action.started": _started,
    "action.succeeded": _settled,
    "action.failed": _failed,
    "action.timed_out": _failed,
    "action.uncertain": _moved,
    "action.reconciled": _settled,
    "action.abandoned": _settled,
    "input.requested": _input_requested,
    "input.answered": _input_answered,
    "decision.made": _decision,
    "fact.recorded": _fact,
    "fact.retracted": _fact_retracted,
    "dead_end.noted": _dead_end,
    "artefact.recorded": _artefact,
    "file.changed": _file,
    "resource.touched": _resource,
    "subagent.spawned": _spawned,
    "subagent.returned": _returned,
    "context.evicted": _evicted,
    "context.restored": _restored,
    "history.adopted": _adopted,
    "history.compacted": _compacted,
    "history.expanded": _expanded,
    "state.patched": _patched,
    "budget.set": _budget_set,
    "budget.spent": _budget_spent,
    "flag.raised": _flag_raised,
    "flag.cleared": _flag_cleared,
    "checkpoint.named": _checkpoint,
}
