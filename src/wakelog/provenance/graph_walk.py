"""Walks over the graph: back to everything an event depends on, forward to everything that depends on it.

Both find, for each event, the *strongest* path to it (graph.py), and among equally strong ones a short one. Each event
is visited once and no range is searched twice, so the cost depends on what is reached.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from wakelog.model.ids import Seq
from wakelog.provenance.event_index import EdgeKind
from wakelog.provenance.graph import ALL, CARRIED, CERTAIN, TOLD, Edge, Graph
from wakelog.provenance.range_maximum import RangeMaxima

Extra = Mapping[Seq, tuple[Edge, ...]]
"""Edges beyond those of the graph, by the event they start from: matches."""

SCOPES = (ALL, TOLD, CARRIED)
_HOPS = 1 << 32


class Reach(msgspec.Struct, frozen=True, gc=False):
    """How an event was reached: over which edge (None where the walk began), how strongly, in how many steps."""

    seq: Seq
    edge: Edge | None
    strength: int
    hops: int
    through: Seq = 0
    """In a backward walk: the event that depends on this one."""


class Walk:
    """What a walk reached, in the order it did."""

    def __init__(self) -> None:
        self.reached: dict[Seq, Reach] = {}
        self.values = [RangeMaxima() for _ in SCOPES]
        """In a forward walk: how strongly and how soon each event was reached, by scope."""

    def path(self, seq: Seq) -> list[Reach]:
        """The path from the start of the walk to an event, both included."""
        path = [self.reached[seq]]
        while (edge := path[-1].edge) is not None:
            path.append(self.reached[path[-1].through or self._source(edge)])
        return path[::-1]

    def _source(self, edge: Edge) -> Seq:
        """The event of a range that the path goes through. Only looked up for paths that are shown."""
        if edge.first == edge.last:
            return edge.first
        values = self.values[edge.scope]
        return values.newest(edge.first, edge.last, values.top(edge.first, edge.last))


def walk_back(
    graph: Graph, starts: Iterable[Seq], extra: Extra | None = None, without: frozenset[EdgeKind] = frozenset()
) -> Walk:
    """Everything that some events depend on, strongest paths first, starting with the events themselves. Edges of the
    kinds in `without` are not followed."""
    walk = Walk()
    unvisited = [_Unvisited(graph, scope) for scope in SCOPES]
    waiting: list[deque[tuple[Reach, Edge]]] = [deque() for _ in range(CERTAIN + 1)]

    def arrive(reach: Reach) -> None:
        walk.reached[reach.seq] = reach
        for each in unvisited:
            each.mark_visited(reach.seq)
        for edge in (*graph.edges(reach.seq), *(extra or {}).get(reach.seq, ())):
            if edge.kind not in without:
                waiting[min(reach.strength, edge.strength)].append((reach, edge))

    for seq in dict.fromkeys(starts):
        arrive(Reach(seq, None, CERTAIN, 0))
    for strength in range(CERTAIN, 0, -1):
        while waiting[strength]:
            child, edge = waiting[strength].popleft()
            left = unvisited[edge.scope]
            seq = left.next(edge.first)
            while seq <= edge.last:
                arrive(Reach(seq, edge, strength, child.hops + 1, child.seq))
                seq = left.next(seq)
    return walk


def walk_on(
    graph: Graph, starts: Iterable[Seq], extra: Extra | None = None, stops: frozenset[Seq] = frozenset()
) -> Walk:
    """Everything that depends on some events, starting with the events themselves, without bookkeeping events. The walk
    does not continue through `stops`.

    A start that certainly depends on another start counts as reached from it.
    """
    roots = set(starts)
    walk = Walk()
    if not roots:
        return walk
    for values in walk.values:
        values.skip(min(roots) - 1)
    for seq in range(min(roots), graph.head + 1):
        best: Reach | None = None
        if seq not in stops and (seq in roots or graph.counts(seq, TOLD)):
            best = _best(graph, walk, seq, extra)
            if seq in roots and (best is None or best.strength < CERTAIN):
                best = Reach(seq, None, CERTAIN, 0)
        value = 0
        if best is not None:
            walk.reached[seq] = best
            value = best.strength * _HOPS + (_HOPS - 1 - best.hops)
        for scope, values in zip(SCOPES, walk.values, strict=True):
            values.append(value if value and graph.counts(seq, scope) else 0)
    return walk


def _best(graph: Graph, walk: Walk, seq: Seq, extra: Extra | None) -> Reach | None:
    best: Reach | None = None
    for edge in (*graph.edges(seq), *(extra or {}).get(seq, ())):
        top = walk.values[edge.scope].top(edge.first, edge.last)
        if top:
            reach = Reach(seq, edge, min(top // _HOPS, edge.strength), _HOPS - top % _HOPS)
            if best is None or (reach.strength, -reach.hops) > (best.strength, -best.hops):
                best = reach
    return best


class _Unvisited:
    """The events that were not visited yet, as a union-find: each points to itself, a visited one to a later one."""

    def __init__(self, graph: Graph, scope: int) -> None:
        self._following = array("q", range(graph.head + 2))
        if scope != ALL:
            for seq in range(graph.first, len(graph.tracks.roles)):
                if not graph.counts(seq, scope):
                    self._following[seq] = seq + 1

    def next(self, seq: Seq) -> Seq:
        """The first unvisited event from `seq` on; beyond the last when there is none."""
        following = self._following
        root = seq
        while following[root] != root:
            root = following[root]
        while following[seq] != root:  # shorten the path for the next search
            following[seq], seq = root, following[seq]
        return root

    def mark_visited(self, seq: Seq) -> None:
        if self._following[seq] == seq:
            self._following[seq] = seq + 1
