"""Candidates: the sentences of a turn that may be decisions, each with its signs, its reason and its effect.

The best sentence of each text is a candidate; of a short one the best two, and of the last one, in which an agent sums
up, the best few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight import cues, summary_cues
from wakelog.insight.acts import Act, act_of, is_refused, is_scratch
from wakelog.insight.blocks import Block, Did, SpokenText, TextSpan
from wakelog.insight.sentences import Sentence, content_words, is_english, sentences_of, word_set
from wakelog.insight.signs import (
    CHOOSES,
    DIAGNOSIS_WITHIN,
    MARKUP,
    PREFERS,
    STEPS,
    WEIGHTS,
    choices_in,
    find_quotable_reason,
    find_reason,
    marks_of,
    may_choose,
    signs_at_end,
    signs_of_section,
)
from wakelog.model.late_value import LateValue

SHORT_TEXT: Final = 150
LONG_TEXT: Final = 1000
SUMMARY_TEXT: Final = 4000
"""Lengths of texts in characters. In a long one an agent thinks aloud, but at the end of a turn it sums up."""
CONCLUSION: Final = 6
"""How many sentences at the end of a long text count as its conclusion."""
VAGUE_WORDS: Final = 1
"""A sentence with at most this many content words ("I need to fix that.") is vague."""
ASKED_SHARE: Final = 0.6
"""A sentence with this share of the user's words only says what was asked for."""
QUIET: Final = 6
TALKATIVE: Final = 25
"""How many texts of the agent make a turn talkative, and below how many it is quiet. An agent that says little says
what matters."""
STEM: Final = 5
"""How many letters of a word are compared: "cancel" and "cancellation" are the same."""

_POLITE: Final = word_set("unfortunately understand sorry apologize however therefore case currently please note")
_CREATES: Final = ("write", "create")
_ONLY_CODE: Final = re.compile(r"\W*`[^`]*`\W*")


class Candidate(msgspec.Struct):
    """A sentence that may be a decision, and its effect."""

    place: int
    """The position of its text in the turn."""
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


def candidates_in(
    blocks: Sequence[Block], *, is_service: bool = False, changes: frozenset[TextSpan] = frozenset()
) -> Iterator[Candidate]:
    """The candidates of a turn, in order. `changes` are the sentences that change the approach."""
    turn = _Turn(blocks, is_service, changes)
    for place, said in enumerate(blocks):
        if isinstance(said, SpokenText) and said.who != "user" and is_english(said.text) and not _is_digest(said):
            text = _Text(turn, place, said)
            candidates = sorted(text.candidates(), key=lambda c: (-c.score, c.sentence.start))
            yield from candidates[: text.most]


def _is_digest(spoken: SpokenText) -> bool:
    """Whether a harness asked for this summary of the whole conversation, to go on with less text."""
    return spoken.text.lstrip().startswith(("<analysis>", "<summary>"))


def stems_of(text: str) -> frozenset[str]:
    """The first letters of each word of a text that matters."""
    return frozenset(word[:STEM] for word in content_words(cues.REFUSES.sub(" ", text)) - _POLITE)


class _Turn:
    """What is known about the turn as a whole."""

    def __init__(self, blocks: Sequence[Block], is_service: bool, changes: frozenset[TextSpan]) -> None:
        self.blocks = blocks
        self.changes = changes
        self.is_service = is_service
        self.acts: dict[int, Act] = {n: act_of(b) for n, b in enumerate(blocks) if isinstance(b, Did)}
        self.last_call = max(self.acts, default=-1)
        writes = [n for n, act in self.acts.items() if act == "write"]
        self.first_write = min(writes, default=len(blocks))
        self.has_writes = bool(writes)
        self.texts = sum(isinstance(b, SpokenText) and b.who == "agent" for b in blocks)
        said = [b.text for b in blocks if isinstance(b, SpokenText) and b.who == "user"]
        self.asked = frozenset() if is_service else frozenset(stem for text in said for stem in stems_of(text))


