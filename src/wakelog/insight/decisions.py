"""Finds decisions: sentences in which the agent commits to one way, ranked by a score.

A sentence scores higher if it commits to a change, refuses one, compares or prefers, gives a reason, or is followed by
an effect. It scores lower if it announces a routine step (look, run the tests, commit), repeats the request, sums up at
the end, or says little; also if it was only thought, and more so if it was thought without a reason. The best sentence
of each text is a candidate. Candidates for the same choice (its thinking, text and call, or the same words again) are
merged, and the best one is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight import cues
from wakelog.insight.acts import Act, act_of, files_of, is_refused
from wakelog.insight.blocks import Block, Did, Finding, SpokenText, TurnBlocks
from wakelog.insight.dialogue import HeardTurn, heard_of, is_service
from wakelog.insight.sentences import Sentence, content_words, is_english, sentences_of, word_set

LONG_TEXT: Final = 1000
CONCLUSION: Final = 6
"""How many sentences at the end of a long text count as its conclusion."""
DIAGNOSIS_WITHIN: Final = 5
"""How many sentences a diagnosis may be away from the decision."""
LAST_TEXT: Final = 4
"""How many decisions the last text of a turn may tell."""
VAGUE_WORDS: Final = 1
"""A sentence with at most this many content words ("I need to fix that.") is vague."""
REPEATED_SHARE: Final = 0.5
"""A refusal repeats an earlier one if this share of its words is the same."""
STEM: Final = 5
"""How many letters of a word are compared: "cancel" and "cancellation" are the same."""
SCORE_MIN: Final = 1
"""Candidates below this are dropped."""

_POLITE: Final = word_set("unfortunately understand sorry apologize however therefore case currently please note")
_SCRATCH: Final = re.compile(
    r"^(?!.*\btests?/.)(?:.*/)?(?:\w+_)?(?:repro|test|debug|verif|check|demo|try|tmp|dummy|sample|example)\w*\.\w+$"
)
"""Files made only to try something."""
_CREATES: Final = ("write", "create")
_REPLACED: Final = frozenset({"old_string", "old_str", "edits"})
"""Arguments of tools that replace text."""
_MARKUP: Final = re.compile(r"[`*_]")


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


WEIGHTS: Final = {
    "commits": 1,
    "did": 2,
    "fix": 3,
    "strong": 1,
    "proposes": 3,
    "explains": 2,
    "directs": 2,
    "repairs": 2,
    "refuses": 4,
    "grants": 4,
    "refuses in passing": -3,
    "again": -4,
    "keeps": 2,
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
    "thought": -3,
    "thought alone": -2,
    "mused": -2,
    "announces": -1,
    "vague": -4,
    "routine": -3,
    "cleanup": -3,
    "repeats": -2,
    "testing": -3,
    "set up": -4,
    "seeks": -4,
    "introduces": -1,
    "doubts": -2,
    "summary": -1,
    "recap": -2,
    "narrates": -3,
    "idle": -3,
}
"""What each sign adds to a score."""


def find_decisions(turn: TurnBlocks, heard: Sequence[HeardTurn] = ()) -> list[Finding]:
    """The decisions of a turn, the most certain first. `heard` are the turns before it, the oldest first."""
    kept: list[Candidate] = []
    found = candidates_in(turn.blocks, is_service=is_service((*heard, heard_of(turn))))
    answers = [stems for before in heard for stems in _answer_stems(before.agent)]
    found = (_mark_repeated(c, answers) for c in found)
    for candidate in sorted(found, key=lambda c: (-c.score, c.place)):
        if candidate.score >= SCORE_MIN and not any(_is_same(candidate, other) for other in kept):
            kept.append(candidate)
    return [_finding(c) for c in kept]


def _mark_repeated(found: Candidate, answers: list[frozenset[str]]) -> Candidate:
    """Marks a refusal or a grant that only repeats an earlier one."""
    own = _stems(found.sentence.text)
    if found.signs & {"refuses", "grants"} and any(len(own & said) >= REPEATED_SHARE * len(own) for said in answers):
        return msgspec.structs.replace(found, signs=found.signs | {"again"})
    return found


def _answer_stems(text: str) -> Iterator[frozenset[str]]:
    """The stems of each refusal or grant, with the sentence before it, which often names the subject."""
    before = ""
    for sentence in sentences_of(text):
        if any(cue.search(sentence.text) for cue in (cues.REFUSES, cues.GRANTS, cues.BARRED, cues.ALLOWED)):
            yield _stems(f"{before} {sentence.text}")
        before = sentence.text


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in content_words(cues.REFUSES.sub(" ", text)) - _POLITE)


def _finding(found: Candidate) -> Finding:
    reason = found.reason
    return Finding(
        "decision",
        found.said.span(found.sentence.start, found.sentence.end),
        reason=found.said.span(reason.start, reason.end) if reason else None,
        score=found.score,
        calls=(found.effect.seq,) if found.effect else (),
    )


def _is_same(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates are about the same choice."""
    apart = abs(one.place - other.place)
    if one.said is other.said:
        first, last = sorted((one.sentence.start, other.sentence.start))
        return "\n" not in one.said.text[first:last] or _similarity(one, other) > 0.3
    if apart <= 2 and one.batch == other.batch:
        return True
    if one.effect is not None and one.effect is other.effect and apart <= 6:
        return apart <= 2 or _similarity(one, other) > 0.12
    return _similarity(one, other) > (0.3 if apart <= 12 else 0.45)


