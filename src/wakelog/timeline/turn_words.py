"""The words that a turn began with: what somebody asked for, as they said it."""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.parts import content_text
from wakelog.timeline.messages import content_of
from wakelog.timeline.points import attempts_of

NEAR = 50
"""So many events from its beginning, a turn has its input or never."""


class TurnWords(msgspec.Struct, frozen=True):
    """What a turn was asked for, where that stands, when it was said, and by whom: a person, or the agent that started
    this session."""

    turn: int
    seq: Seq
    text: str
    at: int
    by: Literal["user", "agent"]


def words_of_turn(log: Log, turn: int) -> TurnWords | None:
    """The first words of a turn; None where it has none, or they were removed."""
    try:
        first = attempts_of(log, turn)[0].first if turn else 0
    except NotFoundError:
        first = 0
    for entry in log.entries(after=first - 1, upto=min(first + NEAR, log.head().seq)) if first else ():
        is_message = entry.kind == "message.added" and entry.body.get("role") == "user"
        field = "input" if entry.kind == "turn.started" else "content" if is_message else ""
        if entry.header.turn != turn or not field or entry.body.get(field) is None:
            continue
        content = content_of(log, entry, field)
        text = (content if isinstance(content, str) else content_text(content)).strip()
        if text:
            is_spawned = bool(log.entry(1).body.get("spawner"))
            return TurnWords(turn, entry.seq, text, entry.happened_at, "agent" if is_spawned else "user")
    return None
