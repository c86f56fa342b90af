"""Finds changes of approach after a failure, and dead ends.

Consecutive failed calls of the same tool and program are one failure. A call that failed only because a parallel one
did does not count, and the same call with repaired arguments is not a change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight import cues
from wakelog.insight.acts import act_of, is_refused
from wakelog.insight.blocks import Block, Did, Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.sentences import Sentence, content_words, is_english, sentences_of
from wakelog.insight.user_words import words_of
from wakelog.model.command_lines import command_line, shell_commands

_SIBLING: Final = re.compile(r"Sibling tool call errored|cancelled because another|not executed because")
_OTHER_WAY: Final = re.compile(
    r"\binstead\b|\b(?:different|another|other|alternative) (?:approach|way|method|tool|strategy|route|option|url"
    r"|command)\b|\balternatively\b|\blet(?:'s| me|’s) try\b"
    r"|\btry (?:a|an|the|using|with|different|another|something)\b|\bsimpler\b|\bworkaround\b|\bwork around\b"
    r"|\bfall(?:ing)? back (?:to|on)\b|\bswitch(?:ing)? to\b|\brather than\b|\bmanually\b"
    r"|\bfrom scratch\b|\blet me just\b|\beasier\b|\bbypass\b|\bmeanwhile\b|\bafter all\b"
    r"|(?:^|, )since (?:that|this|the|it)\b.{0,60}\b(?:fail|not|n't|doesn)\w*|\bneed to (?:use|recalculate|adjust)\b",
    re.IGNORECASE,
)
_NEW_WAY: Final = re.compile(
    r"\b(?:different|another|alternative|simpler) (?:approach|way|method|strategy|route)\b|\bfrom scratch\b", re.I
)
_NO_CHANGE: Final = re.compile(
    r"^(?!if\b).*?(?:\bstill\b(?! too\b)|\bthe same\b|^same\b|\bno (?:change|difference|effect)\b|\bworse\b)",
    re.IGNORECASE | re.DOTALL,
)
"""The user says that an attempt changed nothing."""
_REPAIR: Final = re.compile(
    r"\b(?:syntax|indentation|quot\w+|escap\w+|typo|path with|paths with|correct(?:ing)? (?:the )?(?:path|command"
    r"|syntax))\b|\bread the file\b|\bdoes not exist\b|\bagain\b|\bmade a mistake\b|\bheredoc\b|&&|\bone line\b"
    r"|\bunrelated\b",
    re.IGNORECASE,
)
_DEAD: Final = re.compile(
    r"(?:\bis|\bwas|['’]s)(?: probably)?(?: not|n['’]t) the (?:issue|problem|cause|case|reason|bug|culprit)\b"
    r"|\bnot it,? either\b|\b(?:error|issue|problem|failure|bug) persists\b"
    r"|\b(?:that|this|it|which|approach|fix|attempt|change|method|trick|the \w+) (?:did not|didn't|does not|doesn't"
    r"|will not|won't|had no|has no) (?:work|help|fix|solve|effect|change|have any effect|seem to work)"
    r"|\bhad no effect\b|\bhas no effect\b|\bdead end\b|\bruled? out\b|\bwrong (?:approach|track|direction|path"
    r"|assumption|theory)\b|\b(?:hypothesis|theory|assumption) (?:is|was|turned out) (?:wrong|incorrect|false|not)"
    r"|\bstill (?:fail\w*|succeed\w*|not working|doesn't|does not|the same|getting|seeing|rejecting|broken|happening"
    r"|no|nothing)\b"
    r"|\bcannot reproduce\b|\bcan't reproduce\b|\bunable to reproduce\b|\bnot able to reproduce\b"
    r"|\bnone of (?:these|those|the|them)\b.{0,60}\b(?:work|match|help|available|contain)\w*|\bno luck\b"
    r"|\bnot (?:possible|feasible|an option|viable)\b|\bisn't (?:possible|feasible|an option|going to work)\b"
    r"|\bwon't work\b|\bwill not work\b|\bgiv(?:e|ing) up\b|\babandon\w*\b|\bI was wrong\b|\bI (?:can't"
    r"|cannot) (?:make|get|verify|proceed|find)\b|\btook too long\b|\btoo slow\b"
    r"|\bneither .{0,60}\b(?:has|is|works?|contains?)\b|\bdidn't work\b"
    r"|\bnothing (?:was |is )?(?:found|useful|there)\b|\bfound nothing\b"
    r"|\bdoesn't (?:seem to )?work\b|\bdid not (?:succeed|work)\b|\bdid(?:n't| not) help\b|\btimed out\b"
    r"|\b(?:simply|just|only|merely) \w+ing\b[^.]{0,80}\b(?:is|was)(?: not|n['’]t) (?:enough|sufficient)\b"
    r"|\bunreasonable\b|\bmade (?:it|things) worse\b|\bhave not (?:recovered|found|solved|fixed)\b"
    r"|\bhaven't (?:recovered|found|solved|fixed)\b"
    r"|\b(?:that|this|I|it|change) broke (?:the|it|something)\b|\brefuted\b|\bnot the (?:right"
    r"|correct) (?:one|file|place|approach|fix)\b",
    re.IGNORECASE,
)
_NO_RESULT: Final = re.compile(
    r"\b(?:did|does)(?: not|n['’]t) (?:yield|produce|reveal|turn up|lead to) (?:any|anything|the expected|what)\b"
    r"|\bnot reproduc(?:ing|e) the (?:issue|bug|problem|error)\b",
    re.IGNORECASE,
)
"""The attempt had no result, whatever the agent concludes from that."""
_OWN_FLAW: Final = re.compile(
    r"\b(?:problem|flaw|issue|trouble) with my (?:\w+ )?(?:approach|fix|change|proposal|idea|plan|solution)\b"
    r"|\bmy (?:\w+ )?(?:approach|fix|proposal|idea|plan|solution) (?:was|is) (?:wrong|flawed|incorrect|broken)\b",
    re.IGNORECASE,
)
"""It gives up its own proposal, which may not have been tried by a call."""
_NOT_DEAD: Final = re.compile(
    r"\bif (?:it|that|this|neither)\b|\?\s*$|\bstill (?:works?|pass\w*|need to|valid)\b|\bto (?:make sure|ensure|verify"
    r"|see)\b|\bno longer\b|\bbecause I (?:did|had|forgot|used|made)|\bI made a mistake\b|\bwithout (?:my|the"
    r"|our|these) changes?\b|\bas expected\b|, maybe\b|\b(?:previously|earlier)\b|\breproduc\w+ (?:script|test|case)\b"
    r"|\bwould (?:not|n't)\b|\bmight\b|\bthe (?:user|issue) (?:says|reports)\b",
    re.IGNORECASE,
)

_WANTED: Final = re.compile(
    r"\breproduc\w+ (?:was|is|were) success|\bsuccessfully reproduced\b"
    r"|\b(?:issue|bug|error|problem) (?:is|was) reproduced\b"
    r"|\bas (?:I |we )?(?:expected|predicted)\b|\bI (?:have |can |could )?reproduced?\b|\bthis confirms\b",
    re.IGNORECASE,
)
_BACK: Final = re.compile(
    r"\b(?:due to|because of|given|with) (?:this|that|these)\b|\bfor (?:this|that) reason\b", re.I
)
"""It refers to the sentence before, which has the reason."""
_DENIED: Final = re.compile(
    r"\bunfortunately\b|\bnot (?:enough|sufficient|eligible|available|allowed|possible|able|permitted)\b"
    r"|\bunable\b|\bcan(?:not|['’]t)\b|\bcould(?:n't| not)\b|\binsufficient\b",
    re.IGNORECASE,
)
_CAUSE: Final = re.compile(
    r"\bbecause\b|\bsince\b|\bdue to\b|\bcan(?:not|['’]t)\b|\bfail\w*|\berror\b|\bmissing\b|\bneeds?\b|n['’]t\b"
    r"|\bnot\b"
    r"|\bno\b|\btoo\b|\binstead\b|\bunexpected\b|\bwrong\b|\btimed? ?out\b",
    re.IGNORECASE,
)
_TITLE: Final = re.compile(r"\*\*[^*]+\*\*[.:]?")
"""A title without a statement."""
CAUSE_WITHIN: Final = 3
"""How many sentences after a failure may state its cause."""
_BAD: Final = re.compile(r"^\s*(?:Wrong|EXECUTION TIMED OUT|Error:|Traceback|fatal:)")
_IDLE: Final = frozenset({"cd", "echo", "export", "set", "sleep"})
CHANGE_WITHIN: Final = 8
"""How many texts and calls there may be between a failure and what was done instead."""
CHANGE_SCORE_MIN: Final = 4
REPORT_WITHIN: Final = 6
"""How many sentences of the user's words may report that a change did not help."""


