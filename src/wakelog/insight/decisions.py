"""Decisions: sentences in which the agent commits to one way, ranked by how much speaks for each.

What speaks for a sentence: it commits to a change, refuses one, compares or prefers, gives a reason, and an effect
follows it. What speaks against: it announces a routine step (look, run the tests, commit), repeats what was asked, sums
up at the end, says little by itself, or was only thought; and more so what was thought without a reason. The best
sentence of each text is a candidate; candidates that stand for one choice (thinking, text and call of it, or the same
words again) are merged, and the best one is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight import cues
from wakelog.insight.acts import Act, act_of, is_refused
from wakelog.insight.blocks import Block, Did, Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.sentences import Sentence, content_words, is_english, sentences_of

LONG: Final = 1000
LAST_ONES: Final = 6
"""The sentences at the end of a long text, where what was weighed comes to a decision."""
FEW_WORDS: Final = 1
"""A sentence with no more words of its own ("I need to fix that.") tells a reader little."""
SAID_BEFORE: Final = 0.5
"""So much of a refusal said before makes it the same one."""
LEAST_SCORE: Final = 1
"""Below this it is not kept at all."""

_PLAIN: Final = re.compile(r"[`*_]")


class Candidate(msgspec.Struct):
    """A sentence that may be a decision, and what it leads to."""

    place: int
    """Its text's place in the turn."""
    said: SpokenText
    sentence: Sentence
    signs: frozenset[str]
    reason: Sentence | None
    effect: Did | None
    batch: int
    words: frozenset[str]

    @property
    def score(self) -> int:
        return sum(WEIGHTS.get(sign, 0) for sign in self.signs)


WEIGHTS: Final = {
    "commits": 1,
    "did": 2,
    "fix": 3,
    "strong": 1,
    "proposes": 3,
    "refuses": 4,
    "grants": 4,
    "refuses in passing": -3,
    "again": -4,
    "keeps": 2,
    "undoes": 2,
    "obliged": -1,
    "concludes": 1,
    "second": -3,
    "chosen test": 2,
    "reason": 2,
    "reason beside": 1,
    "diagnosis": 2,
    "effect": 2,
    "effect later": 1,
    "long text": 1,
    "thought": -3,
    "mused": -2,
    "states": -2,
    "announces": -1,
    "vague": -4,
    "routine": -3,
    "cleanup": -3,
    "repeats": -2,
    "testing": -3,
    "doubts": -2,
    "summary": -1,
    "recap": -2,
}
"""What each sign adds to a score."""


def find_decisions(turn: TurnBlocks, before: str = "") -> list[Finding]:
    """The decisions of a turn, the surest first. `before` is what the agent said last before it."""
    kept: list[Candidate] = []
    found = (_again(c, before) for c in candidates_in(turn.blocks))
    for candidate in sorted(found, key=lambda c: (-c.score, c.place)):
        if candidate.score >= LEAST_SCORE and not any(_is_same(candidate, other) for other in kept):
            kept.append(candidate)
    return [_finding(c) for c in kept]


def _again(found: Candidate, before: str) -> Candidate:
    """Marks a refusal that only repeats the one before."""
    said = (content_words(s.text) for s in sentences_of(before) if cues.REFUSES.search(s.text))
    if "refuses" in found.signs and any(len(found.words & w) >= SAID_BEFORE * len(found.words) for w in said):
        return msgspec.structs.replace(found, signs=found.signs | {"again"})
    return found


def _finding(found: Candidate) -> Finding:
    said, reason = found.said, found.reason
    return Finding(
        "decision",
        TextSpan(said.seq, said.block, found.sentence.start, found.sentence.end),
        reason=TextSpan(said.seq, said.block, reason.start, reason.end) if reason else None,
        score=found.score,
        calls=(found.effect.seq,) if found.effect else (),
    )


