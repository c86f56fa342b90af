"""What a dead process left behind: each open call settled by its own policy, and what was done remembered.

**Settling.** A call that was running when the process died: one without effects, or one that the other side knows by
its key, goes back to be sent again; one counted as failed by its policy fails; any other is *uncertain*, and stays
pending until somebody says what happened. A call that never started, or waits for approval, stays as it is.

**Memory.** The same script run again continues the cut turn as its next attempt. It makes the same calls in the same
order; the n-th call of a tool with the same input is the n-th one of before, and is answered from the log.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from wakelog.history.points import attempts_of
from wakelog.log import Log
from wakelog.log.reading import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import Draft
from wakelog.model.values import Value
from wakelog.runtime.policy import SAFE

OUTCOMES = frozenset({"action.succeeded", "action.failed", "action.timed_out", "action.denied", "action.recorded"})
_BEGINS = frozenset({"action.requested", "action.started", "action.recorded"})


def settling(log: Log, why: str, *, resumes: bool = False, closes: bool = False) -> list[Draft]:
    """The events that leave nothing dangling. With `resumes`, the cut turn is about to be continued, and calls that may
    be sent again are left for that; with `closes`, nobody will answer what still waits."""
    state = log.state()
    events: list[ev.Event] = []
    for action, pending in state["pending_actions"].items():
        event: ev.Event | None
        if closes and pending["status"] in ("waiting", "requested"):
            event = ev.ActionAbandoned(action=action, why=why)
        else:
            event = _settled(log, action, pending, why, resumes)
        if event is not None:
            events.append(event)
    if state["turn"]["status"] == "open":
        events.append(ev.TurnEnded(outcome="interrupted", why=why))
    return [Draft(event, actor="runtime") for event in events]


def _settled(log: Log, action: str, pending: dict[str, Value], why: str, resumes: bool) -> ev.Event | None:
    status = pending["status"]
    if pending["tool"] == "input" or status in ("waiting", "uncertain"):
        return None
    if status == "requested":
        return None if resumes else ev.ActionAbandoned(action=action, why=why)
    cut = ev.Failure("interrupted", why, retryable=True)
    if pending["effect"] in SAFE:
        return ev.ActionFailed(action=action, error=cut, retry=resumes, why=why)
    rule = log.entry(pending["seq"]).body.get("policy", {}).get("uncertain", "ask")
    if rule == "retry" and resumes:
        return ev.ActionFailed(action=action, error=cut, retry=True, why=why)
    if rule == "fail":
        return ev.ActionFailed(action=action, error=cut, why=why)
    return ev.ActionUncertain(action=action, why=why)


class Step(msgspec.Struct, frozen=True):
    """A call of before: still open under its action's id, or over, with the event that holds its outcome."""

    action: str
    outcome: Seq = 0


class Memory:
    """What the interrupted attempts of one turn have done, in the order they did it."""

    def __init__(self, steps: dict[tuple[str, str], list[Step | None]], first: Seq = 0, last: Seq = 0) -> None:
        self._steps = steps
        self._first = first
        self._last = last
        self._taken: dict[tuple[str, str], int] = defaultdict(int)
        self._lock = threading.Lock()

    def take(self, tool: str, input_hash: str) -> Step | None:
        """The step that this call repeats; each is given once."""
        key = (tool, input_hash)
        with self._lock:
            place = self._taken[key]
            self._taken[key] += 1
        steps = self._steps.get(key, [])
        return steps[place] if place < len(steps) else None

    def covers(self, seq: Seq) -> bool:
        """Whether an event is of the attempts that were cut, and so out of view."""
        return self._first <= seq <= self._last

    def __len__(self) -> int:
        return sum(step is not None for steps in self._steps.values() for step in steps)


def remember(log: Log, turn: int) -> Memory:
    """The memory for continuing a turn: of the attempts at its end that were interrupted."""
    spans = attempts_of(log, turn)
    cut = len(spans)
    while cut and spans[cut - 1].outcome in ("interrupted", "open"):
        cut -= 1
    if cut == len(spans):
        return Memory({})
    first = spans[cut].first
    return Memory(_merged(log.entries(after=first - 1), turn), first, log.head().seq)


def _merged(entries: Iterable[Entry], turn: int) -> dict[tuple[str, str], list[Step | None]]:
    """Per call, what the newest attempt that came so far knows. Outcomes may come after the turn was cut."""
    keys: dict[str, tuple[str, str]] = {}
    outcomes: dict[str, Seq] = {}
    dropped: set[str] = set()
    attempts: dict[int, dict[str, None]] = defaultdict(dict)
    for entry in entries:
        action = entry.body.get("action")
        if not isinstance(action, str) or not entry.kind.startswith("action."):
            continue
        if entry.kind in ("action.requested", "action.recorded"):
            keys[action] = (str(entry.body.get("tool", "")), str(entry.body.get("input_hash", "")))
            dropped.discard(action)
        if entry.kind in _BEGINS and entry.header.turn == turn:
            attempts[entry.header.attempt].setdefault(action)
        if (entry.kind in OUTCOMES and not entry.body.get("retry")) or entry.kind == "action.reconciled":
            outcomes[action] = entry.seq
        if entry.kind == "action.abandoned" or entry.body.get("outcome") == "never_ran":
            dropped.add(action)
    merged: dict[tuple[str, str], list[Step | None]] = defaultdict(list)
    for attempt in sorted(attempts):
        place: dict[tuple[str, str], int] = defaultdict(int)
        for action in attempts[attempt]:
            if action not in keys:
                continue
            key = keys[action]
            steps, n = merged[key], place[key]
            place[key] += 1
            if n == len(steps):
                steps.append(None)
            steps[n] = None if action in dropped else Step(action, outcomes.get(action, 0))
    return dict(merged)
