"""Derivation: the findings of a session's turns, made when they are asked for, and shown with words read from the log.

Findings of a turn that is over do not change as long as the rules do not, so they can be kept (`FindingStore`). Words
are never kept: they are read from the log each time, and what was erased there is gone here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import msgspec

from wakelog.insight.acts import files_of
from wakelog.insight.blocks import Did, Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.decisions import DEFAULT_SCORE
from wakelog.insight.dialogue import TURNS_HEARD, HeardTurn, heard_of
from wakelog.insight.items import Insight, InsightItem
from wakelog.insight.log_blocks import quote, read_turn
from wakelog.insight.pending import open_items
from wakelog.insight.rules import RULES_VERSION, Carry, derive
from wakelog.insight.sentences import content_words
from wakelog.insight.user_words import find_goal
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.timeline.points import Span, accepted, attempts_of

LEAST_DECISIONS: Final = 3
MOST_DECISIONS: Final = 12
STEPS_EACH: Final = 10
LATER_SCORE: Final = 1
"""So much more the third and later decisions of a turn need: most of these are details of the first."""
"""A turn shows three decisions, a long one a decision for so many calls, and never more than twelve."""

SAME_WORDS: Final = 0.4
"""From this share of common words on, a recorded decision and a derived one are the same."""

TURNS_BACK: Final = 20
"""So many turns are gone back over for the goal that stands."""

_EARLIER: Final = Finding("goal", TextSpan(0, 0, 0, 0))


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
    only the turns themselves are read: what the user's words mean depends on the turns before."""
    items: list[InsightItem] = []
    notes: list[str] = []
    hidden = 0
    state = log.state(at)
    for turn in sorted(set(turns)):
        span = accepted(log, attempts_of(log, turn))
        if span.outcome == "open" or (at is not None and span.last > at):
            notes.append(f"@{turn} is still open: its insight is derived when it ends")
            continue
        blocks = _read(log, span)
        found = findings_of(log, span, blocks, kept) if goals else derive(blocks, Carry())
        if any(f.kind == "not_derived" for f in found):
            notes.append(f"@{turn}: not derived, the agent's words are not English")
        made = list(_items(log, state, span, blocks, found))
        items += [item for item in made if everything or not item.is_minor]
        hidden += 0 if everything else sum(item.is_minor for item in made)
    return Insight(tuple(items), hidden, tuple(notes), RULES_VERSION)


def findings_of(log: Log, span: Span, blocks: TurnBlocks, kept: FindingStore | None = None) -> list[Finding]:
    """The findings of a turn that is over: kept ones, or made now and kept."""
    found = kept.load(span.turn, span.attempt) if kept else None
    if found is None:
        found = derive(blocks, _carry(log, span.turn))
        if kept:
            kept.save(span.turn, span.attempt, found)
    return found


def _carry(log: Log, turn: int) -> Carry:
    """What a turn needs to know of those before it: what was heard, and the goal that stands. Turns whose words only go
    on with an earlier goal are gone back over, up to a limit."""
    past = _Past(log)
    heard = past.before(turn)
    first = max(turn - TURNS_BACK, 1)
    for number in range(turn - 1, first, -1):
        goal = find_goal(past.blocks(number), _EARLIER, past.before(number))
        if goal is not None and goal.detail != "carried":
            return Carry(goal, heard, is_first=False)
    goal = find_goal(past.blocks(first), None) if turn > 1 else None
    return Carry(goal, heard, is_first=goal is None)


class _Past:
    """Turns that are over, each read once."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._read: dict[int, TurnBlocks] = {}

    def blocks(self, turn: int) -> TurnBlocks:
        if turn not in self._read:
            self._read[turn] = turn_blocks(self._log, turn)
        return self._read[turn]

    def before(self, turn: int) -> tuple[HeardTurn, ...]:
        """What was heard in the turns before. Where one of them was work, what is older is not asked for."""
        heard: list[HeardTurn] = []
        for number in range(turn - 1, max(turn - 1 - TURNS_HEARD, 0), -1):
            heard.insert(0, heard_of(self.blocks(number)))
            if heard[0].has_work and any(h.agent for h in heard):
                break
        return tuple(heard)


def turn_blocks(log: Log, turn: int) -> TurnBlocks:
    """What was said and done in a turn, in the attempt that is in view."""
    return _read(log, accepted(log, attempts_of(log, turn)))


def _read(log: Log, span: Span) -> TurnBlocks:
    return read_turn(log, span.turn, span.first, span.last, attempt=span.attempt, is_over=span.outcome != "open")


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
        known["files"] = tuple(path for call in calls for path in files_of(call))
    if finding.kind == "pending" and calls:
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
    return [f for n, f in enumerate(decisions) if n >= room or f.score < DEFAULT_SCORE + (LATER_SCORE if n > 1 else 0)]


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
