"""Effective trust and exposure: the recorded trust, after all endorsements and invalidations.

**Trust** is the minimum over the recorded data flow. The runtime stamps it when an event is appended. A stamp never
changes, so the effective trust is computed here. A stamp that an event only inherited does not count by itself: when
its origin is endorsed, everything that depends only on that origin is trusted too. A tool's result has the trust of its
tool, not of the caller, unless the tool is a pure function of its input.

An **endorsed** event is trusted from then on, whatever it depends on. An **invalidated** event is untrusted, and so is
everything that depends on it, results of calls included. For one event the later mark counts. An endorsement ends when
something that the event depends on is invalidated later, because the endorser did not know that.

**Exposure** is the minimum over everything a model call had in its window: as recorded, or else everything in view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from wakelog.model.ids import Seq
from wakelog.model.trust import TRUSTS, Trust, distrust
from wakelog.provenance.event_index import MODEL_CALLS, Judgement, Role
from wakelog.provenance.graph import Edge, Graph, Known
from wakelog.provenance.range_maximum import RangeMaxima

_UNTRUSTED = distrust("untrusted")
_BY_MODEL = ("cause", "answers", "says", "made")
WORST_SHOWN = 20


class Exposure(msgspec.Struct, frozen=True):
    """What a model call had before it."""

    trust: Trust
    known: Known
    """recorded: the window is recorded; derived: everything in view counts; unknown: nothing was in view."""
    call: Seq
    """The model call; 0 when none is recorded."""
    worst: tuple[Seq, ...]
    """The least trusted events in the window, the newest of them; empty when all are trusted."""


class TrustByEvent:
    """The effective trust of every event, computed in one pass over the graph."""

    def __init__(self, graph: Graph, more: Mapping[Seq, Judgement] | None = None) -> None:
        """`more` are hypothetical marks: they count as the newest marks of their events."""
        self.graph = graph
        self._more = more or {}
        self._stamps = RangeMaxima()
        self._ranks = RangeMaxima()
        self._invalid = RangeMaxima()
        self.own = bytearray(1)
        """1 where an event's stamp is its own and not inherited."""
        if not (self._more or graph.tracks.marks or any(graph.tracks.stamps)):
            self._trust_all(graph.head)
            return
        for seq in range(1, graph.head + 1):
            self._judge(seq)

    def rank(self, seq: Seq) -> int:
        return self._ranks[seq]

    def trust(self, seq: Seq) -> Trust:
        return TRUSTS[self._ranks[seq]]

    def worst(self, first: Seq, last: Seq) -> int:
        return self._ranks.top(first, last)

    def newest(self, first: Seq, last: Seq, rank: int) -> Seq:
        return self._ranks.newest(first, last, rank)

    def endorsed(self) -> frozenset[Seq]:
        """Endorsed events that are trusted now."""
        marks = self.graph.tracks.marks.items()
        return frozenset(seq for seq, each in marks if each[-1].mark == "endorsed" and not self.rank(seq))

    def _judge(self, seq: Seq) -> None:
        tracks = self.graph.tracks
        stamp = tracks.stamps[seq]
        mark = self._more.get(seq) or (tracks.marks[seq][-1] if seq in tracks.marks else None)
        if not (stamp or mark or seq in tracks.links or seq in tracks.ranges or tracks.causes[seq]):
            self._put(0, 0, 0, 0)  # most events: trusted, without recorded dependencies
            return
        edges = [e for e in self.graph.edges(seq) if e.known == "recorded" and e.kind != "about"]
        flow = [e for e in edges if self._flows(seq, e)]
        invalid = max((self._invalid.top(e.first, e.last) for e in edges), default=0)
        is_own = int(stamp > 0 and not self._explains(seq, stamp, flow))
        rank = max((self._ranks.top(e.first, e.last) for e in flow), default=0)
        rank = max(rank, stamp if is_own else 0)
        if mark and mark.mark == "invalidated":
            invalid = max(invalid, mark.seq)
        elif mark and invalid < mark.seq:
            rank = invalid = is_own = 0
        self._put(stamp, _UNTRUSTED if invalid else rank, invalid, is_own)

    def _trust_all(self, count: int) -> None:
        """If nothing is distrusted, every event is trusted."""
        for each in (self._stamps, self._ranks, self._invalid):
            each.skip(count)
        self.own.extend(bytes(count))

    def _put(self, stamp: int, rank: int, invalid: int, is_own: int) -> None:
        self._stamps.append(stamp)
        self._ranks.append(rank)
        self._invalid.append(invalid)
        self.own.append(is_own)

    def _flows(self, seq: Seq, edge: Edge) -> bool:
        """Whether trust follows an edge. The caller does not affect the trust of a result, unless the call is a pure
        function of its input."""
        role = self.graph.tracks.roles[seq]
        if edge.kind == "adopted" or role == Role.PLUMBING:
            return False
        if role == Role.RECORDED:
            return edge.kind in ("repeats", "content") or self.graph.effect(seq) == "pure"
        if role == Role.ANSWERED and edge.kind == "answers":
            return self.graph.effect(edge.first) == "pure"
        return True

    def _explains(self, seq: Seq, stamp: int, flow: list[Edge]) -> bool:
        """Whether a stamp was only inherited: something it depends on is at least as bad, from the same source."""
        source = self.graph.tracks.sources.get(seq, "")
        return any(
            self._stamps.top(e.first, e.last) >= stamp
            and (not source or self.graph.tracks.has_source(source, e.first, e.last))
            for e in flow
        )


def effective_trust(graph: Graph, seq: Seq) -> Trust:
    """The trust of one event now. For several, make one `TrustByEvent`: each takes a pass over the graph."""
    return TrustByEvent(graph).trust(seq)


def exposure(graph: Graph, seq: Seq, trusts: TrustByEvent | None = None) -> Exposure:
    """What the model call behind an event had in its window: the event itself, or the call whose answer it depends on.
    If neither is recorded, everything that was in view."""
    trusts = trusts or TrustByEvent(graph)
    call = model_behind(graph, seq)
    recorded = graph.tracks.ranges.get(call)
    ranges = list(recorded or graph.tracks.view_at(call or seq))
    rank = max((trusts.worst(first, last) for first, last in ranges), default=0)
    worst = tuple(_newest(trusts, ranges, rank)) if rank else ()
    known: Known = "recorded" if recorded else "derived" if ranges else "unknown"
    return Exposure(TRUSTS[rank], known, call, worst)


def _newest(trusts: TrustByEvent, ranges: list[tuple[Seq, Seq]], rank: int) -> Iterator[Seq]:
    left = WORST_SHOWN
    for first, last in sorted(ranges, reverse=True):
        while left and last >= first and (found := trusts.newest(first, last, rank)):
            yield found
            last, left = found - 1, left - 1


def model_behind(graph: Graph, seq: Seq) -> Seq:
    """The model call that an event is recorded to depend on most directly: its request; 0 when there is none."""
    while seq:
        if graph.tracks.roles[seq] in MODEL_CALLS:
            return seq
        edges = (e for e in graph.edges(seq) if e.known == "recorded" and e.kind in _BY_MODEL)
        seq = next((e.first for e in edges), 0)
    return 0
