"""What one pass over a session keeps of each event, so that the graph can be walked without reading it again.

It keeps a few small numbers for each event, in flat arrays: its *role*, its cause, its trust stamp, where its turn
started, the newest model call before it. Rare things (ranges, links found in bodies, sources) are in dicts. No content
is kept, so memory is some tens of bytes for each event. Headers survive erasing and pruning, and so do the edges they
name.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import Literal

import msgspec

from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.calls import ANSWERS, BEGIN_KINDS
from wakelog.model.ids import Seq
from wakelog.model.trust import distrust
from wakelog.state.patch import tokens_of

EdgeKind = Literal[
    "cause", "answers", "content", "window", "evidence", "says", "made", "sums up", "repeats", "about", "model",
    "earlier", "adopted", "match",
]  # fmt: skip
Condition = Literal["intact", "erased", "pruned"]
CONDITIONS: tuple[Condition, ...] = ("intact", "erased", "pruned")


class Role:
    """The role of an event in the graph. Plain numbers, because they are compared for every event."""

    OTHER = 0
    INPUT = 1
    """Input from outside: a user's message, an answer to a question, a turn's input."""
    TOLD = 2
    """A tool's result as a message."""
    SAID = 3
    """A message of the agent."""
    MODEL_ASKED = 4
    MODEL_ANSWERED = 5
    MODEL_RECORDED = 6
    ASKED = 7
    ANSWERED = 8
    RECORDED = 9
    SUMMARY = 10
    RETURNED = 11
    CLAIM = 12
    """What the agent noted, decided or changed."""
    ABOUT = 13
    """A remark on other events: a flag, a note, an endorsement."""
    PLUMBING = 14
    """Bookkeeping without content: a call's start, a turn's end, a lease."""


MODEL_CALLS = frozenset({Role.MODEL_ASKED, Role.MODEL_RECORDED})
CARRIERS = frozenset({
    Role.INPUT, Role.TOLD, Role.SAID, Role.MODEL_ANSWERED, Role.MODEL_RECORDED, Role.ANSWERED, Role.RECORDED,
    Role.SUMMARY, Role.RETURNED,
})  # fmt: skip
"""Events that a model reads: their content is in the next window."""
OUTSIDE = frozenset({Role.INPUT, Role.TOLD, Role.ANSWERED, Role.RECORDED, Role.RETURNED})
"""What brings content in from outside."""
EFFECTS = ("", "model", "pure", "read", "write", "external")
MODEL, EXTERNAL = EFFECTS.index("model"), EFFECTS.index("external")
_EFFECT = {effect: place for place, effect in enumerate(EFFECTS)}

