"""Verification of a log, with separate answers on integrity, completeness and scope.

- **Integrity**: every stored byte agrees with the hash that covers it, the chain is unbroken, replaced bodies are those
  that the erase events name, and derived data (names, row summaries, snapshots, state hashes) agrees with the log.
- **Completeness**: no event is missing, from the first to the head; and the head is the one an anchor names, or comes
  after it. Without an anchor, it is unknown whether the newest events were cut off.
- **Scope**: what could not be checked because it is gone (erased bodies, pruned bodies, removed payloads), or because
  it is encrypted and the key is missing. There the headers, the chain and the order are checked, but not the content
  and what is derived from it.
"""

from __future__ import annotations

import contextlib
import hashlib

import msgspec

from wakelog.codec.envelope import has_content, is_encrypted
from wakelog.codec.pack import unpack_snapshot
from wakelog.codec.records import is_intact
from wakelog.engine import Engine
from wakelog.errors import CorruptLogError, InvalidInputError, NotFoundError, WakelogError
from wakelog.log.damage import Hole, commits_around
from wakelog.log.log import Log
from wakelog.log.mask import mentions
from wakelog.log.reader import (
    Entry,
    Segment,
    fetch,
    fold_at,
    open_commit,
    read_commits,
    read_entries,
    sound_head,
)
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import GENESIS, Anchor, Commit, Head
from wakelog.model.values import Value
from wakelog.redaction.plausible import MARKER
from wakelog.state.fold import Fold
from wakelog.state.patch import equal


class Fault(msgspec.Struct, frozen=True):
    """One fault, and the event where it shows."""

    seq: Seq
    what: str


class VerifyReport(msgspec.Struct, frozen=True):
    """The result of a verification. `ok` means no fault; `scope` says what that does not cover."""

    session: SessionId
    events: int
    head_hash: str
    integrity: tuple[Fault, ...]
    completeness: tuple[Fault, ...]
    scope: dict[str, int]
    anchored: bool
    """Whether the log was compared with an anchor. Without one, a cut-off end cannot be detected."""
    uncovered: int = 0
    """How many removed bodies are named only by events of an ancestor after the fork point. No anchor of this session
    covers those: verify the ancestor with an anchor of its own."""

    @property
    def ok(self) -> bool:
        return not self.integrity and not self.completeness


_NEVER = 1 << 62
_SNAPSHOT = "the snapshot at event "

NONSENSE = (LookupError, TypeError, ValueError, AttributeError, msgspec.MsgspecError)
"""Errors that reading raises on content that is well formed and correctly hashed, but that no wakelog writes."""


class _Erased(msgspec.Struct, frozen=True):
    """The replacement of an erased event, and the first erase event in this history, if it has one."""

    body: dict[str, Value]
    said_at: Seq


def _entries_of(commit: Commit) -> list[Entry]:
    """The events of a commit; none when it is damaged, which the walk reports when it gets there."""
    try:
        return open_commit(commit)
    except CorruptLogError:
        return []


def is_of_cache(fault: Fault) -> bool:
    """Whether a fault concerns only a snapshot: nothing is lost when that is dropped."""
    return fault.what.startswith(_SNAPSHOT)


def verify(log: Log, anchor: Anchor | None = None, *, own: bool = False) -> VerifyReport:
    """Checks a session from its first event to its head, through its forks. Faults are reported, not raised. With
    `own`, only a fork's own events are checked, for callers that check its parent too."""
    if not isinstance(log, Log):
        raise InvalidInputError(f"verify takes a log, not {log!r}", kind="bad-log", hint="store.resume(NAME).verify()")
    if anchor is not None and not isinstance(anchor, Anchor):
        raise InvalidInputError(f"{anchor!r} is not an anchor", kind="bad-anchor", hint="make one with log.anchor()")
    if anchor is not None and anchor.session != log.id:
        raise InvalidInputError(
            f"the anchor is of session {anchor.session}, not of {log.id}",
            kind="wrong-anchor",
            hint="verify that session",
        )
    walk = _Walk(log, anchor, own)
    try:
        walk.run()
    except WakelogError as exc:
        walk.fault(getattr(exc, "seq", 0) or walk.seq + 1, str(exc))
    except NONSENSE as exc:
        walk.fault(walk.seq, f"what is stored near event {walk.seq} makes no sense: {exc!r}")
    walk.finish()
    return VerifyReport(
        session=log.id,
        events=walk.seq - walk.lost,
        head_hash=walk.hash.hex(),
        integrity=tuple(walk.integrity),
        completeness=tuple(walk.completeness),
        scope=walk.scope,
        anchored=anchor is not None,
        uncovered=walk.uncovered,
    )


