"""Derives the findings of a session's turns on demand, and shows them with words read from the log.

Findings of a finished turn change only when the rules change, so they can be stored (`FindingStore`). Words are never
stored: they are read from the log each time, so what was erased there does not appear here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import msgspec

from wakelog.insight.blocks import RESULT, RULES_VERSION, Did, Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.items import Insight, InsightItem, note_of
from wakelog.insight.log_blocks import quote, read_span
from wakelog.insight.sentences import content_words
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.timeline.points import Span, accepted_attempt, attempts_of

SHOWN_MIN: Final = 3
SHOWN_MAX: Final = 12
CALLS_PER_ITEM: Final = 20
"""A turn shows three items of a kind; a long one shows one for this many calls, but never more than twelve."""
DEFAULT_SCORE: Final = 4
"""Decisions with this score or more are shown by default."""
CHANGE_SCORE: Final = 3
"""Changes of approach with this score or more are shown by default: somebody says that they are one."""

SAME_WORDS: Final = 0.4
"""With at least this share of common words, a recorded decision and a derived one are the same."""


class FindingStore(Protocol):
    """Stores the findings of turns, by the version of the rules."""

    def load(self, turn: int, attempt: int) -> list[Finding] | None:
        """The stored findings of a turn; None if there are none, or another version of the rules made them."""
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
    """What can be derived from some turns, at a point or now: for each, the attempt in view. Without `goals` the
    earlier turns are not read, on which the meaning of the user's words depends; then pass no store."""
    items: list[InsightItem] = []
    notes: list[str] = []
    hidden = 0
    head = log.head()
    seq, state = log.parts("decisions_made", "dead_ends", "view") if at is None else (at, log.state(at))
    view = log.view(head.seq, state=state if seq == head.seq else None)
    for turn in sorted(set(turns)):
        span = accepted_attempt(log, attempts_of(log, turn, head), view)
        if span.outcome == "open" or (at is not None and span.last > at):
            notes.append(f"@{turn} is still open: its insight is derived when it ends")
            continue
        blocks = read_span(log, span)
        findings = kept.load(turn, span.attempt) if kept else None
        if findings is None:
            # The rules are slow to import and rarely needed.
            from wakelog.insight.earlier_turns import EarlierTurns
            from wakelog.insight.rules import Carry, derive

            findings = derive(blocks, EarlierTurns(log, head, view).carry(turn) if goals else Carry())
            if kept:
                kept.save(turn, span.attempt, findings)
        if any(f.kind == "not_derived" for f in findings):
            notes.append(f"@{turn}: not derived, the agent's words are not English")
        made = list(_items(log, state, span, blocks, findings))
        items += [item for item in made if everything or not item.is_minor]
        hidden += 0 if everything else sum(item.is_minor for item in made)
    return Insight(tuple(items), hidden, tuple(notes), RULES_VERSION)


def _items(
    log: Log, state: dict[str, Value], span: Span, blocks: TurnBlocks, findings: list[Finding]
) -> Iterator[InsightItem]:
    """The findings with their words, in the order of the turn, without those whose words are gone or that were recorded
    as well."""
    texts = {(b.seq, b.block): b.text for b in blocks.blocks if isinstance(b, SpokenText)}
    calls = {b.seq: b for b in blocks.blocks if isinstance(b, Did)}
    texts.update({(seq, RESULT): call.output for seq, call in calls.items()})
    recorded = _Recorded(state, span)
    minor = minor_findings(findings, len(calls))
    numbers: dict[tuple[str, int], int] = {}
    for finding in sorted(findings, key=lambda f: (f.span.seq, f.span.block, f.span.start)):
        if finding.kind == "not_derived" or not all(seq in calls or seq < span.first for seq in finding.calls):
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
        item = _item(finding, span.turn, words, reason, [calls[seq] for seq in finding.calls if seq in calls])
        suffix = f".{numbers[key]}" if numbers[key] > 1 else ""
        id = f"e{finding.span.seq}{suffix}"
        yield msgspec.structs.replace(item, id=id, note=note_of(item), is_minor=finding in minor)


def _words(texts: dict[tuple[int, int], str], span: TextSpan | None) -> str:
    return "" if span is None else texts.get((span.seq, span.block), "")[span.start : span.end]


