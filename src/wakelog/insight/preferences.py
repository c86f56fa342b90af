"""Finds preferences: what the user wants in general, or for the rest of a task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from wakelog.insight.blocks import Finding, TurnBlocks
from wakelog.insight.corrections import spelled_out
from wakelog.insight.cues import phrases
from wakelog.insight.dialogue import HeardTurn, is_service
from wakelog.insight.sentences import sentences_of
from wakelog.insight.user_words import words_of

_WISH: Final = phrases(
    r"""
    (?:^|[,;:(-] ?|please |should |must |to |and |but |you |we )(?:always|never(?! ?mind)) (?!<past>|\w+ed\b)\w+
    from now on|in (?:the )?future,? (?:please |you |we |i |do |don't |use |always |never )|going forward
    every time|whenever you|as a rule|for the rest of
    in this (?:project|repo|repository|codebase),? (?:we|you|use|please|do|don't|always|never)
    (?:don't|do not) ever
    (?:don't|do not|never) \w+(?: \w+){0,4} (?:without (?:asking|my|me)|unless i|until i)
    ask (?:me )?(?:first )?before (?:you |\w+ing)
    i (?:really |strongly |always |usually |generally |do )*(?:prefer|hate|like (?:to|it when))
    i(?:'d| would) (?:really |strongly )?(?:prefer|rather)
    i (?:really )?(?:don't|do not) like (?:it )?when
    """,
    past="be, had, been, have, has, saw, seen, got, heard, was, were, did, sent, shown, made",
)
"""It holds for more than the next step."""
_CONDITION: Final = phrases(
    r"""
    i (?:do not|don't) want|i want to use|as long as|only if|no insurance
    budget|at most|no more than|cheapest
    first,? and (?:if|then)
    """
)
"""What a service has to heed for the rest of a dialogue."""
_HOLDS_BACK: Final = phrases(
    r"""
    ask (?:me )?(?:\w+ ){0,3}(?:first\b|before (?:you|we|i|\w+ing))
    (?:before|without) (?:attempting|making|changing|modifying|commencing|touching|editing)\b
    (?:don't|do not) (?:write|make|change|modify|do|edit|touch) any(?:thing)?\b
    ^only (?:stage|commit|change|edit|touch|modify)\b
    no [\w ]{3,30} ever\b|keep in mind
    """
)
"""What a coding agent may not do, or not yet."""
_IS_REQUEST: Final = re.compile(
    r"(?:(?:and|also|ok|okay|then|so|please)[, ]+)*(?:can|could|would|will) (?:you|we)\b", re.I
)
"""It asks for the next step, whatever else it says."""


def find_preferences(turn: TurnBlocks, past_turns: Sequence[HeardTurn] = ()) -> Iterator[Finding]:
    """The first preference of a turn that holds beyond the next step. `past_turns` are the turns before."""
    block, start, end = words_of(turn)
    if block is None or end - start > 2000:
        return
    wishes = (_WISH, _CONDITION if is_service(past_turns) else _HOLDS_BACK)
    for piece in sentences_of(block.text[start:end]):
        is_wish = any(pattern.search(spelled_out(piece.text)) for pattern in wishes)
        if is_wish and not piece.text.endswith("?") and not _IS_REQUEST.match(piece.text):
            yield Finding("preference", block.span(start + piece.start, start + piece.end), score=2)
            return
