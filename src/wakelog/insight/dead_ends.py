"""Finds dead ends: what was tried and given up.

The agent says so, takes back what it did, or writes in vain again and again; or the user reports the same failure and
the agent goes another way.
Words are judged by signs, each with a weight: what they say, and what was tried before them. Repeated words count once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from wakelog.insight import cues, failure_cues
from wakelog.insight.acts import act_of, files_of, is_refused, is_rejected, is_scratch, target_of
from wakelog.insight.blocks import Block, Did, Finding, TextSpan
from wakelog.insight.changes import WorkReport, is_undo, words_that_undo
from wakelog.insight.dialogue import HeardTurn
from wakelog.insight.sentences import Sentence, content_words, is_english, sentences_of
from wakelog.insight.setback_words import Told
from wakelog.insight.signs import MARKUP
from wakelog.insight.steps import TurnStep, has_gone_wrong, is_service_call, is_similar, method_of
from wakelog.model.command_lines import command_line
from wakelog.model.ids import Seq

WEIGHTS: Final = {
    "refuted": 3,
    "failed": 3,
    "no result": 3,
    "barred": 3,
    "own flaw": 6,
    "denied": 3,
    "after failure": 1,
    "other way": 1,
    "nothing tried": -3,
    "form refused": -6,
    "only looked": -1,
    "not given up": -4,
}
"""What each sign adds to a score."""
SCORE_MIN: Final = 3
READ_MAX: Final = 8
"""How many sentences of a text are read."""
REPEAT_WITHIN: Final = 3
"""How many texts and calls after a dead end the same one may be repeated."""
REPEATED_SHARE: Final = 0.4
TRIES_MIN: Final = 2
"""How often a write must fail until its way is a dead end."""
_CUES: Final = (
    ("refuted", failure_cues.REFUTED),
    ("failed", failure_cues.FAILED),
    ("no result", failure_cues.NO_RESULT),
    ("barred", failure_cues.BARRED),
    ("own flaw", failure_cues.OWN_FLAW),
)
_LOOKS_ON: Final = re.compile(
    r"(?:now,? |so )?let(?:['’]s| me| us) (?:\w+ )?(?:examine|look|check|see|read|inspect)\b", re.I
)
"""It says what it looks at next; what it says about the code there is no try."""
_AND: Final = re.compile(r"\band (?!re-?do|re-?run|run|check|see|test|try|start|then)\w+|\binstead\b", re.IGNORECASE)
_UNDO_COMMAND: Final = re.compile(r"\s*(?:<command-name>)?(/(?:undo|rewind))\b")
_REVERTS: Final = re.compile(
    r"\b(?:revert|undo(?:ing)?\b|undid|roll(?:ed|ing)? back|back(?:ed|ing)? out)", re.IGNORECASE
)
_RUNS: Final = re.compile(r" (?:python[\d.]*|node|deno|ruby|perl|php|java|bash|sh|\.?/\S*)$")
"""Programs that run something to see what it does."""


def find_dead_ends(
    blocks: Sequence[Block], steps: Sequence[TurnStep], report: WorkReport | None, past_turns: Sequence[HeardTurn] = ()
) -> Iterator[Finding]:
    """The dead ends of a turn. A call that one is about is not given again."""
    known: set[int] = set()
    findings = list(_stated_dead_ends(blocks))
    has_failed = report is not None and report.kind == "reported same" and bool(report.before.changed)
    if report is not None and has_failed and _is_left(blocks):
        yield Finding("dead_end", report.span, report.span, score=SCORE_MIN, calls=report.before.changed)
        findings = [
            finding for finding in findings if finding.calls
        ]  # before its first call, the agent only says the same
    for finding in (*_failed_again(steps), *findings, *_undone(steps, past_turns)):
        if not known & set(finding.calls):
            known |= set(finding.calls)
            yield finding


def _is_left(blocks: Sequence[Block]) -> bool:
    """Whether the agent says that it goes another way. Otherwise it goes on with the one that did not help yet."""
    said = (b.text for b in blocks if not isinstance(b, Did) and b.who == "agent")
    cues_of_way = (failure_cues.NEW_WAY, failure_cues.OTHER_WAY)
    return any(cue.search(s.text) for text in said for s in sentences_of(text)[:READ_MAX] for cue in cues_of_way)


def _stated_dead_ends(blocks: Sequence[Block]) -> Iterator[Finding]:
    """What the agent says it gives up."""
    last_place, last_words = -10, frozenset[str]()
    tried: Did | None = None
    has_changed = False
    for place, block in enumerate(blocks):
        if isinstance(block, Did):
            tried = block
            has_changed = has_changed or _changes(block)
            continue
        if block.who == "user" or not is_english(block.text):
            continue
        score, sentence = _best_sentence(block.text, tried, has_changed=has_changed)
        if sentence is None:
            continue
        words = content_words(sentence.text)
        is_repeat = place - last_place <= REPEAT_WITHIN or len(words & last_words) > REPEATED_SHARE * len(words)
        last_place = place
        if is_repeat and not has_changed:
            continue
        last_words, has_changed = words, False
        span = block.span(sentence.start, sentence.end)
        why = _sentence_before(block.text, sentence) if failure_cues.POINTS_BACK.search(sentence.text) else None
        reason = block.span(why.start, why.end) if why else span
        yield Finding("dead_end", span, reason, score, (tried.seq,) if tried else ())


def _changes(call: Did) -> bool:
    """Whether a call did something that can turn out not to help."""
    act = act_of(call)
    is_effect = act == "write" or (act == "run" and not _RUNS.search(method_of(call)))
    return is_effect and not has_gone_wrong(call) and not is_scratch(call)


def _best_sentence(text: str, tried: Did | None, *, has_changed: bool) -> tuple[int, Sentence | None]:
    """The sentence that gives something up, and its score."""
    around = _signs_of_try(tried)
    sentences = sentences_of(text)
    if any(failure_cues.OTHER_WAY.search(s.text) for s in sentences):
        around.add("other way")
    is_denied = tried is not None and has_gone_wrong(tried) and is_service_call(tried)
    for sentence in sentences[:READ_MAX]:
        plain = MARKUP.sub("", sentence.text)
        signs = {name for name, cue in _CUES if cue.search(plain)}
        if is_denied and failure_cues.DENIED.search(plain):
            signs.add("denied")
        if not signs or _LOOKS_ON.match(plain):
            continue
        is_open = "no result" not in signs and bool(failure_cues.NOT_GIVEN_UP.search(plain))
        if is_open or sentence.text.endswith("?"):
            signs.add("not given up")
        score = sum(WEIGHTS[sign] for sign in signs | around)
        if score >= SCORE_MIN:
            return score, sentence
    is_vain = has_changed and tried is not None and has_gone_wrong(tried)
    is_still = is_vain and bool(sentences) and bool(failure_cues.STILL.match(sentences[0].text))
    return (SCORE_MIN, sentences[0]) if is_still else (0, None)


def _signs_of_try(tried: Did | None) -> set[str]:
    if tried is None:
        return {"nothing tried"}
    if is_refused(tried) and not tried.has_failed:
        return {"form refused"}  # the harness rejected the form of the call, so nothing was tried
    if has_gone_wrong(tried):
        return {"after failure"}
    return {"only looked"} if act_of(tried) == "look" and not command_line(tried.input) else set()


def _sentence_before(text: str, sentence: Sentence) -> Sentence | None:
    return next((s for s in reversed(sentences_of(text)) if s.end <= sentence.start), None)


def _undone(steps: Sequence[TurnStep], past_turns: Sequence[HeardTurn]) -> Iterator[Finding]:
    """What was changed, in this turn or in the same file before, and is taken back: the agent says so and what it does
    instead, or a command does it after a failure."""
    for n, step in enumerate(steps):
        words = words_that_undo(step)
        written = [s.call for s in steps[:n] if s.act == "write" and not s.is_wrong]
        tried = [*_tried_earlier(step, words, past_turns), *(call.seq for call in written)]
        is_silent = bool(written) and is_undo(step) and not step.said and steps[n - 1].is_wrong
        if step.act not in ("write", "run") or not tried or not (is_silent or (words and _goes_on(step, words[1]))):
            continue
        if words and any(failure_cues.SLIP.search(t.text) for _, t in step.sentences()):
            continue  # the approach is the same, only written again
        undone = next((call.seq for call in reversed(written) if is_similar(call, step.call)), tried[-1])
        span = words[0].span(words[1].start, words[1].end) if words else TextSpan(step.call.seq, 0, 0, 0)
        detail = "" if words else "taken back"
        yield Finding("dead_end", span, span if words else None, SCORE_MIN, (undone, step.call.seq), detail)


def _tried_earlier(step: TurnStep, words: Told | None, past_turns: Sequence[HeardTurn]) -> list[Seq]:
    """The last changes of the turns before that changed the file of a step which says that it reverts something."""
    if words is None or not _REVERTS.search(words[1].text):
        return []
    return [turn.changed[-1] for turn in past_turns if turn.changed and target_of(step.call) in turn.files]


def find_taken_back(blocks: Sequence[Block], before: HeardTurn | None) -> Iterator[Finding]:
    """What the user takes back with a command of the agent's program: it is rejected, and a dead end."""
    changed = before.changed if before is not None else ()
    for block in blocks:
        if isinstance(block, Did):
            changed = (block.seq,) if files_of(block) else changed
        elif changed and block.who == "user" and (match := _UNDO_COMMAND.match(block.text)):
            span = block.span(match.start(1), match.end(1))
            yield Finding("correction", span, score=SCORE_MIN)
            yield Finding("dead_end", span, None, SCORE_MIN, changed)
            changed = ()


