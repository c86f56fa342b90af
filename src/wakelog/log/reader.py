"""Reads a session from its engine: through its forks, with every byte checked against its hash.

A fork's history is its parent's up to the fork point and its own from there, so a shared position means the same event
in both. Everything read is verified: each body against its header, the headers against the commit's hash, each commit
against the one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import msgspec

from wakelog.codec.chain import check_records, hash_records
from wakelog.codec.pack import unpack_snapshot
from wakelog.codec.records import (
    Delta,
    decode_body,
    decode_delta,
    decode_event,
    decode_header,
    is_intact,
)
from wakelog.engine import Engine
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.late_value import LateValue
from wakelog.model.payloads import as_ref, decode_payload
from wakelog.model.records import Commit, Head, Header, Record
from wakelog.model.values import Value
from wakelog.state.fold import Fold


class Segment(msgspec.Struct, frozen=True):
    """The part of a history that one session of the fork tree holds; `last` is None for the session itself."""

    session: SessionId
    first: Seq
    last: Seq | None


class Entry:
    """One event as read: header, chain hash, and the body decoded when asked for."""

    def __init__(
        self,
        session: SessionId,
        commit_id: str,
        header: Header,
        hash: bytes,
        record: Record,
        payloads: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        self.session = session
        self.commit_id = commit_id
        self.header = header
        self.seq, self.kind = header.seq, header.kind
        self.hash = hash
        self.record = record
        self.payloads = payloads
        """The payloads of its commit, if they were read as well."""

    @property
    def happened_at(self) -> int:
        """When it happened: the author's time if given, else when it was stored."""
        said = self.body.get("occurred_at") if self.record.body else None
        return said if type(said) is int and said > 0 else self.header.at

    @property
    def is_intact(self) -> bool:
        """Whether the body is the one first written: not erased, not pruned."""
        return is_intact(self.record)

    @LateValue
    def event(self) -> ev.Event:
        return decode_event(self.header.kind, self.record.body or b"{}")

    @LateValue
    def body(self) -> dict[str, Value]:
        return decode_body(self.record.body)

    @LateValue
    def delta(self) -> Delta:
        return decode_delta(self.record.body)

    def __repr__(self) -> str:
        return f"<event {self.seq} {self.kind} of {self.session}>"


def sound_head(engine: Engine, session: SessionId) -> Head:
    """The head of a session; of a damaged one the newest that is intact."""
    try:
        return engine.head(session)
    except CorruptLogError:
        damage = engine.abilities.damage
        head = damage.last_sound(session) if damage is not None else None
        if head is None:
            raise
        return head


def forks_of(engine: Engine, session: SessionId) -> list[Head]:
    """A session's direct forks, in the order they were made."""
    return sorted(engine.children(session), key=lambda fork: (_forked_at(engine, fork), fork.session))


def _forked_at(engine: Engine, fork: Head) -> int:
    """When a fork was made; of a damaged one only its last write is known."""
    assert fork.fork is not None
    try:
        first = next(iter(engine.read(fork.session, after=fork.fork.at, upto=fork.fork.at + 1)), None)
    except CorruptLogError:
        first = None
    return fork.at if first is None else first.at


def lineage(
    engine: Engine,
    session: SessionId,
    head: Callable[[Engine, SessionId], Head] | None = None,
    *,
    own: Head | None = None,
) -> list[Segment]:
    """The segments of a session's history, oldest first. A caller that knows the head passes it as `own`."""
    segments: list[Segment] = []
    last: Seq | None = None
    at: SessionId | None = session
    while at is not None:
        if own is None:
            own = engine.head(at) if head is None else head(engine, at)
        fork, own = own.fork, None
        segments.append(Segment(at, fork.at + 1 if fork else 1, last))
        # A fork of a fork may start before its parent's own first event: then the parent holds none of its history.
        at, last = (fork.parent, min(fork.at, last) if last is not None else fork.at) if fork else (None, None)
    segments.reverse()
    return [s for s in segments if s.last is None or s.first <= s.last]


def read_commits(
    engine: Engine,
    segments: list[Segment],
    *,
    after: Seq = 0,
    upto: Seq | None = None,
    payloads: bool = False,
) -> Iterator[tuple[Commit, Seq]]:
    """The commits of a history, unopened, each with the last of its events that belongs to the range: the last commit
    may reach beyond it, and a parent's commit beyond the fork point."""
    for segment in segments:
        last = segment.last if upto is None else upto if segment.last is None else min(segment.last, upto)
        low = max(after, segment.first - 1)
        if last is None or low < last:
            for commit in engine.read(segment.session, after=low, upto=last, payloads=payloads):
                yield commit, commit.last if last is None else min(commit.last, last)


