"""Whether a session succeeded, and what its task was.

Success is taken from a score (the labels in SUCCESS_LABELS), else from the session's outcome; otherwise it is unknown.
The task is the label `task` or `instance`, else the goal without numbers.
"""

from __future__ import annotations

import re

from wakelog.patterns.traces import TracedSession

_GOOD = frozenset({"completed", "succeeded", "success", "resolved", "submitted", "passed"})
_BAD = frozenset({"failed", "failure", "error", "unresolved", "gave_up", "timed_out", "exit_error"})
_VERDICTS = {"c": True, "i": False, "true": True, "false": False, "correct": True, "incorrect": False}
SUCCESS_LABELS = ("reward", "score", "success", "resolved")
GOAL_WORDS = 12


def success_of(session: TracedSession) -> bool | None:
    """Whether a session succeeded; None if unknown."""
    for name in SUCCESS_LABELS:
        value = session.labels.get(name, "").strip().lower()
        if value in _VERDICTS:
            return _VERDICTS[value]
        if re.fullmatch(r"-?\d+(?:\.\d+)?", value):
            return float(value) >= 1.0
    if session.outcome in _GOOD:
        return True
    return False if session.outcome in _BAD else None


def task_of(session: TracedSession) -> str:
    """A key for the task of a session; empty if unknown."""
    for name in ("task", "instance"):
        if task := session.labels.get(name, ""):
            return f"{session.labels.get('agent', '')}\0{task}\0{session.labels.get('sample', '')}"
    words = re.findall(r"[^\W\d_]+", (session.goal or "").lower())
    return " ".join(words[:GOAL_WORDS])
