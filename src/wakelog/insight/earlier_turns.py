"""The turns before one: what was heard in them, and the goal that stands."""

from __future__ import annotations

import functools
from typing import Final

from wakelog.insight.blocks import Finding, TextSpan
from wakelog.insight.dialogue import TURNS_HEARD, HeardTurn, heard_of
from wakelog.insight.log_blocks import turn_blocks
from wakelog.insight.rules import Carry
from wakelog.insight.user_words import find_goal
from wakelog.log import Log
from wakelog.model.records import Head

TURNS_BACK: Final = 20
"""So many turns are gone back over for the goal that stands."""

_EARLIER: Final = Finding("goal", TextSpan(0, 0, 0, 0))


class EarlierTurns:
    """Turns that are over, each read once."""

    def __init__(self, log: Log, head: Head) -> None:
        self._blocks = functools.cache(functools.partial(turn_blocks, log, head=head))

    def carry(self, turn: int) -> Carry:
        """What a turn needs to know of those before it: what was heard, and the goal that stands. Turns whose words
        only go on with an earlier goal are gone back over, up to a limit."""
        heard = self._heard_before(turn)
        first = max(turn - TURNS_BACK, 1)
        for number in range(turn - 1, first, -1):
            goal = find_goal(self._blocks(number), _EARLIER, self._heard_before(number))
            if goal is not None and goal.detail != "carried":
                return Carry(goal, heard, is_first=False)
        goal = find_goal(self._blocks(first), None) if turn > 1 else None
        return Carry(goal, heard, is_first=goal is None)

    def _heard_before(self, turn: int) -> tuple[HeardTurn, ...]:
        """What was heard in the turns before. Where one of them was work, what is older is not asked for."""
        heard: list[HeardTurn] = []
        for number in range(turn - 1, max(turn - 1 - TURNS_HEARD, 0), -1):
            heard.insert(0, heard_of(self._blocks(number)))
            if heard[0].has_work and any(h.agent for h in heard):
                break
        return tuple(heard)