def verify_session(
    engine: Engine, session: SessionId, anchor: Anchor | None = None, *, own: bool = False
) -> VerifyReport:
    """The same for a session that may be too damaged to open: then the report says that."""
    try:
        return verify(Log(engine, session, even_damaged=True), anchor, own=own)
    except CorruptLogError as exc:
        fault = Fault(exc.seq, exc.message)
    except NotFoundError as exc:
        fault = Fault(0, f"{exc.message}, though the store lists it or a fork of it")
    return VerifyReport(session, 0, "", (fault,), (), {}, anchored=anchor is not None)


def verify_beyond(log: Log, ancestor: SessionId) -> list[Fault]:
    """Faults in the summaries of an ancestor's commits after the shared part, as far as they can be folded: the erase
    event for a body that was replaced there may be missing."""
    of = Log(log.engine, ancestor, even_deleted=True)
    shared = max((s.last for s in log.segments if s.session == ancestor and s.last is not None), default=0)
    walk = _Walk(of, None)
    for commit in log.engine.read(ancestor, after=max(shared, of.segments[-1].first - 1)):
        if commit.last <= shared:
            continue
        if not all(map(is_intact, commit.records)):
            break
        walk.fold = fold_at(log.engine, of.segments, commit.last).fold
        walk._summary(commit, open_commit(commit))
    return walk.integrity


def name_fault(engine: Engine, segment: Segment, name: str) -> Fault | None:
    """The fault of a name that is not the one in the session's first event. No hash covers the table of names, so a
    name could be given to another session."""
    with contextlib.suppress(WakelogError, *NONSENSE):  # the walk reports those
        for commit in engine.read(segment.session, after=segment.first - 1, upto=segment.first):
            first = open_commit(commit)[0]
            if not first.is_intact or is_encrypted(first.record.body):
                continue  # erased, pruned, or the key is missing
            said = str(first.body.get("name", ""))
            # It may lack either: an import takes no name that is in use, and a name can be claimed later.
            if name and said not in ("", name) and MARKER not in said:
                what = f"the store calls this session {name!r}, but its first event names it {said!r}"
                return Fault(segment.first, what)
    return None


