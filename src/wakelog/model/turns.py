"""Counts the events, calls and lines of a turn.

The index keeps a row for each attempt, and the command line counts a turn as it reads. Both pass each event to
`count_event`, so their numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.ids import Seq
from wakelog.model.values import Value, as_int


class TurnCounts(Protocol):
    """The counts of a turn, or of one attempt."""

    last: Seq
    ended_at: int | None
    outcome: str
    input: str
    """Its input, or else the first message of the user."""
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
    """Adds an event to the counts of its turn. `at` is when it happened, `effect` that of the call it requests,
    `outcome` how something ended, and `summary` returns its text in one line. Of a pruned event only the kind is
    known."""
    turn.last = seq
    turn.events += 1
    if kind == "turn.ended":
        turn.ended_at, turn.outcome = at, outcome
    elif kind == "file.changed":
        turn.added += as_int(body.get("added"))
        turn.removed += as_int(body.get("removed"))
    elif kind in BEGIN_KINDS and not is_pruned:
        is_model = effect == "model"
        turn.model_calls += is_model
        turn.tool_calls += not is_model
    elif not turn.input and (kind == "turn.started" or (kind == "message.added" and body.get("role") == "user")):
        turn.input = summary()
