"""The typed questions.

Each is one statement over the tables, about one session or about all. A question about a session looks through its
forks (`lineage`), at what is in view (unless `rewound`); the rows it answers with name the session that was asked for,
since one position means the same event in all that share it. A question about all sessions looks at what each holds
itself.

Every list can be asked of one session or of all; the two differ only in where the rows come from (scope.py). A page in
order of time goes on after (time, session, seq), so that rows of the same moment are neither lost nor told twice.

Times (`since`) are microseconds since the epoch, and are about when things happened. Lists come newest first where
nothing else is said, a page at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.index import search
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
from wakelog.index.scope import SPANS, TRUST_NAME, Reading, check_limit, scope_of, source_of
from wakelog.index.turns import turns_of

A = TypeVar("A")
R = TypeVar("R", bound=msgspec.Struct)
Kinds = str | Iterable[str] | None


_BEGINNING = (1 << 62, "~", 1 << 62)

_FILES = """
select sid, path, change, changes, cast(added as bigint), cast(removed as bigint), seq, turn, occurred from (
    select sid, x.path, x.change, x.seq, e.turn, e.occurred, count(*) over same as changes,
        sum(x.added) over same as added, sum(x.removed) over same as removed,
        row_number() over (partition by sid, x.path order by x.seq desc) as age
    from {0} window same as (partition by sid, x.path)
) changed
where age = 1 order by occurred desc, seq desc, path limit :limit
"""
_PAGED = "and (e.at, sid, x.seq) < (:at, :sid, :seq) order by e.at desc, sid desc, x.seq desc limit :limit"
_DECISIONS = (
    f"select sid, x.seq, e.turn, e.attempt, e.occurred, x.choice, x.because, x.alternatives, e.at from {{0}} {_PAGED}"
)
_ERRORS = f"select sid, x.seq, e.turn, e.attempt, e.occurred, x.tool, x.type, x.message, e.at from {{0}} {_PAGED}"
_TOOLS = """
select sid, e.tool,
    count(case when e.kind in ('action.requested', 'action.recorded') then 1 end) as calls,
    count(case when e.kind in ('action.failed', 'action.timed_out')
        or (e.kind = 'action.recorded' and e.outcome <> 'succeeded') then 1 end) as errors,
    max(case when e.kind in ('action.requested', 'action.recorded') then e.seq else 0 end)
from {0} and e.tool <> '' and e.gone <> 'pruned'
    and e.kind in ('action.requested', 'action.recorded', 'action.failed', 'action.timed_out')
group by sid, e.tool order by calls desc, sid, e.tool limit :limit
"""
_SESSIONS = """
select id, name, root, parent, forked_at, spawner, agent, status, outcome, goal, labels, turn, turns, events, first_at,
    last_at, tokens, usd_micros, pending, flags, last_error, head, damaged
from wl_session s
where s.hidden = 0
    and (:status is null or status = :status)
    and (:agent is null or agent = :agent)
    and (:parent is null or parent = :parent)
    and (:name_glob is null or name glob :name_glob)
    and (:prefix is null or substr(id, 1, length(:prefix)) = :prefix)
    and (:label is null or exists (select 1 from wl_label l
        where l.session = s.no and l.name = :label and (:value is null or l.value = :value)))
    and (:failed is null or case when outcome = 'failed' then 1 else 0 end = :failed)
    and (:live is null or case when status in ('open', 'active', 'paused') then 1 else 0 end = :live)
    and last_at >= :since
    and (last_at, id) < (:at, :sid)
order by last_at desc, id desc limit :limit
"""
_EVENTS = f"""
select :session, e.seq, e.turn, e.attempt, e.kind, e.at, e.occurred, e.actor, e.tool, e.model, e.effect, e.action,
    e.path, e.key, e.outcome, e.summary, e.cause, {TRUST_NAME}, e.source, e.tokens, e.tokens_out, e.usd_micros,
    e.duration_us, e.commit_id, e.gone,
    exists (select 1 from wl_visible v where v.session = :number and e.seq between v.first and v.last)
