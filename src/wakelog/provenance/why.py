"""Why: from something in a session back to where it came from.

The walk has no limit, so all *origins* are found: user messages, pages and files that were read, results of tools. The
steps shown are limited, because a person reads them, and the answer says how many are left out. Being in a model's
window means "may have had influence"; such origins are marked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from wakelog.log import Log
from wakelog.model.document import is_key
from wakelog.model.ids import Seq, SessionId
from wakelog.model.trust import TRUSTS, Trust
from wakelog.provenance.effective_trust import Exposure, TrustByEvent, exposure
from wakelog.provenance.event_index import Condition, EdgeKind, Judgement
from wakelog.provenance.graph import MATCHED, WINDOW, Edge, Graph, Known, Mentions, known_of
from wakelog.provenance.graph_walk import Reach, Walk, walk_back
from wakelog.provenance.near_graph import TURNS_BEFORE, NearGraph, PlainLog, Unread
from wakelog.provenance.targets import Target, What, find, narrow, point_in
from wakelog.provenance.text_matches import is_target, match
from wakelog.timeline.slices import tool_of
from wakelog.timeline.turn_words import TurnWords, request_of_turn

if TYPE_CHECKING:
    from wakelog.index.word_places import WordPlaces

DEPTH, STEPS = 12, 60
FAN = 5
"""How many events of one range are shown: the least trusted first, then the newest."""
MATCH_ROUNDS, MATCHED_AT_ONCE = 3, 16
"""How often, and for how many events each time, text is searched for in earlier events."""
SEQS_SHOWN = 10
"""How many events of one origin are listed."""


class WhyStep(msgspec.Struct, frozen=True):
    """One event on the way back: over which edge it was reached, and how that is known."""

    seq: Seq
    parent: Seq
    """The step that depends on this one; 0 where the walk begins."""
    depth: int
    edge: EdgeKind | None
    known: Known
    text: str
    """For a match, the text that both hold."""
    trust: Trust
    source: str
    in_view: bool
    condition: Condition
    marks: tuple[Judgement, ...]
    rests_on: tuple[Edge, ...]
    folded: int
    """How many events it depends on directly are not shown."""


class Origin(msgspec.Struct, frozen=True):
    """A source of content, and the events that brought it in."""

    source: str
    trust: Trust
    count: int
    seqs: tuple[Seq, ...]
    """The best known ones first, ten at most."""
    known: Known
    may: bool
    """It was in a model's window, and no more is known: it may have had influence."""
    path: tuple[Seq, ...]
    """The way from the best known one to what was asked about."""


class Why(msgspec.Struct, frozen=True):
    """The answer."""

    session: SessionId
    at: Seq
    target: Target
    exposure: Exposure | None
    steps: tuple[WhyStep, ...]
    """A tree in depth-first order: each step comes after the one that depends on it."""
    origins: tuple[Origin, ...]
    unknown: tuple[Seq, ...]
    """Steps whose origin is not known."""
    reached: int
    limits: tuple[str, ...]
    """Sentences about what was left out of the answer."""
    asked: TurnWords | None = None
    """The request that started the turn; None if it is not known, or if the question was about it."""
    tool: str = ""
    """The tool that made it."""

    def __bool__(self) -> bool:
        """True if it depends on anything."""
        return self.reached > len(self.target.seqs) or any(o.path for o in self.origins)

    def __str__(self) -> str:
        lines = [f"{'  ' * s.depth}e{s.seq}" + (f"  {s.edge} ({s.known})" if s.edge else "") for s in self.steps]
        return "\n".join([*lines, *(f"origin {o.source}: {o.trust}, {o.known}" for o in self.origins)])


def why(
    log: Log,
    what: What,
    *,
    at: Seq | None = None,
    depth: int = DEPTH,
    steps: int = STEPS,
    wide: bool = False,
    places: WordPlaces | None = None,
) -> Why:
    """Finds where something came from: an event, a turn, a key of the state, a file or a line of it.

    `depth` and `steps` limit what is shown (0: no limit), never what is walked. With a limit on the steps, only some
    events of a range are shown. With `places` the index tells where to look for text; the answer is the same.
    """
    mentions: Mentions = {}  # shared by all tries, so that the log is searched for text once
    answer = None if wide else _answer_from_near_turns(log, what, at, depth, steps, mentions, places)
    if answer is not None:
        return answer
    graph = Graph(log, at, wide=wide)
    graph.mentions, graph.places = mentions, places
    return _answer(graph, find(graph, what), depth, steps)


