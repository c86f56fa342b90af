"""Runs all rules over the turns of one session.

Pure: the same turns give the same findings. If what a rule finds changes, `RULES_VERSION` must change too, because
findings are stored by version.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from wakelog.insight.answers import find_answers
from wakelog.insight.blocks import Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.checks import find_checks, find_files
from wakelog.insight.corrections import find_corrections
from wakelog.insight.decisions import find_decisions
from wakelog.insight.dialogue import TURNS_HEARD, HeardTurn, heard_of, is_service
from wakelog.insight.failures import find_failures
from wakelog.insight.pending import find_pending
from wakelog.insight.preferences import find_preferences
from wakelog.insight.sentences import is_english
from wakelog.insight.statements import FAULTS, asks_for_something, only_reacts
from wakelog.insight.user_words import carried, find_goal, is_repeated, words_of

SURE_CHANGE: Final = 4
"""A change of approach with this score is also a sign of a decision."""


class Carry(msgspec.Struct):
    """What the rules need to know about the turns before a turn."""

    goal: Finding | None = None
    heard: tuple[HeardTurn, ...] = ()
    """The last turns, the oldest first."""


def find_goal_and_reactions(
    turn: TurnBlocks, earlier: Finding | None, heard: tuple[HeardTurn, ...]
) -> tuple[Finding | None, list[Finding]]:
    """The goal of a turn, and how the user reacts to the turn before. To a coding agent, words that only react set no
    goal; what it is to do better is a goal of its own, also where it answers a question."""
    goal = find_goal(turn, earlier, heard)
    reactions = list(find_corrections(turn, heard)) if goal is not None else []
    block, start, end = words_of(turn)
    if goal is None or block is None or not heard or is_service(heard):
        return goal, reactions
    words, kinds = block.text[start:end], {f.kind for f in reactions}
    if only_reacts(words, heard, kinds):
        goal = carried(goal.span, earlier)
    elif goal.detail == "carried" and kinds & FAULTS and asks_for_something(words) and not is_repeated(words, heard):
        goal = Finding("goal", goal.span)
    return goal, reactions


def derive(turn: TurnBlocks, carry: Carry) -> list[Finding]:
    """The findings of one turn. `carry` comes from the turn before and is updated for the next one."""
    found: list[Finding] = []
    heard, to_before = carry.heard, None
    for number, part in enumerate(_between_words(turn)):
        goal, reactions = find_goal_and_reactions(part, carry.goal, heard)
        if not number:  # later ones react to this turn
            to_before = next(iter(reactions), None)
        if goal is not None:
            if not number or goal.detail != "carried":
                found.append(goal)
            found += reactions
            found += find_preferences(part, heard)
            carry.goal = goal
        heard = (*heard, heard_of(part))
    failures = list(find_failures(turn, to_before, carry.heard))
    changes = frozenset(f.span for f in failures if f.kind == "approach_change" and f.score >= SURE_CHANGE)
    found += find_answers(turn)
    found += find_decisions(turn, carry.heard, changes)
    found += failures
    found += find_pending(turn)
    found += find_checks(turn)
    found += find_files(turn)
    if not is_derivable(turn):
        found.append(Finding("not_derived", TextSpan(0, 0, 0, 0), detail="language"))
    carry.heard = (*carry.heard, heard_of(turn))[-TURNS_HEARD:]
    return found


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