def _goes_on(step: TurnStep, undoes: Sentence) -> bool:
    """Whether the agent also says what it does instead of what it takes back."""
    return bool(_AND.search(undoes.text)) or any(
        s != undoes and cues.COMMITS.search(s.text) and not failure_cues.UNDOES.search(s.text)
        for _, s in step.sentences()
    )


def _failed_again(steps: Sequence[TurnStep]) -> Iterator[Finding]:
    """Writes of one file that failed again and again: one dead end, however often it was tried."""
    tries: dict[str, list[TurnStep]] = {}
    for step in steps:
        target = target_of(step.call)
        if step.act != "write" or not target or is_rejected(step.call):
            continue
        if step.call.has_failed:
            tries.setdefault(target, []).append(step)
        elif len({s.call.batch for s in tries.get(target, ())}) < TRIES_MIN:
            tries.pop(target, None)  # it was only a slip
    for failed in tries.values():
        if len({s.call.batch for s in failed}) >= TRIES_MIN:
            words = next((t for s in failed for t in s.sentences() if failure_cues.FAILED.search(t[1].text)), None)
            span = words[0].span(words[1].start, words[1].end) if words else TextSpan(failed[0].call.seq, 0, 0, 0)
            calls = tuple(s.call.seq for s in failed)
            yield Finding("dead_end", span, span if words else None, SCORE_MIN, calls, "" if words else "failed again")
