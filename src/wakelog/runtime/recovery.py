"""What a dead process left behind: each open call settled by its own policy, and what was done remembered.

**Settling.** A call that was running when the process died: one without effects, or one that the other side knows by
its key, goes back to be sent again; one counted as failed by its policy fails; any other is *uncertain*, and stays
pending until somebody says what happened. A call that never started, or waits for approval, stays as it is.

**Memory.** The same script run again continues the cut turn as its next attempt. A call's id follows from the turn, the
tool, the input, and how many such calls were made before it; so the call made again has the id it had, and is answered
from the log.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Collection

from wakelog.log import Log
from wakelog.log.holder import Hold
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.call_history import Past, follow
from wakelog.runtime.policy import SAFE
from wakelog.runtime.turn_record import TurnRecord


def settling(
    log: Log, why: str, *, resumes: bool = False, closes: bool = False, at_work: Collection[str] = ()
) -> list[EventDraft]:
    """The events that leave nothing dangling. With `resumes`, the cut turn is about to be continued, and calls that may
    be sent again are left for that; with `closes`, nobody will answer what still waits. What this process is itself `at
    work` on is left alone."""
    events: list[ev.Event] = []
    for action, pending in log.part("pending_actions").items():
        event: ev.Event | None
        if closes and pending["status"] in ("waiting", "requested"):
            event = ev.ActionAbandoned(action=action, why=why)
        else:
            event = None if action in at_work else _settled(log, action, pending, why, resumes)
        if event is not None:
            events.append(event)
    if log.part("turn")["status"] == "open":
        events.append(ev.TurnEnded(outcome="interrupted", why=why))
    return [EventDraft(event, actor="runtime") for event in events]


def unanswered(log: Log, turn: int, at_work: Collection[str], *, resumes: bool) -> list[EventDraft]:
    """The same for a turn that ends in this process: calls of it that ran, but whose outcome could not be recorded."""
    why = "its outcome could not be recorded"
    events = [
        _settled(log, action, pending, why, resumes)
        for action, pending in log.part("pending_actions").items()
        if pending["status"] == "running" and pending["turn"] == turn and action not in at_work
    ]
    return [EventDraft(event, actor="runtime") for event in events if event is not None]


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
        return ev.ActionFailed(action=action, error=ev.Failure("interrupted", why), why=why)
    return ev.ActionUncertain(action=action, why=why)


class OpenTurn:
    """The turn that is open in this process: which calls it has made, and what the attempts it continues made."""

    def __init__(
        self,
        number: int,
        attempt: int,
        resumes: int = 0,
        past: dict[str, Past] | None = None,
        hold: Hold | None = None,
        record: TurnRecord | None = None,
    ) -> None:
        self.within = (number, attempt)
        self.hold = hold
        self.record = record
        """What was recorded of it before, if it has an id."""
        self._name = record.name if record is not None else f"{number}.{resumes or attempt}"
        self._past = past or {}
        self._made: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()

    def action_of(self, tool: str, input_hash: str, inside: str = "") -> str:
        """The id of a call that is made now, by the agent or inside another call."""
        with self._lock:
            place = self._made[inside, tool, input_hash]
            self._made[inside, tool, input_hash] += 1
        text = f"{self._name} {place} {input_hash} {tool} {inside}"
        return f"{tool}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def is_done(self) -> bool:
        """Whether it was completed before: then it is only answered from the record, and nothing is written."""
        return self.record is not None and self.record.is_done

    def past(self, action: str) -> Past | None:
        """What a cut attempt knows of a call."""
        return self._past.get(action)


def remember(log: Log, first: Seq) -> dict[str, Past]:
    """What is known of the calls since an event, by their actions' ids. Outcomes may come after the turn was cut."""
    calls: dict[str, Past] = {}
    for entry in log.entries(after=first - 1):
        is_of_call = entry.kind.startswith("action.") or entry.kind == "file.changed"
        action = entry.body.get("action") if is_of_call else None
        if isinstance(action, str) and (past := follow(calls.get(action), entry)) is not None:
            calls[action] = past
    return calls
