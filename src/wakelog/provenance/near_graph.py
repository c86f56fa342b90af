"""The graph of the turns around an event, so that most questions read one turn and not the whole session.

The event's own turn is read first, then 8 turns before it, then 64, then everything. Whenever the walk would leave the
turns that were read, `Unread` is raised and the next larger part is tried. This only works in a *plain* log: one
without rewinds, adoptions, endorsements, invalidations and trust stamps, because each of these affects distant events.
All other logs need the whole graph.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from wakelog.log import Log
from wakelog.log.reader import Entry, read_commits
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.ids import Seq
from wakelog.model.records import Commit
from wakelog.model.trust import FAR_REACHING
from wakelog.provenance.event_index import EdgeKind, EventArrays, Role, TrackReader
from wakelog.provenance.graph import Edge, Graph
from wakelog.timeline.points import attempts_of

TURNS_BEFORE = (0, 8, 64)
"""How many turns before the event's own are read, try after try, until everything is."""
_LINK_TO_ACTION: dict[str, EdgeKind] = {"message.added": "says", "file.changed": "made"}


class Unread(Exception):
    """The walk reached an event that was not read."""


class PlainLog:
    """True if a log has no event that affects distant events. Commits that the text search reads anyway are checked in
    passing (`check`); the rest is read when the truth is asked for."""

    def __init__(self, log: Log, head: Seq, known_upto: Seq = 0) -> None:
        """Up to `known_upto` there is no such event."""
        self._log = log
        self._head = head
        self._checked_upto = known_upto
        self._is_plain = True

    def check(self, commit: Commit, last: Seq) -> None:
        """Checks a commit, unless there is a gap before it or it was checked already."""
        if commit.first > self._checked_upto + 1 or last <= self._checked_upto:
            return
        self._checked_upto = last
        headers = b"".join([record.header for record in commit.records])
        if b'"trust":' in headers or not FAR_REACHING.isdisjoint(commit.kinds):
            self._is_plain = False

    def __bool__(self) -> bool:
        if self._is_plain:
            log = self._log
            for commit, last in read_commits(log.engine, log.segments, after=self._checked_upto, upto=self._head):
                self.check(commit, last)
        return self._is_plain


class NearGraph(Graph):
    """A graph of some turns. Asking it about any other event raises `Unread`."""

    def __init__(self, log: Log, at: Seq | None, plain: PlainLog, head: Seq) -> None:
        super().__init__(log, at)
        self.plain = plain
        self._head = head
        self._incomplete: frozenset[Seq] = frozenset()

    @property
    def head(self) -> Seq:
        return self._head

    def read_turns(self, seqs: tuple[Seq, ...], back: int) -> None:
        """Reads from `back` turns before the first of `seqs` to just after the last."""
        turn = self.log.entry(min(seqs)).header.turn
        if turn <= back:
            raise Unread
        self.first = attempts_of(self.log, turn - back)[0].first
        self.last = min(max(seqs) + 1, self._head)
        reader = _NearReader(self.log, self.first)
        for entry in self.log.entries(after=self.first - 1, upto=self.last):
            reader.take(entry)
        self.tracks = reader.tracks
        self.tracks.head = self._head
        if self.tracks.marks or any(self.tracks.stamps):
            raise Unread
        self._incomplete = frozenset(reader.incomplete)

    def notice(self, commit: Commit, last: Seq) -> None:
        self.plain.check(commit, last)

    def edges(self, seq: Seq) -> list[Edge]:
        if seq < self.first or seq in self._incomplete:
            raise Unread
        edges = super().edges(seq)
        if any(edge.first < self.first for edge in edges):
            raise Unread
        return edges


class _NearReader(TrackReader):
    """Reads from event `first` on, and collects the events whose links may lead to something before it."""

    def __init__(self, log: Log, first: Seq) -> None:
        super().__init__()
        self.incomplete: set[Seq] = set()
        self._log = log
        self._first = first
        tracks = self.tracks = EventArrays()
        tracks.kinds = [""] * first
        tracks.roles = bytearray([Role.PLUMBING]) * first
        tracks.effects, tracks.stamps, tracks.conditions = bytearray(first), bytearray(first), bytearray(first)
        tracks.causes, tracks.began, tracks.models = (array("q", bytes(8 * first)) for _ in range(3))

    def take(self, entry: Entry) -> None:
        cause = entry.header.cause
        if 0 < cause < self._first and not self.tracks.kinds[cause]:
            # Only the request of a call says which kind of call it is.
            earlier = self._log.entry(cause)
            request = earlier.header.cause
            self.take_earlier(
                earlier, self._log.entry(request) if request and earlier.kind not in BEGIN_KINDS else None
            )
        super().take(entry)
        results = {link.kind for link in self.tracks.links.get(entry.seq, ())}
        if not results.issuperset(_expected_links(entry)):
            self.incomplete.add(entry.seq)


def _expected_links(entry: Entry) -> Iterator[EdgeKind]:
    """The links that an event has if everything it may refer to was read."""
    if entry.kind in ("input.answered", "subagent.returned"):
        yield "answers"
    elif entry.kind in _LINK_TO_ACTION:
        if entry.body.get("action"):
            yield _LINK_TO_ACTION[entry.kind]
        if entry.kind == "file.changed" and entry.body.get("change") != "created":
            yield "earlier"
