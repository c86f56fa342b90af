"""The model's window: what is in it and what was evicted; the handoff for the next run; lines of earlier sessions."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from wakelog.context.brief import DEFAULT_BUDGET, Brief
from wakelog.context.compaction import Summary
from wakelog.context.eviction import RestoredContent
from wakelog.context.handles import Evicted
from wakelog.context.items import Item
from wakelog.context.ledger import Context
from wakelog.context.provider_formats import Shape
from wakelog.engines.remote.wire import Question
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import At, NotEmpty, Position
from wakelog.http.verbs.records import Recorded
from wakelog.knowledge.recall import PastLines
from wakelog.model.values import Value

Tokens = Annotated[int, msgspec.Meta(ge=1, le=100_000_000)]


class BriefQuery(At, frozen=True, kw_only=True):
    budget: Tokens = DEFAULT_BUDGET
    """At most this many tokens, estimated."""


class ContextQuery(At, frozen=True, kw_only=True):
    budget: Tokens | None = None
    shape: Shape = "openai"
    pinned: tuple[str, ...] = ()
    headroom: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 0


class MakeContext(Question, frozen=True):
    """The window to build. What is evicted to fit `budget` is recorded."""

    budget: Tokens | None = None
    shape: Shape = "openai"
    pinned: tuple[str, ...] = ()
    headroom: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 0


class ContextAnswer(msgspec.Struct, frozen=True):
    """The messages to send to a model, and what they are made of."""

    messages: list[dict[str, Any]]
    system: str
    shape: str
    at: int
    budget: int | None
    tokens: int
    items: tuple[Item, ...]
    ranges: tuple[tuple[int, int], ...]
    """The events whose content is in it."""
    evicted: tuple[Evicted, ...]
    exposure: str
    """The lowest trust of anything in it; `source` is where that comes from."""
    source: str
    hash: str

    @classmethod
    def of(cls, context: Context) -> ContextAnswer:
        return cls(**{name: getattr(context, name) for name in cls.__struct_fields__})


class WindowKey(Question, frozen=True):
    """Something in the window: `e12`, only a call's answer as `e12:output`, or a range, `e5..e40`."""

    key: NotEmpty


class Compact(Question, frozen=True):
    """A summary that replaces the events from `first` to `last` in the view."""

    first: NotEmpty
    last: NotEmpty
    summary: Value
    why: str = ""


class Expand(Question, frozen=True):
    compaction: Position
    why: str = ""


class Compactions(msgspec.Struct, frozen=True):
    compactions: tuple[Summary, ...]


class RecallBody(Question, frozen=True):
    """What the session is working on."""

    files: tuple[str, ...] = ()
    error: str = ""
    goal: str = ""
    project: str | None = None
    tokens: Annotated[int, msgspec.Meta(ge=20, le=10_000)] | None = None


@route("GET", "/sessions/{session}/brief", by_head=True)
def brief(call: VerbRequest, query: BriefQuery) -> Brief:
    """Writes the handoff for the next run: goal, facts, decisions, dead ends, pending calls, files."""
    return call.session().brief(**call.kwargs(query))


@route("GET", "/sessions/{session}/context", by_head=True)
def context(call: VerbRequest, query: ContextQuery) -> ContextAnswer:
    """Shows what a model would see now, or at a point. Nothing is recorded."""
    return ContextAnswer.of(call.session().context.window(record=False, **call.kwargs(query)))


@route("POST", "/sessions/{session}/context", scope="write")
def make_context(call: VerbRequest, body: MakeContext) -> ContextAnswer:
    """Builds the messages to send to a model. What is evicted is recorded, and stays out until it is restored."""
    return ContextAnswer.of(call.session().context.window(**call.kwargs(body)))


@route("POST", "/sessions/{session}/evict", scope="write")
def evict(call: VerbRequest, body: WindowKey) -> Evicted:
    """Evicts something from the window."""
    return call.session().context.evict(body.key)


@route("POST", "/sessions/{session}/restore", scope="write")
def restore(call: VerbRequest, body: WindowKey) -> RestoredContent:
    """Restores what was evicted from the window."""
    return call.session().context.restore(body.key)


@route("POST", "/sessions/{session}/pin", scope="write")
def pin(call: VerbRequest, body: WindowKey) -> Item:
    """Keeps something in the window until the turn ends."""
    return call.session().context.pin(body.key)


@route("GET", "/sessions/{session}/compactions", by_head=True)
def compactions(call: VerbRequest, query: At) -> Compactions:
    """Lists the compactions in effect, oldest first."""
    return Compactions(tuple(call.session().context.compactions(query.at or None)))


@route("POST", "/sessions/{session}/compact", scope="write")
def compact(call: VerbRequest, body: Compact) -> Recorded:
    """Replaces a part of the conversation by a summary, in the view only; the log keeps everything."""
    return Recorded(call.session().context.compact(**call.kwargs(body)))


@route("POST", "/sessions/{session}/expand", scope="write")
def expand(call: VerbRequest, body: Expand) -> Recorded:
    """Undoes a compaction."""
    return Recorded(call.session().context.expand(**call.kwargs(body)))


@route("POST", "/sessions/{session}/recall", scope="write")
def recall(call: VerbRequest, body: RecallBody) -> PastLines:
    """Returns a few lines from past sessions that are relevant to what a session is working on, and records in its log
    which they were."""
    return call.space.store.known.recall(session=call.session(), **call.kwargs(body))
