"""The graph around an event, read from its own turn back and not from the beginning.

Most questions end in the turn they are about. So only that turn is read, then some before it, then all: whenever the
walk would leave what was read, or the body of an event names something that stands before it, `Unread` is raised and
more is read. What holds for the whole log is looked up in its raw bytes: that nothing was rewound, adopted, endorsed,
invalidated, or stamped as not trusted. Where something was, the whole graph is read.
"""

from __future__ import annotations

from array import array

from wakelog.log import Log
from wakelog.log.reader import Entry, read_commits
from wakelog.model.calls import ASKS
from wakelog.model.ids import Seq
from wakelog.model.records import Commit
from wakelog.provenance.event_index import EventArrays, Role, TrackReader
from wakelog.provenance.graph import Edge, Graph
from wakelog.timeline.points import attempts_of

TURNS = (0, 8, 64)
"""So many turns before that of the event are read, one after the other, before all are."""
_FAR_REACHING = frozenset({"history.rewound", "history.adopted", "trust.endorsed", "step.invalidated"})


class Unread(Exception):
    """The walk came upon something that was not read."""


class PlainLog:
    """Whether a log has nothing in it that reaches far: what other questions read of it is noted, and the rest is read
    when that is asked."""

    def __init__(self, log: Log, head: Seq) -> None:
        self._log = log
        self._head = head
        self._noted: Seq = 0
        self._is_plain = True

    def note(self, commit: Commit, last: Seq) -> None:
        """Takes in a commit, if it follows what was noted."""
        if commit.first > self._noted + 1 or last <= self._noted:
            return
        self._noted = last
        headers = b"".join([record.header for record in commit.records])
        if b'"trust":' in headers or not _FAR_REACHING.isdisjoint(commit.kinds):
            self._is_plain = False

    def __bool__(self) -> bool:
        for commit, last in (
            read_commits(self._log.engine, self._log.segments, after=self._noted, upto=self._head)
            if self._is_plain
            else ()
        ):
            self.note(commit, last)
        return self._is_plain


class NearGraph(Graph):
    """A graph of some turns. What it does not know raises `Unread`."""

    def __init__(self, log: Log, at: Seq | None, plain: PlainLog, head: Seq) -> None:
        super().__init__(log, at)
        self.plain = plain
        self._head = head
        self._missed: frozenset[Seq] = frozenset()

    @property
    def head(self) -> Seq:
        return self._head

    def read_turns(self, seqs: tuple[Seq, ...], back: int) -> None:
        """Reads the turn that the first of some events is in, and some before it, up to the last."""
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
        self._missed = frozenset(reader.missed)

    def note(self, commit: Commit, last: Seq) -> None:
        self.plain.note(commit, last)

    def edges(self, seq: Seq) -> list[Edge]:
        if seq < self.first or seq in self._missed:
            raise Unread
        edges = super().edges(seq)
        if any(edge.first < self.first for edge in edges):
            raise Unread
        return edges


class _NearReader(TrackReader):
    """Reads from an event on; notes where something before it would have been needed."""

    def __init__(self, log: Log, first: Seq) -> None:
        super().__init__()
        self.missed: set[Seq] = set()
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
            # A call that was asked for earlier tells what kind of call it is.
            earlier = self._log.entry(cause)
            asked = earlier.header.cause
            self.take_earlier(earlier, self._log.entry(asked) if asked and earlier.kind not in ASKS else None)
        super().take(entry)
        links = {link.kind for link in self.tracks.links.get(entry.seq, ())}
        if (
            entry.kind in ("message.added", "file.changed")
            and entry.body.get("action")
            and not links & {"says", "made"}
        ):
            self.missed.add(entry.seq)
        if entry.kind == "file.changed" and entry.body.get("change") != "created" and "earlier" not in links:
            self.missed.add(entry.seq)
        if entry.kind in ("input.answered", "subagent.returned") and "answers" not in links:
            self.missed.add(entry.seq)
