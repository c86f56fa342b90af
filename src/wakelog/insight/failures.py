"""Finds what did not work in a turn: changes of approach and dead ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wakelog.insight import failure_cues
from wakelog.insight.blocks import Finding, TurnBlocks
from wakelog.insight.changes import WorkReport, find_changes, find_told_changes
from wakelog.insight.dead_ends import find_dead_ends, find_taken_back
from wakelog.insight.dialogue import HeardTurn
from wakelog.insight.sentences import sentences_of
from wakelog.insight.steps import steps_of
from wakelog.insight.user_words import words_of

REPORT_WITHIN: Final = 6
"""How many sentences of the user's words may report that a change did not help."""


def find_failures(
    turn: TurnBlocks, reaction: Finding | None = None, past_turns: Sequence[HeardTurn] = ()
) -> Iterator[Finding]:
    """Changes of approach and dead ends of a turn. `reaction` is what the user does not accept of the work of the turn
    before, the last of those `past_turns`."""
    before = past_turns[-1] if past_turns else None
    report = _report_in(turn, reaction, before)
    steps = steps_of(turn.blocks)
    if steps:
        yield from find_changes(steps, report)
    else:
        yield from find_told_changes(turn.blocks, report)
    yield from find_taken_back(turn.blocks, before)
    yield from find_dead_ends(turn.blocks, steps, report, past_turns)


def _report_in(turn: TurnBlocks, reaction: Finding | None, before: HeardTurn | None) -> WorkReport | None:
    """Where the user says that the work of the turn before did not help, or changed nothing at all."""
    block, start, end = words_of(turn)
    if block is None or reaction is None or before is None:
        return None
    sentences = sentences_of(block.text[start:end])[:REPORT_WITHIN]
    same = next((s for s in sentences if failure_cues.NO_CHANGE.search(s.text)), None)
    if same is not None:
        return WorkReport(block.span(start + same.start, start + same.end), "reported same", before)
    return WorkReport(reaction.span, "reported" if reaction.kind == "failure_report" else "corrected", before)
