"""The part of a fork's ancestry that its bundle contains: what the fork shares, and nothing later.

**Export.** From each ancestor the bundle takes the commits up to the fork point. A commit that extends past it is cut:
each event has its own hash in the chain, so the first part of a commit is a valid commit. Payloads are included if an
included event mentions them.

In two cases the proof needs more than the shared part. If an ancestor was pruned after the fork, the prune event comes
after the fork point. And a fork of a fork that branches off before its parent's first own event depends on events that
it does not share. Events that only say what was removed from the shared part are included. Anything else is refused,
unless the caller asks for it.

**Import.** A store may hold the same events in commits that end elsewhere. Stored events stay as they are; of a commit
that is stored in part, only the rest is added.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from wakelog.engine import Engine
from wakelog.errors import ConflictError, NotAllowedError, NotFoundError
from wakelog.log.log import Log
from wakelog.log.mask import mentions
from wakelog.log.reader import Entry, fold_at, open_commit
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head, Record


def ancestry_of(log: Log) -> list[Head]:
    """The session and all its ancestors, oldest first, including those whose own events it does not share."""
    chain = [log.head()]
    while chain[0].fork is not None:
        chain.insert(0, log.engine.head(chain[0].fork.parent))
    return chain


def shared_commits(log: Log, ancestry: list[Head], head: Head, beyond: bool) -> Iterator[Commit]:
    """The commits of the ancestors that the bundle contains, oldest first."""
    used = {(at or e.seq, digest) for e in log.entries(upto=head.seq) for digest, at in mentions(e)}
    erasures = _Erasures(log)
    for n, (ancestor, fork) in enumerate(itertools.pairwise(ancestry)):
        assert fork.fork is not None
        cut = max(fork.fork.at, ancestor.fork.at + 1 if ancestor.fork else 1)
        shared = min(each.fork.at for each in ancestry[n + 1 :] if each.fork is not None)
        commits = list(log.engine.read(ancestor.session, upto=cut, payloads=True))
        tail = _removal_commits(log.engine, ancestor.session, cut) if erasures.are_missing(commits, shared) else []
        if beyond:
            yield from (*commits, *tail)
            continue
        over = [e for c in commits for e in open_commit(c) if e.seq > cut] if tail else []
        if cut > shared or over or not all(_only_removes_shared(e, shared) for c in tail for e in open_commit(c)):
            raise _refusal(log, ancestor, shared)
        for commit in commits:
            yield _with_used_payloads(_cut(log, commit, cut), used)
        for commit in tail:
            yield _with_used_payloads(commit, used | {(e.seq, d) for e in open_commit(commit) for d, _ in mentions(e)})


def _removal_commits(engine: Engine, session: SessionId, cut: Seq) -> list[Commit]:
    """An ancestor's commits after the fork point, up to the last one that records a removal."""
    tail = [c for c in engine.read(session, after=cut, payloads=True) if c.first > cut]
    last = max((c.last for c in tail if not ev.REMOVAL_KINDS.isdisjoint(c.kinds)), default=0)
    return [c for c in tail if c.last <= last]


def _only_removes_shared(entry: Entry, shared: Seq) -> bool:
    """True if an event only says what was removed from the shared part."""
    event = entry.event
    if isinstance(event, ev.PayloadErased):
        return all(each.seq <= shared for each in event.erased)
    return isinstance(event, ev.RangePruned) and event.upto <= shared


class _Erasures:
    """The events that the session itself records as erased."""

    def __init__(self, log: Log) -> None:
        self._erased = {
            each.seq
            for entry in log.entries()
            if entry.kind == "payload.erased" and isinstance(event := entry.event, ev.PayloadErased)
            for each in event.erased
        }

    def are_missing(self, commits: list[Commit], shared: Seq) -> bool:
        """True if content of the shared part was removed by an event after it."""
        entries = [e for c in commits for e in open_commit(c) if e.seq <= shared]
        pruned = max((e.body.get("upto", 0) for e in entries if e.kind == "range.pruned" and e.is_intact), default=0)
        return any(
            not e.is_intact and (e.seq > pruned if not e.record.body else e.seq not in self._erased) for e in entries
        )


def _cut(log: Log, commit: Commit, upto: Seq) -> Commit:
    """The part of a commit up to an event, as a commit."""
    if commit.last <= upto:
        return commit
    entries = [e for e in open_commit(commit) if e.seq <= upto]
    doc = fold_at(log.engine, log.segments, upto).fold.doc
    return _part(commit, entries, status=doc["status"], epoch=doc["lease"]["epoch"], turn=doc["turn"]["number"])


def _part(commit: Commit, entries: list[Entry], *, status: str, epoch: int, turn: int) -> Commit:
    """Consecutive events of a commit as a commit, with the summary columns computed again."""
    turns = [e.header.turn for e in entries if e.header.turn]
    is_whole = all(e.is_intact for e in entries)
    paths = dict.fromkeys(e.body["path"] for e in entries if e.kind == "file.changed") if is_whole else ()
    own = {digest for e in entries for digest, at in mentions(e) if not at or at >= commit.first}
    first = entries[0].seq
    return msgspec.structs.replace(
        commit,
        commit_id=entries[-1].hash.hex()[:16],
        first=first,
        last=entries[-1].seq,
        prev=commit.prev if first == commit.first else open_commit(commit)[first - commit.first - 1].hash,
        hash=entries[-1].hash,
        at=entries[-1].header.at,
        records=tuple(e.record for e in entries),
        payloads=tuple(p for p in commit.payloads if p[0] in own),
        kinds=tuple(dict.fromkeys(e.kind for e in entries)),
        turns=(min(turns), max(turns)) if turns else (0, 0),
        paths=tuple(paths),
        fingerprint=b"",  # an unsalted hash of the whole commit
        status=status,
        epoch=epoch,
        turn=turn,
    )


