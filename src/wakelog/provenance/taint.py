"""Taint: from a source forward to everything that depends on it, and the effects it led to.

It finds decisions, facts, keys of the data, files, artefacts, sub-agents, and calls with effects (the *sinks*), each
with the strongest path to it and how that is known. Besides recorded and derived edges, it looks for text of the source
in what the agent wrote later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq, SessionId
from wakelog.model.json_fields import as_text
from wakelog.model.late_value import LateValue
from wakelog.model.trust import Trust, distrust
from wakelog.model.values import Value
from wakelog.provenance.effective_trust import TrustByEvent
from wakelog.provenance.event_index import OUTSIDE, Condition, EdgeKind, Judgement, key_in_delta
from wakelog.provenance.graph import MATCHED, WINDOW, Edge, Graph, Known, known_of
from wakelog.provenance.graph_walk import Reach, Walk, walk_on
from wakelog.provenance.key_writers import data_writers
from wakelog.provenance.targets import Target, What, distrusted_target, find_sources
from wakelog.provenance.text_matches import match_from

Part = Literal["effect", "decision", "fact", "data", "file", "artefact", "sub-agent", "dead end"]
PARTS: tuple[Part, ...] = ("effect", "decision", "fact", "data", "file", "artefact", "sub-agent", "dead end")
_PART_OF: dict[str, Part] = {
    "decision.made": "decision",
    "fact.recorded": "fact",
    "state.patched": "data",
    "file.changed": "file",
    "artefact.recorded": "artefact",
    "subagent.spawned": "sub-agent",
    "dead_end.noted": "dead end",
}
ITEMS = 100
MATCH_ROUNDS = 3
ROOTS_SHOWN = 20


class Hop(msgspec.Struct, frozen=True):
    """One event on a path, and the edge to it from the event before."""

    seq: Seq
    edge: EdgeKind | None
    known: Known
    text: str = ""


class Touched(msgspec.Struct, frozen=True):
    """Something that depends on the source."""

    seq: Seq
    part: Part
    name: str
    """The tool, the path, the key, the choice."""
    turn: int
    known: Known
    may: bool
    """True if it depends on the source only through a model's window: the source may have had influence."""
    path: tuple[Hop, ...]
    trust: Trust
    effect: str
    """For an effect, its class, and what became of the call."""
    outcome: str
    in_view: bool
    is_current: bool
    """True if the state still has it."""
    condition: Condition
    marks: tuple[Judgement, ...]


class Taint(msgspec.Struct, frozen=True):
    """What depends on a source."""

    session: SessionId
    at: Seq
    target: Target
    roots: tuple[Seq, ...]
    """The events it spread from, twenty at most; `root_count` counts all."""
    root_count: int
    sources: tuple[str, ...]
    items: tuple[Touched, ...]
    counts: dict[str, int]
    """How many there are of each part, listed or not."""
    reached: int
    """How many events depend on the source, including messages, model calls and results."""
    beyond: int
    """How many more may depend on it, because it may still have been in the window of a later turn."""
    limits: tuple[str, ...]

    def of(self, part: Part) -> tuple[Touched, ...]:
        return tuple(item for item in self.items if item.part == part)

    @property
    def effects(self) -> tuple[Touched, ...]:
        return self.of("effect")

    @property
    def decisions(self) -> tuple[Touched, ...]:
        return self.of("decision")

    @property
    def facts(self) -> tuple[Touched, ...]:
        return self.of("fact")

    def __bool__(self) -> bool:
        return any(self.counts.values())

    def __str__(self) -> str:
        return "\n".join(f"e{i.seq}  {i.part} {i.name}  {i.known}{' (may)' * i.may}" for i in self.items)


