"""The first call that differs, and the words that led to it.

Two runs of one task differ in their wording almost at once. What a person looks for comes later: the first thing that
one run did and the other did not, or did with another input. The recorded reason is what the model said when it
requested the call, or, if it said nothing, the user's words before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from wakelog.compare.alignment import AlignedStep
from wakelog.compare.divergence import deciding_call
from wakelog.compare.steps import fetch_payloads
from wakelog.compare.trajectory import Course
from wakelog.log import Log
from wakelog.model.parts import Text, parts_of
from wakelog.model.values import Value

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


class CallSide(msgspec.Struct, frozen=True):
    """What one of the two courses did there."""

    step: int | None
    """The call, by its place in the course (from 0); None if this side made none."""
    said: str = ""
    """What was said before it, without code."""
    by: Literal["model", "user", ""] = ""


class FirstCall(msgspec.Struct, frozen=True):
    """Where two courses first did different things."""

    row: int
    a: CallSide
    b: CallSide


def first_call(log_a: Log, a: Course, log_b: Log, b: Course, rows: Sequence[AlignedStep]) -> FirstCall | None:
    """The first tool call that only one side made, or that was made with another input; None if there is none."""
    for at, row in enumerate(rows):
        if row.verdict in ("same", "unknown") or (row.verdict == "differs" and "input" not in row.what):
            continue
        place, course = (row.a, a) if row.a is not None else (row.b, b)
        if place is None or course.steps[place].kind != "tool":
            continue
        next_a = next((r for r in rows[at:] if r.a is not None), None)
        next_b = next((r for r in rows[at:] if r.b is not None), None)
        return FirstCall(
            at,
            _describe_side(log_a, a, next_a.a if next_a is not None else None, next_a),
            _describe_side(log_b, b, next_b.b if next_b is not None else None, next_b),
        )
    return None


def _describe_side(log: Log, course: Course, at: int | None, row: AlignedStep | None) -> CallSide:
    """The next step of a side. If it is a different call, that call was made instead. If it is no call, the words that
    led to it are still given."""
    is_call = at is not None and course.steps[at].kind == "tool" and row is not None and row.verdict != "same"
    place = at if is_call else None
    call = deciding_call(course, at)
    said = _words(fetch_payloads(log, call.output)) if call is not None and not call.gone else ""
    if said:
        return CallSide(place, said, "model")
    steps = course.steps if at is None else course.steps[: at + 1]
    step = next((s for s in reversed(steps) if s.kind == "input" and not s.gone), None)
    said = _words(fetch_payloads(log, step.input)) if step is not None else ""
    return CallSide(place, said, "user" if said else "")


def _words(content: Value) -> str:
    """The text of a message on one line."""
    text = content if isinstance(content, str) else "\n".join(p.text for p in parts_of(content) if isinstance(p, Text))
    return " ".join(_CODE.sub(" ", text).split())
