"""Steps and courses: on one line for people, in full as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.cli.render.cost import plain_cost
from wakelog.cli.render.values import PEEK_BYTES, plain_value, readable, text_of
from wakelog.compare.step_values import whole
from wakelog.compare.steps import Step
from wakelog.compare.trajectory import Course
from wakelog.log import Log
from wakelog.model.values import Value

_BAD = ("failed", "timed_out", "interrupted", "denied", "never_ran")
_ASIDE = {"sub-agent", "question", "dead end", "evicted", "restored", "retraction", "flag", "gap", "goal", "labels"}


def sign_of(step: Step) -> str:
    """The glyph of a step."""
    if step.gone:
        return "gone"
    if step.outcome in _BAD or step.kind == "gap":
        return "failed"
    if step.outcome in ("uncertain", "retried") or step.trust != "trusted":
        return "warn"
    if step.kind in ("tool", "model") and not step.outcome:
        return "open"
    return "done" if step.kind in ("tool", "model", "end") else "note"


def words_of(log: Log, step: Step) -> str:
    """What was done, on one line; not yet inert."""
    if step.gone:
        return f"{step.kind} {step.name} ({step.gone})".replace("  ", " ")
    given = _peek(log, step.input)
    if step.kind == "tool":
        return f"{step.name} {given}".strip()
    if step.kind == "model":
        return f"model {step.params.get('model') or step.name}".strip()
    if step.kind == "message":
        return f"{step.name}: {given}"
    if step.kind == "end":
        return f"turn {step.outcome}"
    if step.kind == "fact":
        return f"fact {step.name} = {given}"
    if step.kind == "file":
        change = step.input.get("change", "") if isinstance(step.input, dict) else ""
        return f"file {change} {step.name}"
    if step.kind == "data":
        ops = step.input if isinstance(step.input, list) else []
        return "data " + ", ".join(f"{op.get('op')} {op.get('path')}" for op in ops[:20] if isinstance(op, dict))
    name = f" {step.name}" if step.name else ""
    return f"{step.kind}{name} {given}".rstrip()


def result_of(log: Log, step: Step) -> str:
    """What came of it, on one line; empty where nothing does. Not yet inert."""
    if step.gone:
        return ""
    if isinstance(step.error, dict):
        return f"{text_of(step.error.get('type', 'error'))}: {text_of(step.error.get('message', ''))}"
    said = _peek(log, step.output) or (_peek(log, step.said[0]) if step.said else "")
    if step.kind in ("tool", "model"):
        return said if step.outcome == "succeeded" and said else f"{step.outcome or 'no outcome yet'} {said}".strip()
    return said if step.kind in _ASIDE or step.kind == "decision" else ""


def _peek(log: Log, value: Value) -> str:
    """The beginning of a value, for one line."""
    return "" if value is None else readable(whole(log, value, PEEK_BYTES))[:2000]


def plain_step(number: int, step: Step) -> dict[str, Any]:
    """A step as JSON, numbered from 1. Large values stay mentions of their payloads."""
    return {
        "step": number,
        "kind": step.kind,
        "name": step.name or None,
        "seq": step.seq,
        "events": list(step.seqs),
        "turn": step.turn or None,
        "attempt": step.attempt if step.turn else None,
        "input": step.input,
        "outcome": step.outcome or None,
        "output": step.output,
        "said": list(step.said),
        "error": step.error,
        "params": step.params or None,
        "tries": [
            {"try": t.number, "outcome": t.outcome or None, "error": t.error, "duration_us": max(0, t.ended_at - t.at)}
            for t in step.tries
        ],
        "reused": step.reused or None,
        "cause": step.cause or None,
        "cost": plain_cost(msgspec.to_builtins(step.cost)),
        "duration_us": step.duration_us,
        "trust": step.trust,
        "source": step.source or None,
        "why": step.why or None,
        "gone": step.gone or None,
    }


def plain_course(course: Course, *, steps: bool = True) -> dict[str, Any]:
    """A course as JSON."""
    summary = {
        "name": course.name,
        "session": course.session,
        "turn": course.turn or None,
        "attempt": course.attempt or None,
        "first": course.first,
        "last": course.last,
        "outcome": course.outcome or None,
        "in_view": course.in_view,
        "step_count": len(course.steps),
        "calls": course.calls,
        "cost": plain_cost(msgspec.to_builtins(course.cost)),
        "duration_us": course.duration_us,
        "untrusted": list(course.untrusted),
        "files": list(course.files),
        "gone": course.gone,
    }
    return {**summary, "steps": [plain_step(n, s) for n, s in enumerate(course.steps, 1)]} if steps else summary


def plain_difference(value: Value) -> Value:
    return plain_value(value)
