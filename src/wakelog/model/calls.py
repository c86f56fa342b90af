"""Calls: the events that tell of one call, folded into what became of it.

An agent's log tells of a call in pieces: it is asked for, approved, begun, ends, is tried again, is doubted and
reconciled. `Call` takes these pieces one at a time; `Calls` finds the call that each piece belongs to. Which kind asks,
begins or settles comes from the table of the action machine, so no reader of a log has a list of its own.

An event whose request was not taken belongs to no call that is known here: `Calls.take` answers None, and a reader that
wants the call all the same takes the request first (its seq is the event's cause).
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

ASKS: Final = frozenset(kind for kind, (origins, _) in ACTION.items() if "" in origins)
"""A call begins with one of these."""
SETTLES: Final = frozenset(kind for kind, (_, status) in ACTION.items() if status == "done")
"""A call is over with one of these, unless it is to be tried again."""
ANSWERS: Final = SETTLES - {"action.denied", "action.abandoned"}
"""Of these, the ones that say what came of a call that ran."""
NOT_RUN: Final = ("never_ran", "denied")
"""Outcomes of a call that did not run."""
FAILURES: Final = ("failed", "timed_out")
"""Outcomes of a call that is known not to have worked."""


def outcome_of(kind: str, body: Mapping[str, Value]) -> str:
    """How an event says that a call ended, in the machine's words; empty when it says nothing of that, or no longer."""
    if kind == "action.recorded":
        return text_in(body, "outcome") or "succeeded"
    if kind == "action.reconciled":
        return text_in(body, "outcome")
    return kind.removeprefix("action.") if kind in SETTLES or kind == "action.uncertain" else ""


class Call(msgspec.Struct):
    """One call of a tool or a model, as far as its events were taken."""

    action: str
    tool: str = ""
    effect: str = "external"
    request: Seq = 0
    """The event that asked for it."""
    turn: int = 0
    attempt: int = 1
    input_hash: str = ""
    key: str = ""
    status: str = "requested"
    """As in the action machine; `done` when it is settled."""
    tries: int = 0
    has_begun: bool = False
    """Whether the present try has begun; for a call that is over, whether the last one had."""
    outcome: str = ""
    """How its last try ended, also while it waits to be tried again; empty while it runs."""
    settled: Seq = 0
    """The event that settled it; 0 while it is open."""
    seqs: list[Seq] = []
    """Its own events, in order."""
    files: list[Seq] = []
    """The changes of files that it made."""

    @classmethod
    def asked(cls, seq: Seq, kind: str, header: Header, body: Mapping[str, Value]) -> Self:
        """The call that an event asks for. One that was recorded afterwards is over at once."""
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
        if kind in SETTLES:
            call._end(seq, kind, body)
        return call

    def take(self, seq: Seq, kind: str, header: Header, body: Mapping[str, Value]) -> None:
        """One more event of the call. After it is settled, that is how it ended."""
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
        elif kind in SETTLES or kind == "action.uncertain":
            self._end(seq, kind, body)
        else:
            self.status = move[1]

    def _end(self, seq: Seq, kind: str, body: Mapping[str, Value]) -> None:
        self.outcome = outcome_of(kind, body)
        ran = kind in ANSWERS or kind == "action.uncertain"
        if ran and not self.has_begun and self.outcome not in NOT_RUN:
            self.tries, self.has_begun = self.tries + 1, True  # nobody told of its beginning
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
        """Whether it is over, and known not to have worked."""
        return self.status == "done" and self.outcome in FAILURES


C = TypeVar("C", bound=Call)


class Calls(Generic[C]):
    """The calls among some events, oldest first. `kind` is what a reader keeps of each: a Call, or more."""

    def __init__(self, kind: type[C]) -> None:
        self._kind = kind
        self.by_request: dict[Seq, C] = {}
        self.by_action: dict[str, C] = {}
        """The newest call of each name: an action that is over may be asked for again."""

    def take(self, seq: Seq, kind: str, header: Header, body: Mapping[str, Value]) -> C | None:
        """Takes in an event; the call it tells of, or None when it tells of none that is known."""
        if kind in ASKS:
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
