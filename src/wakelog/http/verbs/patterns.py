"""What sessions repeat, and how sets of sessions differ."""

from __future__ import annotations

from typing import Annotated

import msgspec

from wakelog.engines.remote.wire import Question
from wakelog.http.routes import VerbRequest, route, time_of
from wakelog.http.shapes import Limit, Query
from wakelog.patterns.cohorts import Cohort, CohortComparison
from wakelog.patterns.findings import PER_KIND, FoundPatterns, PatternKind, WorkPattern
from wakelog.patterns.follows_map import FollowsMap


class PatternsQuery(Query, frozen=True):
    project: str | None = None
    """The main work tree of a repository; without it, all projects."""
    kind: PatternKind | None = None
    since: str = ""
    least: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    limit: Limit = PER_KIND


class PatternQuery(Query, frozen=True):
    project: str | None = None


class MapQuery(Query, frozen=True):
    project: str | None = None
    since: str = ""


class CohortsBody(Question, frozen=True):
    """Two sets of sessions, each by labels and times (in microseconds)."""

    a: Cohort
    b: Cohort
    project: str | None = None


@route("GET", "/patterns")
def patterns(call: VerbRequest, query: PatternsQuery) -> FoundPatterns:
    """Lists chains of steps, recipes after errors, repeated dead ends, loops, flaky tools, files that change together
    and slow calls: the best of each kind."""
    return call.space.store.patterns.find(
        project=query.project,
        kinds=(query.kind,) if query.kind else (),
        since=time_of(query.since, call.now),
        least=query.least,
        limit=query.limit,
    )


@route("GET", "/patterns/{id}")
def pattern(call: VerbRequest, query: PatternQuery) -> WorkPattern:
    """Shows one pattern with the places where it was seen."""
    return call.space.store.patterns.show(call.path["id"], **call.kwargs(query))


@route("GET", "/steps-map")
def steps_map(call: VerbRequest, query: MapQuery) -> FollowsMap:
    """Shows which steps follow which, as a graph."""
    return call.space.store.patterns.map(**call.kwargs(query))


@route("POST", "/cohorts")
def cohorts(call: VerbRequest, body: CohortsBody) -> CohortComparison:
    """Compares two sets of sessions, task by task."""
    return call.space.store.patterns.compare(**call.kwargs(body))
