"""Totals by turn, phase, session, project or day, as numbers and as a chart."""

from __future__ import annotations

from typing import Literal

from wakelog.http.routes import Raw, VerbRequest, route
from wakelog.http.shapes import Query
from wakelog.index.rollups import Rollup

Level = Literal["turn", "phase", "session", "project", "day"]
Measure = Literal[
    "calls", "errors", "duration_us", "turns", "events", "tokens_in", "tokens_out", "usd_micros", "added", "took"
]


class RollupQuery(Query, frozen=True):
    by: Level = "session"
    session: tuple[str, ...] = ()
    """Only these sessions; may be repeated."""
    project: str | None = None
    """The main work tree of a repository; without it, all projects."""
    since: str = ""
    until: str = ""


class RollupPictureQuery(RollupQuery, frozen=True):
    measure: Measure = "calls"
    """What the bars show; `took` shows how long calls took."""


@route("GET", "/rollup")
def rollup(call: VerbRequest, query: RollupQuery) -> Rollup:
    """Sums up turns, calls, errors, time, tokens and money. Pruning changes no number."""
    return _roll_up(call, query)


@route("GET", "/rollup.svg", media="image/svg+xml")
def rollup_picture(call: VerbRequest, query: RollupPictureQuery) -> Raw:
    """Draws a roll-up, one bar per group."""
    return Raw(_roll_up(call, query).svg(query.measure).encode(), "image/svg+xml")


def _roll_up(call: VerbRequest, query: RollupQuery) -> Rollup:
    asked = call.kwargs(query, session="sessions")
    asked.pop("measure", None)
    return call.space.store.rollup(**asked)