_CLAIMS = frozenset({
    "decision.made", "fact.recorded", "fact.retracted", "dead_end.noted", "artefact.recorded", "file.changed",
    "resource.touched", "state.patched", "subagent.spawned", "input.requested",
})  # fmt: skip
_OUTCOMES = (ANSWERS - BEGIN_KINDS) | {"action.evidence"}
_ABOUT = frozenset({"flag.raised", "note.added", "trust.endorsed", "step.invalidated"})
_PLUMBING = frozenset({
    "action.started", "action.approved", "action.denied", "action.uncertain", "action.abandoned", "turn.started",
    "turn.ended", "lease.taken", "lease.released", "session.paused", "session.resumed", "session.closed",
    "session.reopened", "session.archived", "session.forked", "labels.set", "budget.set", "budget.spent",
    "budget.reached", "flag.cleared", "checkpoint.named", "context.evicted", "context.restored", "history.rewound",
    "history.expanded", "payload.redacted", "payload.erased", "range.pruned",
})  # fmt: skip
_ROLES = {
    **dict.fromkeys(_CLAIMS, Role.CLAIM),
    **dict.fromkeys(_ABOUT, Role.ABOUT),
    **dict.fromkeys(_PLUMBING, Role.PLUMBING),
    "history.compacted": Role.SUMMARY,
    "subagent.returned": Role.RETURNED,
    "input.answered": Role.INPUT,
}
_READ = frozenset({
    *_CLAIMS, *BEGIN_KINDS, *_OUTCOMES, *_ABOUT, "message.added",
    "history.compacted", "history.rewound", "history.adopted", "input.answered", "subagent.returned",
})  # fmt: skip
"""The kinds whose bodies are decoded."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """An edge that is recorded in a body."""

    seq: Seq
    kind: EdgeKind
    last: Seq = 0
    """The end of a range; 0 for a single event."""


class Judgement(msgspec.Struct, frozen=True, gc=False):
    """An endorsement or invalidation of an event."""

    seq: Seq
    mark: Literal["endorsed", "invalidated"]
    by: str


class ViewRange(msgspec.Struct, frozen=True, gc=False):
    """A range of events in view, linked to the ranges before it. Links are shared, so a rewind costs one of these."""

    first: Seq
    last: Seq
    before: ViewRange | None


class _Body(msgspec.Struct, gc=False):
    """The fields of bodies that the graph reads; all others are not decoded."""

    role: str = ""
    action: str = ""
    tool: str = ""
    effect: str = "external"
    reused: int = 0
    evidence: tuple[int | str, ...] = ()
    first: int = 0
    last: int = 0
    path: str = ""
    change: str = "modified"
    request: str = ""
    session: str = ""
    targets: tuple[int, ...] = ()
    on: int = 0
    to: int = 0
    at: int = 0
    copied: tuple[int, ...] = ()
    by: str = ""


_decode = msgspec.json.Decoder(_Body).decode
_NOTHING = _Body()


class EventArrays:
    """The arrays, by seq; position 0 is unused."""

    def __init__(self) -> None:
        self.head: Seq = 0
        self.kinds: list[str] = [""]
        self.roles = bytearray(1)
        self.effects = bytearray(1)
        self.stamps = bytearray(1)
        self.conditions = bytearray(1)
        self.causes = array("q", [0])
        self.began = array("q", [0])
        """By event, where its attempt at the turn began; between turns, where the turn before ended."""
        self.models = array("q", [0])
        """By event, the newest outcome of a model call before it in the same attempt; 0 if there is none."""
        self.carriers = array("q")
        self.ranges: dict[Seq, tuple[tuple[Seq, Seq], ...]] = {}
        self.links: dict[Seq, tuple[Link, ...]] = {}
        self.sources: dict[Seq, str] = {}
        self.by_source: dict[str, array[int]] = {}
        self.tools: dict[Seq, str] = {}
        self.files: dict[str, array[int]] = {}
        self.outcomes: dict[Seq, str] = {}
        """By request, the kind of the call's newest event."""
        self.copies: dict[Seq, tuple[str, Seq]] = {}
        """By adopted event, the fork it came from and the event there. The adopting event counts as the fork's last."""
        self.marks: dict[Seq, list[Judgement]] = {}
        self.views: list[tuple[Seq, ViewRange]] = [(1, ViewRange(1, 0, None))]

    def view_at(self, seq: Seq) -> list[tuple[Seq, Seq]]:
        """The ranges that were in view just before an event, newest first."""
        place = bisect_left(self.views, seq, key=lambda v: v[0]) - 1
        view: ViewRange | None = self.views[max(0, place)][1]
        ranges: list[tuple[Seq, Seq]] = []
        while view is not None:
            last = min(view.last or seq - 1, seq - 1)
            if view.first <= last:
                ranges.append((view.first, last))
            view = view.before
        return ranges

    def has_carrier(self, first: Seq, last: Seq) -> bool:
        """Whether a range has anything that a model reads."""
        place = bisect_left(self.carriers, first)
        return place < len(self.carriers) and self.carriers[place] <= last

    def has_source(self, source: str, first: Seq, last: Seq) -> bool:
        """Whether a range has an event from that source."""
        places = self.by_source.get(source, ())
        place = bisect_left(places, first)
        return place < len(places) and places[place] <= last


def read_tracks(log: Log, upto: Seq | None = None) -> EventArrays:
    """One pass over a session, its parents' part included; every byte is checked on the way."""
    walker = TrackReader()
    for entry in log.entries(upto=upto):
        walker.take(entry)
    return walker.tracks


