"""The index's typed questions: each is a value with its parameters and a method that answers it.

Each is one statement over the tables, about one session or all. A question about one session includes what it shares
with its ancestors (`lineage`), and covers what is in view, unless `rewound`. The rows name the session that was asked
about, because a position means the same event in all sessions that share it. A question about all sessions counts each
session's own events only.

Times (`since`) are microseconds since the epoch, and mean when things happened. Lists are newest first unless they say
otherwise, and come in pages. Questions are structs, so they are sent to a server as they are (store/remote.py).
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, cast

import msgspec

from wakelog.index import statements as st
from wakelog.index.connection import as_rows, lower_ascii
from wakelog.index.results import (
    Costs,
    DecisionInfo,
    ErrorInfo,
    EventInfo,
    Hit,
    ModifiedFile,
    Page,
    SessionCount,
    SessionCounts,
    SessionInfo,
    ToolInfo,
    TurnInfo,
)
from wakelog.index.scope import check_limit, scope_of
from wakelog.index.statements import IndexMoment
from wakelog.model.ids import SessionId, root_of

if TYPE_CHECKING:
    # Modules that only some questions need are loaded by the first such question.
    from wakelog.index.rollups import Rollup
    from wakelog.model.totals import SessionTotals

Number = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""A number that fits into a database's integer."""


class IndexQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A question to an index; called with a moment of the index, it returns the answer."""

    @property
    def words_of(self) -> str | None:
        """Which words the index must have first (word_backlog.py): those of a fork tree, by its root; of all sessions
        if empty; or none at all (None)."""
        return None

    def __call__(self, reading: IndexMoment) -> Any:
        raise AssertionError(f"{type(self).__name__} has no answer method")


class About(IndexQuestion, frozen=True):
    """Which sessions and turns a question is about."""

    session: str | None = None
    last_turns: Number | None = None
    since: Number | None = None
    rewound: bool = False
    lineage: bool = True

    def source(self, reading: IndexMoment, table: str) -> tuple[Any, dict[str, Any]]:
        return st.source_of(reading, table, self.session, self.last_turns, self.since, self.rewound, self.lineage)


class AskFilesModified(About, frozen=True):
    """Lists the changed files, each once, the newest change first. With `path` only the files that it can mean: a
    session may name a file relative to its own folder, and a person by the end of its path."""

    limit: Number = 1000
    path: str = ""

    def __call__(self, reading: IndexMoment) -> Page[ModifiedFile]:
        source, values = self.source(reading, "wl_file")
        values = {**values, "limit": check_limit(self.limit), "path": self.path}
        return st.page_of(reading, ModifiedFile, st.FILES.format(source), values)


class AskDecisions(About, frozen=True):
    """Lists decisions."""

    after: str = ""
    limit: Number = 100

    def __call__(self, reading: IndexMoment) -> Page[DecisionInfo]:
        source, values = self.source(reading, "wl_decision")
        return st.list_of(reading, DecisionInfo, st.DECISIONS.format(source), values, self.after, self.limit)


class AskErrors(About, frozen=True):
    """Lists failed calls and turns."""

    after: str = ""
    limit: Number = 100

    def __call__(self, reading: IndexMoment) -> Page[ErrorInfo]:
        source, values = self.source(reading, "wl_error")
        return st.list_of(reading, ErrorInfo, st.ERRORS.format(source), values, self.after, self.limit)


class AskTools(About, frozen=True):
    """Counts calls and failures of each tool, the most used first."""

    limit: Number = 1000

    def __call__(self, reading: IndexMoment) -> Page[ToolInfo]:
        source, values = self.source(reading, "wl_event")
        values = {**values, "limit": check_limit(self.limit)}
        return st.page_of(reading, ToolInfo, st.TOOLS.format(source), values)


class AskTurns(IndexQuestion, frozen=True):
    """Lists a session's turns, attempt by attempt, with outcome and cost."""

    session: str
    last_turns: Number | None = None
    rewound: bool = False
    lineage: bool = True
    newest_first: bool = True
    after: str = ""
    limit: Number = 50

    def __call__(self, reading: IndexMoment) -> Page[TurnInfo]:
        from wakelog.index.turns import turns_of

        scope = scope_of(
            reading.db, self.session, last_turns=self.last_turns, rewound=self.rewound, lineage=self.lineage
        )
        rows, token = turns_of(reading.db, scope, self.after, check_limit(self.limit), self.newest_first)
        return Page(tuple(rows), reading.as_of, token)


