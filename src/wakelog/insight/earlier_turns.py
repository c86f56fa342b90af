"""Reads the turns before a turn: what was said in them, and the current goal."""

from __future__ import annotations

import functools
from typing import Final

from wakelog.insight.blocks import Finding, TextSpan
from wakelog.insight.dialogue import TURNS_HEARD, HeardTurn, heard_of
from wakelog.insight.log_blocks import turn_blocks
from wakelog.insight.rules import Carry, find_goal_and_reactions
from wakelog.insight.user_words import find_goal
from wakelog.log import Log
from wakelog.model.records import Head
from wakelog.timeline.points import Ranges

TURNS_BACK: Final = 20
"""How many turns to go back to find the current goal."""

_SOME_GOAL: Final = Finding("goal", TextSpan(0, 0, 0, 0))
"""Stands for an earlier goal that has not been read yet."""


class EarlierTurns:
    """Finished turns, each read once."""

    def __init__(self, log: Log, head: Head, view: Ranges) -> None:
        self._blocks = functools.cache(functools.partial(turn_blocks, log, head=head, view=view))

    def carry(self, turn: int) -> Carry:
        """What a turn needs to know about those before it: what was said, and the current goal. Goes back past turns
        whose words only continue an earlier goal, up to a limit."""
        past_turns = self._past_turns(turn)
        first = max(turn - TURNS_BACK, 1)
        for number in range(turn - 1, first, -1):
            goal, _ = find_goal_and_reactions(self._blocks(number), _SOME_GOAL, self._past_turns(number))
            if goal is not None and goal.detail != "carried":
                return Carry(goal, past_turns)
        return Carry(find_goal(self._blocks(first), None) if turn > 1 else None, past_turns)

    def _past_turns(self, turn: int) -> tuple[HeardTurn, ...]:
        """What was said in the turns before. Turns older than one with work on files are not needed."""
        past_turns: list[HeardTurn] = []
        for number in range(turn - 1, max(turn - 1 - TURNS_HEARD, 0), -1):
            past_turns.insert(0, heard_of(self._blocks(number)))
            if past_turns[0].has_work and any(h.agent for h in past_turns):
                break
        return tuple(past_turns)
