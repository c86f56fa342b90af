"""What earlier sessions knew: about a thing, facts and conflicts, connections, similar sessions, recall."""

from __future__ import annotations

from typing import Annotated

import msgspec

from wakelog.engines.remote.wire import Question
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import Limit, NotEmpty, Query
from wakelog.knowledge.connections import ThingPath
from wakelog.knowledge.likeness import LikeSessions
from wakelog.knowledge.lines import KnownThing
from wakelog.knowledge.questions import LINES, AskKnown, Aspect
from wakelog.knowledge.recall import PastLines

Tokens = Annotated[int, msgspec.Meta(ge=20, le=10_000)]


class KnownQuery(Query, frozen=True):
    """A thing, by the name that its project uses."""

    subject: NotEmpty
    aspect: Aspect = "all"
    kind: str = ""
    project: str | None = None
    """The main work tree of a repository; without it, all projects."""
    as_of: str = ""
    known_at: str = ""
    limit: Limit = LINES


class FactsQuery(Query, frozen=True):
    key: str | None = None
    project: str | None = None
    conflicts: bool = False
    as_of: str = ""
    known_at: str = ""
    limit: Limit = 50


class ConnectionsQuery(Query, frozen=True):
    a: NotEmpty
    b: NotEmpty
    project: str | None = None


class LikeQuery(Query, frozen=True):
    q: NotEmpty
    project: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5


class RecallBody(Question, frozen=True):
    """What the session is working on."""

    files: tuple[str, ...] = ()
    error: str = ""
    goal: str = ""
    project: str | None = None
    tokens: Tokens | None = None


@route("GET", "/known")
def known_thing(call: VerbRequest, query: KnownQuery) -> KnownThing:
    """Shows what is known about a file, a key, an address, a commit, an artefact or an error, each line with its
    events."""
    return call.space.store.index.ask(AskKnown(**call.kwargs(query)))


@route("GET", "/known/facts")
def known_facts(call: VerbRequest, query: FactsQuery) -> KnownThing:
    """Lists facts across sessions; with `conflicts`, those that contradict each other."""
    return call.space.store.known.facts(**call.kwargs(query))


@route("GET", "/known/connections")
def known_connections(call: VerbRequest, query: ConnectionsQuery) -> ThingPath:
    """Shows the shortest connection between two things."""
    return call.space.store.known.path(**call.kwargs(query))


@route("GET", "/known/like")
def known_like(call: VerbRequest, query: LikeQuery) -> LikeSessions:
    """Finds past sessions that are similar to some words, and why."""
    return call.space.store.known.like(**call.kwargs(query, q="text"))


@route("POST", "/sessions/{session}/recall", scope="write")
def recall(call: VerbRequest, body: RecallBody) -> PastLines:
    """Returns a few lines from past sessions that are relevant to what a session is working on, and records in its log
    which they were."""
    return call.space.store.known.recall(session=call.session(), **call.kwargs(body))