def read_entries(
    engine: Engine,
    segments: list[Segment],
    *,
    after: Seq = 0,
    upto: Seq | None = None,
    prev: bytes | None = None,
    payloads: bool = False,
) -> Iterator[Entry]:
    """The events of a history with `after` < seq ≤ `upto`. `prev`, if known, is the chain's hash at `after`. With
    `payloads` those are read as well, a page at a time instead of one by one, for callers that need most of them.
    Damage raises; damage.py skips it."""
    seq, expected = after, prev
    for commit, last in read_commits(engine, segments, after=after, upto=upto, payloads=payloads):
        entries = open_commit(commit)[max(after + 1 - commit.first, 0) : max(last + 1 - commit.first, 0)]
        if entries:
            _check_place(commit, entries[0].seq, seq, expected)
            seq, expected = last, entries[-1].hash
            yield from entries


def _check_place(commit: Commit, first: Seq, seq: Seq, expected: bytes | None) -> None:
    """Raises unless a commit, counted from event `first`, follows event `seq` and its hash, where that is known."""
    if first != seq + 1:
        raise CorruptLogError(f"event {seq + 1} of {commit.session} is missing", kind="gap", seq=seq + 1)
    if expected is not None and first == commit.first and commit.prev != expected:
        raise CorruptLogError(f"the chain of {commit.session} breaks before event {first}", seq=first)


def open_commit(commit: Commit) -> list[Entry]:
    """The events of one commit, bytes checked against hashes."""
    headers, hashes = check_commit(commit)
    return [
        Entry(commit.session, commit.commit_id, header, chain, record, commit.payloads)
        for header, chain, record in zip(headers, hashes, commit.records, strict=True)
    ]


def entries_of_kind(
    engine: Engine, session: SessionId, kind: str, *, after: Seq = 0, upto: Seq | None = None
) -> Iterator[Entry]:
    """A session's own events of one kind. Only commits that hold one are opened."""
    for commit in engine.read(session, after=after, upto=upto):
        if kind in commit.kinds:
            yield from (entry for entry in open_commit(commit) if entry.kind == kind)


def check_commit(commit: Commit) -> tuple[list[Header], list[bytes]]:
    """The headers of a commit and the chain's hash after each, every byte checked against the hash that covers it."""
    records = commit.records
    if not records or len(records) != commit.last - commit.first + 1:
        raise _altered(commit, commit.first, f"the commit at event {commit.first} of {commit.session} lacks records")
    try:
        headers = [decode_header(r.header) for r in records]
    except CorruptLogError as exc:
        raise _altered(commit, commit.first, f"{exc.message} (event {commit.first} of {commit.session})") from exc
    seq, hashes = commit.first, []
    for header, (body_hash, after) in zip(headers, hash_records(commit.prev, records), strict=True):
        if header.seq != seq:
            raise _altered(commit, seq, f"event {seq} of {commit.session} calls itself {header.seq}")
        if body_hash and body_hash != header.body_hash:
            raise _altered(commit, seq, f"the body of event {seq} of {commit.session} was altered")
        hashes.append(after)
        seq += 1
    if after != commit.hash:
        what = f"a header of {commit.session} in {commit.first}..{commit.last} was altered"
        raise _altered(commit, commit.first, what)
    return headers, hashes


def _check_chain(commit: Commit) -> list[bytes]:
    """The chain's hash after each record, checked like `check_commit` does, which has the last word."""
    records = commit.records
    if check_records is not None and len(records) == commit.last - commit.first + 1:
        hashes = check_records(commit.prev, commit.first, records)
        if hashes and hashes[-1] == commit.hash:
            return hashes
    return check_commit(commit)[1]


def _altered(commit: Commit, seq: Seq, what: str) -> CorruptLogError:
    hint = f"wakelog verify {commit.session}"
    return CorruptLogError(what, hint=hint, seq=seq, upto=commit.last, session=commit.session)


def resolve(engine: Engine, segments: list[Segment], entry: Entry, value: Value) -> Value:
    """`value`, or the content of the payload that it refers to."""
    ref = as_ref(value)
    if ref is None:
        return value
    seq, digest = ref.at or entry.seq, bytes.fromhex(ref.hash)
    along = next((content for known, content in entry.payloads if known == digest), None)
    content = fetch(engine, segments, seq, digest) if along is None else _checked(along, seq, digest)
    return decode_payload(content, ref.media)


def fetch(engine: Engine, segments: list[Segment], seq: Seq, digest: bytes) -> bytes:
    """The payload that came with event `seq`."""
    for segment in reversed(segments):
        if segment.first <= seq:
            return _checked(engine.payload(segment.session, seq, digest), seq, digest)
    raise NotFoundError(f"there is no event {seq}", kind="event-not-found")


