"""Two sets of sessions side by side: what differs in outcomes, cost, time, errors and steps.

Sessions of one task are compared with each other, where both sets have the task; what is left over is not compared, and
is counted. Each difference has its size first, with the range it has when tasks are drawn again (bootstrap), and the
chance to see it if the sets did not differ (which session is in which set is shuffled within tasks). Many things are
asked at once, so only what stays after Benjamini–Hochberg at 5 % is called a difference. Without common tasks a
difference may be one of tasks, and the answer says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from wakelog.index.results import AsOf
from wakelog.patterns.outcomes import SUCCESS_LABELS, success_of, task_of
from wakelog.patterns.statistics import benjamini_hochberg, median
from wakelog.patterns.traces import TracedSession

ROUNDS: Final = 1000
LEAST: Final = 5
"""With fewer sessions in a set there are too few."""
STEPS_MAX: Final = 30
"""So many of the most used steps are asked about."""
SEED: Final = 7

OUTCOMES = frozenset({"outcome", *SUCCESS_LABELS})
Groups = list[tuple[list[float], list[float]]]
"""For each task, the values of both sets."""


class Cohort(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which sessions are in a set: all these labels (or agent, model, outcome), within these times."""

    where: dict[str, str] = {}
    since: int | None = None
    until: int | None = None

    def has(self, session: TracedSession) -> bool:
        own = {"agent": session.agent or session.labels.get("agent", ""), "model": session.model}
        own |= {"outcome": session.outcome, "status": session.status, "project": session.project}
        for name, value in self.where.items():
            if session.labels.get(name) != value and own.get(name) != value:
                return False
        if self.since is not None and session.first_at < self.since:
            return False
        return self.until is None or session.first_at < self.until


class CohortDifference(msgspec.Struct, frozen=True):
    """One thing that was compared."""

    name: str
    unit: str
    """`share` of sessions, or what a number counts."""
    a: float
    b: float
    difference: float
    """How much more it is in b, within tasks."""
    low: float
    high: float
    """The range of that (95 %)."""
    chance: float
    verdict: str
    """`more` or `less` in b, `no difference`, or `too few`."""


class CohortComparison(msgspec.Struct, frozen=True):
    """What differs between two sets of sessions; what differs most surely comes first."""

    a: int
    """How many sessions are in each set."""
    b: int
    tasks: int
    """How many tasks both have; 0: all sessions were compared with all."""
    compared: int
    differences: tuple[CohortDifference, ...]
    notes: tuple[str, ...]
    as_of: AsOf


class SessionFigures(msgspec.Struct, frozen=True):
    """What is compared of one session."""

    task: str
    success: bool | None
    values: dict[str, float]
    labels: frozenset[str]


_UNITS = {"calls": "calls", "errors": "share", "tokens": "tokens", "usd": "usd", "seconds": "s", "turns": "turns"}


def figures_of(session: TracedSession) -> SessionFigures:
    """What a session came to. What is zero because nobody told is left out."""
    calls = len(session.steps)
    values = {"calls": float(calls), "turns": float(len({step.turn for step in session.steps}))}
    if calls:
        values["errors"] = sum(step.has_failed for step in session.steps) / calls
    if session.tokens:
        values["tokens"] = float(session.tokens)
    if session.usd_micros:
        values["usd"] = session.usd_micros / 1e6
    if spent := sum(step.duration_us for step in session.steps):
        values["seconds"] = spent / 1e6
    labels = frozenset(step.label for step in session.steps)
    return SessionFigures(task_of(session), success_of(session), values, labels)


def compare_cohorts(sessions: Iterable[TracedSession], a: Cohort, b: Cohort, as_of: AsOf) -> CohortComparison:
    """Compares two sets; a session that is in both counts in neither. Of a fork tree the root counts."""
    sides: tuple[list[SessionFigures], list[SessionFigures]] = ([], [])
    both = 0
    for session in sessions:
        if session.id != session.root:
            continue
        in_a, in_b = a.has(session), b.has(session)
        both += in_a and in_b
        if in_a != in_b:
            sides[0 if in_a else 1].append(figures_of(session))
    notes = [f"{both} sessions are in both sets, and count in neither"] if both else []
    shared = {f.task for f in sides[0] if f.task} & {f.task for f in sides[1] if f.task}
    if not shared and sides[0] and sides[1]:
        notes.append("the sets have no task in common: what differs may be the tasks")
    if min(map(len, sides)) < LEAST:
        notes.append(f"too few: {len(sides[0])} and {len(sides[1])} sessions; each set needs {LEAST}")
    kept = [[f for f in side if f.task in shared] if shared else side for side in sides]
    found = _differences(kept[0], kept[1], shared) if min(map(len, kept)) else []
    if {*a.where, *b.where} & OUTCOMES:  # sets that are chosen by how they ended differ in that
        found = [each for each in found if each.name != "success"]
    if min(map(len, kept), default=0) < LEAST:
        found = [msgspec.structs.replace(each, verdict="too few", chance=1.0) for each in found]
    compared = len(kept[0]) + len(kept[1])
    return CohortComparison(len(sides[0]), len(sides[1]), len(shared), compared, tuple(found), tuple(notes), as_of)


