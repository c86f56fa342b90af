"""How sessions ended and what they were about, as claims about outcomes need it.

A session succeeded or failed when a score says so (the labels `reward` and `score`), else when its outcome does.
Others say nothing about success. Sessions of one task are compared with each other only: the label `task` or
`instance` names it, else the goal does, without numbers.
"""

from __future__ import annotations

import re

from wakelog.patterns.traces import TracedSession

_GOOD = frozenset({"completed", "succeeded", "success", "resolved", "submitted", "passed"})
_BAD = frozenset({"failed", "failure", "error", "unresolved", "gave_up", "timed_out", "exit_error"})
_RIGHT = {"c": True, "i": False, "true": True, "false": False, "correct": True, "incorrect": False}
SUCCESS_LABELS = ("reward", "score", "success", "resolved")
GOAL_WORDS = 12


def success_of(session: TracedSession) -> bool | None:
    """Whether a session succeeded; None when nobody says."""
    for name in SUCCESS_LABELS:
        said = session.labels.get(name, "").strip().lower()
        if said in _RIGHT:
            return _RIGHT[said]
        if re.fullmatch(r"-?\d+(?:\.\d+)?", said):
            return float(said) >= 1.0
    if session.outcome in _GOOD:
        return True
    return False if session.outcome in _BAD else None


def task_of(session: TracedSession) -> str:
    """What a session was about; empty when nothing says."""
    for name in ("task", "instance"):
        if said := session.labels.get(name, ""):
            return f"{session.labels.get('agent', '')}\0{said}\0{session.labels.get('sample', '')}"
    words = re.findall(r"[^\W\d_]+", (session.goal or "").lower())
    return " ".join(words[:GOAL_WORDS])