class TrackReader:
    """The pass, with what it needs only while it runs."""

    def __init__(self) -> None:
        self.tracks = EventArrays()
        self._turn = -1
        self._began: Seq = 1
        self._model: Seq = 0
        self._newest_of_action: dict[str, Seq] = {}
        """By action, the newest event with content of the call: its answer, or else its request."""
        self._questions: dict[str, Seq] = {}
        self._spawned: dict[str, Seq] = {}

    def take(self, entry: Entry) -> None:
        tracks, header, seq = self.tracks, entry.header, entry.seq
        kind = sys.intern(header.kind)
        body = _read_body(entry) if kind in _READ else _NOTHING
        if kind == "file.changed" and not body.path and body is not _NOTHING:
            body.path = key_in_delta(entry, "files_modified")
        if header.turn != self._turn or kind == "turn.started":
            self._turn, self._began, self._model = header.turn, seq, 0
        effect = self._effect(kind, header.cause, body)
        role = _role(kind, body, effect, entry)
        tracks.head = seq
        tracks.kinds.append(kind)
        tracks.roles.append(role)
        tracks.effects.append(effect)
        tracks.stamps.append(distrust(header.trust))
        tracks.conditions.append(0 if entry.is_intact else 1 if entry.record.body else 2)
        tracks.causes.append(header.cause)
        tracks.began.append(self._began)
        tracks.models.append(self._model)
        if header.cause and kind.startswith("action.") and kind != "action.evidence":
            tracks.outcomes[header.cause] = kind
        if header.derived_from:
            tracks.ranges[seq] = header.derived_from
        if header.source:
            source = tracks.sources[seq] = sys.intern(header.source)
            tracks.by_source.setdefault(source, array("q")).append(seq)
        if body is not _NOTHING:
            if links := self._links(entry, body):
                tracks.links[seq] = tuple(links)
            self._remember(entry, body)
        if role in CARRIERS:
            self._carry(seq, kind, role)

    def take_earlier(self, entry: Entry, asked: Entry | None = None) -> None:
        """Keeps the kind of call that an event before the first read one belongs to; `asked` is its request."""
        tracks, seq = self.tracks, entry.seq
        tracks.kinds[seq] = sys.intern(entry.kind)
        request = entry if entry.kind in BEGIN_KINDS else asked
        if request is not None and request.kind in BEGIN_KINDS:
            body = _read_body(request)
            tracks.effects[seq] = _EFFECT.get(body.effect, EXTERNAL)
            if request is entry:
                tracks.tools[seq] = sys.intern(body.tool)

    def _effect(self, kind: str, cause: Seq, body: _Body) -> int:
        """The effect class of a call; for an outcome, that of its request. Undeclared calls are external."""
        if kind in BEGIN_KINDS:
            return _EFFECT.get(body.effect, EXTERNAL)
        return self.tracks.effects[cause] if kind in _OUTCOMES else 0

    def _carry(self, seq: Seq, kind: str, role: int) -> None:
        """Adds to what models read. A turn's input that is repeated by the message right after it counts once."""
        tracks = self.tracks
        is_input = kind == "message.added" and role == Role.INPUT
        if is_input and tracks.kinds[seq - 1] == "turn.started" and tracks.roles[seq - 1] == Role.INPUT:
            tracks.carriers.pop()
            tracks.roles[seq - 1] = Role.PLUMBING
        tracks.carriers.append(seq)
        if role in (Role.MODEL_ANSWERED, Role.MODEL_RECORDED):
            self._model = seq

    def _links(self, entry: Entry, body: _Body) -> list[Link]:
        kind, seq = entry.kind, entry.seq
        if kind == "decision.made":
            evidence = dict.fromkeys(map(_seq_of, body.evidence or _kept_evidence(entry)))
            return [Link(n, "evidence") for n in evidence if 0 < n < seq]
        if kind == "message.added" and body.action:
            return self._by_action(body.action, "says")
        if kind == "file.changed":
            links = self._by_action(body.action, "made") if body.action else []
            earlier = self.tracks.files.get(body.path)
            is_new = body.change == "created"
            return [*links, *([Link(earlier[-1], "earlier")] if earlier and not is_new else [])]
        if kind == "action.recorded" and 0 < body.reused < seq:
            return [Link(body.reused, "repeats")]
        if kind == "history.compacted" and 0 < body.first <= body.last < seq:
            return [Link(body.first, "sums up", body.last)]
        if kind in _ABOUT:
            named = dict.fromkeys((*body.targets, body.on))
            return [Link(n, "about") for n in named if 0 < n < seq]
        known = {
            "input.answered": self._questions.get(body.request),
            "subagent.returned": self._spawned.get(body.session),
        }
        found = known.get(kind)
        return [Link(found, "answers")] if found else []

    def _by_action(self, action: str, kind: EdgeKind) -> list[Link]:
        found = self._newest_of_action.get(action)
        return [Link(found, kind)] if found else []

    def _remember(self, entry: Entry, body: _Body) -> None:
        tracks, seq, kind = self.tracks, entry.seq, entry.kind
        if kind in BEGIN_KINDS:
            self._newest_of_action[body.action] = seq
            tracks.tools[seq] = sys.intern(body.tool)
        elif kind in _OUTCOMES:
            self._newest_of_action[body.action] = seq
        elif kind == "file.changed" and body.path:
            tracks.files.setdefault(body.path, array("q")).append(seq)
        elif kind == "input.requested":
            self._questions[body.request] = seq
        elif kind == "subagent.spawned":
            self._spawned[body.session] = seq
        elif kind in ("trust.endorsed", "step.invalidated"):
            for target in dict.fromkeys(body.targets):
                mark = Judgement(seq, "endorsed" if kind == "trust.endorsed" else "invalidated", body.by)
                tracks.marks.setdefault(target, []).append(mark)
        elif kind == "history.rewound" and body.to:
            self._rewind(seq, body.to)
        elif kind == "history.adopted":
            tracks.copies[seq] = (body.session, body.at)
            tracks.copies |= {seq + 1 + n: (body.session, original) for n, original in enumerate(body.copied)}

    def _rewind(self, seq: Seq, to: Seq) -> None:
        """A rewind restores the view at its target, which an earlier rewind may have left."""
        then = self.tracks.views[bisect_right(self.tracks.views, to, key=lambda v: v[0]) - 1][1]
        self.tracks.views.append((seq, ViewRange(seq, 0, ViewRange(then.first, to, then.before))))


