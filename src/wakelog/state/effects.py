"""What each kind of event does to the state: one small function per kind, from state and event to delta.

The functions run once, when the event is sealed. From then on the stored delta speaks for itself: a reader in any
language folds it without knowing any of this, and changing a function here changes no old session. A kind without a
function leaves the state as it is.

A function reads the state and writes its changes to `out`, which folds them in at once or when the function is done. So
it reads nothing that it has written. It writes JSON values only, because they become part of the state.
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
from wakelog.state.changes import DeltaList, DeltaWriter
from wakelog.state.patch import Delta

Doc = dict[str, Value]


class EventPlace(msgspec.Struct, frozen=True, gc=False):
    """The position of an event that is being sealed, and how far it is trusted."""

    seq: int
    turn: int
    source: str = ""
    trust: str = "trusted"


def effect_of(doc: Doc, event: ev.Event, place: EventPlace) -> Delta:
    """The delta of `event` on `doc`, which stays as it is."""
    delta = DeltaList()
    write_effect(doc, event, place, delta)
    return delta.ops


def write_effect(doc: Doc, event: ev.Event, place: EventPlace, out: DeltaWriter) -> None:
    """Writes what `event` does to `doc`. The event must be legal here: log/seal.py has asked the machines."""
    kind = event.kind
    if kind in SESSION and doc and doc["status"] != SESSION[kind][1]:
        out.put("status", SESSION[kind][1])
    effect = _EFFECTS.get(kind)
    if effect is not None:
        effect(doc, event, place, out)
    if place.trust != "trusted" and kind != "state.patched":
        # A patch is stored as its own delta, with nothing beside it: what is folded now must be what is read later.
        out.put("trust", place.source or kind, {"trust": place.trust, "seq": place.seq})


def _opened(doc: Doc, e: ev.SessionOpened, at: EventPlace, out: DeltaWriter) -> None:
    first = empty_document()
    first.update(goal=e.goal, labels=dict(e.labels), data=e.data, budget={"limits": dict(e.limits), "spent": {}})
    if e.goal is not None and at.trust != "trusted":
        first["goal_from"] = _goal_from(at)
    out.extend([{"op": "replace", "path": "", "value": first}])


def _forked(doc: Doc, e: ev.SessionForked, at: EventPlace, out: DeltaWriter) -> None:
    if doc["lease"]["epoch"]:
        out.put("lease", {"epoch": 0, "holder": ""})
    if doc["turn"]["status"] == "open":
        _leave_turn(doc, "interrupted", out)


def _lease_taken(doc: Doc, e: ev.LeaseTaken, at: EventPlace, out: DeltaWriter) -> None:
    out.put("lease", {"epoch": e.epoch, "holder": e.holder})


def _lease_released(doc: Doc, e: ev.LeaseReleased, at: EventPlace, out: DeltaWriter) -> None:
    out.put("lease", "holder", "")


def _goal(doc: Doc, e: ev.GoalSet, at: EventPlace, out: DeltaWriter) -> None:
    out.put("goal", e.goal)
    if at.trust != "trusted":
        out.put("goal_from", _goal_from(at))
    elif "goal_from" in doc:
        out.remove("goal_from")


def _goal_from(at: EventPlace) -> Value:
    return {"seq": at.seq, "trust": at.trust, "source": at.source}


def _labels(doc: Doc, e: ev.LabelsSet, at: EventPlace, out: DeltaWriter) -> None:
    _merge(doc["labels"], e.labels, out, "labels")


def _merge(current: Doc, changes: dict[str, Any], out: DeltaWriter, *path: str) -> None:
    for key, value in changes.items():
        if value is not None:
            out.put(*path, key, value)
        elif key in current:
            out.remove(*path, key)


def _turn_started(doc: Doc, e: ev.TurnStarted, at: EventPlace, out: DeltaWriter) -> None:
    turn = doc["turn"]
    attempt = turn["attempt"] + 1 if e.retry else 1
    now: dict[str, Value] = {"number": at.turn, "attempt": attempt, "status": "open"}
    if e.holder:
        now["holder"] = e.holder
    out.put("turn", now)


def _turn_ended(doc: Doc, e: ev.TurnEnded, at: EventPlace, out: DeltaWriter) -> None:
    _leave_turn(doc, e.outcome, out)
    if e.error is not None:
        _error(e.error, at, out)


def _leave_turn(doc: Doc, status: str, out: DeltaWriter) -> None:
    """Ends the turn and removes its holder: turns that ended alike are equal, with any holder."""
    if "holder" in doc["turn"]:
        out.remove("turn", "holder")
    out.put("turn", "status", status)


def _error(error: ev.Failure, at: EventPlace, out: DeltaWriter, tool: str = "") -> None:
    out.put("last_error", {"type": error.type, "message": error.message, "tool": tool, "seq": at.seq})


def _requested(doc: Doc, e: ev.ActionRequested, at: EventPlace, out: DeltaWriter) -> None:
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
    out.put("pending_actions", e.action, pending)
    _use(doc, e.tool, at, out)


def _use(doc: Doc, tool: str, at: EventPlace, out: DeltaWriter, failed: int = 0) -> None:
    used = doc["tools_used"].get(tool)
    calls, errors = (used["calls"], used["errors"]) if used else (0, 0)
    out.put("tools_used", tool, {"calls": calls + 1, "errors": errors + failed, "last": at.seq})


def _recorded(doc: Doc, e: ev.ActionRecorded, at: EventPlace, out: DeltaWriter) -> None:
    failed = e.outcome in FAILURES
    _use(doc, e.tool, at, out, failed)
    if failed:
        _error(e.error or ev.Failure("timeout" if e.outcome == "timed_out" else "error"), at, out, e.tool)
    if not e.reused:  # paid for when it ran: the rewind that began this attempt restored the count, but not the money
        _spend(doc, e.cost, out)


def _moved(doc: Doc, e: Any, at: EventPlace, out: DeltaWriter) -> None:
    """approved, uncertain: the action stays pending under another status."""
    out.put("pending_actions", e.action, "status", ACTION[e.kind][1])


def _started(doc: Doc, e: ev.ActionStarted, at: EventPlace, out: DeltaWriter) -> None:
    out.put("pending_actions", e.action, "status", "running")
    out.put("pending_actions", e.action, "attempt", e.attempt)


def _settled(doc: Doc, e: Any, at: EventPlace, out: DeltaWriter) -> None:
    """succeeded, denied, reconciled, abandoned: the action is no longer pending."""
    out.remove("pending_actions", e.action)
    if type(e) is ev.ActionSucceeded:
        _spend(doc, e.cost, out)


def _failed(doc: Doc, e: ev.ActionFailed | ev.ActionTimedOut, at: EventPlace, out: DeltaWriter) -> None:
    tool = doc["pending_actions"][e.action]["tool"]
    if e.retry:
        out.put("pending_actions", e.action, "status", "requested")
    else:
        out.remove("pending_actions", e.action)
    used = doc["tools_used"].get(tool)
    if used:
        out.put("tools_used", tool, "errors", used["errors"] + 1)
    _error(e.error if type(e) is ev.ActionFailed else ev.Failure("timeout"), at, out, tool)
    _spend(doc, e.cost, out)


def _input_requested(doc: Doc, e: ev.InputRequested, at: EventPlace, out: DeltaWriter) -> None:
    pending = {
        "tool": "input",
        "status": "waiting",
        "effect": "read",
        "seq": at.seq,
        "turn": at.turn,
        "prompt": e.prompt,
    }
    out.put("pending_actions", e.request, pending)


def _input_answered(doc: Doc, e: ev.InputAnswered, at: EventPlace, out: DeltaWriter) -> None:
    if e.request in doc["pending_actions"]:
        out.remove("pending_actions", e.request)


def _decision(doc: Doc, e: ev.DecisionMade, at: EventPlace, out: DeltaWriter) -> None:
    decision: Doc = {"choice": e.choice, "turn": at.turn}
    if e.because:
        decision["because"] = e.because
    for name in ("alternatives", "assumptions", "evidence"):
        if value := getattr(e, name):
            decision[name] = list(value)
    out.put("decisions_made", str(at.seq), decision)


def _fact(doc: Doc, e: ev.FactRecorded, at: EventPlace, out: DeltaWriter) -> None:
    fact: Doc = {"value": e.value, "seq": at.seq}
    if at.trust != "trusted":
        fact["trust"] = at.trust
    out.put("facts", e.key, fact)


def _fact_retracted(doc: Doc, e: ev.FactRetracted, at: EventPlace, out: DeltaWriter) -> None:
    if e.key in doc["facts"]:
        out.remove("facts", e.key)


def _dead_end(doc: Doc, e: ev.DeadEndNoted, at: EventPlace, out: DeltaWriter) -> None:
    out.put("dead_ends", str(at.seq), {"tried": e.tried, "learned": e.learned, "turn": at.turn})


def _artefact(doc: Doc, e: ev.ArtefactRecorded, at: EventPlace, out: DeltaWriter) -> None:
    out.put("artefacts", e.name, {"uri": e.uri, "media": e.media, "seq": at.seq})


def _file(doc: Doc, e: ev.FileChanged, at: EventPlace, out: DeltaWriter) -> None:
    used = doc["files_modified"].get(e.path)
    changes = used["changes"] + 1 if used else 1
    out.put("files_modified", e.path, {"changes": changes, "last": at.seq, "change": e.change})
    out.put("working_set", "files", e.path, at.seq)


def _resource(doc: Doc, e: ev.ResourceTouched, at: EventPlace, out: DeltaWriter) -> None:
    part = {"file": "files", "app": "apps", "data_source": "data_sources"}[e.category]
    out.put("working_set", part, e.resource, at.seq)


def _spawned(doc: Doc, e: ev.SubagentSpawned, at: EventPlace, out: DeltaWriter) -> None:
    out.put("subagents", e.session, {"task": e.task, "status": "running", "seq": at.seq})


def _returned(doc: Doc, e: ev.SubagentReturned, at: EventPlace, out: DeltaWriter) -> None:
    task = doc["subagents"].get(e.session, {}).get("task", "")
    out.put("subagents", e.session, {"task": task, "status": e.outcome, "seq": at.seq})
    _spend(doc, e.cost, out)


def _evicted(doc: Doc, e: ev.ContextEvicted, at: EventPlace, out: DeltaWriter) -> None:
    out.put("evicted_keys", e.key, {"handle": e.handle, "tokens": e.tokens, "seq": at.seq})


def _restored(doc: Doc, e: ev.ContextRestored, at: EventPlace, out: DeltaWriter) -> None:
    if e.key in doc["evicted_keys"]:
        out.remove("evicted_keys", e.key)


def _compacted(doc: Doc, e: ev.HistoryCompacted, at: EventPlace, out: DeltaWriter) -> None:
    # The key names the range and the handle is the event itself: a reader of the window knows what to leave out without
    # a search, and a rewind reverts it like everything else.
    key = f"e{at.seq}:e{e.first}..e{e.last}"
    out.put("evicted_keys", key, {"handle": at.seq, "tokens": 0, "seq": at.seq})


def _expanded(doc: Doc, e: ev.HistoryExpanded, at: EventPlace, out: DeltaWriter) -> None:
    # Only a compaction is its own handle.
    listed = [k for k, v in doc["evicted_keys"].items() if v["handle"] == v["seq"] == e.compacted]
    for key in listed:
        out.remove("evicted_keys", key)


def _patched(doc: Doc, e: ev.StatePatched, at: EventPlace, out: DeltaWriter) -> None:
    out.extend(e.patch)


def _budget_set(doc: Doc, e: ev.BudgetSet, at: EventPlace, out: DeltaWriter) -> None:
    _merge(doc["budget"]["limits"], e.limits, out, "budget", "limits")


def _budget_spent(doc: Doc, e: ev.BudgetSpent, at: EventPlace, out: DeltaWriter) -> None:
    _spend(doc, e.cost, out)


def _adopted(doc: Doc, e: ev.HistoryAdopted, at: EventPlace, out: DeltaWriter) -> None:
    _spend(doc, e.cost, out)


def _spend(doc: Doc, cost: ev.Cost, out: DeltaWriter) -> None:
    if not (cost.tokens_in or cost.tokens_out or cost.usd_micros or cost.duration_us):
        return
    amounts = {
        "tokens": cost.tokens_in + cost.tokens_out,
        "usd_micros": cost.usd_micros,
        "duration_us": cost.duration_us,
    }
    if any(amounts.values()):
        spent = doc["budget"]["spent"]
        out.put("budget", "spent", {k: spent.get(k, 0) + v for k, v in amounts.items()})


def _flag_raised(doc: Doc, e: ev.FlagRaised, at: EventPlace, out: DeltaWriter) -> None:
    flag = {"rule": e.rule, "message": e.message, "severity": e.severity, "seq": at.seq}
    if e.count > 1:
        flag["count"] = e.count
    out.put("flags", e.flag, flag)


def _flag_cleared(doc: Doc, e: ev.FlagCleared, at: EventPlace, out: DeltaWriter) -> None:
    if e.flag in doc["flags"]:
        out.remove("flags", e.flag)


def _checkpoint(doc: Doc, e: ev.CheckpointNamed, at: EventPlace, out: DeltaWriter) -> None:
    if not e.remove:
        out.put("checkpoints", e.name, e.at)
    elif e.name in doc["checkpoints"]:
        out.remove("checkpoints", e.name)


_EFFECTS: dict[str, Callable[[Doc, Any, EventPlace, DeltaWriter], None]] = {
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
