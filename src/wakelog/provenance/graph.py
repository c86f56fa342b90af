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
from functools import cached_property
from typing import Literal

import msgspec

from wakelog.log import Log
from wakelog.model.ids import Seq
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

Known = Literal["recorded", "matched", "derived", "unknown"]

CERTAIN, MATCHED, WINDOW, DERIVED, NOTHING = 4, 3, 2, 1, 0
"""How strong a path is: that of its weakest edge. A recorded window is weaker than a match: it says only "may"."""

ALL, TOLD, CARRIED = 0, 1, 2
"""Scopes: an event that is named counts; of a range everything that says something; or only what models read."""

_OWN = frozenset({Role.ASKED, Role.RECORDED, Role.CLAIM, Role.SAID})
"""What the agent does of itself: where nothing is recorded, it is taken to come from the model."""


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
"""What looking for some texts in all events up to one has found: by text, the event (text_matches.py)."""


class Graph:
    """The graph of a session up to a point, read in one pass when it is first asked.

    With `wide`, a model call whose window is not recorded is taken to have seen everything in view, also of earlier
    turns.
    """

    def __init__(
        self, log: Log, at: Seq | None = None, *, wide: bool = False, tracks: EventArrays | None = None
    ) -> None:
        self.log = log
        self.wide = wide
        self.mentions: Mentions = {}
        self._at = at
        if tracks is not None:
            self.tracks = tracks

    @cached_property
    def tracks(self) -> EventArrays:
        return read_tracks(self.log, self._at)

    def widened(self) -> Graph:
        """The same graph with wide windows; nothing is read again."""
        return Graph(self.log, self._at, wide=True, tracks=self.tracks)

    first: Seq = 1
    """The first event that was read."""

    @property
    def head(self) -> Seq:
        return self.tracks.head

    def note(self, commit: Commit, last: Seq) -> None:
        """Hears of what is read of the log beside the graph."""

    # Edges

    def edges(self, seq: Seq) -> list[Edge]:
        """What an event depends on, as recorded or derived. Matches are searched separately: they need the content."""
        tracks = self.tracks
        role = tracks.roles[seq]
        edges = self._header_edges(seq, role)
        has_window = role in MODEL_CALLS and seq in tracks.ranges
        # What a decision gives as evidence was written by the model: it does not tell what the model had read.
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
        # What was taken over from a fork came together with the rest, and need not depend on it.
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
        """Every single event that an event depends on directly, once each. As many as its ranges hold."""
        seen: set[Seq] = set()
        for edge in self.edges(seq):
            for source in range(edge.first, edge.last + 1):
                if source not in seen and self.counts(source, edge.scope):
                    seen.add(source)
                    yield source

    # Events

    def counts(self, seq: Seq, scope: int) -> bool:
        """Whether an event in a range of that scope is one of those meant."""
        role = self.tracks.roles[seq]
        return scope == ALL or (role in CARRIERS if scope == CARRIED else role != Role.PLUMBING)

    def is_carrier(self, seq: Seq) -> bool:
        return self.tracks.roles[seq] in CARRIERS

    def is_origin(self, seq: Seq) -> bool:
        """Whether content came in here from outside, or under a source's name that nothing it depends on has. A tool's
        message that repeats a recorded result is no origin."""
        tracks = self.tracks
        role = tracks.roles[seq]
        if role in OUTSIDE and role != Role.TOLD:
            # That something was written tells nothing new.
            return EFFECTS[tracks.effects[seq]] != "write" or seq in tracks.sources
        source = tracks.sources.get(seq)
        if source is not None:
            recorded = (e for e in self.edges(seq) if e.known == "recorded")
            return not any(tracks.has_source(source, e.first, e.last) for e in recorded)
        if role == Role.TOLD:
            return not self.edges(seq)
        return tracks.kinds[seq] in ("session.opened", "goal.set", "history.adopted")

    def is_claim(self, seq: Seq) -> bool:
        """Whether an event is something the agent did, so that a reason for it can be asked for."""
        role = self.tracks.roles[seq]
        return role in _OWN or role in MODEL_CALLS

    def effect(self, seq: Seq) -> str:
        """The class of the call an event asks for or records; empty when it is none."""
        role = self.tracks.roles[seq]
        is_call = role in (Role.ASKED, Role.RECORDED) or role in MODEL_CALLS
        return EFFECTS[self.tracks.effects[seq]] if is_call else ""

    def tool(self, seq: Seq) -> str:
        """The tool an event is about; empty when it is about none."""
        tools = self.tracks.tools
        return tools.get(seq) or tools.get(self.tracks.causes[seq], "")

    def source(self, seq: Seq) -> str:
        """Where an event's content came from, as recorded; where nothing is, who or which tool brought it."""
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
        """Whether an event's content is still there."""
        return CONDITIONS[self.tracks.conditions[seq]]

    @cached_property
    def _view(self) -> list[tuple[Seq, Seq]]:
        return self.tracks.view_at(self.head + 1)[::-1]

    def in_view(self, seq: Seq) -> bool:
        """False for what was rewound."""
        place = bisect_right(self._view, seq, key=lambda r: r[0]) - 1
        return place >= 0 and seq <= self._view[place][1]