def _item(finding: Finding, turn: int, words: str, reason: str, calls: list[Did]) -> InsightItem:
    checks, _, result = finding.detail.partition(" ") if finding.kind == "check" else ("", "", finding.detail)
    known: dict[str, Any] = {}
    if finding.kind == "file":
        from wakelog.insight.acts import files_of

        known["files"] = tuple(path for call in calls for path in files_of(call))
    if not words and finding.kind in ("approach_change", "dead_end"):
        from wakelog.insight.acts import target_of

        known["files"] = tuple(dict.fromkeys(path for call in calls if (path := target_of(call))))
    if finding.kind == "pending" and calls:
        from wakelog.insight.pending import open_items

        known["open_items"] = tuple(open_items(calls[0].input))
    if finding.kind == "answer":
        from wakelog.insight.answers import answers_of

        answer = next((a for call in calls for a in answers_of(call) if a.start == finding.span.start), None)
        if answer is not None:  # else the question was erased
            known["asked"] = " ".join(answer.question.split())
            known["offered"] = tuple(option for option in answer.offered if option not in words.split(", "))
    return InsightItem(
        "",
        finding.kind,  # type: ignore[arg-type]  # `not_derived` is the only other kind, and never an item
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


def minor_findings(findings: list[Finding], steps: int) -> list[Finding]:
    """What is hidden by default: weak decisions, silent changes, checks without a result, and what is beyond the limit
    for a turn. A decision that changes the approach is shown with the change, so it takes no room."""
    room = min(SHOWN_MAX, max(SHOWN_MIN, steps // CALLS_PER_ITEM))
    hidden = [f for kind in ("approach_change", "dead_end") for f in _ranked(findings, kind)[room:]]
    hidden += [f for f in findings if f not in hidden and _is_weak(f)]
    changes = [f for f in findings if f.kind == "approach_change" and f not in hidden]
    quoted, reasons = {f.span for f in changes}, {f.reason for f in changes if f.reason}
    decisions = _ranked(findings, "decision")
    weak = [f for f in decisions if f.score < DEFAULT_SCORE or f.span in reasons - quoted]
    rest = [f for f in decisions if f not in weak and f.span not in quoted]
    return [*hidden, *weak, *rest[room:]]


def _is_weak(finding: Finding) -> bool:
    """Whether a change of approach was not announced, or a check has no result."""
    if finding.kind == "check":
        return finding.detail.endswith(" unknown")
    return finding.kind == "approach_change" and finding.score < CHANGE_SCORE


def _ranked(findings: list[Finding], kind: str) -> list[Finding]:
    return sorted((f for f in findings if f.kind == kind), key=lambda f: -f.score)


class _Recorded:
    """What was recorded about a turn, in it or later. A recorded decision hides the same derived one."""

    def __init__(self, state: dict[str, Value], span: Span) -> None:
        parts = (("decisions_made", ("decision", "approach_change", "answer")), ("dead_ends", ("dead_end",)))
        self._entries = [
            (kinds, _evidence(entry), _entry_words(entry))
            for part, kinds in parts
            for entry in state[part].values()
            if entry.get("turn") == span.turn or any(span.first <= seq <= span.last for seq in _evidence(entry))
        ]

    def hides(self, finding: Finding, words: str) -> bool:
        own = content_words(words)
        for kinds, evidence, recorded in self._entries:
            if finding.kind not in kinds:
                continue
            if finding.span.seq in evidence or set(finding.calls) & evidence:
                return True
            if own and len(recorded & own) >= SAME_WORDS * min(len(recorded), len(own)):
                return True
        return False


def _evidence(entry: dict[str, Value]) -> set[int]:
    """The events that an entry names as evidence. A long session has thousands of entries, so their words are only read
    if these match."""
    return {seq for seq in entry["evidence"] if isinstance(seq, int)} if "evidence" in entry else set()


def _entry_words(entry: dict[str, Value]) -> frozenset[str]:
    words = [entry.get(name) for name in ("choice", "because", "tried", "learned")]
    return content_words(" ".join(word for word in words if isinstance(word, str)))