def _with_used_payloads(commit: Commit, used: set[tuple[Seq, bytes]]) -> Commit:
    """A commit with only those payloads that an included event mentions."""
    wanted = {digest for seq, digest in used if commit.first <= seq <= commit.last}
    payloads = tuple(p for p in commit.payloads if p[0] in wanted)
    return msgspec.structs.replace(commit, payloads=payloads)


def _refusal(log: Log, ancestor: Head, shared: Seq) -> NotAllowedError:
    name = str(log)
    return NotAllowedError(
        f"a bundle of {name} would contain events of {ancestor} after event {shared}, which it"
        " does not share: without them, what was pruned there, and where it was forked from, cannot be checked",
        kind="not-shared",
        hint="if the receiver may see those events, include them: wakelog export --beyond",
    )


# Import


def fit(engine: Engine, commits: list[Commit]) -> tuple[list[Commit], list[Commit]]:
    """The commits to add to what a store has, and the stored commits whose content was removed elsewhere since, without
    that content."""
    out: list[Commit] = []
    emptied: list[Commit] = []
    for session in dict.fromkeys(c.session for c in commits):
        mine = [c for c in commits if c.session == session]
        try:
            stored = list(engine.read(session, payloads=True))
        except NotFoundError:
            out += mine
            continue
        gone: dict[Seq, Record] = {}
        for commit in mine:
            here = [c for c in stored if c.first <= commit.last and commit.first <= c.last]
            if not all(_is_same(c, commit) for c in here) or any(_ends(c) == _ends(commit) for c in here):
                out.append(commit)  # a conflict or a repetition: the engine decides which
            elif not here:
                out.append(commit)
            else:
                rest = [_rest(commit, here[-1].last)] if here[-1].last < commit.last else []
                out += rest
                _refuse_if_lost(commit, [*here, *rest], commits)
            for each in here:
                gone |= _removed_bodies(each, commit) if _is_same(each, commit) else {}
        emptied += [_without_bodies(c, gone, stored) for c in stored if any(c.first <= seq <= c.last for seq in gone)]
    return out, emptied


def _refuse_if_lost(commit: Commit, parts: list[Commit], commits: list[Commit]) -> None:
    """Refuses to store a commit in parts if a later event would no longer find a payload. A mention names the commit
    that holds the payload by its first event; stored in parts, another part may hold it."""
    has = {seq: {d for d, _ in part.payloads} for part in parts for seq in range(part.first, part.last + 1)}
    had = {d for d, _ in commit.payloads}
    for other in commits:
        for entry in open_commit(other) if other.first > commit.last else ():
            if any(at in has and digest in had - has[at] for digest, at in mentions(entry)):
                raise ConflictError(
                    f"this store has session {commit.session} up to event {parts[0].last} as a fork's bundle brought"
                    f" it, and event {entry.seq} needs the append at event {commit.first} whole",
                    kind="kept-in-parts",
                    hint="import the parent's bundle first, into a store that has neither session",
                )


def _ends(commit: Commit) -> tuple[Seq, Seq]:
    return commit.first, commit.last


def _is_same(here: Commit, commit: Commit) -> bool:
    """True if two commits of one session hold the same events where they overlap."""
    last = min(here.last, commit.last)
    return _hash_at(here, last) == _hash_at(commit, last)


def _hash_at(commit: Commit, seq: Seq) -> bytes:
    return open_commit(commit)[seq - commit.first].hash


def _rest(commit: Commit, after: Seq) -> Commit:
    entries = [e for e in open_commit(commit) if e.seq > after]
    rest = _part(commit, entries, status=commit.status, epoch=commit.epoch, turn=commit.turn)
    return msgspec.structs.replace(rest, fork=None)


def _removed_bodies(here: Commit, commit: Commit) -> dict[Seq, Record]:
    """The replacement records for bodies that are stored here and were removed from the commit."""
    both = range(max(here.first, commit.first), min(here.last, commit.last) + 1)
    pairs = ((seq, here.records[seq - here.first], commit.records[seq - commit.first]) for seq in both)
    return {seq: theirs for seq, mine, theirs in pairs if mine.salt and not theirs.salt}


def _without_bodies(here: Commit, gone: dict[Seq, Record], commits: list[Commit]) -> Commit:
    """A stored commit without the removed bodies. Payloads stay if a remaining event mentions them."""
    entries = [e for c in commits for e in open_commit(c) if e.seq not in gone]
    used = {digest for e in entries for digest, at in mentions(e) if here.first <= (at or e.seq) <= here.last}
    records = tuple(gone.get(seq, record) for seq, record in enumerate(here.records, here.first))
    payloads = tuple(p for p in here.payloads if p[0] in used)
    return msgspec.structs.replace(here, records=records, payloads=payloads, paths=(), fingerprint=b"")