from {SPANS}
cross join wl_event e on e.session = r.holder and e.seq between r.a and r.b
where e.occurred >= :since and (:tool is null or e.tool = :tool) and e.turn between :from_turn and :to_turn
    and (:kinds is null or exists (
        select 1 from json_each(:kinds) k
        where e.kind = k.value ->> 0 or substr(e.kind, 1, length(k.value ->> 0) + 1) = (k.value ->> 0) || '.'))
    and e.seq {{0}} :after order by e.seq {{1}} limit :limit
"""
_EVENTS_UP, _EVENTS_DOWN = _EVENTS.format(">", "asc"), _EVENTS.format("<", "desc")


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
            source, values = source_of(reading.db, "wl_file", session, last_turns, since, rewound, lineage)
            values["limit"] = check_limit(limit)
            rows: Any = reading.db.execute(_FILES.format(source), values).fetchall()
            return Page(tuple(ModifiedFile(*row) for row in rows), reading.as_of)

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
            source, values = source_of(reading.db, "wl_decision", session, last_turns, since, rewound, lineage)
            return _page_by_time(reading, _decision, _DECISIONS.format(source), values, after, limit)

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
            source, values = source_of(reading.db, "wl_error", session, last_turns, since, rewound, lineage)
            return _page_by_time(reading, ErrorInfo, _ERRORS.format(source), values, after, limit)

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
            source, values = source_of(reading.db, "wl_event", session, last_turns, since, rewound, lineage)
            values["limit"] = check_limit(limit)
            rows: Any = reading.db.execute(_TOOLS.format(source), values).fetchall()
            return Page(tuple(ToolInfo(*row) for row in rows), reading.as_of)

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
            "after": _as_number(after) if after != "" else start,
            "limit": check_limit(limit) + 1,
        }

        def question(reading: Reading) -> Page[EventInfo]:
            scope = scope_of(reading.db, session, last_turns=last_turns, rewound=rewound, lineage=lineage)
            sql = _EVENTS_DOWN if newest_first else _EVENTS_UP
            whose = {"session": scope.session, "spans": as_rows(scope.spans), "number": scope.number}
            found: Any = reading.db.execute(sql, values | whose).fetchall()
            rows = tuple(EventInfo(*(*row[:-1], bool(row[-1]))) for row in found[:limit])
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
            "at": _as_number(at) if after else _BEGINNING[0],
            "sid": sid if after else _BEGINNING[1],
            "limit": check_limit(limit) + 1,
        }

        def question(reading: Reading) -> Page[SessionInfo]:
            found: Any = reading.db.execute(_SESSIONS, values).fetchall()
            rows = tuple(map(_session, found[:limit]))
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


def _page_by_time(
    reading: Reading, row_of: Callable[..., R], sql: str, values: dict[str, Any], after: str, limit: int
) -> Page[R]:
    """A page of rows in order of time, the newest first. The last column is the time they are ordered by."""
    at, sid, seq = _BEGINNING
    if after:
        parts = after.split(":")
        if len(parts) != 3:
            raise _bad_place(after)
        at, sid, seq = _as_number(parts[0]), parts[1], _as_number(parts[2])
    values |= {"at": at, "sid": sid, "seq": seq, "limit": check_limit(limit) + 1}
    found: Any = reading.db.execute(sql, values).fetchall()
    rows = found[:limit]
    token = f"{rows[-1][-1]}:{rows[-1][0]}:{rows[-1][1]}" if len(found) > limit else ""
    return Page(tuple(row_of(*row[:-1]) for row in rows), reading.as_of, token)


def _decision(*columns: Any) -> DecisionInfo:
    return DecisionInfo(*(*columns[:-1], tuple(msgspec.json.decode(columns[-1]))))


def _session(row: tuple[Any, ...]) -> SessionInfo:
    fields = dict(zip(SessionInfo.__struct_fields__, row, strict=True))
    return SessionInfo(**fields | {"labels": msgspec.json.decode(fields["labels"])})


def _as_number(text: str | int) -> int:
    try:
        return int(text)
    except ValueError:
        raise _bad_place(str(text)) from None


def _bad_place(after: str) -> InvalidInputError:
    return InvalidInputError(
        f"{after!r} is not a place to go on from", kind="bad-cursor", hint="pass the `next` of the page before"
    )