def _similarity(one: Candidate, other: Candidate) -> float:
    return len(one.words & other.words) / (min(len(one.words), len(other.words)) or 1)


def candidates_in(blocks: Sequence[Block], *, is_service: bool = False) -> Iterator[Candidate]:
    """The best sentence of each text; of the last one, which sums up the turn, the best few."""
    acts: dict[int, Act] = {n: act_of(b) for n, b in enumerate(blocks) if isinstance(b, Did)}
    last_call = max(acts, default=-1)
    batch = 0
    for place, said in enumerate(blocks):
        if isinstance(said, Did):
            batch += 1
        elif said.who != "user" and is_english(said.text):
            is_last = place > last_call and said.who == "agent"
            found = _text_candidates(blocks, acts, place, said, batch, is_last=place > last_call, is_service=is_service)
            most = LAST_TEXT if is_last and not is_service else 1
            yield from sorted(found, key=lambda c: (-c.score, c.sentence.start))[:most]


def _text_candidates(
    blocks: Sequence[Block],
    acts: dict[int, Act],
    place: int,
    said: SpokenText,
    batch: int,
    *,
    is_last: bool,
    is_service: bool,
) -> Iterator[Candidate]:
    sentences = sentences_of(said.text)
    after, steps = _effect_after(blocks, acts, place)
    before = _effect_before(blocks, acts, place)
    is_long = len(said.text) > LONG_TEXT
    text_signs: set[str] = set()
    if after is not None:
        text_signs.add("effect" if steps <= 3 else "effect later")
    if is_long:
        text_signs.add("long text")
    if said.who == "thinking":
        text_signs.add("thought" if is_long or _is_said_too(blocks, place) else "thought alone")
    if is_last and sentences and cues.SUMMARY.match(_MARKUP.sub("", sentences[0].text)):
        text_signs.add("summary")
    for n, sentence in enumerate(sentences):
        signs = set() if sentence.is_heading else signs_of(_MARKUP.sub("", sentence.text), is_service=is_service)
        if is_last and not is_service and said.who == "agent":
            signs |= _signs_at_end(_MARKUP.sub("", sentence.text), has_writes="write" in acts.values())
        is_at_work = after is not None and steps <= 1 and not is_long and said.who == "agent"
        if not signs & _CHOOSES:
            continue
        nearby = sentences[max(n - DIAGNOSIS_WITHIN, 0) : n + DIAGNOSIS_WITHIN + 1]
        if any(cues.DIAGNOSIS.search(s.text) for s in nearby):
            signs.add("diagnosis")
        near = _find_reason(sentences, n)
        if near is not None:
            signs.add("reason" if near is sentence else "reason beside")
            if near is sentence and "testing" in signs:
                signs.add("chosen test")
        if "refuses" in signs and is_long:
            signs.add("refuses in passing")
        if after is not None and is_long and n >= len(sentences) - CONCLUSION:
            signs.add("concludes")
        # In a long text the agent thinks aloud: the sentence next to a choice is as likely an aside as its reason.
        reason = _find_quotable_reason(sentences, n) if not is_long else None
        effect = after if steps <= 8 else None
        if "did" in signs and "commits" not in signs and before is not None:
            effect = before
            signs.add("effect")
        if signs & _CHOOSES == {"did"} and ((before is None and "reason" not in signs) or "cleanup" in signs):
            continue
        if is_last and near is None and "did" in signs:
            signs.add("recap")
        if "did" in signs and "commits" not in signs and is_long and not is_last:
            signs.add("narrates")
        if "thought" in text_signs and "reason" not in signs:
            signs.add("mused")
        if effect is None and "write" in acts.values() and not signs & _PREFERS:
            signs.add("idle")
        if is_at_work and "diagnosis" in signs and "routine" not in signs and effect is after:
            signs.add("repairs")
        if "strong" in signs and near is sentence:
            signs.discard("routine")
        if effect is not None and effect.tool.lower().startswith(_CREATES):
            signs.discard("set up")  # the new file is part of the work: helpers are scratch files
        words = content_words(sentence.text)
        if len(words) <= VAGUE_WORDS:
            signs.add("vague")
        yield Candidate(place, said, sentence, frozenset(signs | text_signs), reason, effect, batch, words)


