"""The graph of a session: each event, what it depends on, and how that is known.

    recorded   the header or the body names it: a cause, what it was derived from, the call a message answers
    matched    text of one event is in the other, word for word (text_matches.py)
    derived    nothing is recorded; the newest model call before it in the same turn, or what was in that turn's window
    unknown    none of these

Edges lead from an event to earlier ones, so the order of events is an order of the graph. An edge may lead to a whole
range: a model call names its window, and ranges are walked as ranges. Being in a window means that something may have
had influence, not that it had.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.late_value import LateValue
from wakelog.model.records import Commit
from wakelog.provenance.event_index import (
    CARRIERS,
    CONDITIONS,
    EFFECTS,
    MODEL_CALLS,
    OUTSIDE,
    Condition,
    EdgeKind,
    EventArrays,
    Role,
    read_tracks,
)

if TYPE_CHECKING:
    from wakelog.index.word_places import WordPlaces

Known = Literal["recorded", "matched", "derived", "unknown"]

CERTAIN, MATCHED, WINDOW, DERIVED, NOTHING = 4, 3, 2, 1, 0
"""The strength of a path is that of its weakest edge. A recorded window is weaker than a match: it only means "may"."""

ALL, TOLD, CARRIED = 0, 1, 2
"""Scopes: which events of an edge count. All; those with content; or only those that models read."""

_OWN = frozenset({Role.ASKED, Role.RECORDED, Role.CLAIM, Role.SAID})
"""What the agent does. If nothing is recorded, the newest model call counts as its cause."""


class Edge(msgspec.Struct, frozen=True, gc=False):
    """From an event back to one earlier event, or to a range of them."""

    first: Seq
    last: Seq
    kind: EdgeKind
    known: Known
    text: str = ""
    """For a match, the text."""
    is_carried: bool = False
    """Of a range only what models read counts: messages and results."""

    @property
    def scope(self) -> int:
        """Which events between `first` and `last` count."""
        return ALL if self.first == self.last else CARRIED if self.is_carried else TOLD

    @property
    def strength(self) -> int:
        if self.known == "recorded":
            return WINDOW if self.kind in ("window", "adopted") else CERTAIN
        return MATCHED if self.known == "matched" else DERIVED


_KNOWN: tuple[Known, ...] = ("unknown", "derived", "recorded", "matched", "recorded")


def known_of(strength: int) -> Known:
    """How something is known that was reached over a path of this strength."""
    return _KNOWN[strength]


Mentions = dict[tuple[tuple[str, ...], Seq], dict[str, Seq]]
"""Results of text searches: (texts, last event searched) → text → the first event that contains it."""


class Graph:
    """The graph of a session up to a point, read in one pass when first needed.

    With `wide`, a model call without a recorded window counts as having seen everything in view, earlier turns
    included.
    """

    def __init__(
        self, log: Log, at: Seq | None = None, *, wide: bool = False, tracks: EventArrays | None = None
    ) -> None:
        self.log = log
        self.wide = wide
        self.mentions: Mentions = {}
        self.places: WordPlaces | None = None
        """The words that the index has of this session, to search less."""
        self._at = at
        if tracks is not None:
            self.tracks = tracks

    @LateValue
    def tracks(self) -> EventArrays:
        return read_tracks(self.log, self._at)

    def widen(self) -> Graph:
        """The same graph with wide windows; nothing is read again."""
        return Graph(self.log, self._at, wide=True, tracks=self.tracks)

    first: Seq = 1
    """The first event that was read."""

    @property
    def head(self) -> Seq:
        return self.tracks.head

    def notice(self, commit: Commit, last: Seq) -> None:
        """Called with every commit that a text search reads (near_graph.py uses it)."""

    # Edges

    def edges(self, seq: Seq) -> list[Edge]:
        """What an event depends on, recorded or derived. Text matches are searched separately: that needs content."""
        tracks = self.tracks
        role = tracks.roles[seq]
        edges = self._header_edges(seq, role)
        has_window = role in MODEL_CALLS and seq in tracks.ranges
        # The evidence of a decision was written by the model. It does not show what the model had read.
        is_told = bool(edges)
        for link in tracks.links.get(seq, ()):
            known: Known = "derived" if link.kind == "earlier" else "recorded"
            edges.append(Edge(link.seq, link.last or link.seq, link.kind, known, is_carried=link.kind == "sums up"))
            is_told = is_told or link.kind not in ("evidence", "earlier")
        if (role in MODEL_CALLS and not has_window) or (role in _OWN and not is_told):
            edges += self._derived_edges(seq, role)
        return edges

    def _header_edges(self, seq: Seq, role: int) -> list[Edge]:
        tracks = self.tracks
        edges = []
        cause = tracks.causes[seq]
        if cause:
            edges.append(Edge(cause, cause, self._cause_kind(seq, cause), "recorded"))
        kind: EdgeKind = "window" if role in MODEL_CALLS else "content"
        for first, last in tracks.ranges.get(seq, ()):
            if (first, last) != (cause, cause):
                edges.append(Edge(first, last, kind, "recorded"))
        return edges

    def _cause_kind(self, seq: Seq, cause: Seq) -> EdgeKind:
        kind = self.tracks.kinds[cause]
        if kind == "action.requested" and self.tracks.kinds[seq].startswith("action."):
            return "answers"
        # Events adopted from a fork were copied together, and need not depend on each other.
        return "adopted" if kind == "history.adopted" else "cause"

    def _derived_edges(self, seq: Seq, role: int) -> list[Edge]:
        tracks = self.tracks
        model = tracks.models[seq]
        if model and role not in MODEL_CALLS:
            return [Edge(model, model, "model", "derived")]
        ranges = tracks.view_at(seq) if self.wide else [(tracks.began[seq], seq - 1)]
        return [
            Edge(first, last, "window", "derived", is_carried=True)
            for first, last in ranges
            if tracks.has_carrier(first, last)
        ]

    def sources(self, seq: Seq) -> Iterator[Seq]:
        """Every single event that an event depends on directly, once each."""
        seen: set[Seq] = set()
        for edge in self.edges(seq):
            for source in range(edge.first, edge.last + 1):
                if source not in seen and self.counts(source, edge.scope):
                    seen.add(source)
                    yield source

    # Events

    def counts(self, seq: Seq, scope: int) -> bool:
        """Whether an event in a range of that scope counts."""
        role = self.tracks.roles[seq]
        return scope == ALL or (role in CARRIERS if scope == CARRIED else role != Role.PLUMBING)

    def is_carrier(self, seq: Seq) -> bool:
        return self.tracks.roles[seq] in CARRIERS

    def is_origin(self, seq: Seq) -> bool:
        """Whether content came in here from outside, or under the name of a source that nothing it depends on has. A
        tool message that repeats a recorded result is no origin."""
        tracks = self.tracks
        role = tracks.roles[seq]
        if role in OUTSIDE and role != Role.TOLD:
            # The result of a write brings no new content.
            return EFFECTS[tracks.effects[seq]] != "write" or seq in tracks.sources
        source = tracks.sources.get(seq)
        if source is not None:
            recorded = (e for e in self.edges(seq) if e.known == "recorded")
            return not any(tracks.has_source(source, e.first, e.last) for e in recorded)
        if role == Role.TOLD:
            return not self.edges(seq)
        return tracks.kinds[seq] in ("session.opened", "goal.set", "history.adopted")

    def is_claim(self, seq: Seq) -> bool:
        """Whether the agent did this, so that it makes sense to ask why."""
        role = self.tracks.roles[seq]
        return role in _OWN or role in MODEL_CALLS

    def effect(self, seq: Seq) -> str:
        """The effect class of the call that an event requests or records; empty if it is no call."""
        role = self.tracks.roles[seq]
        is_call = role in (Role.ASKED, Role.RECORDED) or role in MODEL_CALLS
        return EFFECTS[self.tracks.effects[seq]] if is_call else ""

    def tool(self, seq: Seq) -> str:
        """The tool an event is about; empty when it is about none."""
        tools = self.tracks.tools
        return tools.get(seq) or tools.get(self.tracks.causes[seq], "")

    def source(self, seq: Seq) -> str:
        """The recorded source of an event's content; without one, the user or the tool that brought it in."""
        tracks = self.tracks
        if seq in tracks.sources:
            return tracks.sources[seq]
        role = tracks.roles[seq]
        if role == Role.INPUT:
            return "user"
        if role in (Role.ANSWERED, Role.RECORDED):
            return f"tool:{self.tool(seq)}" if self.tool(seq) else "tool"
        if role == Role.OTHER and self.is_origin(seq):
            return "session:{}@e{}".format(*tracks.copies[seq]) if seq in tracks.copies else "session"
        return {Role.TOLD: "tool", Role.RETURNED: "sub-agent"}.get(role, "")

    def condition(self, seq: Seq) -> Condition:
        """Whether an event's content is intact, erased or pruned."""
        return CONDITIONS[self.tracks.conditions[seq]]

    @LateValue
    def _view(self) -> list[tuple[Seq, Seq]]:
        return self.tracks.view_at(self.head + 1)[::-1]

    def in_view(self, seq: Seq) -> bool:
        """False for events that were rewound."""
        place = bisect_right(self._view, seq, key=lambda r: r[0]) - 1
        return place >= 0 and seq <= self._view[place][1]
