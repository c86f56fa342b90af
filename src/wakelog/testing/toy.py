"""A session as a list of complete documents: the model that the real log is compared with.

It keeps the state after every event as a separate document, copies everything, and has no deltas, hashes or storage. It
is slow and small on purpose: a reader should see that it is right.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from wakelog.model import events as ev
from wakelog.model.document import empty_document

Doc = dict[str, Any]

RESTORED = (
    *("goal", "labels", "tools_used", "files_modified", "decisions_made", "facts", "artefacts", "working_set"),
    *("evicted_keys", "last_error", "data"),
)
"""What a rewind restores."""

# The legal events of an action by its status; None means no such action.
_ACTION_MOVES: dict[str | None, set[type[ev.Event]]] = {
    None: {ev.ActionRequested, ev.ActionRecorded},
    "waiting": {ev.ActionApproved, ev.ActionDenied, ev.ActionAbandoned},
    "requested": {
        *(ev.ActionDenied, ev.ActionStarted, ev.ActionSucceeded, ev.ActionFailed),
        *(ev.ActionTimedOut, ev.ActionUncertain, ev.ActionAbandoned),
    },
    "running": {*(ev.ActionSucceeded, ev.ActionFailed, ev.ActionTimedOut, ev.ActionUncertain, ev.ActionAbandoned)},
    "uncertain": {ev.ActionSucceeded, ev.ActionFailed, ev.ActionReconciled, ev.ActionAbandoned},
}
_ACTIONS = set().union(*_ACTION_MOVES.values())

# The events that a paused or closed session accepts.
_ALWAYS = {ev.ActionEvidence, ev.ActionReconciled, ev.CheckpointNamed, ev.FlagCleared, ev.FlagRaised}
_ALWAYS |= {ev.LabelsSet, ev.LeaseTaken, ev.NoteAdded}
_WHILE_PAUSED = _ACTIONS - {ev.ActionRequested, ev.ActionStarted, ev.ActionRecorded}
_WHILE_PAUSED |= {ev.BudgetSpent, ev.ContextEvicted, ev.ContextRestored, ev.FileChanged, ev.MessageAdded, ev.TurnEnded}
_LIFE: dict[type[ev.Event], tuple[set[str], str]] = {
    ev.SessionPaused: ({"open", "active"}, "paused"),
    ev.SessionResumed: ({"open", "active", "paused"}, "active"),
    ev.SessionClosed: ({"open", "active", "paused"}, "closed"),
    ev.SessionReopened: ({"closed"}, "active"),
    ev.TurnStarted: ({"open", "active"}, "active"),
}


class Toy:
    """`states[n]` is the state after event n; `states[0]` is nothing."""

    def __init__(self, goal: str | None = None, data: Doc | None = None) -> None:
        self.states: list[Doc] = [{}, {**empty_document(), "goal": goal, "data": deepcopy(data or {})}]

    @property
    def seq(self) -> int:
        return len(self.states) - 1

    @property
    def state(self) -> Doc:
        return self.states[-1]

    def append(self, *events: ev.Event) -> bool:
        """Appends all events; or none, and returns False, if one of them is not legal."""
        before = len(self.states)
        for event in events:
            if not is_legal(self.state, event):
                del self.states[before:]
                return False
            doc = deepcopy(self.state)
            change(doc, event, self.seq + 1)
            self.states.append(doc)
        return True

    def rewind(self, to: int) -> None:
        doc = deepcopy(self.state)
        for part in RESTORED:
            doc[part] = deepcopy(self.states[to][part])
        doc["view"] = {"rewound": self.seq + 1, "to": to}
        self.states.append(doc)

    def fork(self, at: int) -> Toy:
        """A new session with the same past, but without lease, open turn and pending calls of the parent."""
        child = Toy()
        child.states = deepcopy(self.states[: at + 1])
        doc = deepcopy(child.state)
        doc["status"] = "open"
        doc["lease"] = {"epoch": 0, "holder": ""}
        if doc["turn"]["status"] == "open":
            doc["turn"]["status"] = "interrupted"
        child.states.append(doc)
        for action in list(doc["pending_actions"]):
            child.append(ev.ActionAbandoned(action=action, inherited=True))
        return child


def is_legal(doc: Doc, event: ev.Event) -> bool:
    kind, status, turn = type(event), doc["status"], doc["turn"]
    if kind in _LIFE:
        if status not in _LIFE[kind][0]:
            return False
    elif status == "paused":
        if kind not in _ALWAYS | _WHILE_PAUSED:
            return False
    elif status == "closed" and kind not in _ALWAYS:
        return False
    if kind in _ACTIONS:
        pending = doc["pending_actions"].get(event.action)  # type: ignore[attr-defined]
        return kind in _ACTION_MOVES[pending["status"] if pending else None]
    if isinstance(event, ev.TurnStarted):
        return turn["status"] != "open" and not (event.retry and turn["number"] == 0)
    if isinstance(event, ev.TurnEnded):
        return bool(turn["status"] == "open")
    if isinstance(event, ev.SessionClosed):
        unsettled = [p for p in doc["pending_actions"].values() if p["status"] != "uncertain"]
        return turn["status"] != "open" and not unsettled
    return True


def change(doc: Doc, event: ev.Event, seq: int) -> None:
    """Applies the event, in the plainest way."""
    turn = doc["turn"]
    number = turn["number"] if turn["status"] == "open" else 0
    if type(event) in _LIFE:
        doc["status"] = _LIFE[type(event)][1]
    match event:
        case ev.TurnStarted(retry=True):
            doc["turn"] = {"number": turn["number"], "attempt": turn["attempt"] + 1, "status": "open"}
        case ev.TurnStarted():
            doc["turn"] = {"number": turn["number"] + 1, "attempt": 1, "status": "open"}
            if event.holder:
                doc["turn"]["holder"] = event.holder
        case ev.TurnEnded():
            turn["status"] = event.outcome
            turn.pop("holder", None)
            if event.error:
                doc["last_error"] = _error(event.error, "", seq)
        case ev.LeaseTaken():
            doc["lease"] = {"epoch": event.epoch, "holder": event.holder}
        case ev.GoalSet():
            doc["goal"] = event.goal
        case ev.LabelsSet():
            for key, value in event.labels.items():
                doc["labels"].pop(key, None)
                if value is not None:
                    doc["labels"][key] = value
        case ev.FactRecorded():
            doc["facts"][event.key] = {"value": deepcopy(event.value), "seq": seq}
        case ev.FactRetracted():
            doc["facts"].pop(event.key, None)
        case ev.DecisionMade():
            decision = {"choice": event.choice, "turn": number}
            doc["decisions_made"][str(seq)] = decision | ({"because": event.because} if event.because else {})
        case ev.DeadEndNoted():
            doc["dead_ends"][str(seq)] = {"tried": event.tried, "learned": event.learned, "turn": number}
        case ev.FileChanged():
            changes = doc["files_modified"].get(event.path, {"changes": 0})["changes"] + 1
            doc["files_modified"][event.path] = {"changes": changes, "last": seq, "change": event.change}
            doc["working_set"]["files"][event.path] = seq
        case ev.FlagRaised():
            doc["flags"][event.flag] = {"rule": "", "message": event.message, "severity": event.severity, "seq": seq}
        case ev.FlagCleared():
            doc["flags"].pop(event.flag, None)
        case ev.ContextEvicted():
            doc["evicted_keys"][event.key] = {"handle": event.handle, "tokens": event.tokens, "seq": seq}
        case ev.ContextRestored():
            doc["evicted_keys"].pop(event.key, None)
        case ev.CheckpointNamed():
            doc["checkpoints"][event.name] = event.at
        case ev.BudgetSpent():
            _spend(doc, event.cost)
        case ev.StatePatched():
            for op in event.patch:
                _patch(doc, op)
        case _ if type(event) in _ACTIONS:
            _act(doc, event, seq, number)


def _act(doc: Doc, event: Any, seq: int, number: int) -> None:
    pending, tools = doc["pending_actions"], doc["tools_used"]
    match event:
        case ev.ActionRequested():
            status = "waiting" if event.approval else "requested"
            call = {"tool": event.tool, "status": status, "effect": event.effect, "seq": seq, "turn": number}
            pending[event.action] = call | ({"key": event.key} if event.key else {})
        case ev.ActionRecorded():
            pass
        case ev.ActionApproved():
            pending[event.action]["status"] = "requested"
        case ev.ActionStarted():
            pending[event.action] |= {"status": "running", "attempt": event.attempt}
        case ev.ActionUncertain():
            pending[event.action]["status"] = "uncertain"
        case ev.ActionFailed(retry=True) | ev.ActionTimedOut(retry=True):
            pending[event.action]["status"] = "requested"
        case ev.ActionFailed() | ev.ActionTimedOut():
            doc["last_tool"] = pending.pop(event.action)["tool"]
        case _:
            del pending[event.action]
    if isinstance(event, ev.ActionFailed | ev.ActionTimedOut):
        tool = doc.pop("last_tool", None) or pending[event.action]["tool"]
        if tool in tools:
            tools[tool]["errors"] += 1
        error = event.error if isinstance(event, ev.ActionFailed) else ev.Failure("timeout")
        doc["last_error"] = _error(error, tool, seq)
    if isinstance(event, ev.ActionRequested | ev.ActionRecorded):
        used = tools.get(event.tool, {"calls": 0, "errors": 0})
        tools[event.tool] = {"calls": used["calls"] + 1, "errors": used["errors"], "last": seq}
    if hasattr(event, "cost"):
        _spend(doc, event.cost)


def _error(error: ev.Failure, tool: str, seq: int) -> Doc:
    return {"type": error.type, "message": error.message, "tool": tool, "seq": seq}


def _spend(doc: Doc, cost: ev.Cost) -> None:
    amounts = {
        "tokens": cost.tokens_in + cost.tokens_out,
        "usd_micros": cost.usd_micros,
        "duration_us": cost.duration_us,
    }
    if any(amounts.values()):
        spent = doc["budget"]["spent"]
        doc["budget"]["spent"] = {name: spent.get(name, 0) + amount for name, amount in amounts.items()}


def _patch(doc: Any, op: Doc) -> None:
    """Applies one add, remove or replace at an existing path."""
    *way, last = (token.replace("~1", "/").replace("~0", "~") for token in op["path"].split("/")[1:])
    for token in way:
        doc = doc[int(token)] if isinstance(doc, list) else doc[token]
    if isinstance(doc, list):
        index = int(last)
        doc[index : index + (op["op"] != "add")] = [] if op["op"] == "remove" else [deepcopy(op["value"])]
    elif op["op"] == "remove":
        del doc[last]
    else:
        doc[last] = deepcopy(op["value"])
