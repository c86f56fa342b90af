"""Provenance across sessions: what a source influenced beyond the session it came in, and back again.

Sessions are joined in four places. A session is **forked**: the fork shares what came before. A fork is **adopted**:
copies of its events are appended to the parent, and each is known by its place. A sub-agent is **spawned** with a task,
and later its result is **returned**. Inside each session the walk is the usual one; at a joint it continues in the
other session. A fork and an adopted copy are recorded word for word. A task, or a sub-agent's result, is only known as
a whole: such a joint is `derived`, and what follows may have been influenced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq, SessionId, is_session_id
from wakelog.provenance.effective_trust import TrustByEvent
from wakelog.provenance.event_index import OUTSIDE
from wakelog.provenance.graph import WINDOW, Graph, Known
from wakelog.provenance.taint import PARTS, Part, Touched, describe, part_of, spread
from wakelog.provenance.targets import What, distrusted_target, find_sources
from wakelog.provenance.why import Why, why

SESSIONS_MAX = 50
Joint = Literal["forked", "adopted", "spawned", "returned"]


class Crossing(msgspec.Struct, frozen=True):
    """Where the walk went from one session to another."""

    how: Joint
    origin: SessionId
    origin_seq: Seq
    session: SessionId
    seq: Seq
    known: Known


class TouchedSession(msgspec.Struct, frozen=True):
    """What was influenced in one session; `via` is None for the session of the question."""

    session: SessionId
    name: str
    via: Crossing | None
    roots: tuple[Seq, ...]
    """The events it spread from in this session, ten at most."""
    items: tuple[Touched, ...]
    reached: int


class TaintAcross(msgspec.Struct, frozen=True):
    """What a source influenced, session by session, in the order of the walk."""

    what: str
    sessions: tuple[TouchedSession, ...]
    limits: tuple[str, ...]

    def __bool__(self) -> bool:
        return any(each.items for each in self.sessions)


class WhySession(msgspec.Struct, frozen=True):
    """Where something came from, as far as one session knows."""

    session: SessionId
    name: str
    via: Crossing | None
    answer: Why


class WhyAcross(msgspec.Struct, frozen=True):
    """Where something came from, session by session, nearest first."""

    sessions: tuple[WhySession, ...]
    limits: tuple[str, ...]


def taint_across(
    log: Log, source: What | None, trust_rank: int = 1, *, parts: Iterable[Part] | None = None, wide: bool = False
) -> TaintAcross:
    """What depends on a source, in this session and all that it spread to. Without a source: what depends on input
    whose distrust is at least `trust_rank`."""
    return _Spread(frozenset(PARTS if parts is None else parts), wide).run(log, source, trust_rank)


class _Arrival(msgspec.Struct, frozen=True):
    """Events of a session that are influenced. With `may`, they were reached through a joint that is not known in
    detail."""

    log: Log
    roots: frozenset[Seq]
    via: Crossing | None
    may: bool


def _weakened(item: Touched) -> Touched:
    known: Known = "derived" if item.known == "recorded" else item.known
    return msgspec.structs.replace(item, may=True, known=known)


class _Spread:
    def __init__(self, wanted: frozenset[Part], wide: bool) -> None:
        self._wanted, self._wide = wanted, wide
        self._by_trust = False
        self._done: dict[SessionId, set[tuple[Seq, bool]]] = {}
        self._found: list[TouchedSession] = []
        self._limits: list[str] = []

    def run(self, log: Log, source: What | None, rank: int) -> TaintAcross:
        graph = Graph(log, None, wide=self._wide)
        trusts = TrustByEvent(graph)
        target = find_sources(graph, trusts, source) if source is not None else distrusted_target(graph, trusts, rank)
        queue = deque([_Arrival(log, frozenset(target.seqs), None, False)])
        counts_roots, self._by_trust = target.kind == "source", source is None
        while queue:
            arrival = queue.popleft()
            here, done = arrival.log, self._done.setdefault(arrival.log.id, set())
            # Roots that arrived for certain are not visited again as ones that may have.
            new = frozenset(r for r in arrival.roots if not done & {(r, False), (r, arrival.may)})
            if not new:
                continue
            if len(self._done) > SESSIONS_MAX:
                self._limits.append(f"only {SESSIONS_MAX} sessions were looked at")
                break
            done |= {(root, arrival.may) for root in new}
            try:
                queue.extend(self._visit(msgspec.structs.replace(arrival, roots=new), counts_roots))
            except CorruptLogError as exc:
                self._limits.append(f"{here.id} cannot be read: {exc.message}")
        return TaintAcross(target.what, tuple(self._found), tuple(dict.fromkeys(self._limits)))

    def _visit(self, arrival: _Arrival, counts_roots: bool) -> list[_Arrival]:
        log, roots, via = arrival.log, arrival.roots, arrival.via
        graph = Graph(log, None, wide=self._wide)
        trusts = TrustByEvent(graph)
        walk = spread(graph, roots, trusts.endorsed() if self._by_trust else frozenset())
        reached = set(walk.reached)
        head = log.head()
        # What a fork shares with its parent is listed under the parent.
        first = head.fork.at + 1 if head.fork is not None and via is not None and via.how == "forked" else 1
        shown = [
            seq
            for seq in sorted(reached)
            if seq >= first
            and part_of(graph, seq) in self._wanted
            and (seq not in roots or (counts_roots and graph.tracks.roles[seq] not in OUTSIDE) or via is not None)
        ]
        items = tuple(_weakened(item) if arrival.may else item for item in describe(graph, trusts, walk, shown))
        if items or via is None:
            first_roots = tuple(sorted(roots))[:10]
            self._found.append(TouchedSession(log.id, head.name, via, first_roots, items, len(reached - roots)))
        certain = {seq for seq, reach in walk.reached.items() if reach.strength > WINDOW}
        return list(self._cross_joints(arrival, reached, certain))

    def _cross_joints(self, arrival: _Arrival, reached: set[Seq], certain: set[Seq]) -> Iterator[_Arrival]:
        log, roots = arrival.log, arrival.roots
        for seq in sorted(reached):
            entry = log.entry(seq)
            if entry.kind == "subagent.spawned" and (child := self._open(log, str(entry.body.get("session", "")))):
                via = Crossing("spawned", log.id, seq, child.id, 1, "derived")
                yield _Arrival(child, frozenset({1}), via, True)
        for fork in log.forks():
            assert fork.fork is not None
            at = fork.fork.at
            shared = frozenset(seq for seq in roots if seq <= at)
            if shared and (child := self._open(log, fork.session)):
                via = Crossing("forked", log.id, at, fork.session, at + 1, "recorded")
                yield _Arrival(child, shared, via, arrival.may)
        own = log.head().fork
        if own is not None and (parent := self._open(log, own.parent)):
            for adopted, copies in _adoptions(parent, log.id):
                via = Crossing("adopted", log.id, adopted.body["at"], parent.id, adopted.seq, "recorded")
                for may, among in ((arrival.may, certain), (True, reached - certain)):
                    if hit := frozenset(copy for copy, of in copies if of in among):
                        yield _Arrival(parent, hit, via, may)
        if (spawner := spawner_of(log)) and (parent := self._open(log, spawner[0])) and len(reached) > len(roots):
            for entry in _returned(parent, log.id):
                via = Crossing("returned", log.id, max(reached), parent.id, entry.seq, "derived")
                yield _Arrival(parent, frozenset({entry.seq}), via, True)

    def _open(self, log: Log, session: str) -> Log | None:
        found = open_beside(log, session)
        if found is None:
            self._limits.append(f"{session or 'a sub-agent without a session'} is not in this store")
        return found


def why_across(log: Log, what: What, *, wide: bool = False) -> WhyAcross:
    """Where something came from, in this session and in those that it came from."""
    sessions: list[WhySession] = []
    limits: list[str] = []
    queue: deque[tuple[Log, What, Crossing | None]] = deque([(log, what, None)])
    seen: set[tuple[SessionId, What]] = set()
    while queue:
        here, asked, via = queue.popleft()
        if (here.id, asked) in seen:
            continue
        seen.add((here.id, asked))
        if len(sessions) >= SESSIONS_MAX:
            limits.append(f"only {SESSIONS_MAX} questions were asked")
            break
        try:
            answer = why(here, asked, wide=wide)
        except CorruptLogError as exc:
            limits.append(f"{here.id} cannot be read: {exc.message}")
            continue
        sessions.append(WhySession(here.id, here.head().name, via, answer))
        for step in answer.steps:
            for session, seq, how, known in _origins_elsewhere(here, here.entry(step.seq)):
                other = open_beside(here, session)
                if other is None:
                    limits.append(f"{session} is not in this store")
                    continue
                place: What = seq if seq else f"@{other.head().turn}" if other.head().turn else other.head().seq
                crossing = Crossing(how, here.id, step.seq, other.id, seq or other.head().seq, known)
                queue.append((other, place, crossing))
    return WhyAcross(tuple(sessions), tuple(dict.fromkeys(limits)))


def _origins_elsewhere(log: Log, entry: Entry) -> Iterator[tuple[str, Seq, Joint, Known]]:
    """Where an event came from in another session: that session, the event there (0: its end), and how it is known."""
    if entry.kind == "session.opened" and (spawner := spawner_of(log)):
        yield spawner[0], spawner[1], "spawned", "derived"
    elif entry.kind == "subagent.returned" and entry.body.get("session"):
        yield str(entry.body["session"]), 0, "returned", "derived"
    elif entry.header.cause:
        try:
            cause = log.entry(entry.header.cause)
        except NotFoundError:
            return
        if cause.kind == "history.adopted" and cause.is_intact:
            of = dict(_copies(cause)).get(entry.seq)
            if of is not None:
                yield str(cause.body["session"]), of, "adopted", "recorded"


def spawner_of(log: Log) -> tuple[str, Seq] | None:
    """The session that started this one as a sub-agent, and the event in it."""
    if log.head().fork is not None:
        return None
    text = str(log.entry(1).body.get("spawner", ""))
    session, at, seq = text.partition("@")
    return (session, int(seq)) if at and seq.isdigit() else None


def open_beside(log: Log, session: str) -> Log | None:
    """Another session of the same store; None if it is not there."""
    if not is_session_id(session):
        return None
    try:
        return Log(log.engine, SessionId(session), clock=log.clock, redact=log.redact)
    except NotFoundError:
        return None


def _adoptions(parent: Log, fork: SessionId) -> Iterator[tuple[Entry, list[tuple[Seq, Seq]]]]:
    for entry in parent.entries():
        if entry.kind == "history.adopted" and entry.is_intact and entry.body.get("session") == fork:
            yield entry, _copies(entry)


def _copies(adopted: Entry) -> list[tuple[Seq, Seq]]:
    """(copy, the event of the fork it is a copy of)."""
    copied = adopted.body.get("copied") or ()
    return [(adopted.seq + 1 + place, int(of)) for place, of in enumerate(copied)]


def _returned(parent: Log, child: SessionId) -> Iterator[Entry]:
    for entry in parent.entries():
        if entry.kind == "subagent.returned" and entry.body.get("session") == child:
            yield entry