def taint(
    log: Log,
    source: What,
    *,
    at: Seq | None = None,
    parts: Iterable[Part] | None = None,
    items: int = ITEMS,
    wide: bool = False,
) -> Taint:
    """What depends on a source (`web:*`), an event, a turn, a key or a file. `items` limits what is listed (0: all)."""
    graph = Graph(log, at, wide=wide)
    trusts = TrustByEvent(graph)
    target = find_sources(graph, trusts, source)
    return _answer(graph, trusts, target, frozenset(), parts, items)


def taint_by_trust(
    log: Log,
    trust: Trust = "unverified",
    *,
    at: Seq | None = None,
    parts: Iterable[Part] | None = None,
    items: int = ITEMS,
    wide: bool = False,
) -> Taint:
    """What depends on anything trusted no more than `trust`: "unverified" means unverified and untrusted input. The
    walk stops at endorsed events."""
    graph = Graph(log, at, wide=wide)
    trusts = TrustByEvent(graph)
    target = distrusted_target(graph, trusts, distrust(trust))
    return _answer(graph, trusts, target, trusts.endorsed(), parts, items)


def _answer(
    graph: Graph, trusts: TrustByEvent, target: Target, stops: frozenset[Seq], parts: Iterable[Part] | None, items: int
) -> Taint:
    wanted = frozenset(PARTS if parts is None else parts)
    walk = spread(graph, target.seqs, stops)
    begun = {s for s, reach in walk.reached.items() if reach.edge is None}
    results = [s for s in walk.reached if part_of(graph, s) in wanted and (s not in begun or _counts(graph, target, s))]
    results.sort(key=lambda s: (-walk.reached[s].strength, s))
    shown = results[:items] if items else results
    wider = walk_on(graph.widen(), begun, None, stops).reached if not graph.wide else walk.reached
    sources = Counter(graph.source(s) for s in begun)
    return Taint(
        session=graph.log.id,
        at=graph.head,
        target=target,
        roots=tuple(sorted(begun))[:ROOTS_SHOWN],
        root_count=len(begun),
        sources=tuple(source for source, _ in sources.most_common() if source),
        items=tuple(describe(graph, trusts, walk, shown)),
        counts={part: n for part in PARTS if (n := sum(1 for s in results if part_of(graph, s) == part))},
        reached=len(walk.reached) - len(begun),
        beyond=sum(1 for s in wider if s not in walk.reached and part_of(graph, s) in wanted),
        limits=(f"{len(shown)} of {len(results)} are listed",) if len(shown) < len(results) else (),
    )


def _counts(graph: Graph, target: Target, seq: Seq) -> bool:
    """Whether a root is itself part of the answer: what the agent did under the name of a source is. The call that
    brought the source in is not, and neither is the target of the question."""
    return target.kind == "source" and graph.tracks.roles[seq] not in OUTSIDE


def spread(graph: Graph, roots: Iterable[Seq], stops: frozenset[Seq] = frozenset()) -> Walk:
    """Everything that depends on some events. Events without a certain path are searched for text that the roots
    brought in, and then for text that came in because of that."""
    roots = frozenset(roots)
    extra: dict[Seq, tuple[Edge, ...]] = {}
    walk = walk_on(graph, roots, extra, stops)
    sources = {s for s in roots if graph.is_carrier(s)} - stops
    looked: set[Seq] = set()
    for _ in range(MATCH_ROUNDS):
        sources -= looked
        if not sources:
            break
        looked |= sources
        weak = (s for s in range(min(sources) + 1, graph.head + 1) if part_of(graph, s) and _is_weak(walk, s))
        results = match_from(graph, sources, (s for s in weak if s not in stops))
        if not results:
            break
        for seq, edges in results.items():
            extra[seq] = (*extra.get(seq, ()), *edges)
        walk = walk_on(graph, roots, extra, stops)
        strong = (s for s, reach in walk.reached.items() if reach.strength >= MATCHED)
        sources = {s for s in strong if graph.tracks.roles[s] in OUTSIDE}
    return walk


