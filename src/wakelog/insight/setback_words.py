"""The words after a setback: what they say about the try, which sentence to quote, and why the try failed."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final

from wakelog.insight import cues, failure_cues
from wakelog.insight.blocks import SpokenText, TextSpan
from wakelog.insight.sentences import Sentence, content_words
from wakelog.insight.signs import MARKUP

CAUSE_WITHIN: Final = 3
"""How many sentences after a failure may state its cause."""
_TITLE: Final = re.compile(r"\*\*[^*]+\*\*[.:]?")
"""A title without a statement."""
_CUES: Final = (
    ("new way", failure_cues.NEW_WAY),
    ("other way", failure_cues.OTHER_WAY),
    ("compares", failure_cues.COMPARES),
    ("undoes", failure_cues.UNDOES),
    ("commits", cues.COMMITS),
    ("commits", cues.FIX),
    ("gives up", failure_cues.FAILED),
    ("gives up", failure_cues.REFUTED),
    ("gives up", failure_cues.NO_RESULT),
    ("gives up", failure_cues.STOPPED),
)
"""In the order in which a sentence is preferred as the quote."""
Told = tuple[SpokenText, Sentence]


def signs_of_words(told: Sequence[Told]) -> tuple[set[str], Told | None]:
    """The signs of what was said since the try, and the sentence to quote: the first with the best cue in the last text
    that has one."""
    names = [_cues_in(sentence.text) for _, sentence in told]
    signs = {name for found in names for name in found}
    quote: Told | None = None
    for name, _ in _CUES:
        found = [t for t, cued in zip(told, names, strict=True) if name in cued]
        if found and quote is None:
            quote = next(t for t in found if t[0] is found[-1][0])
    if "compares" in signs:
        signs = signs - {"compares"} | {"other way"}
    if "gives up" in signs and quote is not None:
        texts = [spoken for (spoken, _), cued in zip(told, names, strict=True) if "gives up" in cued]
        if not any(spoken is quote[0] for spoken in texts):
            signs = signs - {"gives up"} | {"gave up before"}
    if any(failure_cues.WANTED.search(sentence.text) for _, sentence in told[:CAUSE_WITHIN]):
        signs.add("wanted")
    if quote and (failure_cues.REPAIR.search(quote[1].text) or len(content_words(quote[1].text)) < 2):
        signs.add("repairs")
    return signs, quote


@functools.lru_cache(maxsize=512)
def _cues_in(text: str) -> frozenset[str]:
    """The names of the cues in a sentence. It is read again for each call that may answer the same setback."""
    text = MARKUP.sub("", text)
    return frozenset(name for name, cue in _CUES if cue.search(text) and not is_idle(name, text))


def is_idle(name: str, text: str) -> bool:
    """Whether the words are not what the cue takes them for: a routine step, a comparison in the code, a condition."""
    if name == "gives up":
        return bool(failure_cues.NOT_GIVEN_UP.search(text)) or text.endswith("?")
    if name == "undoes":
        return bool(failure_cues.ONLY_TRIES.search(text))
    if name == "commits":
        idle = (cues.ROUTINE, cues.CLEANUP, cues.TESTING, cues.SET_UP, cues.DOUBTS)
        return any(cue.search(text) for cue in idle) or text.startswith("Or ") or text.endswith("?") or " also " in text
    return name == "compares" and not any(cue.search(text) for cue in (cues.COMMITS, cues.FIX, failure_cues.DOING))


def cause_in(told: Sequence[Told], quote: Told | None) -> TextSpan | None:
    """Why the try failed, in the agent's first words about it: not after what it does then, and no announcement. A
    sentence that explains is better than one that only says that something failed."""
    results: list[tuple[bool, TextSpan]] = []
    for spoken, sentence in told[:CAUSE_WITHIN]:
        is_title = sentence.is_heading or bool(_TITLE.fullmatch(sentence.text))
        is_quote = quote is not None and quote[1] == sentence
        is_plan = not is_quote and bool(cues.COMMITS.search(sentence.text) or cues.ROUTINE.search(sentence.text))
        explains = bool(cues.CAUSE.search(sentence.text) or failure_cues.EXPLAINS.search(sentence.text))
        is_cause = explains or bool(not is_quote and failure_cues.CAUSE.search(sentence.text))
        is_idle = sentence.text.endswith("?") or failure_cues.COURTESY.match(sentence.text)
        if is_cause and not is_title and not is_plan and not is_idle:
            results.append((not explains, spoken.span(sentence.start, sentence.end)))
        if is_quote:
            break
    return min(results, key=lambda f: f[0])[1] if results else None
