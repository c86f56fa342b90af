"""Runs all rules over the turns of one session.

Pure: the same turns give the same findings. If what a rule finds changes, `RULES_VERSION` must change too, because
findings are stored by version.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.insight.blocks import Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.checks import find_checks, find_files
from wakelog.insight.corrections import find_corrections, find_preferences
from wakelog.insight.decisions import find_decisions
from wakelog.insight.dialogue import TURNS_HEARD, HeardTurn, heard_of, last_agent_words
from wakelog.insight.failures import find_failures
from wakelog.insight.pending import find_pending
from wakelog.insight.sentences import is_english
from wakelog.insight.user_words import find_goal


class Carry(msgspec.Struct):
    """What the rules need to know about the turns before a turn."""

    goal: Finding | None = None
    heard: tuple[HeardTurn, ...] = ()
    """The last turns, the oldest first."""
    is_first: bool = True


def derive(turn: TurnBlocks, carry: Carry) -> list[Finding]:
    """The findings of one turn. `carry` comes from the turn before and is updated for the next one."""
    found: list[Finding] = []
    is_reaction = False
    goal = find_goal(turn, carry.goal, carry.heard)
    if goal is not None:
        found.append(goal)
        reactions = list(find_corrections(turn, carry.is_first, last_agent_words(carry.heard)))
        is_reaction = bool(reactions and carry.heard and carry.heard[-1].has_work)
        found += reactions
        found += find_preferences(turn)
        carry.goal = goal
        carry.is_first = False
    found += find_decisions(turn, carry.heard)
    found += find_failures(turn, is_reaction=is_reaction)
    found += find_pending(turn)
    found += find_checks(turn)
    found += find_files(turn)
    if not is_derivable(turn):
        found.append(Finding("not_derived", TextSpan(0, 0, 0, 0), detail="language"))
    carry.heard = (*carry.heard, heard_of(turn))[-TURNS_HEARD:]
    return found


def derive_all(turns: Iterable[TurnBlocks]) -> list[Finding]:
    """The findings of all turns of a session, oldest turn first."""
    carry = Carry()
    return [finding for turn in turns for finding in derive(turn, carry)]


def is_derivable(turn: TurnBlocks) -> bool:
    """Whether the agent's words in a turn are English, or there are none."""
    said = " ".join(b.text for b in turn.blocks if isinstance(b, SpokenText) and b.who != "user")
    return is_english(said)
