"""Pending work: open items of the last todo list of a turn, and next steps that the agent names at its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from wakelog.insight.acts import act_of
from wakelog.insight.blocks import Did, Finding, TextSpan, TurnBlocks, Words
from wakelog.insight.sentences import sentences_of

_NEXT: Final = re.compile(
    r"\bnext steps?\b|\bremaining (?:work|steps?|tasks?|items?)\b|\bstill (?:need|needs|have|has|left|remains?) to\b"
    r"|\bstill to do\b|\bleft to do\b|\bnot yet (?:done|implemented|started)\b"
    r"|\bTODO:|\bfollow[- ]ups?:|\bwhat(?:'s| is) left\b|\byou(?:'ll| will) (?:need|have) to\b|\bI(?:'ll"
    r"| will) (?:come back|follow up)\b",
    re.IGNORECASE,
)


def find_pending(turn: TurnBlocks) -> Iterator[Finding]:
    """At most one todo list and one sentence."""
    plans = [b for b in turn.blocks if isinstance(b, Did) and act_of(b) == "plan" and not b.has_failed]
    if plans and open_items(plans[-1].input):
        yield Finding("pending", TextSpan(plans[-1].seq, 0, 0, 0), calls=(plans[-1].seq,), score=2)
    said = [b for b in turn.blocks if isinstance(b, Words) and b.who == "agent"]
    if not said or not isinstance(turn.blocks[-1], Words):
        return
    for sentence in sentences_of(said[-1].text):
        if _NEXT.search(sentence.text):
            yield Finding("pending", TextSpan(said[-1].seq, said[-1].block, sentence.start, sentence.end), score=2)
            return


def open_items(given: Any) -> list[str]:
    """The items of a todo list that are not done, as its call gave them."""
    items = next((v for v in given.values() if isinstance(v, list)), []) if isinstance(given, dict) else []
    found = []
    for item in items:
        if isinstance(item, dict) and str(item.get("status", "")).lower() in ("pending", "in_progress", "todo", "open"):
            text = item.get("content") or item.get("step") or item.get("title") or item.get("description")
            found += [text] if isinstance(text, str) else []
    return found
