"""Finds pending work: open items of a turn's last todo list, and next steps that the agent names at the end."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, Final

from wakelog.insight.acts import act_of
from wakelog.insight.blocks import Did, Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.sentences import sentences_of

_NEXT: Final = re.compile(
    r"^\W*(?:(?:the|my|your|our|suggested|recommended|possible|immediate) )*next steps?\b"
    r"|\bnext steps? (?:is|are|would|could|should|remain)|\bnext steps?:"
    r"|\bremaining (?:work|steps?|tasks?|items?)\b"
    r"|(?<!would )(?<!'d )\bstill (?:need|needs|have|has|left|remains?) to\b"
    r"|\bstill (?:to do|open)\b|\bleft to do\b|\bnot yet (?:done|implemented|started)\b"
    r"|\bTODO:|\bfollow[- ]ups?:|\bwhat(?:'s| is) left\b|\byou(?:'ll| will) (?:need|have) to\b|\bI(?:'ll"
    r"| will) (?:come back|follow up)\b",
    re.IGNORECASE,
)

_TITLE: Final = re.compile(
    r"\W*(?:[\w'’-]+[ \t]+){0,6}[\w'’-]+\W*:\W*|\*\*[^*]{1,60}\*\*\W*|(?:\w+ ){0,2}next steps?", re.IGNORECASE
)
_UNCHECKED: Final = re.compile(r"^\s*(?:[-*] )?\[[ ~>-]\] +(.+?)\s*$", re.MULTILINE)
"""A line of a checklist that is not ticked."""
_PROPOSES: Final = re.compile(
    r"\b(?:(?:would you like|do you want|want) me to|(?:shall|should) (?:i|we)|(?:do|may) i\b[^?]*permission"
    r"|would you like (?:to|guidance|help))\b[^?]*(?:\?|:\s*$)",
    re.IGNORECASE,
)
"""The steps are a proposal, which the user takes up or not."""
ASKED_IN: Final = 4
"""How many sentences at the end may propose something."""
QUOTED_MAX: Final = 3
"""How many sentences under a title are quoted."""


def find_pending(turn: TurnBlocks) -> Iterator[Finding]:
    """At most one todo list and one sentence."""
    plans = [b for b in turn.blocks if isinstance(b, Did) and act_of(b) == "plan" and not b.has_failed]
    if plans and open_items(plans[-1].input):
        yield Finding("pending", TextSpan(plans[-1].seq, 0, 0, 0), calls=(plans[-1].seq,), score=2)
    texts = [b for b in turn.blocks if isinstance(b, SpokenText) and b.who == "agent"]
    if not texts or not isinstance(turn.blocks[-1], SpokenText):
        return
    sentences = sentences_of(texts[-1].text)
    if any(_PROPOSES.search(sentence.text) for sentence in sentences[-ASKED_IN:]):
        return
    for number, sentence in enumerate(sentences):
        if not _NEXT.search(sentence.text):
            continue
        start, end = sentence.start, sentence.end
        if sentence.is_heading or _TITLE.fullmatch(sentence.text):
            # Quote the sentences under a title, not the title.
            below = list(itertools.takewhile(lambda s: not s.is_heading, sentences[number + 1 :]))[:QUOTED_MAX]
            if not below:
                continue
            start, end = below[0].start, below[-1].end
        yield Finding("pending", texts[-1].span(start, end), score=2)
        return


def open_items(value: Any) -> list[str]:
    """The items that are not done, from the input of a todo list call."""
    given = list(value.values()) if isinstance(value, dict) else []
    items = next((v for v in given if isinstance(v, list)), [])
    results = [line for text in given if isinstance(text, str) and not items for line in _UNCHECKED.findall(text)]
    for item in items:
        if isinstance(item, dict) and str(item.get("status", "")).lower() in ("pending", "in_progress", "todo", "open"):
            text = item.get("content") or item.get("step") or item.get("title") or item.get("description")
            results += [text] if isinstance(text, str) else []
    return results
