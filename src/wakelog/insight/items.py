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
    "answer",
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
    asked: str = ""
    """For an answer: the question of the agent."""
    offered: tuple[str, ...] = ()
    """For an answer: what the agent offered besides."""
    note: str = ""
    """What happened, in our words: beside the quote, or alone if there is no quote."""
    is_minor: bool = False
    """Whether it is hidden by default."""
    known: Literal["derived"] = "derived"
    rules: int = 0


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


def note_of(item: InsightItem) -> str:
    """Returns the note of an item; empty if its quote says everything."""
    if item.open_items:
        return f"{len(item.open_items)} open: {'; '.join(item.open_items)}"
    if item.asked:
        return f'asked "{item.asked}"'
    what = " ".join((*item.tools[:1], ", ".join(item.files))).strip()
    if item.kind == "approach_change" and len(item.tools) > 1:
        new, failed, event = *item.tools[:2], f"e{item.calls[-1]}"
        if item.result == "after a check":
            return f"after {event} failed" if item.quote else f"{what}, after {event} failed"
        change = f"{failed} → {new}" if failed != new else f"{new} in another way"
        return f"{change}, after {event} did not work"
    if item.kind == "dead_end" and item.calls and not item.tools:  # a call of the turn before
        return f"e{item.calls[-1]} did not help"
    if item.quote or item.kind not in ("approach_change", "dead_end"):
        return ""
    if item.kind == "approach_change":
        return f"{what}, again"
    return f"{what}, {f'failed {len(item.calls)} times' if item.result == 'failed again' else item.result}"
