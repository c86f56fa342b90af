"""What a turn comes to, event by event: the one place that says what counts.

The index keeps a row for each attempt, and the command line sums a turn up as it reads. Both hand each event to
`count_event`, so that a turn has as many calls, lines and events in a list as in a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from wakelog.model.calls import ASKS
from wakelog.model.ids import Seq
from wakelog.model.values import INT_MAX, Value


class TurnCounts(Protocol):
    """What is counted of a turn, or of one attempt at it."""

    last: Seq
    ended_at: int | None
    outcome: str
    input: str
    """What it was asked: its own input, else the first thing the user said."""
    events: int
    tool_calls: int
    model_calls: int
    added: int
    removed: int


def count_event(
    turn: TurnCounts,
    seq: Seq,
    kind: str,
    body: Mapping[str, Value],
    *,
    at: int,
    effect: str,
    outcome: str,
    summary: Callable[[], str],
    is_pruned: bool = False,
) -> None:
    """Adds an event to what its turn comes to. `at` is when it happened, `effect` the class of the call it asks for,
    `outcome` how it says that something ended, and `summary` gives what it says in a line. Of a pruned event only its
    kind is known, and not whose call it was."""
    turn.last = seq
    turn.events += 1
    if kind == "turn.ended":
        turn.ended_at, turn.outcome = at, outcome
    elif kind == "file.changed":
        turn.added += _lines(body.get("added"))
        turn.removed += _lines(body.get("removed"))
    elif kind in ASKS and not is_pruned:
        is_model = effect == "model"
        turn.model_calls += is_model
        turn.tool_calls += not is_model
    elif not turn.input and (kind == "turn.started" or (kind == "message.added" and body.get("role") == "user")):
        turn.input = summary()


def _lines(value: Value) -> int:
    return value if type(value) is int and 0 <= value <= INT_MAX else 0