class AskEvents(IndexQuestion, frozen=True):
    """Lists a session's events in order. A kind may be given by its first word: "action" means all kinds of actions."""

    session: str
    kinds: str | Sequence[str] | None = None
    tool: str | None = None
    turns: tuple[Number, Number] | None = None
    last_turns: Number | None = None
    since: Number | None = None
    rewound: bool = False
    lineage: bool = True
    newest_first: bool = False
    after: str | Number = ""
    limit: Number = 100

    def __call__(self, reading: IndexMoment) -> Page[EventInfo]:
        kinds = (self.kinds,) if isinstance(self.kinds, str) else self.kinds
        first_turn, last_turn = self.turns if self.turns is not None else (0, 1 << 62)
        beginning = (1 << 62) if self.newest_first else 0
        scope = scope_of(
            reading.db, self.session, last_turns=self.last_turns, rewound=self.rewound, lineage=self.lineage
        )
        values = {
            "kinds": None if kinds is None else as_rows((kind,) for kind in kinds),
            "tool": self.tool,
            "from_turn": first_turn,
            "to_turn": last_turn,
            "since": self.since or 0,
            "after": st.as_number(self.after) if self.after != "" else beginning,
            "limit": check_limit(self.limit) + 1,
            **st.values_of(scope),
            "number": scope.number,
        }
        sql = st.EVENTS_DOWN if self.newest_first else st.EVENTS_UP
        found: Any = reading.db.execute(sql, values).fetchall()
        rows = tuple(st.event_of(list(row)) for row in found[: self.limit])
        return Page(rows, reading.as_of, str(rows[-1].seq) if len(found) > self.limit else "")


class Chosen(IndexQuestion, frozen=True):
    """Which sessions a question is about. `label` is a name, or `name=value`; `failed` is about how the last turn, or
    the session, ended; `live` selects those not closed; `pending` and `flagged` those with pending calls, or with
    flags; `text` those that contain it in their name, id, goal or an input."""

    status: str | None = None
    label: str | None = None
    agent: str | None = None
    parent: str | None = None
    name_glob: str | None = None
    prefix: str | None = None
    failed: bool | None = None
    live: bool | None = None
    since: Number | None = None
    pending: bool | None = None
    flagged: bool | None = None
    text: str | None = None

    def values(self) -> dict[str, Any]:
        name, has_value, value = (self.label or "").partition("=")
        return {
            "status": self.status,
            "label": name if self.label is not None else None,
            "value": value if has_value else None,
            "agent": self.agent,
            "parent": self.parent,
            "name_glob": self.name_glob,
            "prefix": self.prefix,
            "failed": self.failed,
            "live": self.live,
            "since": self.since or 0,
            "pending": self.pending,
            "flagged": self.flagged,
            "text": None if self.text is None else lower_ascii(self.text),
        }


class AskSessions(Chosen, frozen=True):
    """Lists sessions, the last active first. `label` is a name, or `name=value`; `failed` is about how the last turn,
    or the session, ended; `live` selects those not closed. With `busy`, sessions at rest are left out, except those it
    names: at rest is what is not paused and has no open turn, no pending call and no flag."""

    busy: tuple[str, ...] | None = None
    after: str = ""
    limit: Number = 100

    def __call__(self, reading: IndexMoment) -> Page[SessionInfo]:
        values = {
            **self.values(),
            **st.place_in_sessions(self.after),
            "busy": None if self.busy is None else as_rows((session,) for session in self.busy),
            "limit": check_limit(self.limit) + 1,
        }
        found: Any = reading.db.execute(st.SESSIONS, values).fetchall()
        rows = tuple(map(st.session_of, found[: self.limit]))
        token = f"{rows[-1].last_at}:{rows[-1].id}" if len(found) > self.limit else ""
        return Page(rows, reading.as_of, token)