def _read_body(entry: Entry) -> _Body:
    """The fields of a body; none if it was pruned or cannot be decoded."""
    try:
        return _decode(entry.record.body) if entry.record.body else _NOTHING
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _NOTHING


def key_in_delta(entry: Entry, part: str) -> str:
    """The key of a part of the state that an event wrote. Erasing removes the fields of a body, not the keys of its
    delta."""
    for op in entry.delta:
        tokens = tokens_of(op["path"])
        if len(tokens) > 1 and tokens[0] == part:
            return tokens[1]
    return ""


def _kept_evidence(entry: Entry) -> tuple[int | str, ...]:
    """The evidence of an erased decision: positions are structure, and stay in its delta."""
    if entry.is_intact:
        return ()
    values = (op.get("value") for op in entry.delta)
    return tuple(each for v in values if isinstance(v, dict) for each in v.get("evidence", ()) if isinstance(each, int))


def _seq_of(named: int | str) -> Seq:
    """A decision's evidence as an event: 12 or "e12"; 0 for anything else."""
    if isinstance(named, int):
        return named
    return int(named[1:]) if named[:1] == "e" and named[1:].isdecimal() else 0


def is_read_by_models(entry: Entry, following: Entry | None) -> bool:
    """Whether a model reads an event, decided from the event and the one that follows."""
    if entry.kind == "turn.started":
        said = following is not None and following.kind == "message.added"
        is_input = said and _role("message.added", _read_body(following), 0, following) == Role.INPUT  # type: ignore[arg-type]
        return b'"input"' in entry.record.body and not is_input
    return _role(entry.kind, _NOTHING, 0, entry) in CARRIERS


def _role(kind: str, body: _Body, effect: int, entry: Entry) -> int:
    if kind == "message.added":
        return Role.TOLD if body.role == "tool" else Role.SAID if _is_agents(body.role, entry) else Role.INPUT
    if kind == "action.requested":
        return Role.MODEL_ASKED if effect == MODEL else Role.ASKED
    if kind in _OUTCOMES:
        return Role.MODEL_ANSWERED if effect == MODEL else Role.ANSWERED
    if kind == "action.recorded":
        return Role.MODEL_RECORDED if effect == MODEL else Role.RECORDED
    if kind == "turn.started" and b'"input"' in entry.record.body:
        return Role.INPUT
    return _ROLES.get(kind, Role.OTHER)


def _is_agents(role: str, entry: Entry) -> bool:
    """Whether a message is from the model. Without a role, as after pruning, the actor decides."""
    return role in ("assistant", "model", "agent") if role else entry.header.actor == "agent"
