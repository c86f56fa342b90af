"""Finds changes of approach: after a setback, the agent does something else for the same purpose.

A setback is a call that failed, a failure that comes back after a change, a step that is taken back, words that give
something up, or the user's report that the work did not help. What follows is judged by signs, each with a weight:
which call failed and how often, what the agent says, and what it does then. A change may also be silent: then no
sentence is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from wakelog.insight import failure_cues
from wakelog.insight.acts import files_of, is_refused, is_scratch, target_of
from wakelog.insight.blocks import Block, Finding, SpokenText, TextSpan
from wakelog.insight.dialogue import HeardTurn
from wakelog.insight.sentences import sentences_of
from wakelog.insight.setback_words import Told, cause_in, is_idle, signs_of_words
from wakelog.insight.steps import TOLD_MAX, TurnStep, fails_the_same_way, is_service_call, is_similar, method_of
from wakelog.model.command_lines import command_line
from wakelog.model.ids import Seq

WEIGHTS: Final = {
    "failed effect": 2,
    "failed try": 1,
    "failed check": -1,
    "failed look": -1,
    "fails again": 2,
    "failed often": 1,
    "failed many times": 2,
    "other tool": 1,
    "undoes": 1,
    "reported": 2,
    "reported same": 3,
    "corrected": -1,
    "same place": 3,
    "gives up": 2,
    "gave up before": 1,
    "new way": 1,
    "other way": 2,
    "commits": 1,
    "explains": 1,
    "other request": 2,
    "looks": -2,
    "checks": -2,
    "silent": -1,
    "silent success": 1,
    "something else": -2,
    "repairs": -3,
    "same target": -2,
    "same call": -4,
    "form refused": -3,
    "wanted": -4,
    "only reproduced": -3,
}
"""What each sign adds to a score."""
SETBACKS: Final = frozenset(
    {
        "failed effect",
        "failed try",
        "failed check",
        "failed look",
        "undoes",
        "reported",
        "reported same",
        "corrected",
        "gives up",
        "gave up before",
        "new way",
    }
)
"""A change needs at least one of these."""
REPORTED: Final = frozenset({"reported", "reported same", "corrected"})
SCORE_MIN: Final = 3
SILENT_SCORE: Final = 2
"""An unannounced change is less certain than an announced one; it is not shown by default."""
WITHIN: Final = 8
"""How many calls there may be between a setback and what is done then."""
TRIES_MANY: Final = 3
"""After so many failures of one kind, what succeeds is another way."""
_UNDO: Final = re.compile(r"\bgit (?:checkout (?:\S+ )?-- |checkout \S*[/.]\S|restore\b|revert\b|reset --hard|stash$)")


class WorkReport(msgspec.Struct, frozen=True):
    """The user's words that what the agent did in the turn before did not help."""

    span: TextSpan
    kind: Literal["reported", "reported same", "corrected"]
    """It does not work, nothing changed, or it is not what was wanted."""
    before: HeardTurn


def find_changes(steps: Sequence[TurnStep], report: WorkReport | None) -> Iterator[Finding]:
    """The changes of approach of a turn, in order."""
    answered: set[int] = set()
    quoted: set[TextSpan] = set()
    for n, step in enumerate(steps):
        if step.act in ("plan", "record"):
            continue
        before = _tried_before(steps, n)
        is_first = step.act == "write" and not any(s.act == "write" for s in steps[:n])
        since = before + 1 if before is not None else 0 if report is not None and is_first else n
        told = [t for s in steps[since : n + 1] for t in s.sentences()]
        signs, words = signs_of_words(told)
        signs |= _signs_of_calls(steps, before, n)
        if report is not None and is_first:
            signs.add(report.kind)
            if report.before.files & set(files_of(step.call)):
                signs.add("same place")
        if report is None and not any(s.act == "write" for s in steps[:n]):
            signs.discard("undoes")  # nothing of its own to take back
        if before is None:
            signs.discard("new way")  # nothing was tried yet
        is_failed = bool(signs & {"failed effect", "failed try", "failed look"}) and "repairs" not in signs
        if is_failed and cause_in(told, words) is not None:
            signs.add("explains")
        if words is None and "same place" not in signs:
            signs |= {"silent"} if signs & REPORTED else _signs_of_silence(steps, before, n)
        if signs & {"new way", "other way"}:
            signs.discard("only reproduced")
        chain = _chain(steps, before)
        score = sum(WEIGHTS[sign] for sign in signs)
        if score < SCORE_MIN or not signs & SETBACKS or (answered & chain and (words is None or before in answered)):
            continue
        answered |= {before} if before is not None else set()
        span = words[0].span(words[1].start, words[1].end) if words else TextSpan(step.call.seq, 0, 0, 0)
        if span in quoted:
            continue
        quoted.add(span)
        failed = _failed_before(steps, before, chain, is_announced=bool(signs & {"gives up", "gave up before"}))
        reason = cause_in(told, words)
        detail = "after a check" if failed and signs & {"failed check", "failed try"} else ""
        score = score if words or "same place" in signs else min(score, SILENT_SCORE)
        yield Finding("approach_change", span, reason, score, (step.call.seq, *failed), detail)


