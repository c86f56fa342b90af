"""The words that started a turn: the request."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.model.agent_words import NOTICE, strip_agent_tags
from wakelog.model.ids import Seq
from wakelog.model.parts import content_text
from wakelog.timeline.messages import content_of
from wakelog.timeline.points import attempts_of

BACK_MAX = 50
"""How many turns to go back past words like "continue"."""
_GO_ON = re.compile(
    r"(?:(?:please|yes|yep|yeah|ok|okay|sure|great|perfect|good|nice|thanks|thank you|alright|right|fine|and|now|just"
    r"|continue|go on|go ahead|carry on|keep going|proceed|resume|next|more|again|try again|retry|do it|do that|y|k"
    r"|/continue|/resume|with it|then)[\s.,!…]*)+",
    re.IGNORECASE,
)
INPUT_WITHIN = 50
"""A turn's input is among its first events or missing; this many are read."""


class TurnWords(msgspec.Struct, frozen=True):
    """What a turn was asked to do, in which event, when, and by whom: a person, the agent that started this session, or
    the agent's own program."""

    turn: int
    seq: Seq
    text: str
    at: int
    by: Literal["user", "agent", "program"]


def request_of_turn(log: Log, turn: int) -> TurnWords | None:
    """What a turn was asked to do. If its own words only say to continue, or are a notice of the program, this is what
    the nearest earlier turn was asked to do: then `seq` and `text` are those of the earlier words, and `turn` is still
    the given turn."""
    own = words = words_of_turn(log, turn)
    before = turn
    while words is not None and _goes_on(words) and before > max(1, turn - BACK_MAX):
        before -= 1
        words = words_of_turn(log, before) or words
    if own is None or words is None or _goes_on(words):
        return own
    return msgspec.structs.replace(words, turn=turn)


def _goes_on(words: TurnWords) -> bool:
    return words.by == "program" or bool(_GO_ON.fullmatch(words.text))


def words_of_turn(log: Log, turn: int) -> TurnWords | None:
    """The first words of a turn; None if it has none or they were removed."""
    try:
        first = attempts_of(log, turn)[0].first if turn else 0
    except NotFoundError:
        first = 0
    for entry in log.entries(after=first - 1, upto=min(first + INPUT_WITHIN, log.head().seq)) if first else ():
        is_message = entry.kind == "message.added" and entry.body.get("role") == "user"
        field = "input" if entry.kind == "turn.started" else "content" if is_message else ""
        if entry.header.turn != turn or not field or entry.body.get(field) is None:
            continue
        content = content_of(log, entry, field)
        text = (content if isinstance(content, str) else content_text(content)).strip()
        if text and (entry.body.get("name") == NOTICE or (field == "input" and entry.header.actor == "runtime")):
            return TurnWords(turn, entry.seq, strip_agent_tags(text), entry.happened_at, "program")
        if text:
            is_spawned = bool(log.entry(1).body.get("spawner"))
            return TurnWords(turn, entry.seq, text, entry.happened_at, "agent" if is_spawned else "user")
    return None
