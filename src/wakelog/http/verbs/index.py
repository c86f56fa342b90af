"""Questions across sessions: words, SQL, turns, files, decisions, errors, tools. Answers include everything stored so
far."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from wakelog.engines.remote.wire import Question
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import ChosenSessions, Limit, NotEmpty, Query
from wakelog.index import results
from wakelog.index.questions import IndexQuestion
from wakelog.store.remote import ALL_QUESTIONS

_COMMIT = re.compile(r"[0-9a-f]{6,64}")


class SearchQuery(Query, frozen=True):
    """Words that must all occur; "quoted words" are a phrase; `word*` is a prefix."""

    q: NotEmpty
    session: str = ""
    kind: str | None = None
    since: str = ""
    limit: Limit = 20


class Sql(Question, frozen=True):
    """A read-only SELECT over the documented views."""

    sql: NotEmpty
    params: list[str | int | float | None] | dict[str, str | int | float | None] = msgspec.field(default_factory=list)
    max_rows: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=10)] = 2.0


class TurnsQuery(Query, frozen=True):
    last_turns: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    rewound: bool = False
    newest_first: bool = True
    after: str = ""
    """The `next` of the page before, or any attempt as `turn.attempt`."""
    limit: Limit = 50


class AboutQuery(Query, frozen=True):
    """One session, including what it shares with its parents, or all sessions."""

    session: str = ""
    last_turns: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    since: str = ""
    rewound: bool = False
    """Include what was rewound."""


class ListQuery(AboutQuery, frozen=True):
    after: str = ""
    limit: Limit = 100


def _question(call: VerbRequest, query: SearchQuery | AboutQuery, **renamed: str) -> dict[str, Any]:
    """The keyword arguments of a question to the index, with the session's name replaced by its id."""
    asked = call.kwargs(query, **renamed)
    return {**asked, "session": call.space.head(query.session).session} if query.session else asked


@route("GET", "/search")
def search(call: VerbRequest, query: SearchQuery) -> results.Page[results.Hit]:
    """Finds events that contain all the words, the best match first."""
    return call.space.store.index.search(**_question(call, query, q="text"))


@route("GET", "/session-counts")
def session_counts(call: VerbRequest, query: ChosenSessions) -> results.SessionCounts:
    """Counts sessions by status, outcome, agent, need and label: the facets of a list of sessions."""
    return call.space.store.index.session_counts(**call.kwargs(query, name="name_glob"))


@route("POST", "/query")
def query(call: VerbRequest, body: Sql) -> results.Table:
    """Runs read-only SQL over the views, within limits of rows, time and memory."""
    return call.space.store.index.query_sql(body.sql, body.params, max_rows=body.max_rows, timeout_s=body.timeout_s)


class CommitPlace(msgspec.Struct, frozen=True):
    """A commit's session and events."""

    commit_id: str
    session: str
    first: int
    last: int


@route("GET", "/commits/{commit}")
def find_commit(call: VerbRequest) -> CommitPlace:
    """Finds the session of a commit, by its id or the start of it. An id depends only on what was stored, so it is the
    same in every copy of the log."""
    asked = call.path["commit"].lower()
    if not _COMMIT.fullmatch(asked):
        raise InvalidInputError(
            f"{asked[:80]!r} is not the start of a commit's id",
            kind="bad-request",
            hint="an id is hexadecimal; give six digits or more of it",
        )
    sql = (
        "select commit_id, session, min(seq), max(seq) from events where commit_id >= ? and commit_id < ? "
        "group by commit_id, session limit 2"
    )
    found = call.space.store.index.query_sql(sql, [asked, f"{asked}g"], timeout_s=10).rows
    if not found:
        raise NotFoundError(f"no commit begins with {asked}", kind="commit-not-found")
    if len(found) > 1:
        raise NotFoundError(
            f"several commits begin with {asked}", kind="commit-not-found", hint="give more digits of its id"
        )
    commit, session, first, last = found[0]
    return CommitPlace(str(commit), str(session), int(first), int(last))


@route("GET", "/sessions/{session}/turns")
def turns(call: VerbRequest, query: TurnsQuery) -> results.Page[results.TurnInfo]:
    """Lists a session's turns, attempt by attempt, with outcome and cost."""
    return call.space.store.index.turns(call.head().session, **msgspec.structs.asdict(query))


@route("GET", "/files")
def files(call: VerbRequest, query: AboutQuery) -> results.Page[results.ModifiedFile]:
    """Lists the changed files, each once, the newest change first."""
    return call.space.store.index.files_modified(**_question(call, query))


@route("GET", "/decisions")
def decisions(call: VerbRequest, query: ListQuery) -> results.Page[results.DecisionInfo]:
    """Lists decisions, the newest first."""
    return call.space.store.index.decisions(**_question(call, query))


@route("GET", "/errors")
def errors(call: VerbRequest, query: ListQuery) -> results.Page[results.ErrorInfo]:
    """Lists failed calls and turns, the newest first."""
    return call.space.store.index.errors(**_question(call, query))


@route("GET", "/tools")
def tools(call: VerbRequest, query: AboutQuery) -> results.Page[results.ToolInfo]:
    """Counts calls and failures of each tool."""
    return call.space.store.index.tools(**_question(call, query))


def _add_question(name: str, kind: type[IndexQuestion], answer: Any) -> None:
    """Adds a route for a question, with all parameters that the library has."""

    def verb(call: VerbRequest, body: Any) -> Any:
        return call.space.store.index.ask(body)

    verb.__name__, verb.__doc__ = f"ask_{name.replace('-', '_')}", kind.__doc__
    verb.__annotations__ = {"body": kind, "return": answer}
    route("POST", f"/index/{name}")(verb)


for _name, (_kind, _answer) in ALL_QUESTIONS.items():
    _add_question(_name, _kind, _answer)
