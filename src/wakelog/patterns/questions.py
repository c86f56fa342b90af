"""Questions about patterns, as values: each is answered from one moment of an index, here or on a server."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.index.questions import IndexQuestion, Number
from wakelog.index.scope import check_limit
from wakelog.index.statements import IndexMoment
from wakelog.patterns.cohorts import Cohort, CohortComparison, compare_cohorts
from wakelog.patterns.findings import (
    KINDS,
    PER_KIND,
    SEEN_MAX,
    FoundPatterns,
    WorkPattern,
    find_patterns,
    pattern_places,
)
from wakelog.patterns.follows_map import FollowsMap, draw_map
from wakelog.patterns.instances import ChainInstance, PlanRuns, chain_instances, plan_runs
from wakelog.patterns.traces import traced_sessions


class AskPatterns(IndexQuestion, frozen=True):
    """What sessions do again and again: chains of steps, recipes after errors, repeated dead ends, loops, flaky tools,
    files that change together, slow calls. Returns the best `limit` of each kind; a pattern must be in at least `least`
    independent sessions."""

    project: str | None = None
    kinds: tuple[str, ...] = ()
    since: Number | None = None
    until: Number | None = None
    least: Number = 0
    limit: Number = PER_KIND

    def __call__(self, reading: IndexMoment) -> FoundPatterns:
        check_limit(self.limit)
        if unknown := [kind for kind in self.kinds if kind not in KINDS]:
            raise InvalidInputError(
                f"there are no patterns of the kind {unknown[0]!r}", kind="bad-kind", hint=f"use {', '.join(KINDS)}"
            )
        found, sessions, roots, notes = find_patterns(
            reading.db, self.project, self.kinds or KINDS, self.since, self.until, self.least
        )
        shown = tuple(pattern for of_kind in found for pattern in of_kind[: self.limit])
        hidden = sum(map(len, found)) - len(shown)
        return FoundPatterns(shown, sessions, roots, hidden, tuple(notes), reading.as_of)


class AskPattern(IndexQuestion, frozen=True):
    """One pattern by its id, with the places where it was seen."""

    id: str
    project: str | None = None

    def __call__(self, reading: IndexMoment) -> WorkPattern:
        found, *_ = find_patterns(reading.db, self.project, KINDS, None, None, 0)
        pattern = next((p for of_kind in found for p in of_kind if p.id == self.id), None)
        if pattern is None:
            raise NotFoundError(
                f"there is no pattern {self.id}", kind="pattern-not-found", hint="wakelog patterns lists what there is"
            )
        if pattern.kind == "chain":
            places = pattern_places(reading.db, pattern, self.project)
            return msgspec.structs.replace(pattern, times=len(places), seen=tuple(places[:SEEN_MAX]))
        return pattern


class AskInstances(IndexQuestion, frozen=True):
    """Complete runs of a chain, one per fork tree, the best first. A plan can be made from these."""

    id: str
    project: str | None = None

    def __call__(self, reading: IndexMoment) -> tuple[ChainInstance, ...]:
        pattern = AskPattern(self.id, self.project)(reading)
        if pattern.kind != "chain":
            raise InvalidInputError(
                f"{self.id} is a {pattern.kind.replace('_', ' ')}; only a chain can become a plan",
                kind="bad-kind",
                hint="wakelog patterns list --kind chain",
            )
        return chain_instances(reading.db, pattern.steps, self.project)


class AskPlanRuns(IndexQuestion, frozen=True):
    """How often promoted plans were run, and with which outcomes."""

    plans: tuple[str, ...]

    def __call__(self, reading: IndexMoment) -> tuple[PlanRuns, ...]:
        return tuple(plan_runs(reading.db, plan) for plan in self.plans)


class AskMap(IndexQuestion, frozen=True):
    """What follows what: the steps of sessions as a graph."""

    project: str | None = None
    since: Number | None = None
    until: Number | None = None

    def __call__(self, reading: IndexMoment) -> FollowsMap:
        steps, arrows, turns = draw_map(reading.db, self.project, self.since, self.until)
        return FollowsMap(tuple(steps), tuple(arrows), turns, reading.as_of)


class AskCohorts(IndexQuestion, frozen=True):
    """What differs between two sets of sessions, given by labels, agent, model, outcome or time."""

    a: Cohort
    b: Cohort
    project: str | None = None

    def __call__(self, reading: IndexMoment) -> CohortComparison:
        return compare_cohorts(traced_sessions(reading.db, self.project), self.a, self.b, reading.as_of)


PATTERNS: dict[str, tuple[type[IndexQuestion], Any]] = {
    "patterns": (AskPatterns, FoundPatterns),
    "pattern": (AskPattern, WorkPattern),
    "instances": (AskInstances, tuple[ChainInstance, ...]),
    "plan-runs": (AskPlanRuns, tuple[PlanRuns, ...]),
    "map": (AskMap, FollowsMap),
    "cohorts": (AskCohorts, CohortComparison),
}
"""Each question and its type of answer, by its name in a server's routes."""
