"""Signs of a decision: what a sentence and its place say for and against it, and how much each counts.

The table of weights is the whole model: a score is the sum of the weights of the signs. It was set by hand and adjusted
on labelled transcripts, in whole numbers. `cues.py` has the phrases.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from wakelog.insight import cues, summary_cues
from wakelog.insight.sentences import Sentence

WEIGHTS: Final = {
    "commits": 1,
    "did": 2,
    "fix": 3,
    "strong": 1,
    "proposes": 3,
    "explains": 2,
    "describes": 2,
    "states": -4,
    "listed choice": 3,
    "grounds": 0,
    "changes": 1,
    "directs": 3,
    "repairs": 3,
    "refuses": 4,
    "grants": 4,
    "refuses in passing": -3,
    "again": -4,
    "keeps": 2,
    "leaves": 3,
    "told": -3,
    "verdict": 2,
    "labelled": 2,
    "also": -2,
    "also in brief": -1,
    "asked": -1,
    "short text": -2,
    "opens": 1,
    "in choices": 2,
    "in list": -1,
    "undoes": 2,
    "obliged": -1,
    "concludes": 1,
    "chosen test": 2,
    "reason": 2,
    "reason beside": 1,
    "diagnosis": 2,
    "effect": 2,
    "effect later": 1,
    "long text": 1,
    "quiet": 1,
    "talkative": -1,
    "thought": -4,
    "thought alone": -3,
    "mused": -2,
    "announces": -1,
    "vague": -4,
    "routine": -3,
    "cleanup": -3,
    "repeats": -2,
    "testing": -3,
    "set up": -4,
    "seeks": -4,
    "doubts": -2,
    "summary": -1,
    "recap": -2,
    "narrates": -3,
    "idle": -3,
}
"""What each sign adds to a score."""

CHOOSES: Final = frozenset(
    {
        "listed choice",
        "grounds",
        "changes",
        "commits",
        "did",
        "fix",
        "proposes",
        "refuses",
        "grants",
        "explains",
        "describes",
        "states",
        "directs",
        "leaves",
        "verdict",
        "labelled",
    }
)
"""A candidate needs at least one of these."""
PREFERS: Final = (CHOOSES - {"commits", "did", "grounds"}) | {"strong", "keeps", "undoes"}
"""In a turn with effects, a sentence without an effect needs one of these; otherwise it is only a thought."""
STEPS: Final = frozenset({"announces", "routine", "set up", "cleanup", "refuses", "again"})
"""Steps on the way, and refusals: an agent that says little says these too."""
DIAGNOSIS_WITHIN: Final = 5
"""How many sentences a diagnosis may be away from the decision."""
MARKUP: Final = re.compile(r"[`*_]")
_CHOICES: Final = (
    ("commits", cues.COMMITS),
    ("did", cues.DID),
    ("fix", cues.FIX),
    ("proposes", cues.PROPOSES),
    ("refuses", cues.REFUSES),
    ("grants", cues.GRANTS),
    ("leaves", summary_cues.LEAVES),
    ("verdict", summary_cues.VERDICT),
    ("labelled", summary_cues.LABELLED),
)
_MARKS: Final = (
    ("strong", cues.STRONG),
    ("routine", cues.ROUTINE),
    ("cleanup", cues.CLEANUP),
    ("repeats", cues.REPEATS),
    ("testing", cues.TESTING),
    ("set up", cues.SET_UP),
    ("seeks", cues.SEEKS),
    ("doubts", cues.DOUBTS),
    ("announces", cues.ANNOUNCES),
    ("obliged", cues.OBLIGED),
    ("keeps", cues.KEEPS),
    ("told", summary_cues.TOLD),
    ("undoes", cues.UNDOES),
)
"""Signs that make no candidate, but say what it is worth."""


def may_choose(text: str) -> bool:
    """Whether a sentence can be a choice at all. Questions, offers, lead-ins and fragments are none."""
    return not (
        text.count(" ") < 4
        or text[0] in '"“'
        or cues.QUESTION.search(text)
        or cues.OFFERS.search(text)
        or cues.RETELLS.match(text)
        or cues.LEAD_IN.search(text)
    )


def choices_in(text: str, *, is_service: bool) -> set[str]:
    """The signs that make a sentence a candidate."""
    signs = {name for name, pattern in _CHOICES if pattern.search(text)}
    if is_service and cues.STATED.search(text):
        signs |= {"refuses"} if cues.BARRED.search(text) else {"grants"} if cues.ALLOWED.search(text) else set()
    if "grants" in signs and ("refuses" in signs or not cues.STATED.search(text)):
        signs.discard("grants")
    return signs


def marks_of(text: str) -> set[str]:
    """The other signs in the words of a candidate."""
    signs = {name for name, pattern in _MARKS if pattern.search(text)}
    if "keeps" in signs and not cues.STATED.search(text):
        signs.discard("keeps")
    return signs


def signs_at_end(text: str, *, has_writes: bool) -> set[str]:
    """Signs that count only in the last text of a turn: it explains what was built, or says what to do."""
    if cues.QUESTION.search(text) or cues.OFFERS.search(text) or text.count(" ") < 4 or text[0] in '"“':
        return set()
    if cues.STATED.search(text) and cues.STRONG.search(text):
        return {"explains", "strong"}
    if has_writes and cues.STATED.search(text) and cues.DONE.match(text):
        return {"explains"}
    if summary_cues.DESCRIBES.search(text):
        return {"describes"}
    if not has_writes and cues.DIRECTS.match(text):
        return {"directs"}
    return {"states"} if cues.STATED.search(text) else set()


def signs_of_section(sentence: Sentence) -> set[str]:
    """What the heading above a sentence says about it."""
    if summary_cues.CHOICE_TITLE.search(sentence.title):
        return {"in choices"}
    return {"in list"} if summary_cues.LIST_TITLE.search(sentence.title) else set()


def find_reason(sentences: Sequence[Sentence], n: int) -> Sentence | None:
    """The sentence that says why: this one, the one before or the one after."""
    if cues.REASON.search(sentences[n].text):
        return sentences[n]
    for other in (n - 1, n + 1):
        if 0 <= other < len(sentences) and _gives_reason(sentences[other].text):
            return sentences[other]
    for other in (n - 1, n - 2):
        if 0 <= other < len(sentences) and cues.DIAGNOSIS.search(sentences[other].text):
            return sentences[other]
    return None


def find_quotable_reason(sentences: Sequence[Sentence], n: int) -> Sentence | None:
    """The sentence that certainly states the reason; no reason is better than a wrong one. A cause in the decision's
    own words is nearly always the reason. A sentence beside it must name a cause too: one that only tells what is the
    case is as likely about something else."""
    own = sentences[n].text
    if _states_reason(own):
        is_aim = not cues.STATED.search(cues.AIM.sub(" ", own))
        if cues.CAUSE.search(own) or not is_aim:
            return sentences[n]
    for other in (n - 1, n + 1):
        if 0 <= other < len(sentences) and _is_reason_beside(sentences[other].text):
            return sentences[other]
    return None


def _states_reason(text: str) -> bool:
    plain = MARKUP.sub("", text)
    is_stated = bool(cues.STATED.search(text)) and not (cues.UNSURE.match(plain) or cues.LEAD_IN.search(plain))
    is_open = text.endswith(("?", "because:")) or bool(cues.CONCLUDES.match(plain) or cues.GUESSES.search(plain))
    return is_stated and not is_open


def _is_reason_beside(text: str) -> bool:
    is_step = bool(cues.ROUTINE.search(text) or cues.ANNOUNCES.match(text))
    is_cause = bool(cues.CAUSE.search(text)) and _states_reason(text)
    is_named = bool(cues.NAMED_CAUSE.search(text)) and not (text.endswith((":", "?")) or cues.GUESSES.search(text))
    return (is_cause or is_named) and not is_step


def _gives_reason(text: str) -> bool:
    return bool(cues.REASON.search(text)) and not cues.ROUTINE.search(text)
