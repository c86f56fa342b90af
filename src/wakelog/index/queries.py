"""The questions of an index as methods: each builds a question (questions.py) and returns its answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeVar

from wakelog.index import questions as ask
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
    ToolInfo,
    TurnInfo,
)
from wakelog.index.statements import IndexMoment

A = TypeVar("A")
Names = str | Iterable[str] | None


class Queries(ABC):
    """The typed questions. Every question first has the index catch up with the log."""

    @abstractmethod
    def ask(self, question: Callable[[IndexMoment], A]) -> A:
        """Answers a question about the present moment."""

    def files_modified(
        self,
        session: str | None = None,
        *,
        last_turns: int | None = None,
        since: int | None = None,
        rewound: bool = False,
        lineage: bool = True,
        limit: int = 1000,
        path: str = "",
    ) -> Page[ModifiedFile]:
        """The files that were changed, each once, the newest change first. With `path` only that one, also where a
        session names it from its own folder on."""
        return self.ask(ask.AskFilesModified(session, last_turns, since, rewound, lineage, limit, path))

    def decisions(
        self,
        session: str | None = None,
        *,
        last_turns: int | None = None,
        since: int | None = None,
        rewound: bool = False,
        lineage: bool = True,
        after: str = "",
        limit: int = 100,
    ) -> Page[DecisionInfo]:
        """The decisions made."""
        return self.ask(ask.AskDecisions(session, last_turns, since, rewound, lineage, after, limit))

    def errors(
        self,
        session: str | None = None,
        *,
        last_turns: int | None = None,
        since: int | None = None,
        rewound: bool = False,
        lineage: bool = True,
        after: str = "",
        limit: int = 100,
    ) -> Page[ErrorInfo]:
        """The calls and turns that failed."""
        return self.ask(ask.AskErrors(session, last_turns, since, rewound, lineage, after, limit))

    def tools(
        self,
        session: str | None = None,
        *,
        last_turns: int | None = None,
        since: int | None = None,
        rewound: bool = False,
        lineage: bool = True,
        limit: int = 1000,
    ) -> Page[ToolInfo]:
        """How often each tool was called and failed, the most used first."""
        return self.ask(ask.AskTools(session, last_turns, since, rewound, lineage, limit))

    def turns(
        self,
        session: str,
        *,
        last_turns: int | None = None,
        rewound: bool = False,
        lineage: bool = True,
        newest_first: bool = True,
        after: str = "",
        limit: int = 50,
    ) -> Page[TurnInfo]:
        """A session's turns and what each came to, attempt by attempt."""
        return self.ask(ask.AskTurns(session, last_turns, rewound, lineage, newest_first, after, limit))

    def events(
        self,
        session: str,
        *,
        kinds: Names = None,
        tool: str | None = None,
        turns: tuple[int, int] | None = None,
        last_turns: int | None = None,
        since: int | None = None,
        rewound: bool = False,
        lineage: bool = True,
        newest_first: bool = False,
        after: str | int = "",
        limit: int = 100,
    ) -> Page[EventInfo]:
        """A session's events in order. A kind may be given by its first part: "action" is all kinds of actions."""
        return self.ask(
            ask.AskEvents(
                session, _tuple(kinds), tool, turns, last_turns, since, rewound, lineage, newest_first, after, limit
            )
        )

    def sessions(
        self,
        *,
        status: str | None = None,
        label: str | None = None,
        agent: str | None = None,
        parent: str | None = None,
        name_glob: str | None = None,
        prefix: str | None = None,
        failed: bool | None = None,
        live: bool | None = None,
        since: int | None = None,
        pending: bool | None = None,
        flagged: bool | None = None,
        text: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> Page[SessionInfo]:
        """The sessions, the one last active first. `label` is a name, or `name=value`; `failed` is about how the last
        turn, or the session, ended; `live` are those not closed; `text` is in a name, an id, a goal or an input."""
        chosen = (status, label, agent, parent, name_glob, prefix, failed, live, since, pending, flagged, text)
        return self.ask(ask.AskSessions(*chosen, after, limit))

    def session_counts(
        self,
        *,
        status: str | None = None,
        label: str | None = None,
        agent: str | None = None,
        parent: str | None = None,
        name_glob: str | None = None,
        failed: bool | None = None,
        live: bool | None = None,
        since: int | None = None,
        pending: bool | None = None,
        flagged: bool | None = None,
        text: str | None = None,
        limit: int = 200,
    ) -> SessionCounts:
        """How many sessions there are of each status, outcome, agent, need and label: the facets of `sessions`."""
        chosen = (status, label, agent, parent, name_glob, None, failed, live, since, pending, flagged, text)
        return self.ask(ask.AskSessionCounts(*chosen, limit))

    def costs(
        self,
        sessions: Names = None,
        *,
        by: str = "session",
        turns: tuple[int, int] | None = None,
        since: int | None = None,
        until: int | None = None,
        utc: bool = True,
    ) -> Costs:
        """What was spent, each amount once (costs.py says how): by session, turn, tool, model, agent, day or
        `label:NAME`. Sessions that are named bring their sub-agents; `turns` looks through forks."""
        return self.ask(ask.AskCosts(_tuple(sessions), by, turns, since, until, utc))

    def search(
        self,
        text: str,
        *,
        session: str | None = None,
        kind: str | None = None,
        since: int | None = None,
        limit: int = 20,
    ) -> Page[Hit]:
        """Events that say all the words, the best match first. "Quoted words" stand together; `word*` is a beginning.
        Nothing else has a meaning, so that any text can be searched for."""
        return self.ask(ask.AskSearch(text, session, kind, since, limit))


def _tuple(names: Names) -> str | tuple[str, ...] | None:
    return names if names is None or isinstance(names, str) else tuple(names)
