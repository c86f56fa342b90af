"""Folds the events of a call into one value: its request, its tries, and its outcome.

A call has several events: it is requested, approved, started, ends, is retried, becomes uncertain, is reconciled.
`Call` takes these events one at a time; `Calls` finds the call that an event belongs to. Which kinds request, start or
settle a call comes from the table of the action machine, so no reader needs its own list.

If the request of an event was not taken, its call is unknown, and `Calls.take` returns None. A reader that needs the
call takes the request first (its seq is the event's cause).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, Self, TypeVar

import msgspec

from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.machines import ACTION
from wakelog.model.records import Header
from wakelog.model.values import Value

BEGIN_KINDS: Final = frozenset(kind for kind, (origins, _) in ACTION.items() if "" in origins)
"""Kinds that begin a call."""
END_KINDS: Final = frozenset(kind for kind, (_, status) in ACTION.items() if status == "done")
"""Kinds that end a call, unless it is retried."""
ANSWERS: Final = END_KINDS - {"action.denied", "action.abandoned"}
"""The kinds of these that hold the outcome of a call that ran."""
NOT_RUN: Final = ("never_ran", "denied")
"""Outcomes of a call that did not run."""
FAILURES: Final = ("failed", "timed_out")
"""Outcomes of a call that certainly failed."""


def outcome_of(kind: str, body: Mapping[str, Value]) -> str:
    """Returns the outcome that an event records for its call; empty if it records none, or was erased."""
    if kind == "action.recorded":
        return text_in(body, "outcome") or "succeeded"
    if kind == "action.reconciled":
        return text_in(body, "outcome")
    return kind.removeprefix("action.") if kind in END_KINDS or kind == "action.uncertain" else ""


class Call(msgspec.Struct):
    """One call of a tool or a model, from the events taken so far."""

    action: str
    tool: str = ""
    effect: str = "external"
    request: Seq = 0
    """The event that requested it."""
    turn: int = 0
    attempt: int = 1
    input_hash: str = ""
    key: str = ""
    status: str = "requested"
    """The status in the action machine; `done` if it is settled."""
    tries: int = 0
    has_begun: bool = False
    """Whether the current or last try has begun."""
    outcome: str = ""
    """How its last try ended, also while it waits for a retry; empty while it runs."""
    settled: Seq = 0
    """The event that settled it; 0 while it is open."""
    seqs: list[Seq] = []
    """Its own events, in order."""
    files: list[Seq] = []
    """The events of its file changes."""

    @classmethod
    def asked(cls, seq: Seq, kind: str, header: Header, body: Mapping[str, Value]) -> Self:
        """Makes a call from its request. A call that was recorded afterwards is settled at once."""
        call = cls(
            action=text_in(body, "action"),
            tool=text_in(body, "tool"),
            effect=text_in(body, "effect") or "external",
            request=seq,
            turn=header.turn,
            attempt=header.attempt,
            input_hash=text_in(body, "input_hash"),
            key=text_in(body, "key"),
            status="waiting" if body.get("approval") else "requested",
            seqs=[seq],
        )
        if kind in END_KINDS:
            call._end(seq, kind, body)
        return call

    def take(self, seq: Seq, kind: str, header: Header, body: Mapping[str, Value]) -> None:
        """Adds an event of the call. Once settled, its outcome no longer changes."""
        if kind == "file.changed":
            self.files.append(seq)
            return
        self.seqs.append(seq)
        move = ACTION.get(kind)
        if move is None or self.status == "done":
            return
        if kind == "action.started":
            self.status, self.has_begun, self.outcome = "running", True, ""
            self.tries += 1
        elif kind in END_KINDS or kind == "action.uncertain":
            self._end(seq, kind, body)
        else:
            self.status = move[1]

    def _end(self, seq: Seq, kind: str, body: Mapping[str, Value]) -> None:
        self.outcome = outcome_of(kind, body)
        ran = kind in ANSWERS or kind == "action.uncertain"
        if ran and not self.has_begun and self.outcome not in NOT_RUN:
            self.tries, self.has_begun = self.tries + 1, True  # its start was not recorded
        if body.get("retry"):
            self.status, self.has_begun = "requested", False
        else:
            self.status = ACTION[kind][1]
            self.settled = seq if self.status == "done" else 0

    @property
    def is_model(self) -> bool:
        return self.effect == "model"

    @property
    def is_failure(self) -> bool:
        """Whether it is over and certainly failed."""
        return self.status == "done" and self.outcome in FAILURES


C = TypeVar("C", bound=Call)


class Calls(Generic[C]):
    """Collects the calls of a series of events, oldest first. `kind` is the class for each: Call, or a subclass."""

    def __init__(self, kind: type[C]) -> None:
        self._kind = kind
        self.by_request: dict[Seq, C] = {}
        self.by_action: dict[str, C] = {}
        """The newest call of each action id: a settled action may be requested again."""

    def take(self, seq: Seq, kind: str, header: Header, body: Mapping[str, Value]) -> C | None:
        """Adds an event and returns its call, or None if the call is unknown."""
        if kind in BEGIN_KINDS:
            call = self._kind.asked(seq, kind, header, body)
            self.by_request[seq] = call
            if call.action:
                self.by_action[call.action] = call
            return call
        is_move = kind.startswith("action.")
        if not is_move and kind != "file.changed":
            return None
        found = self.by_action.get(text_in(body, "action"))
        if found is None and is_move:
            found = self.by_request.get(header.cause)  # a pruned event has no body, but its header names the request
        if found is not None:
            found.take(seq, kind, header, body)
        return found
