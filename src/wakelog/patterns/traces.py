"""Traces: the steps of each turn in order. Patterns are found in these.

A few sessions are read at a time, so that the steps of a large store need not fit into memory. They come one fork tree
after another, so a counter of fork trees only has to remember the last one. Rewound steps are included: they happened.

Whether a session succeeded is taken from a score (the labels in SUCCESS_LABELS), else from its outcome; otherwise it is
unknown. Its task is the label `task` or `instance`, else the goal without numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from wakelog.index.connection import Connection, as_rows
from wakelog.model.ids import Seq, SessionId

PAGE = 50
"""How many sessions to read at a time."""
_GOOD = frozenset({"completed", "succeeded", "success", "resolved", "submitted", "passed"})
_BAD = frozenset({"failed", "failure", "error", "unresolved", "gave_up", "timed_out", "exit_error"})
_VERDICTS = {"c": True, "i": False, "true": True, "false": False, "correct": True, "incorrect": False}
SUCCESS_LABELS = ("reward", "score", "success", "resolved")
GOAL_WORDS = 12

_SESSIONS = """
select s.no, s.id, s.name, s.root, s.project, s.agent, s.status, s.outcome, s.goal, s.labels, s.first_at, s.last_at,
    s.tokens, s.usd_micros, (select max(c.model) from wl_cost c where c.session = s.no)
from wl_session s where s.hidden = 0 and (:project is null or s.project = :project)
    and s.last_at >= :since and s.first_at <= :until
"""
_STEPS = """
select x.session, x.seq, x.asked, x.turn, x.attempt, x.label, x.target, x.act, x.outcome, x.input, x.signature,
    x.duration_us, x.at, x.trust
from json_each(:sessions) p cross join wl_step x on x.session = cast(p.value ->> 0 as bigint)
order by x.session, x.asked, x.seq
"""


class TracedStep(msgspec.Struct, frozen=True, gc=False):
    """One step of a turn."""

    seq: Seq
    asked: Seq
    turn: int
    attempt: int
    label: str
    target: str
    act: str
    outcome: str
    input: str
    signature: str
    duration_us: int
    at: int
    distrust: int

    @property
    def has_failed(self) -> bool:
        return self.outcome in ("failed", "timed_out")


class TracedSession(msgspec.Struct, frozen=True):
    """A session with its steps."""

    no: int
    id: SessionId
    name: str
    root: str
    project: str
    agent: str
    status: str
    outcome: str
    goal: str | None
    labels: dict[str, str]
    first_at: int
    last_at: int
    tokens: int
    usd_micros: int
    model: str
    steps: tuple[TracedStep, ...] = ()

    def turns(self) -> Iterator[list[TracedStep]]:
        return by_turn(self.steps)

    @property
    def success(self) -> bool | None:
        """Whether the session succeeded; None if unknown."""
        for name in SUCCESS_LABELS:
            value = self.labels.get(name, "").strip().lower()
            if value in _VERDICTS:
                return _VERDICTS[value]
            if re.fullmatch(r"-?\d+(?:\.\d+)?", value):
                return float(value) >= 1.0
        if self.outcome in _GOOD:
            return True
        return False if self.outcome in _BAD else None

    @property
    def task(self) -> str:
        """A key for the session's task; empty if unknown."""
        for name in ("task", "instance"):
            if task := self.labels.get(name, ""):
                return f"{self.labels.get('agent', '')}\0{task}\0{self.labels.get('sample', '')}"
        words = re.findall(r"[^\W\d_]+", (self.goal or "").lower())
        return " ".join(words[:GOAL_WORDS])


def by_turn(steps: Iterable[TracedStep]) -> Iterator[list[TracedStep]]:
    """Groups steps by turn and attempt."""
    turns: dict[tuple[int, int], list[TracedStep]] = {}
    for step in steps:
        turns.setdefault((step.turn, step.attempt), []).append(step)
    return iter(turns.values())


def traced_sessions(
    db: Connection,
    project: str | None = None,
    *,
    since: int | None = None,
    until: int | None = None,
) -> Iterator[TracedSession]:
    """All sessions of one project or of all projects: one fork tree after another, oldest first."""
    values = {"project": project, "since": since or 0, "until": until or (1 << 62)}
    all_rows = sorted(db.execute(_SESSIONS, values).fetchall(), key=lambda row: (row[3], row[1]))
    for start in range(0, len(all_rows), PAGE):
        rows = all_rows[start : start + PAGE]
        results = steps_of(db, [row[0] for row in rows])
        for row in rows:
            yield _session(row, results.pop(row[0], []))


def _session(row: Sequence[Any], steps: list[TracedStep]) -> TracedSession:
    labels = msgspec.json.decode(row[9], type=dict[str, str])
    model = row[14] or labels.get("model", "")
    fields: list[Any] = [*row[:9], labels, *row[10:14], model, tuple(steps)]
    return TracedSession(*fields)


def steps_of(db: Connection, numbers: Iterable[int]) -> dict[int, list[TracedStep]]:
    """The steps of these sessions, by session number, in the order of their requests."""
    out: dict[int, list[TracedStep]] = {}
    for row in db.execute(_STEPS, {"sessions": as_rows((number,) for number in numbers)}).fetchall():
        out.setdefault(row[0], []).append(TracedStep(*row[1:]))
    return out
