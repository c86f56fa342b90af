"""Insight: what a turn came to, as people read it. Each item quotes the log and says that it is derived."""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.model.ids import Seq

InsightKind = Literal[
    "goal",
    "correction",
    "redirect",
    "failure_report",
    "preference",
    "approach_change",
    "dead_end",
    "decision",
    "check",
    "file",
    "pending",
]


class InsightItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One derived item. `quote` and `reason` are words of the log, letter by letter."""

    id: str
    """How to accept it: `e17`, or `e17.2` for the second of its kind in one event."""
    kind: InsightKind
    turn: int
    seq: Seq
    """The event it is quoted from; for what no words say, the call."""
    quote: str = ""
    reason: str = ""
    """The sentence that says why; empty when the rules are not sure of one."""
    reason_seq: Seq = 0
    score: int = 0
    """How much speaks for it, among items of its kind."""
    calls: tuple[Seq, ...] = ()
    """The effect of a decision; what came instead, and what had failed; the call that was checked or wrote."""
    tools: tuple[str, ...] = ()
    """The tools of those calls."""
    checks: tuple[str, ...] = ()
    """What was checked: test, lint, types, build."""
    result: str = ""
    """Of a check: pass or fail. Of a goal: carried, when the words only go on with the one before."""
    files: tuple[str, ...] = ()
    open_items: tuple[str, ...] = ()
    """Of pending work: the open items of a todo list."""
    is_minor: bool = False
    """Whether it is shown only when all are asked for."""
    known: Literal["derived"] = "derived"
    rules: int = 0


class Insight(msgspec.Struct, frozen=True):
    """What was derived from some turns, oldest first."""

    items: tuple[InsightItem, ...]
    hidden: int
    """How many minor decisions were left out."""
    notes: tuple[str, ...]
    """Turns of which nothing could be derived, and why."""
    rules: int

    def of(self, *kinds: InsightKind) -> tuple[InsightItem, ...]:
        return tuple(item for item in self.items if item.kind in kinds)
