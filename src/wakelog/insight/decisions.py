"""Finds decisions: sentences in which the agent commits to one way, ranked by a score.

A sentence scores higher if it commits to a change, refuses one, leaves something as it is, compares or prefers, gives a
reason, or is followed by an effect. It scores lower if it announces a routine step (look, run the tests, commit),
repeats the request, sums up at the end, or says little; also if it was only thought. Candidates for the same choice
(its thinking, text and call, or the same words again) are merged, and the best one is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight import cues
from wakelog.insight.blocks import Finding, TextSpan, TurnBlocks
from wakelog.insight.candidates import Candidate, candidates_in, stems_of
from wakelog.insight.dialogue import HeardTurn, heard_of, is_service
from wakelog.insight.sentences import sentences_of

REPEATED_SHARE: Final = 0.5
"""A refusal repeats an earlier one if this share of its words is the same."""
QUOTE_MAX: Final = 300
"""How many characters a sentence with its list may have."""
SCORE_MIN: Final = -1
"""Candidates below this are dropped."""


def find_decisions(
    turn: TurnBlocks, past_turns: Sequence[HeardTurn] = (), changes: frozenset[TextSpan] = frozenset()
) -> list[Finding]:
    """The decisions of a turn, the most certain first. `past_turns` start with the oldest; `changes` are the sentences
    that change the approach."""
    kept: list[Candidate] = []
    candidates = candidates_in(turn.blocks, is_service=is_service((*past_turns, heard_of(turn))), changes=changes)
    answers = [stems for before in past_turns for stems in _answer_stems(before.agent)]
    candidates = (_mark_repeated(c, answers) for c in candidates)
    for candidate in sorted(candidates, key=lambda c: (-c.score, c.place)):
        if any(_is_same(candidate, other) for other in kept):
            continue
        if "reason" not in candidate.signs and any(candidate.said is other.said for other in kept):
            is_brief = "quiet" in candidate.signs and "recap" not in candidate.signs
            candidate.signs |= {"also in brief" if is_brief else "also"}
        if candidate.score >= SCORE_MIN:
            kept.append(candidate)
    return [_finding(c) for c in kept]


def _mark_repeated(candidate: Candidate, answers: list[frozenset[str]]) -> Candidate:
    """Marks a refusal or a grant that only repeats an earlier one."""
    own = stems_of(candidate.sentence.text)
    if candidate.signs & {"refuses", "grants"} and any(
        len(own & said) >= REPEATED_SHARE * len(own) for said in answers
    ):
        return msgspec.structs.replace(candidate, signs=candidate.signs | {"again"})
    return candidate


def _answer_stems(text: str) -> Iterator[frozenset[str]]:
    """The stems of each refusal or grant, with the sentence before it, which often names the subject."""
    before = ""
    for sentence in sentences_of(text):
        if any(cue.search(sentence.text) for cue in (cues.REFUSES, cues.GRANTS, cues.BARRED, cues.ALLOWED)):
            yield stems_of(f"{before} {sentence.text}")
        before = sentence.text


def _finding(candidate: Candidate) -> Finding:
    reason = candidate.reason
    return Finding(
        "decision",
        candidate.said.span(candidate.sentence.start, _end_of(candidate)),
        reason=candidate.said.span(reason.start, reason.end) if reason else None,
        score=candidate.score,
        calls=(candidate.effect.seq,) if candidate.effect else (),
    )


def _end_of(candidate: Candidate) -> int:
    """The end of the words to quote. A sentence that introduces a list is quoted with the list, if it is short."""
    end = candidate.sentence.end
    if not candidate.sentence.text.endswith(":"):
        return end
    for sentence in sentences_of(candidate.said.text):
        if sentence.start < end:
            continue
        is_next = sentence.is_item and candidate.said.text[end : sentence.start].count("\n") <= 2
        if not is_next or sentence.end - candidate.sentence.start > QUOTE_MAX:
            break
        end = sentence.end
    return end


def _is_same(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates are about the same choice."""
    apart = abs(one.place - other.place)
    if one.said is other.said:
        first, last = sorted((one.sentence.start, other.sentence.start))
        return "\n" not in one.said.text[first:last] or _similarity(one, other) > 0.3
    if apart <= 2 and one.batch == other.batch:
        return True
    if one.effect is not None and one.effect is other.effect and apart <= 6:
        return apart <= 2 or _similarity(one, other) > 0.3
    if one.effect is not other.effect and "changes" in one.signs & other.signs:
        return False  # one try after the other
    are_apart = one.effect is not None and other.effect is not None and one.effect is not other.effect
    return _similarity(one, other) > (0.45 if are_apart or apart > 12 else 0.3)


def _similarity(one: Candidate, other: Candidate) -> float:
    return len(one.words & other.words) / (min(len(one.words), len(other.words)) or 1)
