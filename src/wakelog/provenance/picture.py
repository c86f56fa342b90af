"""A piece of the graph to look at: boxes and the edges between them, each with how it is known.

It is always the answer to one question, never the whole graph: from something back to its origins, or from a source on
to its effects. What does not fit is folded, and counted at the box that leads there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from wakelog.errors import NotFoundError
from wakelog.index.facets import facets_of
from wakelog.log import Log
from wakelog.model.ids import Seq, SessionId
from wakelog.model.payloads import as_ref
from wakelog.model.trust import Trust
from wakelog.model.values import Value
from wakelog.provenance.event_index import Condition, EdgeKind
from wakelog.provenance.graph import Known
from wakelog.provenance.taint import Taint, taint
from wakelog.provenance.targets import Target, What
from wakelog.provenance.why import Why, why
from wakelog.timeline.slices import tool_of

HOPS, BOXES = 3, 60
CONTENT_MAX = 256 * 1024
"""Larger payloads are not fetched for the title of a box."""
Place = Literal["origin", "between", "end"]


class InfluenceBox(msgspec.Struct, frozen=True):
    """One event of the picture."""

    seq: Seq
    turn: int
    attempt: int
    kind: str
    tool: str
    title: str
    """Its content in one line; empty if that is gone."""
    source: str
    trust: Trust
    place: Place
    """An origin or source; an end (the target, or an effect); or between them."""
    hops: int
    """How many edges it is away from the target."""
    folded: int
    """How many events behind it are not in the picture."""
    condition: Condition


class InfluenceLine(msgspec.Struct, frozen=True):
    """One event depends on another."""

    first: Seq
    """The earlier one."""
    last: Seq
    edge: EdgeKind | None
    known: Known
    may: bool
    """It was in a model's window, and no more is known: it may have had influence."""
    text: str = ""
    """For a match, the text that both hold."""


class InfluenceGraph(msgspec.Struct, frozen=True):
    """Boxes in order of events, and the lines between them."""

    session: SessionId
    at: Seq
    target: Target
    direction: Literal["causes", "effects"]
    boxes: tuple[InfluenceBox, ...]
    lines: tuple[InfluenceLine, ...]
    sources: tuple[str, ...]
    reached: int
    """Events that the question reached in all."""
    folded: int
    """Of these, how many are not in the picture."""
    limits: tuple[str, ...]


def picture(
    log: Log,
    what: What,
    *,
    effects: bool = False,
    at: Seq | None = None,
    hops: int = HOPS,
    boxes: int = BOXES,
    wide: bool = False,
) -> InfluenceGraph:
    """What led to something, or with `effects` what it touched: `hops` steps far, with at most so many `boxes`
    (0: no limit)."""
    if effects:
        return _draw_taint(log, taint(log, what, at=at, items=boxes, wide=wide), boxes)
    return _draw_why(log, why(log, what, at=at, depth=hops, steps=boxes, wide=wide))


def _draw_why(log: Log, found: Why) -> InfluenceGraph:
    origins = {seq for origin in found.origins for seq in origin.seqs}
    starts = set(found.target.seqs)
    boxes = [
        _box(log, s.seq, s.trust, s.source, _place(s.seq, starts, origins), s.depth, s.folded, s.condition)
        for s in found.steps
    ]
    lines = [
        InfluenceLine(s.seq, s.parent, s.edge, s.known, _is_may(s.edge, s.known), s.text)
        for s in found.steps
        if s.parent
    ]
    sources = (origin.source for origin in found.origins)
    return _build_graph(found, "causes", boxes, lines, sources, found.reached, found.limits)


def _draw_taint(log: Log, found: Taint, most: int) -> InfluenceGraph:
    """The paths to everything that was touched, the best known first, as long as there is room."""
    hops: dict[Seq, int] = {}
    lines: dict[tuple[Seq, Seq], InfluenceLine] = {}
    ends: set[Seq] = set()
    left_out = 0
    for item in found.items:
        new = [hop for hop in item.path if hop.seq not in hops]
        if most and hops and len(hops) + len(new) > most:
            left_out += 1
            continue
        ends.add(item.seq)
        for number, hop in enumerate(item.path):
            hops.setdefault(hop.seq, number)
            if number:
                before = item.path[number - 1].seq
                lines[before, hop.seq] = InfluenceLine(
                    before, hop.seq, hop.edge, hop.known, _is_may(hop.edge, hop.known), hop.text
                )
    for seq in found.roots:
        if not most or len(hops) < most:
            hops.setdefault(seq, 0)
    known = {item.seq: item for item in found.items}
    roots = set(found.roots)
    boxes = []
    for seq, number in hops.items():
        touched = known.get(seq)
        entry = log.entry(seq)
        condition: Condition = touched.condition if touched is not None else "intact" if entry.is_intact else "erased"
        place: Place = "end" if seq in ends else "origin" if seq in roots or not number else "between"
        trust: Trust = touched.trust if touched is not None else entry.header.trust
        boxes.append(_box(log, seq, trust, entry.header.source, place, number, 0, condition))
    limits = (*found.limits, *((f"{left_out} more ways are not drawn",) if left_out else ()))
    reached = found.reached + found.root_count
    return _build_graph(found, "effects", boxes, lines.values(), found.sources, reached, limits)


def _build_graph(
    found: Why | Taint,
    direction: Literal["causes", "effects"],
    boxes: list[InfluenceBox],
    lines: Iterable[InfluenceLine],
    sources: Iterable[str],
    reached: int,
    limits: tuple[str, ...],
) -> InfluenceGraph:
    boxes.sort(key=lambda box: box.seq)
    return InfluenceGraph(
        session=found.session,
        at=found.at,
        target=found.target,
        direction=direction,
        boxes=tuple(boxes),
        lines=tuple(sorted(lines, key=lambda line: (line.first, line.last))),
        sources=tuple(source for source in dict.fromkeys(sources) if source),
        reached=reached,
        folded=max(0, reached - len(boxes)),
        limits=limits,
    )


def _place(seq: Seq, starts: set[Seq], origins: set[Seq]) -> Place:
    return "end" if seq in starts else "origin" if seq in origins else "between"


def _is_may(edge: EdgeKind | None, known: Known) -> bool:
    return known == "derived" or edge in ("window", "adopted")


def _box(
    log: Log, seq: Seq, trust: Trust, source: str, place: Place, hops: int, folded: int, condition: Condition
) -> InfluenceBox:
    entry = log.entry(seq)

    def content(mention: dict[str, Value]) -> Value:
        ref = as_ref(mention)
        try:
            return log.value(entry, mention) if ref is not None and ref.size <= CONTENT_MAX else None
        except NotFoundError:
            return None

    facets = facets_of(entry.kind, entry.body, content) if condition == "intact" else None
    return InfluenceBox(
        seq=seq,
        turn=entry.header.turn,
        attempt=entry.header.attempt,
        kind=entry.kind,
        tool=tool_of(log, entry, {}),
        title=facets.summary or facets.key if facets is not None else "",
        source=source,
        trust=trust,
        place=place,
        hops=hops,
        folded=folded,
        condition=condition,
    )
