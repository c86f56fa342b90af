"""Where something came from, what it influenced, and marking events as trusted or wrong."""

from __future__ import annotations

from typing import Annotated

import msgspec

from wakelog.engines.remote.wire import Question
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import At, NotEmpty, Query
from wakelog.model.events import Trust
from wakelog.provenance.across_sessions import TaintAcross, WhyAcross
from wakelog.provenance.blast_radius import Blast, Endorsed
from wakelog.provenance.picture import InfluenceGraph
from wakelog.provenance.taint import Part, Taint
from wakelog.provenance.why import Why

Some = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


class WhyQuery(At, frozen=True, kw_only=True):
    what: NotEmpty
    """An event or turn (`e12`, `@3`), a key of the state (`/facts/x`), a file or a line of it (`src/a.py:12`) as this
    session left it. Only the command line also asks `git blame` and other sessions about a file."""
    depth: Some = 12
    """How many levels are shown; 0: no limit."""
    steps: Some = 60
    """How many steps are shown; 0: no limit."""
    wide: bool = False
    """Assume that a model call without a recorded window has seen the earlier turns too."""


class TaintQuery(At, frozen=True, kw_only=True):
    source: str = ""
    """A source (`web:*`), or anything that `why` accepts; by default, input that is not trusted."""
    trust: Trust = "unverified"
    """Without a source: input of at most this trust."""
    part: tuple[Part, ...] = ()
    """Only these parts; may be repeated."""
    items: Some = 100
    wide: bool = False


class PictureQuery(At, frozen=True, kw_only=True):
    what: NotEmpty
    """As for `why`; for effects also a source, such as `web:*`."""
    effects: bool = False
    """Show what it influenced instead of what led to it."""
    hops: Some = 3
    boxes: Some = 60
    """At most this many events; 0: no limit."""
    wide: bool = False


class AcrossQuery(Query, frozen=True, kw_only=True):
    source: str = ""
    """A source (`web:*`), or anything that `why` accepts; by default, input that is not trusted."""
    trust: Trust = "unverified"
    part: tuple[Part, ...] = ()
    wide: bool = False


class EverywhereQuery(AcrossQuery, frozen=True, kw_only=True):
    sessions: Annotated[int, msgspec.Meta(ge=1, le=200)] = 20
    """How many sessions to examine, the newest first."""


class WhyAcrossQuery(Query, frozen=True, kw_only=True):
    what: NotEmpty
    """As for `why`."""
    wide: bool = False


class Judge(Question, frozen=True):
    """The events to mark, given as for `why`. With `dry_run` nothing is recorded."""

    targets: Annotated[tuple[NotEmpty, ...], msgspec.Meta(min_length=1, max_length=1000)]
    by: str = ""
    why: str = ""
    dry_run: bool = False


@route("GET", "/sessions/{session}/why", by_head=True)
def why(call: VerbRequest, query: WhyQuery) -> Why:
    """Shows where something came from. Every edge says how it is known, and the origins are listed."""
    return call.session().why(**call.kwargs(query))


@route("GET", "/sessions/{session}/picture", by_head=True)
def picture(call: VerbRequest, query: PictureQuery) -> InfluenceGraph:
    """Draws what led to something, or what it influenced: events with one line of content each, and the edges between
    them, each with how it is known."""
    return call.session().trust.picture(**call.kwargs(query))


@route("GET", "/sessions/{session}/taint", by_head=True)
def taint(call: VerbRequest, query: TaintQuery) -> Taint:
    """Shows everything influenced by a source, or without one by input of at most this trust: decisions, facts, data,
    files, and calls with effects."""
    return call.session().trust.taint(**call.kwargs(query, part="parts"))


@route("GET", "/sessions/{session}/taint-across")
def taint_across(call: VerbRequest, query: AcrossQuery) -> TaintAcross:
    """Shows everything influenced by a source, or without one by input of at most this trust, here and in the sessions
    it spread to: forks, adopting sessions, sub-agents."""
    return call.session().trust.taint_across(**call.kwargs(query, part="parts"))


@route("GET", "/taint")
def taint_everywhere(call: VerbRequest, query: EverywhereQuery) -> TaintAcross:
    """Shows everything influenced by a source, or without one by input of at most this trust, in all sessions."""
    return call.space.store.taint(**call.kwargs(query, part="parts"))


@route("GET", "/sessions/{session}/why-across")
def why_across(call: VerbRequest, query: WhyAcrossQuery) -> WhyAcross:
    """Shows where something came from, here and in the sessions it came from."""
    return call.session().trust.why_across(**call.kwargs(query))


@route("POST", "/sessions/{session}/endorse", scope="write")
def endorse(call: VerbRequest, body: Judge) -> Endorsed:
    """Marks events as trusted, and with them everything that depends only on them."""
    return call.session().trust.endorse(**call.kwargs(body))


@route("POST", "/sessions/{session}/invalidate", scope="write")
def invalidate(call: VerbRequest, body: Judge) -> Blast:
    """Marks events as wrong, and lists everything they influenced. Nothing is undone."""
    return call.session().trust.invalidate(**call.kwargs(body))
