"""Compares two complete runs, such as two trials of one task: the first call that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakelog.diff.turn_diff import RunCall, RunsPart
from wakelog.model.ids import Seq

if TYPE_CHECKING:
    from wakelog.compare.first_call import CallSide
    from wakelog.compare.trajectory import Course
    from wakelog.session.session import Session


def are_runs(one: Session[Any], a: Seq, other: Session[Any], b: Seq) -> bool:
    """Whether two unrelated sessions are compared at their ends. A fork is compared with its parent otherwise."""
    ids = (one.id, other.id)
    if one.id == other.id:
        return False
    heads = [one.head, other.head]
    is_kin = any(head.fork is not None and head.fork.parent in ids for head in heads)
    return not is_kin and [a, b] == [head.seq for head in heads]


def first_call_of(one: Session[Any], other: Session[Any]) -> RunsPart | None:
    """Finds the first call that differs between two runs, with the words that led to it on either side."""
    pair = one.history.compare(other).pairs[0]
    if pair.first_call is None:
        return None
    return RunsPart(_side(pair.a, pair.first_call.a), _side(pair.b, pair.first_call.b))


def _side(course: Course, side: CallSide) -> RunCall:
    if side.step is None:
        return RunCall(None, 0, "", side.said, side.by)
    step = course.steps[side.step]
    return RunCall(step.seq, step.turn, step.name, side.said, side.by)
