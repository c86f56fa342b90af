"""The first divergence: where two courses differ first, why, and what followed.

A step is explained by its inputs. For the first step that differs, the model call that decided it is found on each
side, and five things are compared: the prompt, the model, its parameters, the items in its window, and the state it
could read. Each is the same, or different, or not recorded; nothing is guessed. If all are the same, the answer is that
the same question got another answer.

For what followed, a later step *depends* on the first divergence if it names it as its cause or origin, directly or
through other steps. The other steps only came after it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from wakelog.compare.alignment import (
    AlignedStep,
    in_one_shape,
    own_input,
    parameters_of,
    said_by_number,
)
from wakelog.compare.model_windows import WindowItem, Windows
from wakelog.compare.normal_form import digest, normalize_volatile
from wakelog.compare.steps import Step, fetch_payloads, is_whole
from wakelog.compare.trajectory import Course
from wakelog.diff.turn_diff import Change, TurnDiff, turn_diff, value_at
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.state.diff import diff

Verdict = Literal["same", "differs", "unknown"]
Rests = Literal["cause", "derived", "after"]


class Difference(msgspec.Struct, frozen=True):
    """One value that differs; `pointer` is where in it, empty for all of it. None means that nothing is there."""

    what: str
    pointer: str
    a: Value
    b: Value
    by_hash: bool = False
    """Too large to be fetched: compared by hash."""


class DivergenceFactor(msgspec.Struct, frozen=True):
    """One input of the step, compared with the same input on the other side."""

    what: str
    """prompt, model, parameters, context or state."""
    verdict: Verdict
    note: str = ""
    """Why it is unknown, or what a difference amounts to."""
    differences: tuple[Difference, ...] = ()
    only_a: tuple[WindowItem, ...] = ()
    only_b: tuple[WindowItem, ...] = ()
    changes: tuple[Change, ...] = ()
    """For the state: what is different on the second side."""
    held_back_a: tuple[WindowItem, ...] = ()
    """For the context, if it is known of one side only: messages of its history that its model was not given."""
    held_back_b: tuple[WindowItem, ...] = ()


class Followed(msgspec.Struct, frozen=True):
    """A later step of one side that differs too, and whether it depends on the divergence."""

    step: int
    rests: Rests


class Divergence(msgspec.Struct, frozen=True):
    """Where two courses part."""

    row: int
    same_before: int
    """How many steps are the same before it."""
    what: tuple[str, ...]
    """What differs there; `step` when they did different things."""
    a: int | None
    b: int | None
    """The next step on each side (from 0); None when that side had ended."""
    differences: tuple[Difference, ...]
    behind: tuple[DivergenceFactor, ...]
    followed_a: tuple[Followed, ...]
    followed_b: tuple[Followed, ...]


class Pairing:
    """Two courses with their logs, and what is needed to explain where they part."""

    def __init__(self, log_a: Log, a: Course, log_b: Log, b: Course, shared: Seq) -> None:
        self.log_a, self.a = log_a, a
        self.log_b, self.b = log_b, b
        self.windows = Windows(log_a, log_b, shared)

    def explain(self, rows: Sequence[AlignedStep], at: int) -> Divergence:
        """Describes the row where the courses part."""
        row = rows[at]
        i = next((r.a for r in rows[at:] if r.a is not None), None)
        j = next((r.b for r in rows[at:] if r.b is not None), None)
        step_a = self.a.steps[i] if i is not None else None
        step_b = self.b.steps[j] if j is not None else None
        paired = row.a is not None and row.b is not None
        return Divergence(
            row=at,
            same_before=sum(r.verdict == "same" for r in rows[:at]),
            what=row.what if paired else ("step",),
            a=i,
            b=j,
            differences=self._differences(step_a, step_b, row.what) if paired and step_a and step_b else (),
            behind=tuple(self._behind(i, step_a, j, step_b)),
            followed_a=_followed(self.a, step_a, [r.a for r in rows[at + 1 :] if r.verdict != "same"]),
            followed_b=_followed(self.b, step_b, [r.b for r in rows[at + 1 :] if r.verdict != "same"]),
        )

    def _differences(self, a: Step, b: Step, what: tuple[str, ...]) -> tuple[Difference, ...]:
        out: list[Difference] = []
        for word in what:
            if word in ("prompt", "input", "content", "choice", "value"):
                out += differences(
                    word, fetch_payloads(self.log_a, own_input(a)), fetch_payloads(self.log_b, own_input(b))
                )
            elif word == "outcome":
                out.append(Difference(word, "", a.outcome, b.outcome))
                if a.error != b.error:
                    out += differences("error", a.error, b.error)
            elif word == "error" and "outcome" not in what:
                out += differences(word, a.error, b.error)
            elif word in ("output", "reason"):
                out += differences(
                    word, *in_one_shape(a, fetch_payloads(self.log_a, a.output), fetch_payloads(self.log_b, b.output))
                )
                said_a, said_b = (
                    fetch_payloads(self.log_a, said_by_number(a)),
                    fetch_payloads(self.log_b, said_by_number(b)),
                )
                out += differences("said", said_a, said_b)
            elif word == "trust":
                out.append(Difference(word, "", _trust(a), _trust(b)))
        return tuple(out)

    def _behind(self, i: int | None, a: Step | None, j: int | None, b: Step | None) -> list[DivergenceFactor]:
        """Compares the inputs of the first step that differs."""
        findings = [self._prompt(i, j)]
        call_a, call_b = deciding_call(self.a, i), deciding_call(self.b, j)
        if call_a is None or call_b is None:
            sides = [c.name for c, call in ((self.a, call_a), (self.b, call_b)) if call is None]
            note = "no model call recorded before it" + (f" in {sides[0]}" if len(sides) == 1 else "")
            findings += [DivergenceFactor(what, "unknown", note) for what in ("model", "parameters", "context")]
        else:
            findings += [self._model(call_a, call_b), self._parameters(call_a, call_b), self.context(call_a, call_b)]
        return [*findings, self._state(a, b)]

    def _prompt(self, i: int | None, j: int | None) -> DivergenceFactor:
        a, b = _prompt_of(self.a, i), _prompt_of(self.b, j)
        if a is None or b is None:
            return DivergenceFactor("prompt", "unknown", "no input of a turn is among the steps")
        if a.gone or b.gone:
            return DivergenceFactor("prompt", "unknown", f"it was {a.gone or b.gone}")
        if a.exact_key == b.exact_key or a.key == b.key:
            return DivergenceFactor("prompt", "same", "" if a.exact_key == b.exact_key else "but for ids or times")
        results = differences("prompt", fetch_payloads(self.log_a, a.input), fetch_payloads(self.log_b, b.input))
        return DivergenceFactor("prompt", "differs", differences=tuple(results))

    def _model(self, a: Step, b: Step) -> DivergenceFactor:
        if not (a.model and b.model):
            return DivergenceFactor("model", "unknown", "not recorded")
        if a.model == b.model:
            return DivergenceFactor("model", "same", a.model)
        return DivergenceFactor("model", "differs", differences=(Difference("model", "", a.model, b.model),))

    def _parameters(self, a: Step, b: Step) -> DivergenceFactor:
        found = tuple(differences("parameters", parameters_of(a), parameters_of(b)))
        if found:
            return DivergenceFactor("parameters", "differs", differences=found)
        if not a.params and not b.params:
            return DivergenceFactor("parameters", "unknown", "none recorded")
        return DivergenceFactor("parameters", "same")

    def context(self, a: Step, b: Step) -> DivergenceFactor:
        """Compares what two model calls were shown."""
        if a.context_hash and a.context_hash == b.context_hash:
            return DivergenceFactor("context", "same")
        if not a.derived_from or not b.derived_from:
            if a.context_hash and b.context_hash:
                return DivergenceFactor("context", "differs", "its items were not recorded")
            return DivergenceFactor(
                "context",
                "unknown",
                "not recorded",
                held_back_a=tuple(self.windows.held_back(0, a.derived_from, a.seq)) if a.derived_from else (),
                held_back_b=tuple(self.windows.held_back(1, b.derived_from, b.seq)) if b.derived_from else (),
            )
        only_a, only_b = self.windows.compare(a.derived_from, b.derived_from)
        if only_a or only_b:
            return DivergenceFactor("context", "differs", only_a=tuple(only_a), only_b=tuple(only_b))
        return DivergenceFactor("context", "same", "the same items" if a.context_hash != b.context_hash else "")

    def _state(self, a: Step | None, b: Step | None) -> DivergenceFactor:
        at_a = a.seq - 1 if a is not None else self.a.last
        at_b = b.seq - 1 if b is not None else self.b.last
        try:
            changes = state_changes(self.log_a, at_a, self.log_b, at_b)
        except NotFoundError as exc:
            return DivergenceFactor("state", "unknown", exc.message)
        return DivergenceFactor("state", "differs", changes=changes) if changes else DivergenceFactor("state", "same")


def _trust(step: Step) -> str:
    return f"{step.trust} ({step.source})" if step.source else step.trust


def _prompt_of(course: Course, upto: int | None) -> Step | None:
    steps = course.steps if upto is None else course.steps[: upto + 1]
    return next((s for s in reversed(steps) if s.kind == "input"), None)


def deciding_call(course: Course, at: int | None) -> Step | None:
    """The model call that decided a step: the step itself, the one its cause names, or else the newest before it."""
    if at is not None and course.steps[at].kind == "model":
        return course.steps[at]
    before = [s for s in (course.steps if at is None else course.steps[:at]) if s.kind == "model"]
    if at is not None and (cause := course.steps[at].cause):
        step = next((s for s in reversed(before) if cause in s.seqs), None)
        if step is not None:
            return step
    return before[-1] if before else None


def differences(what: str, a: Value, b: Value) -> list[Difference]:
    """Where two values differ, by pointer, apart from ids and times."""
    if digest(normalize_volatile(a)) == digest(normalize_volatile(b)):
        return []
    by_hash = not is_whole(a) or not is_whole(b)
    if type(a) is not type(b) or not isinstance(a, dict | list) or by_hash:
        return [Difference(what, "", a, b, by_hash)]
    out = []
    for op in diff(a, b):
        pointer = op["path"]
        before = None if op["op"] == "add" else value_at(a, pointer)
        if digest(normalize_volatile(before)) != digest(normalize_volatile(op.get("value"))):
            out.append(Difference(what, pointer, before, op.get("value")))
    return out


def _followed(course: Course, origin: Step | None, later: list[int | None]) -> tuple[Followed, ...]:
    if origin is None:
        return ()
    reached: list[Seq] = list(origin.seqs)
    rests: dict[int, Rests] = {}
    for place, step in enumerate(course.steps):
        if step.seq <= origin.seq:
            continue
        how = _dependence(step, reached)
        rests[place] = how
        if how != "after":
            for seq in step.seqs:
                insort(reached, seq)
    return tuple(Followed(place, rests[place]) for place in later if place is not None and place in rests)


def _dependence(step: Step, reached: list[Seq]) -> Rests:
    if step.cause and _any_within(reached, step.cause, step.cause):
        return "cause"
    if any(_any_within(reached, first, last) for first, last in step.derived_from):
        return "derived"
    return "after"


def _any_within(seqs: list[Seq], first: Seq, last: Seq) -> bool:
    """Whether any of the sorted seqs is in a range."""
    at = bisect_left(seqs, first)
    return at < len(seqs) and seqs[at] <= last


# Which differences between two states are more than bookkeeping

_POSITIONS = {"seq", "last", "handle", "turn", "evidence", "key"}
_KEYED_BY_PLACE = ("decisions", "dead ends", "pending", "sub-agents")
_PROGRAM = frozenset({"/labels/origin", "/labels/agent", "/labels/framework", "/labels/thread"})


def state_changes(log_a: Log, a: Seq, log_b: Log, b: Seq) -> tuple[Change, ...]:
    """The significant changes between two states, each with its writer. Usually there are none; the first, cheap diff
    finds that out without reading events to name writers."""
    if not significant_changes(turn_diff(log_a, a, log_b, b, named=False)):
        return ()
    return significant_changes(turn_diff(log_a, a, log_b, b))


def significant_changes(found: TurnDiff) -> tuple[Change, ...]:
    """The changes that are about more than a position in the log or money spent."""
    files = {c.key for c in found.of("files")}
    changes = [c for c in found.changes if not _is_bookkeeping(c, files) and not _only_moved(c)]
    # Some entries are keyed by their position in the log. The same entry removed at one key and added at another has
    # only moved.
    removed = Counter((c.part, digest(_bare(c.before))) for c in changes if c.how == "removed")
    added = Counter((c.part, digest(_bare(c.after))) for c in changes if c.how == "added")
    moved = {"removed": removed & added, "added": removed & added}
    return tuple(c for c in changes if c.part not in _KEYED_BY_PLACE or not _take_moved(moved, c))


def _is_bookkeeping(change: Change, files: set[str]) -> bool:
    """Whether a change only repeats something else: counts of calls and money, which courses sum up themselves; files
    that are listed as files; the status `open` of a new fork; and the program and id of an imported session."""
    if change.part == "status":
        return {change.before, change.after} == {"open", "active"}
    if change.pointer.startswith("/working_set/files/"):
        return change.key in files
    return change.part == "tools" or change.pointer.startswith("/budget/spent") or change.pointer in _PROGRAM


def _take_moved(moved: dict[str, Counter[tuple[str, bytes]]], change: Change) -> bool:
    """Whether the change is one half of a move; each half is counted off once."""
    if change.how == "changed":
        return False
    entry = (change.part, digest(_bare(change.after if change.how == "added" else change.before)))
    if not moved[change.how][entry]:
        return False
    moved[change.how][entry] -= 1
    return True


def _only_moved(change: Change) -> bool:
    if change.how != "changed":
        return False
    return change.part == "resources" or digest(_bare(change.before)) == digest(_bare(change.after))


def _bare(value: Value) -> Value:
    """The value without its positions in the log."""
    return {k: v for k, v in value.items() if k not in _POSITIONS} if type(value) is dict else value
