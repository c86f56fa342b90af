"""Derivation: the findings of a session's turns, made when they are asked for, and shown with words read from the log.

Findings of a turn that is over do not change as long as the rules do not, so they can be kept (`FindingStore`). Words
are never kept: they are read from the log each time, and what was erased there is gone here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import msgspec

from wakelog.insight.blocks import RULES_VERSION, Did, Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.items import Insight, InsightItem
from wakelog.insight.log_blocks import quote, read_span
from wakelog.insight.sentences import content_words
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.records import Head
from wakelog.model.values import Value
from wakelog.timeline.points import Span, accepted, attempts_of

LEAST_DECISIONS: Final = 3
MOST_DECISIONS: Final = 12
STEPS_EACH: Final = 20
"""A turn shows three decisions, a long one a decision for so many calls, and never more than twelve."""
DEFAULT_SCORE: Final = 4
"""From here on a decision is shown by default."""
LATER_SCORE: Final = 1
"""So much more the third and later decisions of a turn need: most of these are details of the first."""

SAME_WORDS: Final = 0.4
"""From this share of common words on, a recorded decision and a derived one are the same."""


class FindingStore(Protocol):
    """Where the findings of turns are kept, by the version of the rules."""

    def load(self, turn: int, attempt: int) -> list[Finding] | None:
        """What was kept of a turn; None when nothing was, or other rules made it."""
        ...

    def save(self, turn: int, attempt: int, findings: list[Finding]) -> None: ...


def make_insight(
    log: Log,
    turns: Iterable[int],
    *,
    everything: bool = False,
    goals: bool = True,
    at: Seq | None = None,
    kept: FindingStore | None = None,
) -> Insight:
    """What can be derived of some turns, as of a point or now: of each, the attempt that is in view. Without `goals`
    only the turns themselves are read: what the user's words mean depends on the turns before. Then nothing is kept."""
    items: list[InsightItem] = []
    notes: list[str] = []
    hidden = 0
    head = log.head()
    state = log.parts("decisions_made", "dead_ends")[1] if at is None else log.state(at)
    for turn in sorted(set(turns)):
        span = accepted(log, attempts_of(log, turn, head))
        if span.outcome == "open" or (at is not None and span.last > at):
            notes.append(f"@{turn} is still open: its insight is derived when it ends")
            continue
        blocks = read_span(log, span)
        found = kept.load(turn, span.attempt) if kept else None
        if found is None:
            found = _derived(log, turn, blocks, head, goals)
            if kept:
                kept.save(turn, span.attempt, found)
        if any(f.kind == "not_derived" for f in found):
            notes.append(f"@{turn}: not derived, the agent's words are not English")
        made = list(_items(log, state, span, blocks, found))
        items += [item for item in made if everything or not item.is_minor]
        hidden += 0 if everything else sum(item.is_minor for item in made)
    return Insight(tuple(items), hidden, tuple(notes), RULES_VERSION)


def _derived(log: Log, turn: int, blocks: TurnBlocks, head: Head, goals: bool) -> list[Finding]:
    """What the rules find in a turn that is over. They take long to load, and most turns were looked at before."""
    from wakelog.insight.earlier_turns import EarlierTurns
    from wakelog.insight.rules import Carry, derive

    return derive(blocks, EarlierTurns(log, head).carry(turn) if goals else Carry())


# Items