class FailedCalls(msgspec.Struct):
    """Consecutive failed calls of one kind."""

    calls: list[tuple[int, Did]]
    method: str


def find_failures(turn: TurnBlocks, *, is_reaction: bool = False) -> Iterator[Finding]:
    """Changes of approach and dead ends of a turn, in order. `is_reaction` says that the user does not accept what the
    agent changed in the turn before."""
    report = _report_in(turn) if is_reaction else None
    dead_ends = list(_dead_ends(turn.blocks))
    changes = list(_changes_after_failures(turn.blocks))
    if report is not None:
        yield Finding("dead_end", report, report, score=3)
        changes = [*_change_after_report(turn.blocks, report), *changes]
    found = {(change.span.seq, change.span.block) for change in changes}
    yield from changes
    yield from (c for c in _changes_after_dead_ends(turn.blocks, dead_ends) if (c.span.seq, c.span.block) not in found)
    yield from dead_ends


def _report_in(turn: TurnBlocks) -> TextSpan | None:
    """Where the user says that what was tried changed nothing, or not enough."""
    block, start, end = words_of(turn)
    if block is None:
        return None
    told = next((s for s in sentences_of(block.text[start:end])[:REPORT_WITHIN] if _NO_CHANGE.search(s.text)), None)
    return block.span(start + told.start, start + told.end) if told else None