def find_announced_changes(blocks: Sequence[Block], report: WorkReport | None) -> Iterator[Finding]:
    """Changes of approach in a turn without calls, by the agent's words alone: at most one for each text."""
    for said in blocks:
        if not isinstance(said, SpokenText) or said.who != "agent" or len(said.text) > TOLD_MAX:
            continue
        signs, words = signs_of_words([(said, s) for s in sentences_of(said.text)])
        signs.discard("undoes")
        if report is not None:
            signs.add(report.kind)
        score = sum(WEIGHTS[sign] for sign in signs)
        if (
            words is not None
            and score >= SCORE_MIN
            and signs & REPORTED | signs & {"gives up"}
            and "other way" in signs
        ):
            reason = cause_in([(said, s) for s in sentences_of(said.text)], words)
            yield Finding("approach_change", said.span(words[1].start, words[1].end), reason, score)
            report = None


def _failed_before(
    steps: Sequence[TurnStep], before: int | None, chain: set[int], *, is_announced: bool
) -> tuple[Seq, ...]:
    """The call that failed, or that the agent says gave nothing: the first of those that failed in the same way."""
    if before is None or not (steps[before].is_wrong or is_announced):
        return ()
    method = method_of(steps[before].call)
    return (steps[min((k for k in chain if method_of(steps[k].call) == method), default=before)].call.seq,)


def words_that_undo(step: TurnStep) -> Told | None:
    """The words with which a step takes something back."""
    told = [t for t in step.sentences() if failure_cues.UNDOES.search(t[1].text) and not is_idle("undoes", t[1].text)]
    return told[-1] if told else None


def is_undo(step: TurnStep) -> bool:
    """Whether a command takes back changes of files."""
    return bool(_UNDO.search(command_line(step.call.input)))


def _tried_before(steps: Sequence[TurnStep], n: int) -> int | None:
    """The last step before this one that did something, or failed. Looks in between do not count."""
    for k in range(n - 1, max(n - 1 - WITHIN, -1), -1):
        before = steps[k]
        if before.call.batch == steps[n].call.batch or before.act == "plan":
            continue
        if before.act != "look" or (before.is_wrong and k == n - 1):
            return k
    return None


def _chain(steps: Sequence[TurnStep], last: int | None) -> set[int]:
    """The failed steps in a row that end with this one."""
    results: set[int] = set()
    for k in range(last if last is not None else -1, -1, -1):
        if steps[k].is_wrong:
            results.add(k)
        elif steps[k].act != "look":
            break
    return results


def _signs_of_calls(steps: Sequence[TurnStep], before: int | None, n: int) -> set[str]:
    step, signs = steps[n], set[str]()
    if step.act in ("look", "check"):
        signs.add("looks" if step.act == "look" else "checks")
    if before is None or not steps[before].is_wrong:
        return signs
    if is_undo(step) and not step.said:
        signs.add("undoes")
    tried = steps[before]
    is_check = tried.act == "check" or (tried.act == "run" and step.act == "write")
    signs.add(
        f"failed {tried.act}" if tried.act in ("look", "check") else "failed try" if is_check else "failed effect"
    )
    writes = [k for k, s in enumerate(steps[:before]) if s.act == "write" and not is_scratch(s.call)]
    if is_check and step.act == "write" and not writes:
        signs.add("only reproduced")
    again = [k for k in range(before) if steps[k].is_wrong and fails_the_same_way(steps[k].call, tried.call)]
    if again and step.act == "write" and any(again[-1] < k for k in writes):
        signs.add("fails again")
    if len(_chain(steps, before)) > 1:
        signs.add("failed often")
    if is_refused(tried.call) and not tried.call.has_failed:
        signs.add("form refused")
    failed = [steps[k].call for k in _chain(steps, before) if target_of(steps[k].call) == target_of(step.call)]
    if tried.act == step.act == "write" and failed:
        signs.add("same target" if any(call.tool == step.call.tool for call in failed) else "other tool")
        if len({call.batch for call in failed}) >= TRIES_MANY and not step.is_wrong:
            signs.add("failed many times")
    own = (step.call.tool, step.call.input)
    if any((steps[k].call.tool, steps[k].call.input) == own for k in _chain(steps, before)):
        signs.add("same call")
    elif is_service_call(step.call) and method_of(step.call) == method_of(tried.call):
        signs.add("other request")  # the request was changed after a service had refused it
    return signs


def _signs_of_silence(steps: Sequence[TurnStep], before: int | None, n: int) -> set[str]:
    """Signs of a step that nothing was said about: it must try the same thing, and succeed."""
    if before is None or not is_similar(steps[before].call, steps[n].call):
        return {"silent", "something else"}
    return {"silent"} if steps[n].is_wrong else {"silent", "silent success"}
