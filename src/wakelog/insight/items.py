"""Insight items, as people read them. Each item quotes the log and says that it is derived."""

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


class InsightItem(msgspec.Struct, frozen=True):
    """One derived item. `quote` and `reason` are exact quotes from the log."""

    id: str
    """The id with which to accept it: `e17`, or `e17.2` for the second of its kind in one event."""
    kind: InsightKind
    turn: int
    seq: Seq
    """The event it is quoted from; for an item without words, the call."""
    quote: str = ""
    reason: str = ""
    """The sentence that says why; empty if the rules are not certain. For a carried goal, the goal that it
    continues."""
    reason_seq: Seq = 0
    score: int = 0
    """How certain the rules are, compared with items of the same kind."""
    calls: tuple[Seq, ...] = ()
    """The effect of a decision; the new call and the failed one of a change; the call that checked or wrote."""
    tools: tuple[str, ...] = ()
    """The tools of those calls."""
    checks: tuple[str, ...] = ()
    """What was checked: test, lint, types, build."""
    result: str = ""
    """For a check: pass, fail or unknown. For a goal: carried, if the words only continue the one before. For a dead
    end without words: taken back, or failed again. For a change: after a check, if the failed call only
    showed that another way was needed."""
    files: tuple[str, ...] = ()
    """What a call changed; without words, also what a change or a dead end is about."""
    open_items: tuple[str, ...] = ()
    """For pending work: the open items of a todo list."""
    is_minor: bool = False
    """Whether it is hidden by default."""
    known: Literal["derived"] = "derived"
    rules: int = 0

    @property
    def deed(self) -> str:
        """What was done, for an item without words; empty if it has some."""
        if self.quote or self.kind not in ("approach_change", "dead_end"):
            return ""
        what = " ".join((*self.tools[:1], ", ".join(self.files))).strip()
        if self.kind == "dead_end":
            often = f"failed {len(self.calls)} times"
            return f"{what}, {often if self.result == 'failed again' else self.result}"
        if len(self.tools) < 2:
            return f"{what}, again"
        new, failed = self.tools[:2]
        if self.result == "after a check":
            return f"{what}, after {failed} failed"
        return f"{failed} → {new}" if failed != new else f"{new}, in another way"


class Insight(msgspec.Struct, frozen=True):
    """What was derived from some turns, oldest first."""

    items: tuple[InsightItem, ...]
    hidden: int
    """How many minor items were left out."""
    notes: tuple[str, ...]
    """Turns from which nothing could be derived, and why."""
    rules: int

    def of(self, *kinds: InsightKind) -> tuple[InsightItem, ...]:
        return tuple(item for item in self.items if item.kind in kinds)
