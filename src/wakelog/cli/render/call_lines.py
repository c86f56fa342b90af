"""A call on one line: its input, and its result.

An imported call is one event, so its line has both. A model's answer without words is described by the calls it asks
for; their arguments are in the events that follow.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from wakelog.cli.render.values import fetch_value, text_of
from wakelog.cli.text import glyph, name_some
from wakelog.log.reader import Entry
from wakelog.model.agent_words import numbered_lines
from wakelog.model.call_gist import call_gist
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.parts import Asked, Text, is_answer, parts_of
from wakelog.model.short_text import pluralize
from wakelog.model.values import Value
from wakelog.session import Session

LOOKAHEAD = 24
"""How many events after a model's answer may hold the calls that it asks for."""
MAX_CALLS = 4


def call_words(session: Session[Any], entry: Entry, result: str, *, is_error: bool) -> tuple[str, str]:
    """A call's input and its result in a few words, `src/app.py` and `120 lines`. Either may be empty; the result of a
    tool that writes is, if it would repeat the input."""
    about = call_gist(fetch_value(session, entry, entry.body.get("input")))
    if about and not is_error and (entry.body.get("effect") == "write" or result == "succeeded"):
        return about, ""
    if numbered_lines(result):
        count = numbered_lines(text_of(fetch_value(session, entry, entry.body.get("output"), 0)))
        result = pluralize(count, "line")
    return about, result


def said_by_model(session: Session[Any], entry: Entry, otherwise: str) -> str:
    """The words of a model's answer, without the calls that it asks for."""
    return words_of(fetch_value(session, entry, entry.body.get("output")), otherwise)[:2000]


def words_of(answer: Value, otherwise: str = "") -> str:
    """The words in a model's answer; `otherwise` for any other value."""
    if not is_answer(answer):
        return otherwise
    return "\n".join(part.text for part in parts_of(answer) if isinstance(part, Text))


def asked_calls(session: Session[Any], entry: Entry) -> str:
    """`→ Edit src/app.py, Bash pytest -q`: the calls that a model's answer asks for."""
    answer = fetch_value(session, entry, entry.body.get("output"))
    questions = [part for part in parts_of(answer) if isinstance(part, Asked)] if is_answer(answer) else []
    inputs = {part.id: part.input for part in questions}
    if missing := {id for id, input in inputs.items() if input is None}:
        for later in session.log.entries(after=entry.seq, upto=min(entry.seq + LOOKAHEAD, session.head.seq)):
            if later.kind in BEGIN_KINDS and (action := text_of(later.body.get("action", ""))) in missing:
                inputs[action] = fetch_value(session, later, later.body.get("input"))
    counts = Counter(f"{part.name} {call_gist(inputs[part.id])}".strip() for part in questions)
    calls = [call + (f" {glyph('times')}{times}" if times > 1 else "") for call, times in counts.items()]
    return f"→ {name_some(calls, MAX_CALLS)}" if calls else ""