def _change_after_report(blocks: Sequence[Block], report: TextSpan) -> Iterator[Finding]:
    """What the agent then does differently: the sentence before its first effect that names another way, or commits to
    one."""
    acts = ((n, b) for n, b in enumerate(blocks) if isinstance(b, Did) and act_of(b) == "write")
    first, new = next(acts, (0, None))
    if new is None:
        return
    told = [
        (b, s) for b in blocks[:first] if isinstance(b, SpokenText) and b.who == "agent" for s in sentences_of(b.text)
    ]
    for cue in (_NEW_WAY, _OTHER_WAY, cues.COMMITS, cues.FIX):
        for said, sentence in reversed(told):
            if cue.search(sentence.text) and not cues.ROUTINE.search(sentence.text):
                span = said.span(sentence.start, sentence.end)
                yield Finding("approach_change", span, report, CHANGE_SCORE_MIN, (new.seq,))
                return


def method_of(call: Did) -> str:
    """The method of a call: the tool, and for a shell the first program that does something."""
    line = command_line(call.input)
    if not line:
        return call.tool
    programs = [c.program for c in shell_commands(line) if c.program not in _IDLE]
    return f"{call.tool} {programs[0]}" if programs else call.tool


def has_gone_wrong(call: Did) -> bool:
    """Whether a call failed itself, not only because a parallel one did."""
    if _SIBLING.search(call.output[:300]):
        return False
    return call.has_failed or (
        act_of(call) in ("write", "run") and (is_refused(call) or _BAD.search(call.output[:200]) is not None)
    )


def _changes_after_failures(blocks: Sequence[Block]) -> Iterator[Finding]:
    failure: FailedCalls | None = None
    for place, block in enumerate(blocks):
        if not isinstance(block, Did) or _SIBLING.search(block.output[:300]):
            continue
        if failure is not None and failure.calls[-1][1].batch != block.batch:
            change = _change(blocks, failure, place, block)
            if change is not None:
                yield change
                failure = None
            elif not has_gone_wrong(block) and act_of(block) != "look":
                failure = None
        if has_gone_wrong(block):
            if failure is not None and (
                failure.method == method_of(block) or failure.calls[-1][1].batch == block.batch
            ):
                failure.calls.append((place, block))
            else:
                failure = FailedCalls([(place, block)], method_of(block))


def _change(blocks: Sequence[Block], failure: FailedCalls, place: int, new: Did) -> Finding | None:
    """The change of approach from a failure to the call after it, if it is one."""
    _, failed = failure.calls[0]
    act, count, now = act_of(failed), len(failure.calls), act_of(new)
    said, sentence = _words_between(blocks, failure.calls[-1][0], place)
    names_other = sentence is not None and bool(_OTHER_WAY.search(sentence.text))
    is_new_request = _is_service_call(new) and method_of(new) == failure.method
    is_new_request = is_new_request and new.input != failure.calls[-1][1].input
    if not (names_other or is_new_request):
        return None  # nothing says that it is another approach
    if (act == "look" and count == 1) or place - failure.calls[-1][0] > CHANGE_WITHIN:
        return None  # a search without results also fails; and what comes much later has another cause
    score = 2 if names_other else 0
    score += bool(sentence and _NEW_WAY.search(sentence.text))
    if method_of(new) != failure.method:
        score += 2 if now == "write" or now == act else 1
    elif is_new_request:
        score += 3  # the request was changed after a service had refused it
    else:
        score -= 1
    score += {"write": 1, "run": 1, "look": -1, "check": -1}.get(act, -3) + min(count - 1, 2)
    if sentence is not None and (_REPAIR.search(sentence.text) or len(content_words(sentence.text)) < 2):
        score -= 2
    if _is_wanted_failure(blocks, failure.calls[-1][0], place):
        score -= 4
    if score < CHANGE_SCORE_MIN:
        return None
    span = said.span(sentence.start, sentence.end) if said and sentence else TextSpan(new.seq, 0, 0, 0)
    reason = _find_cause(blocks, failure.calls[-1][0], place)
    return Finding("approach_change", span, reason, score, (new.seq, failed.seq))


