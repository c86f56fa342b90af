"""The rules, all of them, over the turns of one session.

Pure: the same turns give the same findings. What a rule finds may change only together with `RULES_VERSION`, since
findings are kept by it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.insight.blocks import Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.checks import find_checks, find_files
from wakelog.insight.corrections import find_corrections, find_preferences
from wakelog.insight.decisions import find_decisions
from wakelog.insight.dialogue import TURNS_HEARD, HeardTurn, heard_of
from wakelog.insight.failures import find_failures
from wakelog.insight.pending import find_pending
from wakelog.insight.sentences import is_english
from wakelog.insight.user_words import find_goal, last_asked


class Carry(msgspec.Struct):
    """What the rules of a turn need to know of the turns before it."""

    goal: Finding | None = None
    heard: tuple[HeardTurn, ...] = ()
    """The last turns, the oldest first."""
    is_first: bool = True


def derive(turn: TurnBlocks, carry: Carry) -> list[Finding]:
    """The findings of one turn. `carry` comes from the turn before and is brought forward."""
    found: list[Finding] = []
    goal = find_goal(turn, carry.goal, carry.heard)
    if goal is not None:
        found.append(goal)
        found += find_corrections(turn, carry.is_first, last_asked(carry.heard))
        found += find_preferences(turn)
        carry.goal = goal
        carry.is_first = False
    found += find_decisions(turn, carry.heard)
    found += find_failures(turn)
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
    """Whether the agent's words of a turn are in a language that the rules know. Without words there is nothing to
    misread."""
    said = " ".join(b.text for b in turn.blocks if isinstance(b, SpokenText) and b.who != "user")
    return is_english(said)