def _is_weak(walk: Walk, seq: Seq) -> bool:
    reach = walk.reached.get(seq)
    return reach is None or reach.strength < MATCHED


def part_of(graph: Graph, seq: Seq) -> Part | None:
    """Which part of the answer an event belongs to; None for messages, results and the like."""
    return "effect" if graph.effect(seq) in ("write", "external") else _PART_OF.get(graph.tracks.kinds[seq])


# Describing


def describe(graph: Graph, trusts: TrustByEvent, walk: Walk, seqs: Iterable[Seq]) -> list[Touched]:
    """Describes events, with the path to each."""
    now = StateNow(graph)
    return [_touched(graph, trusts, walk, seq, now) for seq in seqs]


def _touched(graph: Graph, trusts: TrustByEvent, walk: Walk, seq: Seq, now: StateNow) -> Touched:
    part = part_of(graph, seq)
    assert part is not None
    entry = graph.log.entry(seq)
    reach = walk.reached[seq]
    return Touched(
        seq=seq,
        part=part,
        name=name_of(graph, entry, part),
        turn=entry.header.turn,
        known=known_of(reach.strength),
        may=reach.strength <= WINDOW,
        path=tuple(map(_hop, walk.path(seq))),
        trust=trusts.trust(seq),
        effect=graph.effect(seq) if part == "effect" else "",
        outcome=_outcome(graph, entry) if part == "effect" else "",
        in_view=graph.in_view(seq),
        is_current=graph.in_view(seq) and now.holds(entry, part),
        condition=graph.condition(seq),
        marks=tuple(graph.tracks.marks.get(seq, ())),
    )


def _hop(reach: Reach) -> Hop:
    edge = reach.edge
    return Hop(reach.seq, edge.kind, edge.known, edge.text) if edge else Hop(reach.seq, None, "recorded")


def _outcome(graph: Graph, entry: Entry) -> str:
    """The outcome of a call; empty if only its request is known."""
    if entry.kind == "action.recorded":
        return str(entry.body.get("outcome", "succeeded")) if entry.body else ""
    return graph.tracks.outcomes.get(entry.seq, "").removeprefix("action.")


_FIELD = {"decision": "choice", "sub-agent": "session", "dead end": "tried"}
_MAP = {"fact": "facts", "file": "files_modified", "artefact": "artefacts"}


def name_of(graph: Graph, entry: Entry, part: Part) -> str:
    """The recorded name. Keys survive erasing."""
    if part == "effect":
        name = graph.tool(entry.seq)
    elif part == "data":
        name = ", ".join(op["path"] for op in entry.delta)
    elif part in _MAP:
        name = key_in_delta(entry, _MAP[part])
    else:
        value = entry.body.get(_FIELD[part])
        name = as_text(value)
    return name or ("(erased)" if entry.record.body else "(pruned)")


class StateNow:
    """What the state holds at the end of the graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.state: dict[str, Value] = graph.log.state(graph.head)

    @LateValue
    def data(self) -> list[tuple[str, frozenset[Seq]]]:
        """The keys of the data, and the events that each value is made of."""
        return data_writers(self._graph.log, self._graph.head)

    @LateValue
    def _in_data(self) -> frozenset[Seq]:
        return frozenset(seq for _, seqs in self.data for seq in seqs)

    def holds(self, entry: Entry, part: Part) -> bool:
        """Whether the state still has what an event wrote."""
        seq = entry.seq
        if part == "data":
            return seq in self._in_data
        if part == "effect":
            return any(pending["seq"] == seq for pending in self.state["pending_actions"].values())
        if part in ("fact", "artefact"):
            return bool(self.state[_MAP[part]].get(key_in_delta(entry, _MAP[part]), {}).get("seq") == seq)
        if part == "file":
            return key_in_delta(entry, "files_modified") in self.state["files_modified"]
        return str(seq) in self.state["decisions_made"] or str(seq) in self.state["dead_ends"] or part == "sub-agent"