def _changes_after_dead_ends(blocks: Sequence[Block], dead_ends: Sequence[Finding]) -> Iterator[Finding]:
    """Changes after a call that succeeded without a useful result: the text that gives up also names another way."""
    for end in dead_ends:
        place, said = next(
            (n, b)
            for n, b in enumerate(blocks)
            if isinstance(b, SpokenText) and (b.seq, b.block) == (end.span.seq, end.span.block)
        )
        new = next((b for b in blocks[place + 1 :] if isinstance(b, Did)), None)
        if new is None or not end.calls or act_of(new) == "check":
            continue
        for sentence in sentences_of(said.text):
            if cues.FIX.search(sentence.text):
                break  # it states the solution: that is a decision
            if (
                sentence.start >= end.span.end
                and _OTHER_WAY.search(sentence.text)
                and not _REPAIR.search(sentence.text)
            ):
                span = said.span(sentence.start, sentence.end)
                yield Finding("approach_change", span, end.span, CHANGE_SCORE_MIN, (new.seq, *end.calls))
                break


def _is_wanted_failure(blocks: Sequence[Block], start: int, end: int) -> bool:
    """Whether the agent says that it wanted the failure: it reproduced a bug."""
    said = (b for b in blocks[start + 1 : end] if isinstance(b, SpokenText) and b.who != "user")
    return any(_WANTED.search(sentence.text) for b in said for sentence in sentences_of(b.text)[:CAUSE_WITHIN])


def _is_service_call(call: Did) -> bool:
    """Whether a call requests an effect from a service, not from a shell or a file."""
    return call.effect == "external" and act_of(call) == "run" and not command_line(call.input)


def _words_between(blocks: Sequence[Block], start: int, end: int) -> tuple[SpokenText | None, Sentence | None]:
    """What the agent said between two calls: the sentence that names another approach, else the last one."""
    last: tuple[SpokenText | None, Sentence | None] = (None, None)
    for block in blocks[start + 1 : end]:
        if not isinstance(block, SpokenText) or block.who == "user" or not is_english(block.text):
            continue
        for sentence in sentences_of(block.text):
            if _OTHER_WAY.search(sentence.text):
                return block, sentence
            last = (block, sentence)
    return last


def _find_cause(blocks: Sequence[Block], start: int, end: int) -> TextSpan | None:
    """Why the call failed, in the agent's first words about it."""
    for block in blocks[start + 1 : end]:
        if not isinstance(block, SpokenText) or block.who == "user" or not is_english(block.text):
            continue
        for sentence in sentences_of(block.text)[:CAUSE_WITHIN]:
            is_title = sentence.is_heading or bool(_TITLE.fullmatch(sentence.text))
            if _CAUSE.search(sentence.text) and not sentence.text.endswith("?") and not is_title:
                return block.span(sentence.start, sentence.end)
    return None


def _dead_ends(blocks: Sequence[Block]) -> Iterator[Finding]:
    last_place, last_words = -10, frozenset[str]()
    calls: list[Did] = []
    for place, block in enumerate(blocks):
        if isinstance(block, Did):
            calls.append(block)
            continue
        if block.who == "user" or not is_english(block.text):
            continue
        sentence = _find_dead_end(block.text, calls[-1] if calls else None)
        if sentence is None:
            continue
        words = content_words(sentence.text)
        is_repeat = place - last_place <= 3 or len(words & last_words) > 0.4 * len(words)
        last_place = place
        if is_repeat:
            continue
        last_words = words
        span = block.span(sentence.start, sentence.end)
        why = _sentence_before(block.text, sentence) if _BACK.search(sentence.text) else None
        reason = block.span(why.start, why.end) if why else span
        yield Finding("dead_end", span, reason=reason, score=3, calls=(calls[-1].seq,) if calls else ())


def _sentence_before(text: str, sentence: Sentence) -> Sentence | None:
    return next((s for s in reversed(sentences_of(text)) if s.end <= sentence.start), None)


def _find_dead_end(text: str, tried: Did | None) -> Sentence | None:
    """The sentence that gives something up. After a service refused, a plain "not enough" counts too. If nothing was
    tried, only words about the agent's own proposal count."""
    if tried is not None and is_refused(tried) and not tried.has_failed:
        return None  # the harness rejected the form of the call, so nothing was tried
    is_denied = tried is not None and has_gone_wrong(tried) and _is_service_call(tried)
    for sentence in sentences_of(text)[:8]:
        if tried is not None and _NO_RESULT.search(sentence.text) and not sentence.text.endswith("?"):
            return sentence
        if _NOT_DEAD.search(sentence.text):
            continue
        if _OWN_FLAW.search(sentence.text) or (tried is not None and _DEAD.search(sentence.text)):
            return sentence
        if is_denied and _DENIED.search(sentence.text):
            return sentence
    return None
