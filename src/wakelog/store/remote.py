"""The index of a store behind a server: sends queries to the server's index over HTTP.

A query that the server has no route for is answered here, by an index in memory that reads the whole log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from wakelog.engine import Engine
from wakelog.engines.remote import RemoteEngine
from wakelog.index.index import Index, Progress
from wakelog.index.questions import (
    AskCosts,
    AskDecisions,
    AskErrors,
    AskEvents,
    AskFilesModified,
    AskRollup,
    AskSearch,
    AskSessionCounts,
    AskSessions,
    AskTools,
    AskTotals,
    AskTurns,
    IndexQuestion,
)
from wakelog.index.results import (
    Costs,
    DecisionInfo,
    ErrorInfo,
    EventInfo,
    Hit,
    ModifiedFile,
    Page,
    SessionCounts,
    SessionInfo,
    Table,
    ToolInfo,
    TurnInfo,
)
from wakelog.index.rollups import Rollup
from wakelog.index.statements import IndexMoment
from wakelog.knowledge.questions import KNOWLEDGE
from wakelog.model.totals import SessionTotals
from wakelog.patterns.questions import PATTERNS

ALL_QUESTIONS: dict[str, tuple[type[IndexQuestion], Any]] = {
    "files-modified": (AskFilesModified, Page[ModifiedFile]),
    "decisions": (AskDecisions, Page[DecisionInfo]),
    "errors": (AskErrors, Page[ErrorInfo]),
    "tools": (AskTools, Page[ToolInfo]),
    "turns": (AskTurns, Page[TurnInfo]),
    "events": (AskEvents, Page[EventInfo]),
    "sessions": (AskSessions, Page[SessionInfo]),
    "session-counts": (AskSessionCounts, SessionCounts),
    "costs": (AskCosts, Costs),
    "rollup": (AskRollup, Rollup),
    "totals": (AskTotals, SessionTotals),
    "search": (AskSearch, Page[Hit]),
    **KNOWLEDGE,
    **PATTERNS,
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
        if isinstance(question, IndexQuestion):
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
    ) -> Table:
        query = AskSql(statement, params if isinstance(params, dict) else list(params), max_rows, timeout_s)
        return self._remote.ask("/v1/query", query, Table)

    def catch_up_words(self, session: str | None = None, progress: Progress | None = None) -> None:
        """Does nothing: the server indexes the words before it answers."""

    def scrub(self) -> None:
        """Scrubs the index in memory, if one was built. The server scrubs its own."""
        if self._is_used:
            super().scrub()