class AskResting(IndexQuestion, frozen=True):
    """Counts the sessions that a list of live ones with `busy` leaves out after a position, active since a time."""

    busy: tuple[str, ...] = ()
    after: str = ""
    since: Number = 0

    def __call__(self, reading: IndexMoment) -> int:
        busy = as_rows((session,) for session in self.busy)
        values = {**st.place_in_sessions(self.after), "busy": busy, "since": self.since}
        return int(reading.db.execute(st.RESTING, values).fetchall()[0][0])


class AskSessionCounts(Chosen, frozen=True):
    """Counts sessions by status, outcome, agent, what they need, and label. Of labels, the `limit` most frequent
    values are counted."""

    limit: Number = 200

    def __call__(self, reading: IndexMoment) -> SessionCounts:
        values = self.values()
        found: Any = reading.db.execute(st.COUNTS, values).fetchall()
        counts = [SessionCount(*row) for row in found if row[2]]
        labels: Any = reading.db.execute(st.LABEL_COUNTS, {**values, "limit": check_limit(self.limit) + 1}).fetchall()
        counts += [SessionCount(f"label:{name}", value, n) for name, value, n in labels[: self.limit]]
        counts.sort(key=lambda each: (each.facet, -each.count, each.value))
        total = sum(each.count for each in counts if each.facet == "status")
        return SessionCounts(total, tuple(counts), len(labels) > self.limit, reading.as_of)


class AskCosts(IndexQuestion, frozen=True):
    """Sums up what was spent, each amount once (see costs.py), by session, turn, tool, model, agent, day or
    `label:NAME`. Named sessions include their sub-agents; `turns` includes turns shared with a parent."""

    sessions: str | Sequence[str] | None = None
    by: str = "session"
    turns: tuple[Number, Number] | None = None
    since: Number | None = None
    until: Number | None = None
    utc: bool = True

    def __call__(self, reading: IndexMoment) -> Costs:
        from wakelog.index.costs import costs_of

        return costs_of(
            reading, self.sessions, by=self.by, turns=self.turns, since=self.since, until=self.until, utc=self.utc
        )


class AskRollup(IndexQuestion, frozen=True):
    """Sums up calls, errors, time, tokens and money by turn, phase, session, project or day (rollups.py). `sessions`
    are ids."""

    by: str = "session"
    sessions: tuple[str, ...] | None = None
    project: str | None = None
    since: Number | None = None
    until: Number | None = None
    utc: bool = True

    def __call__(self, reading: IndexMoment) -> Rollup:
        from wakelog.index.rollups import roll_up

        return roll_up(
            reading,
            by=self.by,
            sessions=self.sessions,
            project=self.project,
            since=self.since,
            until=self.until,
            utc=self.utc,
        )


class AskTotals(IndexQuestion, frozen=True):
    """The totals of one session as rows of numbers, which its tombstone may keep."""

    session: str

    def __call__(self, reading: IndexMoment) -> SessionTotals:
        from wakelog.index.rollups import totals_of

        return totals_of(reading, self.session)


class AskSearch(IndexQuestion, frozen=True):
    """Finds events that contain all the words, the best match first; where very many match, the newest first. "Quoted
    words" are a phrase; `word*` is a prefix. Nothing else has a special meaning, so that any text can be searched
    for."""

    text: str
    session: str | None = None
    kind: str | None = None
    since: Number | None = None
    limit: Number = 20

    @property
    def words_of(self) -> str:
        return root_of(SessionId(self.session)) if self.session is not None else ""

    def __call__(self, reading: IndexMoment) -> Page[Hit]:
        from wakelog.index import search
        from wakelog.index.event_texts import read_text

        texts = functools.partial(read_text, reading.engine)
        scope = None if self.session is None else scope_of(reading.db, self.session, rewound=True)
        limit = check_limit(self.limit)
        hits = search.find(reading.db, self.text, scope, self.kind, self.since or 0, limit, texts)
        return Page(tuple(hits), reading.as_of)


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