def signs_of(text: str, *, is_service: bool = False) -> set[str]:
    """The signs in a sentence itself. Questions, offers and fragments have none."""
    if (
        text.count(" ") < 4
        or text[0].islower()
        or text[0] in '"“'
        or cues.QUESTION.search(text)
        or cues.OFFERS.search(text)
        or cues.RETELLS.match(text)
        or cues.LEAD_IN.search(text)
    ):
        return set()
    signs = {name for name, pattern in _SIGNS if pattern.search(text)}
    if is_service and cues.STATED.search(text):
        signs |= {"refuses"} if cues.BARRED.search(text) else {"grants"} if cues.ALLOWED.search(text) else set()
    if "keeps" in signs and not cues.STATED.search(text):
        signs.discard("keeps")
    if "grants" in signs and ("refuses" in signs or not cues.STATED.search(text)):
        signs.discard("grants")
    if text.endswith(":"):
        signs.add("introduces")
    return signs


def _signs_at_end(text: str, *, has_writes: bool) -> set[str]:
    """Signs that count only in the last text of a turn: it explains what was built, or says what to do."""
    if cues.QUESTION.search(text) or cues.OFFERS.search(text) or text.count(" ") < 4:
        return set()
    if has_writes and cues.STRONG.search(text) and cues.STATED.search(text):
        return {"explains", "strong"}
    if not has_writes and cues.DIRECTS.match(text):
        return {"directs"}
    return set()


_CHOOSES: Final = {"commits", "did", "fix", "proposes", "refuses", "grants", "explains", "directs"}
"""A candidate needs at least one of these."""
_PREFERS: Final = {"strong", "fix", "proposes", "keeps", "undoes", "refuses", "grants", "explains", "directs"}
"""In a turn with effects, a sentence without an effect needs one of these; otherwise it is only a thought."""
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
    ("set up", cues.SET_UP),
    ("seeks", cues.SEEKS),
    ("doubts", cues.DOUBTS),
    ("announces", cues.ANNOUNCES),
    ("obliged", cues.OBLIGED),
    ("keeps", cues.KEEPS),
    ("undoes", cues.UNDOES),
)


def _find_reason(sentences: Sequence[Sentence], n: int) -> Sentence | None:
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


def _find_quotable_reason(sentences: Sequence[Sentence], n: int) -> Sentence | None:
    """The sentence that certainly states the reason; no reason is better than a wrong one."""
    if _states_reason(sentences[n].text):
        return sentences[n]
    for other in (n - 1, n + 1):
        if 0 <= other < len(sentences) and _is_reason_beside(sentences[other].text):
            return sentences[other]
    return None


def _states_reason(text: str) -> bool:
    plain = _MARKUP.sub("", text)
    is_stated = bool(cues.STATED.search(text)) and not (cues.UNSURE.match(plain) or cues.LEAD_IN.search(plain))
    return is_stated and not text.endswith("?")


def _is_reason_beside(text: str) -> bool:
    return _states_reason(text) and not (cues.ROUTINE.search(text) or cues.ANNOUNCES.match(text))


def _gives_reason(text: str) -> bool:
    return bool(cues.REASON.search(text)) and not cues.ROUTINE.search(text)


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
        if acts[n] == "write" and _is_scratch(block):
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


def _is_scratch(call: Did) -> bool:
    """Whether a call only writes scratch files, which are not the effect of a decision. An edit replaces text of a file
    that was there before."""
    if isinstance(call.input, dict) and call.input.keys() & _REPLACED:
        return False
    files = files_of(call)
    return bool(files) and all(_SCRATCH.search(path) for path in files)


def _effect_before(blocks: Sequence[Block], acts: dict[int, Act], place: int) -> Did | None:
    for n in range(place - 1, max(place - 6, -1), -1):
        block = blocks[n]
        if isinstance(block, Did) and acts[n] in ("write", "run"):
            return block
    return None
