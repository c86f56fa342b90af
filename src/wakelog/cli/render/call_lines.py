"""A call on one line: what it was about, and what came of it.

An imported call is one event, so its line holds both. The answer of a model that said nothing is told by what it asked
for: the arguments stand in the events of those calls, which follow.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from wakelog.cli.render.values import fetched, text_of
from wakelog.cli.text import counted, glyph
from wakelog.log.reader import Entry
from wakelog.model.agent_words import numbered_lines
from wakelog.model.call_gist import call_gist
from wakelog.model.calls import ASKS
from wakelog.model.parts import Asked, Text, is_answer, parts_of
from wakelog.model.values import Value
from wakelog.session import Session

AHEAD = 24
"""The calls that an answer asks for stand among so many events after it."""
NAMED = 4


def call_text(session: Session[Any], entry: Entry, said: str, *, is_error: bool) -> str:
    """`src/app.py → 120 lines`, or only what it was about where the answer of a tool that writes repeats it."""
    about = call_gist(fetched(session, entry, entry.body.get("input")))
    if about and not is_error and (entry.body.get("effect") == "write" or said == "succeeded"):
        return about
    if numbered_lines(said):
        count = numbered_lines(text_of(fetched(session, entry, entry.body.get("output"), 0)))
        said = counted(count, "line")
    return " → ".join(part for part in (about, said) if part)


def said_by_model(session: Session[Any], entry: Entry, otherwise: str) -> str:
    """What a model's answer says, without the calls that it asks for."""
    return words_of(fetched(session, entry, entry.body.get("output")), otherwise)[:2000]


def words_of(answer: Value, otherwise: str = "") -> str:
    """The words in a model's whole answer; `otherwise` for any other value."""
    if not is_answer(answer):
        return otherwise
    return "\n".join(part.text for part in parts_of(answer) if isinstance(part, Text))


def asked_calls(session: Session[Any], entry: Entry) -> str:
    """`→ Edit src/app.py, Bash pytest -q`: the calls that a model's answer asks for."""
    answer = fetched(session, entry, entry.body.get("output"))
    asked = [part for part in parts_of(answer) if isinstance(part, Asked)] if is_answer(answer) else []
    given = {part.id: part.input for part in asked}
    if missing := {id for id, input in given.items() if input is None}:
        for later in session.log.entries(after=entry.seq, upto=min(entry.seq + AHEAD, session.head.seq)):
            if later.kind in ASKS and (action := text_of(later.body.get("action", ""))) in missing:
                given[action] = fetched(session, later, later.body.get("input"))
    told = Counter(f"{part.name} {call_gist(given[part.id])}".strip() for part in asked)
    calls = [call + (f" {glyph('times')}{times}" if times > 1 else "") for call, times in told.items()]
    more = f" and {len(calls) - NAMED} more" if len(calls) > NAMED else ""
    return f"→ {', '.join(calls[:NAMED])}{more}" if calls else ""