def _answer_from_near_turns(
    log: Log,
    what: What,
    at: Seq | None,
    depth: int,
    steps: int,
    mentions: Mentions,
    places: WordPlaces | None = None,
) -> Why | None:
    """The answer from the turns around the target; None if it takes the whole graph."""
    if not (isinstance(what, int) or is_key(what) or point_in(what)):
        return None
    head = log.head().seq if at is None else at
    plain = PlainLog(log, head, known_upto=0 if places is None or places.is_marked else places.upto)
    if log.part_at_head("trust", head):
        return None
    for back in TURNS_BEFORE:
        graph = NearGraph(log, at, plain, head)
        graph.mentions, graph.places = mentions, places
        target = find(graph, what)
        if not target.seqs:
            return None
        try:
            graph.read_turns(target.seqs, back)
            found = _answer(graph, target, depth, steps)
        except Unread:
            continue
        return found if plain else None
    return None


def _answer(graph: Graph, found: Target, depth: int, steps: int) -> Why:
    log, target = graph.log, narrow(graph, found)
    # A line comes from the change that made it; earlier changes of the file do not matter.
    without: frozenset[EdgeKind] = frozenset({"earlier"} if target.way == "lines" else ())
    walk, extra, limits = _walk(graph, target.seqs, without)
    trusts = TrustByEvent(graph)
    laid_out = _lay_out(graph, walk, extra, trusts, depth or len(walk.reached), steps)
    if len(laid_out) < len(walk.reached):
        limits.append(f"{len(laid_out)} of {len(walk.reached)} events are shown")
    unknown = [
        s for s in walk.reached if graph.is_claim(s) and not (graph.edges(s) or extra.get(s) or graph.is_origin(s))
    ]
    turn = log.entry(target.seqs[0]).header.turn if target.seqs else 0
    words = request_of_turn(log, turn)
    return Why(
        log.id,
        graph.head,
        target,
        exposure(graph, target.seqs[0], trusts) if len(target.seqs) == 1 and graph.is_claim(target.seqs[0]) else None,
        tuple(laid_out),
        tuple(_origins(graph, walk, trusts)),
        tuple(unknown),
        len(walk.reached),
        tuple(limits),
        words if words is not None and words.seq not in target.seqs else None,
        _tool(log, target, laid_out),
    )


def _tool(log: Log, target: Target, steps: list[WhyStep]) -> str:
    """The tool of the target: its own, or that of the call that made it."""
    first = target.seqs[0] if target.seqs else 0
    made = (s.seq for s in steps if s.parent == first and s.edge == "made")
    names = (tool_of(log, log.entry(seq), {}) for seq in (first, *made) if seq)
    return next(filter(None, names), "")


# Walking, and searching for text where nothing is recorded


def _walk(
    graph: Graph, starts: tuple[Seq, ...], without: frozenset[EdgeKind]
) -> tuple[Walk, dict[Seq, tuple[Edge, ...]], list[str]]:
    extra: dict[Seq, tuple[Edge, ...]] = {}
    looked: set[Seq] = set()
    walk = walk_back(graph, starts, None, without)
    for _ in range(MATCH_ROUNDS):
        nearest = [s for s in _unmatched(graph, walk, starts) if s not in looked][:MATCHED_AT_ONCE]
        if not nearest:
            break
        looked.update(nearest)
        results = match(graph, nearest)
        if results:
            extra |= results
            walk = walk_back(graph, starts, extra, without)
    left = sum(1 for s in _unmatched(graph, walk, starts) if s not in looked)
    said = f"text was looked for in {len(looked)} of {len(looked) + left} events that could hold some"
    return walk, extra, [said] if left else []