class _Text:
    """One text of a turn, with the signs that all its sentences have."""

    def __init__(self, turn: _Turn, place: int, spoken: SpokenText) -> None:
        self.turn, self.place, self.said = turn, place, spoken
        self.sentences = sentences_of(spoken.text)
        self.is_long = len(spoken.text) > LONG_TEXT
        self.is_last = place > turn.last_call
        self.sums_up = self.is_last and spoken.who == "agent" and not turn.is_service
        self.after, self.steps = _effect_after(turn.blocks, turn.acts, place)
        self.before = _effect_before(turn.blocks, turn.acts, place)
        self.batch = sum(n < place for n in turn.acts)
        self.signs = frozenset(self._signs())
        self.repairs = self._announces_repair()

    @LateValue
    def _diagnoses(self) -> list[bool]:
        """For each sentence, whether it names a fault."""
        return [cues.DIAGNOSIS.search(s.text) is not None for s in self.sentences]

    @property
    def most(self) -> int:
        """How many decisions it may tell."""
        if self.sums_up:
            return 4 if len(self.said.text) < SUMMARY_TEXT else 6
        return 2 if self.said.who == "agent" and not (self.is_long or self.turn.is_service) else 1

    def _announces_repair(self) -> bool:
        """Whether it ends with hardly more than "let me fix this" before an edit: then the diagnosis says what is
        done."""
        if self.after is None or self.steps > 1 or self.said.who != "agent" or self.is_long or self.turn.is_service:
            return False
        last = (s.text for s in self.sentences[-2:])
        return act_of(self.after) == "write" and any(
            t.count(" ") < 5 and summary_cues.SHORT_FIX.search(t) for t in last
        )

    def _signs(self) -> Iterator[str]:
        if self.after is not None:
            yield "effect" if self.steps <= 3 else "effect later"
            if self.place < self.turn.first_write and act_of(self.after) == "write":
                yield "opens"
        if self.turn.texts >= TALKATIVE:
            yield "talkative"
        elif self.turn.texts < QUIET and self.said.who == "agent" and not self.turn.is_service:
            yield "quiet"
        if self.is_long:
            yield "long text"
        elif len(self.said.text) < SHORT_TEXT and not self.is_last:
            yield "short text"
        if self.said.who == "thinking":
            yield "thought" if self.is_long or _is_said_too(self.turn.blocks, self.place) else "thought alone"
        if self.is_last and self.sentences and cues.SUMMARY.match(MARKUP.sub("", self.sentences[0].text)):
            yield "summary"

    def candidates(self) -> Iterator[Candidate]:
        for n, sentence in enumerate(self.sentences):
            signs = self._own_signs(sentence)
            if not signs & CHOOSES:
                continue
            words = content_words(sentence.text)
            near = find_reason(self.sentences, n)
            effect = self.after if self.steps <= 8 else None
            if "did" in signs and "commits" not in signs and self.before is not None:
                effect = self.before
                signs.add("effect")
            self._mark_surroundings(signs, n, near)
            if signs & CHOOSES == {"did"} and ((self.before is None and "reason" not in signs) or "cleanup" in signs):
                continue
            self._mark_effect(signs, effect)
            self._mark_words(signs, sentence, words, is_reason=near is sentence)
            # In a long text the agent thinks aloud: the sentence next to a choice is as likely an aside as its reason.
            reason = None if self.is_long else find_quotable_reason(self.sentences, n)
            signs = self._settle(signs | self.signs)
            yield Candidate(self.place, self.said, sentence, frozenset(signs), reason, effect, self.batch, words)

    def _own_signs(self, sentence: Sentence) -> set[str]:
        """The signs of the words; none if they choose nothing. A fragment may still be an item of a summary."""
        plain = MARKUP.sub("", sentence.text)
        is_fragment = sentence.is_heading or sentence.text[0].islower() or bool(_ONLY_CODE.fullmatch(sentence.text))
        is_sentence = not is_fragment and may_choose(plain)
        signs = choices_in(plain, is_service=self.turn.is_service) if is_sentence else set()
        if self.sums_up:
            signs |= signs_at_end(plain, has_writes=self.turn.has_writes)
            if len(signs) > 1:
                signs.discard("states")
        if sentence.title and self.said.who == "agent" and self._lists_choice(sentence, plain):
            signs.add("listed choice")
        if self.repairs and not (is_fragment or signs or plain.count(" ") < 4) and cues.DIAGNOSIS.search(plain):
            signs.add("grounds")
        if self.said.who == "agent" and self.said.span(sentence.start, sentence.end) in self.turn.changes:
            signs.add("changes")
        return signs | marks_of(plain) if signs and is_sentence else signs

    def _lists_choice(self, sentence: Sentence, plain: str) -> bool:
        is_statement = not (sentence.is_heading or cues.QUESTION.search(plain) or cues.OFFERS.search(plain))
        return is_statement and bool(summary_cues.DECISION_TITLE.match(sentence.title))

    def _mark_surroundings(self, signs: set[str], n: int, near: Sentence | None) -> None:
        """Signs of the sentences around: heading, reason, diagnosis, how far it is from the end."""
        sentence = self.sentences[n]
        signs |= signs_of_section(sentence)
        if any(self._diagnoses[max(n - DIAGNOSIS_WITHIN, 0) : n + DIAGNOSIS_WITHIN + 1]):
            signs.add("diagnosis")
        if near is not None:
            signs.add("reason" if near is sentence else "reason beside")
        if near is sentence and "testing" in signs:
            signs.add("chosen test")
        if self.after is not None and self.is_long and n >= len(self.sentences) - CONCLUSION:
            signs.add("concludes")
        if "refuses" in signs and self.is_long:
            signs.add("refuses in passing")
        if self.is_last and near is None and "did" in signs:
            signs.add("recap")
        if "did" in signs and "commits" not in signs and self.is_long and not self.is_last:
            signs.add("narrates")
        if "thought" in self.signs and "reason" not in signs:
            signs.add("mused")

    def _mark_effect(self, signs: set[str], effect: Did | None) -> None:
        """Signs of what was done then."""
        if effect is None and self.turn.has_writes and not signs & PREFERS:
            signs.add("idle")
        is_at_work = effect is not None and effect is self.after and self.steps <= 1 and act_of(effect) == "write"
        is_said = self.said.who == "agent" and not self.is_long
        if is_at_work and is_said and "diagnosis" in signs and "routine" not in signs:
            signs.add("repairs")
        if effect is not None and effect.tool.lower().startswith(_CREATES):
            signs.discard("set up")  # the new file is part of the work: helpers are scratch files

    def _mark_words(self, signs: set[str], sentence: Sentence, words: frozenset[str], *, is_reason: bool) -> None:
        if "strong" in signs and is_reason:
            signs.discard("routine")
        if "cleanup" in signs:
            signs.discard("leaves")  # a slip that was left behind
        if len(words) <= VAGUE_WORDS:
            signs.add("vague")
        stems = stems_of(sentence.text)
        if stems and len(stems & self.turn.asked) >= ASKED_SHARE * len(stems):
            signs.add("asked")

    def _settle(self, signs: set[str]) -> set[str]:
        """Removes signs that another one explains. The first change of a turn is a choice, also with "now"; but to
        begin with what was asked for is none."""
        if "opens" in signs:
            signs.discard("repeats")
        if "asked" in signs:
            signs.discard("opens")
        if "reason" in signs:
            signs.discard("short text")
        if signs & STEPS:
            signs.discard("quiet")
        if "changes" in signs:
            signs -= {"short text", "set up", "repeats", "announces", "testing"}
        return signs


def _effect_after(blocks: Sequence[Block], acts: dict[int, Act], place: int) -> tuple[Did | None, int]:
    """The next call that changes something, and how many calls come before it."""
    steps = 0
    for n in range(place + 1, len(blocks)):
        block = blocks[n]
        if not isinstance(block, Did):
            continue
        if acts[n] == "write" and is_refused(block):
            steps += 1
            continue
        if acts[n] == "write" and is_scratch(block):
            break
        if acts[n] == "write" or (acts[n] == "run" and not is_refused(block)):
            return block, steps
        if acts[n] in ("check", "record"):
            break
        steps += 1
    return None, 0


def _is_said_too(blocks: Sequence[Block], place: int) -> bool:
    """Whether the agent also says something between this thought and its next call."""
    after = next((b for b in blocks[place + 1 :] if isinstance(b, Did) or b.who == "agent"), None)
    return isinstance(after, SpokenText)


def _effect_before(blocks: Sequence[Block], acts: dict[int, Act], place: int) -> Did | None:
    for n in range(place - 1, max(place - 6, -1), -1):
        block = blocks[n]
        if isinstance(block, Did) and acts[n] in ("write", "run"):
            return block
    return None
