"""Runs all rules over the turns of one session.

Pure: the same turns give the same findings. If what a rule finds changes, `RULES_VERSION` must change too, because
findings are stored by version.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight import failure_cues
from wakelog.insight.answers import find_answers
from wakelog.insight.blocks import Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.changes import WorkReport, find_announced_changes, find_changes
from wakelog.insight.checks import find_checks, find_files
from wakelog.insight.corrections import find_corrections
from wakelog.insight.dead_ends import find_dead_ends, find_taken_back
from wakelog.insight.decisions import find_decisions
from wakelog.insight.dialogue import TURNS_HEARD, HeardTurn, heard_of, is_service
from wakelog.insight.pending import find_pending
from wakelog.insight.preferences import find_preferences
from wakelog.insight.sentences import is_english, sentences_of
from wakelog.insight.statements import FAULTS, asks_for_something, only_reacts
from wakelog.insight.steps import steps_of
from wakelog.insight.user_words import carried, find_goal, is_repeated, words_of

SURE_CHANGE: Final = 4
"""A change of approach with this score is also a sign of a decision."""


class Carry(msgspec.Struct):
    """What the rules need to know about the turns before a turn."""

    goal: Finding | None = None
    past_turns: tuple[HeardTurn, ...] = ()
    """The last turns, the oldest first."""


def find_goal_and_reactions(
    turn: TurnBlocks, earlier: Finding | None, past_turns: tuple[HeardTurn, ...]
) -> tuple[Finding | None, list[Finding]]:
    """The goal of a turn, and how the user reacts to the turn before. To a coding agent, words that only react set no
    goal; what it is to do better is a goal of its own, also where it answers a question."""
    goal = find_goal(turn, earlier, past_turns)
    reactions = list(find_corrections(turn, past_turns)) if goal is not None else []
    block, start, end = words_of(turn)
    if goal is None or block is None or not past_turns or is_service(past_turns):
        return goal, reactions
    words, kinds = block.text[start:end], {f.kind for f in reactions}
    if only_reacts(words, past_turns, kinds):
        goal = carried(goal.span, earlier)
    elif (
        goal.detail == "carried" and kinds & FAULTS and asks_for_something(words) and not is_repeated(words, past_turns)
    ):
        goal = Finding("goal", goal.span)
    return goal, reactions


def derive(turn: TurnBlocks, carry: Carry) -> list[Finding]:
    """The findings of one turn. `carry` comes from the turn before and is updated for the next one."""
    findings: list[Finding] = []
    past_turns, to_before = carry.past_turns, None
    for number, part in enumerate(_between_words(turn)):
        goal, reactions = find_goal_and_reactions(part, carry.goal, past_turns)
        if not number:  # later ones react to this turn
            to_before = next(iter(reactions), None)
        if goal is not None:
            if not number or goal.detail != "carried":
                findings.append(goal)
            findings += reactions
            findings += find_preferences(part, past_turns)
            carry.goal = goal
        past_turns = (*past_turns, heard_of(part))
    failures = list(find_failures(turn, to_before, carry.past_turns))
    changes = frozenset(f.span for f in failures if f.kind == "approach_change" and f.score >= SURE_CHANGE)
    findings += find_answers(turn)
    findings += find_decisions(turn, carry.past_turns, changes)
    findings += failures
    findings += find_pending(turn)
    findings += find_checks(turn)
    findings += find_files(turn)
    if not is_derivable(turn):
        findings.append(Finding("not_derived", TextSpan(0, 0, 0, 0), detail="language"))
    carry.past_turns = (*carry.past_turns, heard_of(turn))[-TURNS_HEARD:]
    return findings


def _between_words(turn: TurnBlocks) -> Iterator[TurnBlocks]:
    """The turn, cut at each queued prompt: it reacts to what the agent has done so far, as the next prompt would."""
    blocks = turn.blocks
    cuts = [place for place, block in enumerate(blocks) if isinstance(block, SpokenText) and block.is_queued]
    for first, last in itertools.pairwise((0, *cuts, len(blocks))):
        yield msgspec.structs.replace(turn, blocks=blocks[first:last])


def derive_all(turns: Iterable[TurnBlocks]) -> list[Finding]:
    """The findings of all turns of a session, oldest turn first."""
    carry = Carry()
    return [finding for turn in turns for finding in derive(turn, carry)]


def is_derivable(turn: TurnBlocks) -> bool:
    """Whether the agent's words in a turn are English, or there are none."""
    said = " ".join(b.text for b in turn.blocks if isinstance(b, SpokenText) and b.who != "user")
    return is_english(said)


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
        yield from find_announced_changes(turn.blocks, report)
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
