"""The questions of an index as methods: `index.decisions(limit=5)` asks AskDecisions(limit=5). A method takes what its
question takes (questions.py), so the two cannot differ."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from wakelog.index.questions import (
    AskCosts,
    AskDecisions,
    AskErrors,
    AskEvents,
    AskFilesModified,
    AskSearch,
    AskSessionCounts,
    AskSessions,
    AskTools,
    AskTurns,
)
from wakelog.index.results import SessionInfo
from wakelog.index.statements import IndexMoment

PAGE = 1000
"""How many sessions are asked for at once."""
A = TypeVar("A")
P = ParamSpec("P")


def _asks(question: Callable[P, Callable[[IndexMoment], A]]) -> Callable[Concatenate[Queries, P], A]:
    def method(self: Queries, *args: P.args, **kwargs: P.kwargs) -> A:
        return self.ask(question(*args, **kwargs))

    wrapped = functools.update_wrapper(method, question, assigned=("__doc__",), updated=())
    return cast("Callable[Concatenate[Queries, P], A]", wrapped)


class Queries(ABC):
    """The typed questions. Every question first has the index catch up with the log."""

    @abstractmethod
    def ask(self, question: Callable[[IndexMoment], A]) -> A:
        """Answers a question about the present moment."""

    files_modified = _asks(AskFilesModified)
    decisions = _asks(AskDecisions)
    errors = _asks(AskErrors)
    tools = _asks(AskTools)
    turns = _asks(AskTurns)
    events = _asks(AskEvents)
    sessions = _asks(AskSessions)
    session_counts = _asks(AskSessionCounts)
    costs = _asks(AskCosts)
    search = _asks(AskSearch)

    def every_session(self, **filters: Any) -> Iterator[SessionInfo]:
        """All that `sessions` would give, a page at a time."""
        after = ""
        while True:
            page = self.sessions(after=after, limit=PAGE, **filters)
            yield from page
            if not (after := page.next):
                return
