"""The index of a store behind a server: sends queries to the server's index over HTTP.

A query that the server has no route for is answered here, by an index in memory that reads the whole log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from wakelog.engine import Engine
from wakelog.engines.remote import RemoteEngine
from wakelog.index import questions, results
from wakelog.index.index import Index, Progress
from wakelog.index.rollups import Rollup
from wakelog.index.statements import IndexMoment
from wakelog.knowledge.connections import AskConnections, ThingPath
from wakelog.knowledge.facts import AskFacts
from wakelog.knowledge.likeness import AskLike, LikeSessions
from wakelog.knowledge.lines import KnownThing
from wakelog.knowledge.recall import AskRecall, PastLines
from wakelog.knowledge.things import AskKnown
from wakelog.model.totals import SessionTotals
from wakelog.patterns.cohorts import AskCohorts, CohortComparison
from wakelog.patterns.findings import AskPattern, AskPatterns, FoundPatterns, WorkPattern
from wakelog.patterns.follows_map import AskMap, FollowsMap
from wakelog.patterns.instances import AskInstances, AskPlanRuns, ChainInstance, PlanRuns

ALL_QUESTIONS: dict[str, tuple[type[questions.IndexQuestion], Any]] = {
    "files-modified": (questions.AskFilesModified, results.Page[results.ModifiedFile]),
    "decisions": (questions.AskDecisions, results.Page[results.DecisionInfo]),
    "errors": (questions.AskErrors, results.Page[results.ErrorInfo]),
    "tools": (questions.AskTools, results.Page[results.ToolInfo]),
    "turns": (questions.AskTurns, results.Page[results.TurnInfo]),
    "events": (questions.AskEvents, results.Page[results.EventInfo]),
    "sessions": (questions.AskSessions, results.Page[results.SessionInfo]),
    "resting": (questions.AskResting, int),
    "session-counts": (questions.AskSessionCounts, results.SessionCounts),
    "costs": (questions.AskCosts, results.Costs),
    "rollup": (questions.AskRollup, Rollup),
    "totals": (questions.AskTotals, SessionTotals),
    "search": (questions.AskSearch, results.Page[results.Hit]),
    "known": (AskKnown, KnownThing),
    "facts": (AskFacts, KnownThing),
    "connections": (AskConnections, ThingPath),
    "recall": (AskRecall, PastLines),
    "like": (AskLike, LikeSessions),
    "patterns": (AskPatterns, FoundPatterns),
    "pattern": (AskPattern, WorkPattern),
    "instances": (AskInstances, tuple[ChainInstance, ...]),
    "plan-runs": (AskPlanRuns, tuple[PlanRuns, ...]),
    "map": (AskMap, FollowsMap),
    "cohorts": (AskCohorts, CohortComparison),
}
"""Every query of an index, by its name in a server's routes, with the type of its answer."""
_ROUTES = {kind: (f"/v1/index/{name}", answer) for name, (kind, answer) in ALL_QUESTIONS.items()}


class AskSql(msgspec.Struct, frozen=True):
    """The body of the server's `/v1/query`: a read-only SELECT."""

    sql: str
    params: Sequence[Any] | dict[str, Any]
    max_rows: int
    timeout_s: float


class RemoteIndex(Index):
    """Sends index queries to a server."""

    def __init__(self, engine: Engine) -> None:
        assert isinstance(engine, RemoteEngine)
        super().__init__(engine, None)
        self._remote = engine
        self._is_used = False

    def ask(self, question: Callable[[IndexMoment], Any]) -> Any:
        if isinstance(question, questions.IndexQuestion):
            path, answer = _ROUTES[type(question)]
            return self._remote.ask(path, question, answer)
        self._is_used = True
        return super().ask(question)

    def query_sql(
        self,
        statement: str,
        params: Sequence[Any] | dict[str, Any] = (),
        *,
        max_rows: int = 1000,
        timeout_s: float = 2.0,
    ) -> results.Table:
        query = AskSql(statement, params if isinstance(params, dict) else list(params), max_rows, timeout_s)
        return self._remote.ask("/v1/query", query, results.Table)

    def catch_up_words(self, session: str | None = None, progress: Progress | None = None) -> None:
        """Does nothing: the server indexes the words before it answers."""

    def scrub(self) -> None:
        """Scrubs the index in memory, if one was built. The server scrubs its own."""
        if self._is_used:
            super().scrub()