def _is_same(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates stand for one choice."""
    apart = abs(one.place - other.place)
    if one.said is other.said:
        return abs(one.sentence.start - other.sentence.start) < 600 or _likeness(one, other) > 0.3
    if apart <= 2 and one.batch == other.batch:
        return True
    if one.effect is not None and one.effect is other.effect and apart <= 6:
        return apart <= 2 or _likeness(one, other) > 0.12
    return _likeness(one, other) > (0.3 if apart <= 12 else 0.45)


def _likeness(one: Candidate, other: Candidate) -> float:
    return len(one.words & other.words) / (min(len(one.words), len(other.words)) or 1)


def candidates_in(blocks: Sequence[Block]) -> Iterator[Candidate]:
    """The best sentence of each text, and of a long text the best two."""
    acts: dict[int, Act] = {n: act_of(b) for n, b in enumerate(blocks) if isinstance(b, Did)}
    last_call = max(acts, default=-1)
    batch = 0
    for place, said in enumerate(blocks):
        if isinstance(said, Did):
            batch += 1
        elif said.who != "user" and is_english(said.text):
            found = list(_of_text(blocks, acts, place, said, batch, is_last=place > last_call))
            found.sort(key=lambda c: (-c.score, c.sentence.start))
            yield from found[:1]
            for other in found[1:2] if len(said.text) > LONG else ():
                yield msgspec.structs.replace(other, signs=other.signs | {"second"})


def _of_text(
    blocks: Sequence[Block],
    acts: dict[int, Act],
    place: int,
    said: SpokenText,
    batch: int,
    *,
    is_last: bool,
) -> Iterator[Candidate]:
    sentences = sentences_of(said.text)
    after, steps = _effect_after(blocks, acts, place)
    before = _effect_before(blocks, acts, place)
    around: set[str] = set()
    if after is not None:
        around.add("effect" if steps <= 3 else "effect later")
    if any(cues.DIAGNOSIS.search(s.text) for s in sentences):
        around.add("diagnosis")
    if len(said.text) > LONG:
        around.add("long text")
    if said.who == "thinking":
        around.add("thought")
    if is_last and sentences and cues.SUMMARY.match(_PLAIN.sub("", sentences[0].text)):
        around.add("summary")
    for n, sentence in enumerate(sentences):
        signs = set() if sentence.is_heading else signs_of(_PLAIN.sub("", sentence.text))
        if not signs & {"commits", "did", "fix", "strong", "proposes", "refuses", "grants"}:
            continue
        near = _reason(sentences, n)
        if near is not None:
            signs.add("reason" if near is sentence else "reason beside")
            if near is sentence and "testing" in signs:
                signs.add("chosen test")
        if "refuses" in signs and len(said.text) > LONG:
            signs.add("refuses in passing")
        if after is not None and len(said.text) > LONG and n >= len(sentences) - LAST_ONES:
            signs.add("concludes")
        # In a long text the agent thinks aloud: what stands beside a choice there is as likely an aside as its reason.
        reason = _quotable(sentences, n) if len(said.text) <= LONG else None
        effect = after if steps <= 8 else None
        if "did" in signs and "commits" not in signs and before is not None:
            effect = before
            signs.add("effect")
        if is_last and near is None and "did" in signs:
            signs.add("recap")
        if said.who == "thinking" and "reason" not in signs:
            signs.add("mused")
        words = content_words(sentence.text)
        if len(words) <= FEW_WORDS:
            signs.add("vague")
        yield Candidate(place, said, sentence, frozenset(signs | around), reason, effect, batch, words)


def signs_of(text: str) -> set[str]:
    """What a sentence itself shows. Questions, offers and scraps show nothing."""
    if (
        text.count(" ") < 4
        or text[0].islower()
        or text[0] in '"“'
        or cues.QUESTION.search(text)
        or cues.OFFERS.search(text)
        or cues.RETELLS.match(text)
    ):
        return set()
    signs = {name for name, pattern in _SIGNS if pattern.search(text)}
    if "keeps" in signs and not cues.STATED.search(text):
        signs.discard("keeps")
    if "grants" in signs and ("refuses" in signs or not cues.STATED.search(text)):
        signs.discard("grants")
    if not signs & {"commits", "did", "fix", "proposes", "refuses", "grants"}:
        signs.add("states")
    return signs


_SIGNS: Final = (
    ("commits", cues.COMMITS),
    ("did", cues.DID),
    ("fix", cues.FIX),
    ("strong", cues.STRONG),
    ("proposes", cues.PROPOSES),
    ("refuses", cues.REFUSES),
    ("grants", cues.GRANTS),
    ("routine", cues.ROUTINE),
    ("cleanup", cues.CLEANUP),
    ("repeats", cues.REPEATS),
    ("testing", cues.TESTING),
    ("doubts", cues.DOUBTS),
    ("announces", cues.ANNOUNCES),
    ("obliged", cues.OBLIGED),
    ("keeps", cues.KEEPS),
    ("undoes", cues.UNDOES),
)


def _reason(sentences: Sequence[Sentence], n: int) -> Sentence | None:
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


def _quotable(sentences: Sequence[Sentence], n: int) -> Sentence | None:
    """The sentence that states the reason, when one surely does: none is better than a wrong one."""
    if _states_reason(sentences[n].text):
        return sentences[n]
    for other in (n - 1, n + 1):
        if 0 <= other < len(sentences) and _is_reason_beside(sentences[other].text):
            return sentences[other]
    return None


def _states_reason(text: str) -> bool:
    return bool(cues.STATED.search(text)) and not cues.UNSURE.match(_PLAIN.sub("", text)) and not text.endswith("?")


def _is_reason_beside(text: str) -> bool:
    return _states_reason(text) and not (cues.ROUTINE.search(text) or cues.ANNOUNCES.match(text))


def _gives_reason(text: str) -> bool:
    return bool(cues.REASON.search(text)) and not cues.ROUTINE.search(text)


def _effect_after(blocks: Sequence[Block], acts: dict[int, Act], place: int) -> tuple[Did | None, int]:
    """The next call that changes something, and how many calls stand before it."""
    steps = 0
    for n in range(place + 1, len(blocks)):
        block = blocks[n]
        if not isinstance(block, Did):
            continue
        if acts[n] == "write" or (acts[n] == "run" and not is_refused(block)):
            return block, steps
        if acts[n] in ("check", "record"):
            break
        steps += 1
    return None, 0


def _effect_before(blocks: Sequence[Block], acts: dict[int, Act], place: int) -> Did | None:
    for n in range(place - 1, max(place - 6, -1), -1):
        block = blocks[n]
        if isinstance(block, Did) and acts[n] in ("write", "run"):
            return block
    return None