def _checked(content: bytes, seq: Seq, digest: bytes) -> bytes:
    if hashlib.sha256(content).digest() != digest:
        raise CorruptLogError(f"a payload of event {seq} was altered", seq=seq)
    return content


class Folded(msgspec.Struct):
    """A fold, and what decides the next snapshot: the size of the last one and the record bytes since."""

    fold: Fold
    snapshot_size: int
    bytes_since: int


def fold_at(engine: Engine, segments: list[Segment], seq: Seq) -> Folded:
    """The state at `seq`, folded from the nearest intact snapshot. Missing or damaged snapshots only cost time."""
    fold, start, size = _nearest(engine, segments, seq)
    while True:
        try:
            return Folded(fold, size, _fold_on(engine, segments, fold, start, seq))
        except _Pruned as pruned:
            # Continue from the base state in the prune event. A fork may meet its parent's prune and its own.
            fold, start = _base_state(engine, segments, pruned.seq)
            size = 0
        if start > seq:
            raise NotFoundError(
                f"the state at event {seq} was pruned (everything up to {start} is)",
                kind="pruned",
                hint=f"the oldest state still there is at event {start}",
            )


class _Pruned(Exception):
    """The fold met a body that was pruned."""

    def __init__(self, seq: Seq) -> None:
        self.seq = seq


def _fold_on(engine: Engine, segments: list[Segment], fold: Fold, after: Seq, upto: Seq) -> int:
    """Folds the events `after` < seq ≤ `upto`; returns the bytes of their records."""
    size, seq = 0, after
    expected: bytes | None = None
    for commit, last in read_commits(engine, segments, after=after, upto=upto):
        hashes = _check_chain(commit)
        _check_place(commit, max(commit.first, after + 1), seq, expected)
        expected = hashes[last - commit.first]
        changes: Delta = []
        for record in commit.records[seq + 1 - commit.first : last + 1 - commit.first]:
            seq += 1
            if not record.body:
                raise _Pruned(seq)
            size += len(record.header) + len(record.body)
            changes += decode_delta(record.body)
        fold.apply(changes)
    if seq != upto:
        raise CorruptLogError(f"the log ends at event {seq}, before event {upto}", kind="gap", seq=seq + 1)
    return size


def _nearest(engine: Engine, segments: list[Segment], seq: Seq) -> tuple[Fold, Seq, int]:
    for segment in reversed(segments):
        if segment.first > seq:
            continue
        upto = seq if segment.last is None else min(seq, segment.last)
        while (snapshot := engine.snapshot(segment.session, upto=upto)) is not None and snapshot.seq <= upto:
            try:
                state = unpack_snapshot(snapshot.data)
                return Fold.load(state), snapshot.seq, len(state)
            except (CorruptLogError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass
            upto = snapshot.seq - 1
    return Fold(), 0, 0


def rewind_at(engine: Engine, segments: list[Segment], seq: Seq) -> tuple[Seq, Seq]:
    """The target of the rewind at `seq`, and the rewind that was in effect then. If it was pruned, the prune event says
    so; zeros for prunes of older versions, which do not."""
    for entry in read_entries(engine, segments, after=seq - 1, upto=seq):
        if entry.record.body:
            return entry.body.get("to", 0), entry.body.get("under", 0)
    for known, to, under in prune_over(engine, holder_of(segments, seq), seq).body.get("rewinds", ()):
        if known == seq:
            return to, under
    return 0, 0


def holder_of(segments: list[Segment], seq: Seq) -> SessionId:
    """The session of the fork tree that holds an event."""
    return next(s.session for s in reversed(segments) if s.first <= seq)


def _base_state(engine: Engine, segments: list[Segment], pruned: Seq) -> tuple[Fold, Seq]:
    """The base state of the newest prune that covers event `pruned`."""
    holder = holder_of(segments, pruned)
    entry = prune_over(engine, holder, pruned)
    doc = resolve(engine, [Segment(holder, 1, None)], entry, entry.body["base"])
    return Fold(doc), entry.body["upto"]


def prune_over(engine: Engine, holder: SessionId, pruned: Seq) -> Entry:
    """The newest prune that covers an event. In a parent it may come after the fork point."""
    prunes = entries_of_kind(engine, holder, "range.pruned", after=pruned)
    covering = [entry for entry in prunes if entry.body.get("upto", 0) >= pruned]
    if not covering:
        raise CorruptLogError(f"the body of event {pruned} is missing, and nothing says it was pruned", seq=pruned)
    return covering[-1]
