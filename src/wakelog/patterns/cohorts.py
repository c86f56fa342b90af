"""Compares two sets of sessions: outcomes, cost, time, errors and steps.

Sessions are compared within tasks that both sets have; the others are counted but not compared. Each difference has its
size, a bootstrap range (tasks drawn again), and the chance of seeing it if the sets did not differ (sessions shuffled
between the sets within tasks). Many things are tested at once, so only what remains after Benjamini–Hochberg at 5 % is
called a difference. Without common tasks, the tasks themselves may explain a difference, and the answer says so.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from wakelog.index.questions import IndexQuestion
from wakelog.index.results import AsOf
from wakelog.index.statements import IndexMoment
from wakelog.patterns.statistics import benjamini_hochberg, median
from wakelog.patterns.traces import SUCCESS_LABELS, TracedSession, traced_sessions

ROUNDS: Final = 1000
SESSIONS_MIN: Final = 5
"""With fewer sessions in a set, every verdict is `too few`."""
STEPS_MAX: Final = 30
"""How many of the most used steps to compare."""
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
    """How much higher it is in b, within tasks."""
    low: float
    high: float
    """The 95 % range of the difference."""
    chance: float
    verdict: str
    """`more` or `less` in b, `no difference`, or `too few`."""


class CohortComparison(msgspec.Struct, frozen=True):
    """What differs between two sets of sessions, the most certain first."""

    a: int
    """How many sessions are in each set."""
    b: int
    tasks: int
    """How many tasks both have; with 0, all sessions were compared with all."""
    compared: int
    differences: tuple[CohortDifference, ...]
    notes: tuple[str, ...]
    as_of: AsOf


class AskCohorts(IndexQuestion, frozen=True):
    """What differs between two sets of sessions, given by labels, agent, model, outcome or time."""

    a: Cohort
    b: Cohort
    project: str | None = None

    def __call__(self, reading: IndexMoment) -> CohortComparison:
        return compare_cohorts(traced_sessions(reading.db, self.project), self.a, self.b, reading.as_of)


class SessionFigures(msgspec.Struct, frozen=True):
    """What is compared of one session."""

    task: str
    success: bool | None
    values: dict[str, float]
    labels: frozenset[str]


_UNITS = {"calls": "calls", "errors": "share", "tokens": "tokens", "usd": "usd", "seconds": "s", "turns": "turns"}


def figures_of(session: TracedSession) -> SessionFigures:
    """The figures of a session. Tokens, money and time are left out if nothing was reported."""
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
    return SessionFigures(session.task, session.success, values, labels)


def compare_cohorts(sessions: Iterable[TracedSession], a: Cohort, b: Cohort, as_of: AsOf) -> CohortComparison:
    """Compares two sets. A session in both counts in neither. Only the root of a fork tree counts."""
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
    if min(map(len, sides)) < SESSIONS_MIN:
        notes.append(f"too few: {len(sides[0])} and {len(sides[1])} sessions; each set needs {SESSIONS_MIN}")
    kept = [[f for f in side if f.task in shared] if shared else side for side in sides]
    differences = _differences(kept[0], kept[1], shared) if min(map(len, kept)) else []
    if {*a.where, *b.where} & OUTCOMES:  # sets chosen by outcome differ in success by definition
        differences = [difference for difference in differences if difference.name != "success"]
    if min(map(len, kept), default=0) < SESSIONS_MIN:
        differences = [msgspec.structs.replace(difference, verdict="too few", chance=1.0) for difference in differences]
    compared = len(kept[0]) + len(kept[1])
    return CohortComparison(
        len(sides[0]), len(sides[1]), len(shared), compared, tuple(differences), tuple(notes), as_of
    )


def _differences(a: Sequence[SessionFigures], b: Sequence[SessionFigures], tasks: set[str]) -> list[CohortDifference]:
    figures: list[tuple[str, str, Callable[[SessionFigures], float | None]]] = [("success", "share", _success)]
    figures += [(name, unit, _value_reader(name)) for name, unit in _UNITS.items()]
    figures += [(f"uses {label}", "share", _label_reader(label)) for label in _common_labels([*a, *b])]
    tested = []
    for name, unit, read in figures:
        groups = _groups(a, b, tasks, read)
        if groups:
            tested.append((name, unit, groups, *_test_difference(groups)))
    kept = benjamini_hochberg([result[-1] for result in tested])
    out = []
    for (name, unit, groups, difference, low, high, chance), is_kept in zip(tested, kept, strict=True):
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


def _success(figures: SessionFigures) -> float | None:
    return None if figures.success is None else float(figures.success)


def _value_reader(name: str) -> Callable[[SessionFigures], float | None]:
    return lambda figures: figures.values.get(name)


def _label_reader(label: str) -> Callable[[SessionFigures], float | None]:
    return lambda figures: float(label in figures.labels)


def _groups(
    a: Sequence[SessionFigures],
    b: Sequence[SessionFigures],
    tasks: set[str],
    read: Callable[[SessionFigures], float | None],
) -> Groups:
    """The values by task; in one group if there is no common task."""
    results: dict[str, tuple[list[float], list[float]]] = {}
    for side, sessions in enumerate((a, b)):
        for figures in sessions:
            value = read(figures)
            if value is not None:
                results.setdefault(figures.task if tasks else "", ([], []))[side].append(value)
    return [results[task] for task in sorted(results) if all(results[task])]


def _test_difference(groups: Groups) -> tuple[float, float, float, float]:
    """The difference within tasks, its 95 % range (bootstrap), and its chance (permutation test)."""
    dice = random.Random(SEED)
    weighted = [_weighted_difference(*group) for group in groups]
    observed = _mean_difference(weighted)
    if len(groups) > 1:
        drawn = sorted(_mean_difference(dice.choices(weighted, k=len(weighted))) for _ in range(ROUNDS))
    else:
        a, b = groups[0]
        drawn = sorted(
            _mean_difference([_weighted_difference(dice.choices(a, k=len(a)), dice.choices(b, k=len(b)))])
            for _ in range(ROUNDS)
        )
    low, high = drawn[int(0.025 * ROUNDS)], drawn[int(0.975 * ROUNDS)]
    # Shuffling a group whose values are all the same changes nothing, so it is left out.
    pooled = [([*a, *b], len(a), sum(a) + sum(b)) for a, b in groups if len({*a, *b}) > 1]
    scale = sum(weight for weight, _ in weighted)
    as_extreme = 0
    for _ in range(ROUNDS):
        shuffled = 0.0
        for values, size, total in pooled:
            first = sum(dice.sample(values, size))
            rest = len(values) - size
            shuffled += size * rest / len(values) * ((total - first) / rest - first / size)
        as_extreme += abs(shuffled / scale) >= abs(observed) - 1e-12
    return observed, low, high, (as_extreme + 1) / (ROUNDS + 1)


def _weighted_difference(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The weight of a task, and how much higher the mean of the second set is."""
    return len(a) * len(b) / (len(a) + len(b)), _mean(b) - _mean(a)


def _mean_difference(weighted: Sequence[tuple[float, float]]) -> float:
    return sum(weight * by for weight, by in weighted) / sum(weight for weight, _ in weighted)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _common_labels(figures: Sequence[SessionFigures]) -> list[str]:
    counts = Counter(label for session in figures for label in session.labels)
    common = [label for label, count in counts.items() if count >= SESSIONS_MIN]
    return sorted(common, key=lambda label: (-counts[label], label))[:STEPS_MAX]