def _unmatched(graph: Graph, walk: Walk, starts: tuple[Seq, ...]) -> Iterator[Seq]:
    """Events whose text is worth searching for: the targets, and what they certainly depend on if nothing further is
    recorded, apart from evidence that the model gave itself. Beyond a weaker edge a match adds nothing."""
    for seq, reach in walk.reached.items():
        if reach.strength >= MATCHED and is_target(graph, seq):
            is_recorded = any(e.known == "recorded" and e.kind != "evidence" for e in graph.edges(seq))
            if seq in starts or not is_recorded:
                yield seq


# The steps that are shown


def _lay_out(
    graph: Graph, walk: Walk, extra: dict[Seq, tuple[Edge, ...]], trusts: TrustByEvent, depth: int, steps: int
) -> list[WhyStep]:
    below: dict[Seq, list[Reach]] = {}
    for reach in walk.reached.values():
        below.setdefault(reach.through, []).append(reach)
    for siblings in below.values():
        siblings.sort(key=lambda r: (-r.strength, -trusts.rank(r.seq), not graph.is_carrier(r.seq), -r.seq))
    chosen = _choose(below, depth, steps)
    out: list[WhyStep] = []
    stack = [(reach, 0) for reach in reversed(below.get(0, []))]
    while stack:
        reach, level = stack.pop()
        if reach.seq not in chosen:
            continue
        children = below.get(reach.seq, [])
        folded = sum(1 for child in children if child.seq not in chosen)
        out.append(_step(graph, trusts, reach, level, folded, extra.get(reach.seq, ())))
        stack += [(child, level + 1) for child in reversed(children)]
    return out


def _choose(below: dict[Seq, list[Reach]], depth: int, steps: int) -> set[Seq]:
    """The nearest events, level by level; only FAN of each range."""
    chosen: set[Seq] = set()
    waiting = deque((reach, 0) for reach in below.get(0, []))
    while waiting and (not steps or len(chosen) < steps):
        reach, level = waiting.popleft()
        chosen.add(reach.seq)
        if level < depth:
            children = below.get(reach.seq, [])
            waiting += [(child, level + 1) for child in (_few(children) if steps else children)]
    return chosen


def _few(children: list[Reach]) -> Iterator[Reach]:
    left = FAN
    for child in children:
        is_one_of_many = child.edge is not None and child.edge.first != child.edge.last
        if not is_one_of_many or left > 0:
            yield child
        left -= is_one_of_many


def _step(
    graph: Graph, trusts: TrustByEvent, reach: Reach, level: int, folded: int, matches: tuple[Edge, ...]
) -> WhyStep:
    seq, edge = reach.seq, reach.edge
    return WhyStep(
        seq=seq,
        parent=reach.through,
        depth=level,
        edge=edge.kind if edge else None,
        known=edge.known if edge else "recorded",
        text=edge.text if edge else "",
        trust=trusts.trust(seq),
        source=graph.source(seq),
        in_view=graph.in_view(seq),
        condition=graph.condition(seq),
        marks=tuple(graph.tracks.marks.get(seq, ())),
        rests_on=(*graph.edges(seq), *matches),
        folded=folded,
    )


def _origins(graph: Graph, walk: Walk, trusts: TrustByEvent) -> Iterator[Origin]:
    by_source: dict[str, list[Reach]] = {}
    for reach in walk.reached.values():
        if graph.is_origin(reach.seq):
            by_source.setdefault(graph.source(reach.seq), []).append(reach)
    groups = []
    for source, reaches in by_source.items():
        reaches.sort(key=lambda r: (-r.strength, r.hops, -r.seq))
        groups.append((source, reaches, max(trusts.rank(r.seq) for r in reaches)))
    groups.sort(key=lambda g: (-g[1][0].strength, -g[2], g[1][0].hops))
    for source, reaches, rank in groups:
        best = reaches[0]
        yield Origin(
            source=source,
            trust=TRUSTS[rank],
            count=len(reaches),
            seqs=tuple(r.seq for r in reaches[:SEQS_SHOWN]),
            known=known_of(best.strength),
            may=best.strength <= WINDOW,
            path=tuple(r.seq for r in reversed(walk.path(best.seq))),
        )
