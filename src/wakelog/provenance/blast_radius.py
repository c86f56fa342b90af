"""The blast radius of a step: what depends on it, and what of the present state does not.

Endorsing and invalidating are normal events; the events they name do not change. Their consequences can be shown before
they are recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.model.ids import Seq, SessionId
from wakelog.provenance.effective_trust import TrustByEvent
from wakelog.provenance.event_index import Judgement
from wakelog.provenance.graph import Graph, Known
from wakelog.provenance.graph_walk import Walk
from wakelog.provenance.taint import ITEMS, StateNow, Touched, describe, part_of, spread
from wakelog.provenance.targets import What, find

Held = Literal["fact", "decision", "data", "file", "pending"]


class Kept(msgspec.Struct, frozen=True):
    """Something the state holds now."""

    part: Held
    name: str
    seq: Seq
    """The event that wrote it last; 0 when that was pruned."""
    known: Known
    """How its own dependencies are known. If they are unknown, nothing shows that it is safe or unsafe."""


class Blast(msgspec.Struct, frozen=True):
    """What depends on some steps, and what of the state does not."""

    session: SessionId
    at: Seq
    seq: Seq
    """The event that invalidated them; 0 for a preview."""
    targets: tuple[Seq, ...]
    rests: tuple[Touched, ...]
    resting: tuple[Kept, ...]
    """What the state holds now and depends on them."""
    safe: tuple[Kept, ...]
    unknown: tuple[Kept, ...]
    """What was written in a pruned part of the history: it cannot be decided."""
    reached: int
    limits: tuple[str, ...]


class Endorsed(msgspec.Struct, frozen=True):
    """What an endorsement changed."""

    session: SessionId
    seq: Seq
    """The event that endorsed them; 0 for a preview."""
    targets: tuple[Seq, ...]
    raised: tuple[Seq, ...]
    """Events that are trusted more than before, including the targets."""


def targets_of(log: Log, targets: What | Iterable[What]) -> tuple[Seq, ...]:
    """The events meant: by seq, selector, key of the state, or line of a file."""
    asked = [targets] if isinstance(targets, int | str) else list(targets)
    graph = Graph(log)
    head = log.head().seq
    seqs: dict[Seq, None] = {}
    for what in asked:
        if isinstance(what, int):
            if not 0 < what <= head:
                raise NotFoundError(f"session {log.id} has no event {what}", kind="event-not-found")
            seqs[what] = None
        else:
            seqs |= dict.fromkeys(find(graph, what).seqs)
    if not seqs:
        raise InvalidInputError("name at least one event", kind="no-target", hint="such as e12, @3 or /facts/x")
    return tuple(sorted(seqs))


def blast(log: Log, targets: tuple[Seq, ...], *, seq: Seq = 0, items: int = ITEMS) -> Blast:
    """What depends on some events, and what does not."""
    graph = Graph(log)
    walk = spread(graph, targets)
    results = [s for s in walk.reached if s not in targets and part_of(graph, s)]
    results.sort(key=lambda s: (-walk.reached[s].strength, s))
    shown = results[:items] if items else results
    now = StateNow(graph)
    resting, safe, unknown = _split_by_dependence(graph, walk, now)
    return Blast(
        session=log.id,
        at=graph.head,
        seq=seq,
        targets=targets,
        rests=tuple(describe(graph, TrustByEvent(graph), walk, shown)),
        resting=resting,
        safe=safe,
        unknown=unknown,
        reached=sum(1 for s in walk.reached if s not in targets),
        limits=(f"{len(shown)} of {len(results)} are listed",) if len(shown) < len(results) else (),
    )


def _split_by_dependence(
    graph: Graph, walk: Walk, now: StateNow
) -> tuple[tuple[Kept, ...], tuple[Kept, ...], tuple[Kept, ...]]:
    resting, safe, unknown = [], [], []
    for part, name, seqs in _held_things(graph, now):
        kept = Kept(part, name, max(seqs), _least_known(graph, seqs))
        if any(seq in walk.reached for seq in seqs):
            resting.append(kept)
        elif 0 in seqs:
            unknown.append(msgspec.structs.replace(kept, known="unknown"))
        else:
            safe.append(kept)
    return tuple(resting), tuple(safe), tuple(unknown)


def _held_things(graph: Graph, now: StateNow) -> list[tuple[Held, str, frozenset[Seq]]]:
    """Everything in the state, with the events that each thing is made of."""
    state = now.state
    held: list[tuple[Held, str, frozenset[Seq]]] = []
    held += [("fact", key, frozenset({fact["seq"]})) for key, fact in state["facts"].items()]
    held += [("decision", f"e{seq}", frozenset({int(seq)})) for seq in state["decisions_made"]]
    held += [("data", pointer, seqs) for pointer, seqs in now.data]
    for path, used in state["files_modified"].items():
        # The edges of its last change lead to those before it, unless some were pruned.
        known = sum(1 for s in graph.tracks.files.get(path, ()) if graph.in_view(s))
        held.append(("file", path, frozenset({used["last"], *({0} if known < used["changes"] else ())})))
    held += [("pending", name, frozenset({each["seq"]})) for name, each in state["pending_actions"].items()]
    return held


def _least_known(graph: Graph, seqs: frozenset[Seq]) -> Known:
    """The least that is known of any of them."""
    found: Known = "recorded"
    for seq in seqs:
        edges = graph.edges(seq) if seq else []
        if not edges and not (seq and graph.is_origin(seq)):
            return "unknown"
        if edges and not any(e.known == "recorded" for e in edges):
            found = "derived"
    return found


def newly_trusted(log: Log, targets: tuple[Seq, ...]) -> tuple[Seq, ...]:
    """The events that would be trusted more if some were endorsed now."""
    graph = Graph(log)
    mark = Judgement(graph.head + 1, "endorsed", "")
    before, after = TrustByEvent(graph), TrustByEvent(graph, dict.fromkeys(targets, mark))
    return tuple(s for s in range(1, graph.head + 1) if after.rank(s) < before.rank(s))
