"""The typed questions.

Each is one statement over the tables, about one session or about all. A question about a session looks through its
forks (`lineage`), at what is in view (unless `rewound`); the rows it answers with name the session that was asked for,
since one position means the same event in all that share it. A question about all sessions looks at what each holds
itself.

Times (`since`) are microseconds since the epoch, and are about when things happened. Lists come newest first where
nothing else is said, a page at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from wakelog.index import search
from wakelog.index import statements as st
from wakelog.index.connection import as_rows
from wakelog.index.costs import costs_of
from wakelog.index.results import (
    Costs,
    DecisionInfo,
    ErrorInfo,
    EventInfo,
    Hit,
    ModifiedFile,
    Page,
    SessionInfo,
    ToolInfo,
    TurnInfo,
)
from wakelog.index.scope import check_limit, scope_of
from wakelog.index.statements import Reading
from wakelog.index.turns import turns_of

A = TypeVar("A")
Kinds = str | Iterable[str] | None


class Queries(ABC):
    """What an index can be asked. Every question first has the index catch up with the log."""

    @abstractmethod
    def ask(self, question: Callable[[Reading], A]) -> A:
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
    ) -> Page[ModifiedFile]:
        """The files that were changed, each once, the newest change first."""

        def question(reading: Reading) -> Page[ModifiedFile]:
            source, values = st.source_of(reading, "wl_file", session, last_turns, since, rewound, lineage)
            return st.page_of(reading, ModifiedFile, st.FILES.format(source), {**values, "limit": check_limit(limit)})

        return self.ask(question)

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

        def question(reading: Reading) -> Page[DecisionInfo]:
            source, values = st.source_of(reading, "wl_decision", session, last_turns, since, rewound, lineage)
            return st.list_of(reading, DecisionInfo, st.DECISIONS.format(source), values, after, limit)

        return self.ask(question)

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

        def question(reading: Reading) -> Page[ErrorInfo]:
            source, values = st.source_of(reading, "wl_error", session, last_turns, since, rewound, lineage)
            return st.list_of(reading, ErrorInfo, st.ERRORS.format(source), values, after, limit)

        return self.ask(question)

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

        def question(reading: Reading) -> Page[ToolInfo]:
            source, values = st.source_of(reading, "wl_event", session, last_turns, since, rewound, lineage)
            return st.page_of(reading, ToolInfo, st.TOOLS.format(source), {**values, "limit": check_limit(limit)})

        return self.ask(question)

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

        def question(reading: Reading) -> Page[TurnInfo]:
            scope = scope_of(reading.db, session, last_turns=last_turns, rewound=rewound, lineage=lineage)
            rows, token = turns_of(reading.db, scope, after, check_limit(limit), newest_first)
            return Page(tuple(rows), reading.as_of, token)

        return self.ask(question)

    def events(
        self,
        session: str,
        *,
        kinds: Kinds = None,
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
        start = (1 << 62) if newest_first else 0
        first_turn, last_turn = turns if turns is not None else (0, 1 << 62)
        values = {
            "kinds": None
            if kinds is None
            else as_rows((kind,) for kind in ([kinds] if isinstance(kinds, str) else kinds)),
            "tool": tool,
            "from_turn": first_turn,
            "to_turn": last_turn,
            "since": since or 0,
            "after": st.as_number(after) if after != "" else start,
            "limit": check_limit(limit) + 1,
        }

        def question(reading: Reading) -> Page[EventInfo]:
            scope = scope_of(reading.db, session, last_turns=last_turns, rewound=rewound, lineage=lineage)
            sql = st.EVENTS_DOWN if newest_first else st.EVENTS_UP
            found: Any = reading.db.execute(sql, {**values, **st.values_of(scope), "number": scope.number}).fetchall()
            rows = tuple(st.event_of(list(row)) for row in found[:limit])
            return Page(rows, reading.as_of, str(rows[-1].seq) if len(found) > limit else "")

        return self.ask(question)

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
        after: str = "",
        limit: int = 100,
    ) -> Page[SessionInfo]:
        """The sessions, the one last active first. `label` is a name, or `name=value`; `failed` is about how the last
        turn, or the session, ended; `live` are those not closed."""
        name, has_value, value = (label or "").partition("=")
        at, _, sid = after.partition(":")
        values = {
            "status": status,
            "label": name if label is not None else None,
            "value": value if has_value else None,
            "agent": agent,
            "parent": parent,
            "name_glob": name_glob,
            "prefix": prefix,
            "failed": failed,
            "live": live,
            "since": since or 0,
            "at": st.as_number(at) if after else st.BEGINNING[0],
            "sid": sid if after else st.BEGINNING[1],
            "limit": check_limit(limit) + 1,
        }

        def question(reading: Reading) -> Page[SessionInfo]:
            found: Any = reading.db.execute(st.SESSIONS, values).fetchall()
            rows = tuple(map(st.session_of, found[:limit]))
            token = f"{rows[-1].last_at}:{rows[-1].id}" if len(found) > limit else ""
            return Page(rows, reading.as_of, token)

        return self.ask(question)

    def costs(
        self,
        sessions: str | Iterable[str] | None = None,
        *,
        by: str = "session",
        turns: tuple[int, int] | None = None,
        since: int | None = None,
        until: int | None = None,
        utc: bool = True,
    ) -> Costs:
        """What was spent, each amount once (costs.py says how): by session, turn, tool, model, agent, day or
        `label:NAME`. Sessions that are named bring their sub-agents; `turns` looks through forks."""
        return self.ask(
            lambda reading: costs_of(reading, sessions, by=by, turns=turns, since=since, until=until, utc=utc)
        )

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

        def question(reading: Reading) -> Page[Hit]:
            scope = None if session is None else scope_of(reading.db, session, rewound=True)
            hits = search.find(reading.db, text, scope, kind, since or 0, check_limit(limit))
            return Page(tuple(hits), reading.as_of)

        return self.ask(question)