class _Walk:
    """One verification: walks the events and carries the chain's hash and the fold along."""

    def __init__(self, log: Log, anchor: Anchor | None, own: bool = False) -> None:
        self.log, self.anchor, self.own = log, anchor, own
        self.engine: Engine = log.engine
        self.may_be_encrypted = log.engine.abilities.encryption is not None
        """Whether encrypted content is expected. In a plain store it would be a forged body."""
        self.integrity: list[Fault] = []
        self.completeness: list[Fault] = []
        self.scope = {"erased": 0, "pruned": 0, "payloads_gone": 0}
        self.head: Head | None = None
        self.seq: Seq = 0
        self.lost = 0
        self.hash = GENESIS
        self.at = 0
        self.fold: Fold | None = Fold()
        self.erased: dict[tuple[SessionId, Seq], _Erased] = {}
        self.pruned: dict[SessionId, ev.RangePruned] = {}
        self.anchor_seen = anchor is None
        self.uncovered = 0
        self.pruned_beyond: set[SessionId] = set()
        self.pruned_unseen: set[SessionId] = set()
        """Sessions with an encrypted prune event, whose content is unknown."""

    def fault(self, seq: Seq, what: str) -> None:
        self.integrity.append(Fault(seq, what))

    def run(self) -> None:
        with contextlib.suppress(WakelogError):
            self.head = self.log.head()  # read first: events appended meanwhile are not checked
        for segment in self.log.segments:
            self._collect_removals(segment)
        segments = self.log.segments
        if self.own and len(segments) > 1:
            self._begin_at(segments[-1].first - 1)
            segments = segments[-1:]
        for segment in segments:
            snapshots = self._snapshots(segment)
            upto = segment.last if segment.last is not None else self.log.head().seq if not self.head else self.head.seq
            for found in commits_around(self.engine, segment.session, after=self.seq, upto=upto, payloads=True):
                if isinstance(found, Hole):
                    self._hole(found)
                elif found.first > self.seq:
                    self._commit(found, segment, snapshots)

    def _begin_at(self, seq: Seq) -> None:
        """Starts after the shared part, and trusts its end and the state there."""
        for entry in read_entries(self.engine, self.log.segments, after=seq - 1, upto=seq):
            self.seq, self.hash, self.at = entry.seq, entry.hash, entry.header.at
        try:
            self.fold = fold_at(self.engine, self.log.segments, seq).fold
        except NotFoundError:
            self.fold = None  # pruned

    # Removals are recorded after the events they concern, so they are read first.

    def _collect_removals(self, segment: Segment) -> None:
        # A parent is read to its end: it may have erased or pruned after the fork.
        restated: list[tuple[Segment, Entry, ev.PayloadErased]] = []
        upto = sound_head(self.engine, segment.session).seq
        for commit in commits_around(self.engine, segment.session, after=segment.first - 1, upto=upto):
            if isinstance(commit, Hole) or ev.REMOVAL_KINDS.isdisjoint(commit.kinds):
                continue
            for entry in _entries_of(commit):
                if self.may_be_encrypted and is_encrypted(entry.record.body):
                    self.pruned_unseen.add(segment.session)
                    continue
                event = entry.event
                if not entry.is_intact:
                    # No hash covers its content, unless a later erase event names it in turn.
                    if isinstance(event, ev.PayloadErased):
                        restated.append((segment, entry, event))
                elif isinstance(event, ev.PayloadErased):
                    in_history = segment.last is None or entry.seq <= segment.last
                    for replacement in event.erased:
                        self._note_erased(segment, replacement, entry.seq if in_history else _NEVER)
                elif isinstance(event, ev.RangePruned):
                    self.pruned[segment.session] = event
                    if segment.last is not None and entry.seq > segment.last:
                        self.pruned_beyond.add(segment.session)
        for segment, entry, event in reversed(restated):
            said = self.erased.get((entry.session, entry.seq))
            if said is not None and equal(said.body, entry.body):
                for replacement in event.erased:
                    if (entry.session, replacement.seq) not in self.erased:
                        self._note_erased(segment, replacement, entry.seq)

    def _note_erased(self, segment: Segment, replacement: ev.Replacement, said_at: Seq) -> None:
        """The newest replacement counts. From the first erase event in this history on, states lack the content."""
        # After the fork point an ancestor's erase event may concern later events of its own, which are not ours.
        if segment.last is not None and replacement.seq > segment.last:
            return
        holder = self.log.holder_of(replacement.seq)
        known = self.erased.get((holder, replacement.seq))
        first = min(said_at, known.said_at) if known else said_at
        self.erased[holder, replacement.seq] = _Erased(replacement.body, first)

    # The walk

    def _commit(self, commit: Commit, segment: Segment, snapshots: dict[Seq, bytes]) -> None:
        if commit.first != self.seq + 1:
            self.completeness.append(Fault(self.seq + 1, f"events {self.seq + 1} to {commit.first - 1} are missing"))
        elif self.hash and commit.prev != self.hash:
            self.fault(commit.first, f"event {commit.first} does not follow on event {self.seq}")
        try:
            entries = open_commit(commit)
        except CorruptLogError as exc:
            self._hole(Hole(segment.session, exc.seq or commit.first, commit.last, exc.message), commit)
            return
        payloads = dict(commit.payloads)
        for digest, content in commit.payloads:
            if self.may_be_encrypted and is_encrypted(content):
                continue  # under a name that only the key reveals
            if hashlib.sha256(content).digest() != digest:
                self.fault(commit.first, f"a payload of the commit at event {commit.first} was altered")
        for entry in entries:
            if segment.last is not None and entry.seq > segment.last:
                return
            self._event(entry, segment, payloads)
            if entry.seq in snapshots:
                self._snapshot(entry.seq, snapshots[entry.seq])
        self._summary(commit, entries)

    def _hole(self, hole: Hole, commit: Commit | None = None) -> None:
        """Reports an unreadable commit. The walk continues after it without a state, and without the chain's hash
        unless the damaged commit still has it."""
        self.lost += hole.last - self.seq
        if commit is None and hole.why.endswith("missing"):
            self.completeness.append(Fault(hole.first, hole.why))
        else:
            self.fault(hole.first, hole.why)
        self.seq, self.fold, self.hash = hole.last, None, commit.hash if commit else b""

    def _event(self, entry: Entry, segment: Segment, payloads: dict[bytes, bytes]) -> None:
        header = entry.header
        if header.at < self.at:
            self.fault(entry.seq, f"the time of event {entry.seq} goes back")
        self.seq, self.hash, self.at = entry.seq, entry.hash, header.at
        if self.anchor is not None and entry.seq == self.anchor.seq:
            self.anchor_seen = True
            if entry.hash.hex() != self.anchor.hash:
                self.fault(entry.seq, f"event {entry.seq} is not the one the anchor names: history was rewritten")
        if not entry.record.body:
            self._pruned(entry, segment)
            return
        if self.may_be_encrypted and is_encrypted(entry.record.body):
            name = "encrypted" if has_content(entry.record.body) else "key_deleted"
            self.scope[name] = self.scope.get(name, 0) + 1
            self.fold = None
            return
        if not entry.is_intact:
            self._replaced(entry)
        self._payloads(entry, payloads)
        if self.fold is not None:
            self._state_hash(entry)
            if entry.kind != "session.opened" and any(op["path"] == "" for op in entry.delta):
                self.fault(entry.seq, f"event {entry.seq} ({entry.kind}) replaces the whole state")
            self.fold.apply(entry.delta)

    def _pruned(self, entry: Entry, segment: Segment) -> None:
        self.scope["pruned"] += 1
        self.uncovered += segment.session in self.pruned_beyond
        pruned = self.pruned.get(segment.session)
        upto = pruned.upto if pruned else 0
        if segment.session in self.pruned_unseen:
            self.fold = None
            return
        if entry.seq > upto:
            self.fault(entry.seq, f"the body of event {entry.seq} is missing, and nothing says it was pruned")
        if pruned is not None and entry.seq == upto and entry.hash.hex() != pruned.last_hash:
            self.fault(entry.seq, f"event {entry.seq} is not the one the prune event names")
        # Continue the fold from the base state, which includes everything up to there.
        self.fold = fold_at(self.engine, self.log.segments, upto).fold if entry.seq == upto else None

    def _replaced(self, entry: Entry) -> None:
        self.scope["erased"] += 1
        said = self.erased.get((entry.session, entry.seq))
        self.uncovered += said is not None and said.said_at == _NEVER
        if said is None or not equal(said.body, entry.body):
            self.fault(entry.seq, f"what stands for event {entry.seq} is not what an erase event says")

    def _payloads(self, entry: Entry, payloads: dict[bytes, bytes]) -> None:
        for digest, at in mentions(entry):
            if digest in payloads and not at:
                continue
            try:
                fetch(self.engine, self.log.segments, at or entry.seq, digest)
            except CorruptLogError as exc:
                self.fault(entry.seq, f"a payload of event {entry.seq} cannot be read: {exc.message}")
            except NotFoundError:
                if self._was_removed_from(at or entry.seq):
                    self.scope["payloads_gone"] += 1
                else:
                    self.completeness.append(Fault(entry.seq, f"a payload of event {entry.seq} is missing"))

    def _was_removed_from(self, seq: Seq) -> bool:
        """Whether something was erased or pruned from an event's commit, and payloads with it."""
        for commit, _ in read_commits(self.engine, self.log.segments, after=seq - 1, upto=seq):
            return not all(map(is_intact, commit.records))
        return False

    def _state_hash(self, entry: Entry) -> None:
        """A stored state hash must equal the fold's, unless an erasure changed the state afterwards."""
        event = entry.event
        if not isinstance(event, ev.CheckpointNamed) or not event.state_hash or self.fold is None:
            return
        moved = any(seq <= entry.seq < erased.said_at for (_, seq), erased in self.erased.items())
        if not moved and self.fold.state_hash() != event.state_hash:
            self.fault(entry.seq, f"the state before event {entry.seq} is not the one its hash names")

    # What is derived

    def _summary(self, commit: Commit, entries: list[Entry]) -> None:
        headers = [e.header for e in entries]
        turns = [h.turn for h in headers if h.turn]
        paths = tuple(dict.fromkeys(e.body["path"] for e in entries if e.kind == "file.changed" and e.is_intact))
        wrong = [
            name
            for name, stored, derived in (
                ("kinds", commit.kinds, tuple(dict.fromkeys(h.kind for h in headers))),
                ("turns", commit.turns, (min(turns), max(turns)) if turns else (0, 0)),
                ("time", commit.at, headers[-1].at),
                ("paths", commit.paths, paths if all(e.is_intact for e in entries) else ()),
            )
            if stored != derived and not (name == "paths" and any(is_encrypted(e.record.body) for e in entries))
        ]
        if self.fold is not None:
            doc = self.fold.doc
            stored = (commit.status, commit.epoch, commit.turn)
            if stored != (doc["status"], doc["lease"]["epoch"], doc["turn"]["number"]):
                wrong.append("status, epoch or turn")
        if wrong:
            self.fault(
                commit.first,
                f"the summary of the commit at event {commit.first} is wrong: {', '.join(wrong)}",
            )

    def _snapshots(self, segment: Segment) -> dict[Seq, bytes]:
        out: dict[Seq, bytes] = {}
        upto = segment.last if segment.last is not None else 1 << 62
        while (snapshot := self.engine.snapshot(segment.session, upto=upto)) is not None and snapshot.seq <= upto:
            out[snapshot.seq] = snapshot.data
            upto = snapshot.seq - 1
        return out

    def _snapshot(self, seq: Seq, data: bytes) -> None:
        if self.fold is None:
            return
        try:
            good = equal(msgspec.json.decode(unpack_snapshot(data)), self.fold.doc)
        except (WakelogError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            good = False
        if not good:
            self.fault(seq, f"{_SNAPSHOT}{seq} is not the state there; drop it, it is a cache")

    # The end

    def finish(self) -> None:
        try:
            self.engine.head(self.log.id)
            head = self.head or self.log.head()
        except WakelogError as exc:
            self.fault(getattr(exc, "seq", 0) or self.seq + 1, str(exc))
            return
        if (damage := self.engine.abilities.damage) is not None:
            for what in damage.faults(self.log.id):
                self.fault(head.seq, what)
        if wrong := name_fault(self.engine, self.log.segments[-1], head.name):
            self.integrity.append(wrong)
        if not self.integrity and self.hash and (head.seq, head.hash) != (self.seq, self.hash):
            self.completeness.append(
                Fault(self.seq + 1, f"the head is event {head.seq}, but the log ends at {self.seq}")
            )
        if not self.anchor_seen and self.anchor is not None and not self.integrity:
            self.completeness.append(
                Fault(
                    self.seq + 1,
                    f"the anchor names event {self.anchor.seq}, but the log ends at {self.seq}: it was cut off",
                )
            )