def _items(
    log: Log, state: dict[str, Value], span: Span, blocks: TurnBlocks, found: list[Finding]
) -> Iterator[InsightItem]:
    """The findings with their words, in the order of the turn. What is gone, or recorded, is left out."""
    texts = {(b.seq, b.block): b.text for b in blocks.blocks if isinstance(b, SpokenText)}
    calls = {b.seq: b for b in blocks.blocks if isinstance(b, Did)}
    recorded = _Recorded(state, span)
    minor = minor_decisions(found, len(calls))
    numbers: dict[tuple[str, int], int] = {}
    for finding in sorted(found, key=lambda f: (f.span.seq, f.span.block, f.span.start)):
        if finding.kind == "not_derived" or not all(seq in calls for seq in finding.calls):
            continue
        words = _words(texts, finding.span)
        is_silent = finding.span.start == finding.span.end
        if not words and not (is_silent and finding.calls):
            continue  # its words are gone
        if recorded.hides(finding, words):
            continue
        key = (finding.kind, finding.span.seq)
        numbers[key] = numbers.get(key, 0) + 1
        reason = _words(texts, finding.reason)
        if finding.detail == "carried" and finding.reason is not None:
            reason = quote(log, finding.reason)
        item = _item(finding, span.turn, words, reason, [calls[seq] for seq in finding.calls])
        suffix = f".{numbers[key]}" if numbers[key] > 1 else ""
        yield msgspec.structs.replace(item, id=f"e{finding.span.seq}{suffix}", is_minor=finding in minor)


def _words(texts: dict[tuple[int, int], str], span: TextSpan | None) -> str:
    return "" if span is None else texts.get((span.seq, span.block), "")[span.start : span.end]


def _item(finding: Finding, turn: int, words: str, reason: str, calls: list[Did]) -> InsightItem:
    checks, _, result = finding.detail.partition(" ") if finding.kind == "check" else ("", "", finding.detail)
    known: dict[str, Any] = {}
    if finding.kind == "file":
        from wakelog.insight.acts import files_of

        known["files"] = tuple(path for call in calls for path in files_of(call))
    if finding.kind == "pending" and calls:
        from wakelog.insight.pending import open_items

        known["open_items"] = tuple(open_items(calls[0].input))
    return InsightItem(
        "",
        finding.kind,  # type: ignore[arg-type]  # what the rules find is one of the kinds, but for their own
        turn,
        finding.span.seq,
        words,
        reason,
        finding.reason.seq if finding.reason and reason else 0,
        finding.score,
        finding.calls,
        tuple(call.tool for call in calls),
        tuple(checks.split("+")) if checks else (),
        result,
        rules=RULES_VERSION,
        **known,
    )


def minor_decisions(found: list[Finding], steps: int) -> list[Finding]:
    """The decisions that are shown only when all are asked for: the weak ones, and those beyond what a turn shows."""
    decisions = sorted((f for f in found if f.kind == "decision"), key=lambda f: -f.score)
    room = min(MOST_DECISIONS, max(LEAST_DECISIONS, steps // STEPS_EACH))
    told = [f.reason for f in found if f.kind == "approach_change" and f.reason]  # why it changed is said there
    weak = [f for f in decisions if f.score < DEFAULT_SCORE or f.span in told]
    rest = [f for f in decisions if f not in weak]
    return weak + [
        f for n, f in enumerate(rest) if n >= room or f.score < DEFAULT_SCORE + (LATER_SCORE if n > 1 else 0)
    ]


class _Recorded:
    """What was recorded about a turn, in it or later: it hides what would be derived beside it."""

    def __init__(self, state: dict[str, Value], span: Span) -> None:
        parts = (("decisions_made", ("decision", "approach_change")), ("dead_ends", ("dead_end",)))
        self._told = [
            (kinds, _evidence(made), _told(made))
            for part, kinds in parts
            for made in state[part].values()
            if made.get("turn") == span.turn or any(span.first <= seq <= span.last for seq in _evidence(made))
        ]

    def hides(self, finding: Finding, words: str) -> bool:
        own = content_words(words)
        for kinds, about, told in self._told:
            if finding.kind not in kinds:
                continue
            if finding.span.seq in about or set(finding.calls) & about:
                return True
            if own and len(told & own) >= SAME_WORDS * min(len(told), len(own)):
                return True
        return False


def _evidence(made: dict[str, Value]) -> set[int]:
    """The events that something recorded names as its evidence. A long session has thousands to ask, so this is apart
    from their words."""
    return {seq for seq in made["evidence"] if isinstance(seq, int)} if "evidence" in made else set()


def _told(made: dict[str, Value]) -> frozenset[str]:
    """The words of something recorded."""
    words = [made.get(name) for name in ("choice", "because", "tried", "learned")]
    return content_words(" ".join(word for word in words if isinstance(word, str)))