def _differences(a: Sequence[SessionFigures], b: Sequence[SessionFigures], tasks: set[str]) -> list[CohortDifference]:
    asked: list[tuple[str, str, Callable[[SessionFigures], float | None]]] = [("success", "share", _succeeded)]
    asked += [(name, unit, _reader_of(name)) for name, unit in _UNITS.items()]
    asked += [(f"uses {label}", "share", _user_of(label)) for label in _common_labels([*a, *b])]
    made = []
    for name, unit, read in asked:
        groups = _groups(a, b, tasks, read)
        if groups:
            made.append((name, unit, groups, *_tested(groups)))
    kept = benjamini_hochberg([each[-1] for each in made])
    out = []
    for (name, unit, groups, difference, low, high, chance), is_kept in zip(made, kept, strict=True):
        first, second = ([v for group in groups for v in group[side]] for side in (0, 1))
        middle = _mean if unit == "share" else median
        verdict = ("more" if difference > 0 else "less") if is_kept else "no difference"
        out.append(
            CohortDifference(
                name=name,
                unit=unit,
                a=round(middle(first), 4),
                b=round(middle(second), 4),
                difference=round(difference, 4),
                low=round(low, 4),
                high=round(high, 4),
                chance=round(chance, 4),
                verdict=verdict,
            )
        )
    order = {"success": 0, **dict.fromkeys(_UNITS, 1)}
    return sorted(out, key=lambda d: (d.verdict == "no difference", order.get(d.name, 2), d.chance, d.name))


def _succeeded(figures: SessionFigures) -> float | None:
    return None if figures.success is None else float(figures.success)


def _reader_of(name: str) -> Callable[[SessionFigures], float | None]:
    return lambda figures: figures.values.get(name)


def _user_of(label: str) -> Callable[[SessionFigures], float | None]:
    return lambda figures: float(label in figures.labels)


def _groups(
    a: Sequence[SessionFigures],
    b: Sequence[SessionFigures],
    tasks: set[str],
    read: Callable[[SessionFigures], float | None],
) -> Groups:
    """The values by task; all together where there is no common task."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for side, figures in enumerate((a, b)):
        for each in figures:
            value = read(each)
            if value is not None:
                found.setdefault(each.task if tasks else "", ([], []))[side].append(value)
    return [found[task] for task in sorted(found) if all(found[task])]


def _tested(groups: Groups) -> tuple[float, float, float, float]:
    """The difference within tasks, its range, and its chance."""
    dice = random.Random(SEED)
    weighed = [_weighed(*group) for group in groups]
    seen = _difference(weighed)
    if len(groups) > 1:
        drawn = sorted(_difference(dice.choices(weighed, k=len(weighed))) for _ in range(ROUNDS))
    else:
        a, b = groups[0]
        again = (_weighed(dice.choices(a, k=len(a)), dice.choices(b, k=len(b))) for _ in range(ROUNDS))
        drawn = sorted(_difference([each]) for each in again)
    low, high = drawn[int(0.025 * ROUNDS)], drawn[int(0.975 * ROUNDS)]
    # Groups in which all values are the same stay as they are, however they are shuffled.
    pooled = [([*a, *b], len(a), sum(a) + sum(b)) for a, b in groups if len({*a, *b}) > 1]
    scale = sum(weight for weight, _ in weighed)
    worse = 0
    for _ in range(ROUNDS):
        up = 0.0
        for values, size, total in pooled:
            first = sum(dice.sample(values, size))
            rest = len(values) - size
            up += size * rest / len(values) * ((total - first) / rest - first / size)
        worse += abs(up / scale) >= abs(seen) - 1e-12
    return seen, low, high, (worse + 1) / (ROUNDS + 1)


def _weighed(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """How much a task can tell, and by how much the second set has more."""
    return len(a) * len(b) / (len(a) + len(b)), _mean(b) - _mean(a)


def _difference(weighed: Sequence[tuple[float, float]]) -> float:
    """The mean difference within tasks."""
    return sum(weight * by for weight, by in weighed) / sum(weight for weight, _ in weighed)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _common_labels(figures: Sequence[SessionFigures]) -> list[str]:
    counts: dict[str, int] = {}
    for each in figures:
        for label in each.labels:
            counts[label] = counts.get(label, 0) + 1
    telling = [label for label, count in counts.items() if count >= LEAST]
    return sorted(telling, key=lambda label: (-counts[label], label))[:STEPS_MAX]
