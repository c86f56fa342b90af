"""Accepts removals that were planned elsewhere: a deletion, or the surgery of erasing and pruning.

A writer who may remove can remove everything, so these checks are about what must hold even then:

- The commits that record the removal are as this store would seal them.
- Headers stay. Each rewritten record keeps its bytes, loses its body, or has the body that an erase event in these same
  commits gives it.
- Payloads are only removed. A prune's base is the state at its place.
- A hold forbids all of it, and a live fork forbids pruning what it reads.
"""

from __future__ import annotations

import msgspec

from wakelog.engine import Surgery, head_or_none
from wakelog.errors import CorruptLogError, InvalidInputError, NotFoundError
from wakelog.log.foreign_commits import CommitChecker, refuse
from wakelog.log.log import Log
from wakelog.log.pruned_totals import totals_upto
from wakelog.log.reader import Entry, open_commit
from wakelog.log.removal import refuse_if_held, refuse_if_shared, rewinds_of
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.payloads import as_ref, decode_payload
from wakelog.model.records import Commit, Head, Record
from wakelog.state.patch import equal

_encode = msgspec.json.Encoder().encode

# The fields of a rewritten commit that must not change.
_KEPT = ("session", "commit_id", "first", "last", "prev", "hash", "at", "epoch", "status", "turn", "turns", "kinds")


def take_deletion(checker: CommitChecker, commit: Commit) -> Head:
    """Deletes a session by a commit that was sealed elsewhere."""
    if [entry.kind for entry in _entries_of(commit)] != ["session.deleted"]:
        refuse(commit, "a deletion is one session.deleted and nothing else")
    _refuse_if_held(checker, commit.session)
    [checked] = checker.check_all([commit], frozenset({"session.deleted"}))
    return checker.engine.delete(msgspec.structs.replace(checked, snapshot=None))


def take_surgery(checker: CommitChecker, surgery: Surgery) -> Head:
    """Rewrites stored bytes as planned elsewhere."""
    if not surgery.commits:
        raise InvalidInputError("a removal needs a commit that records it", kind="empty-erase")
    for session in {c.session for c in (*surgery.commits, *surgery.rewritten)}:
        _refuse_if_held(checker, session)
    # The state may still hold the content to remove, so no snapshot is made of it.
    commits = [msgspec.structs.replace(c, snapshot=None) for c in checker.check_all(surgery.commits, ev.REMOVAL_KINDS)]
    vouched = _vouched(checker, commits)
    rewritten = tuple(_rewritten(checker, commit, vouched) for commit in surgery.rewritten)
    return checker.engine.operate(msgspec.structs.replace(surgery, commits=tuple(commits), rewritten=rewritten))


def _entries_of(commit: Commit) -> list[Entry]:
    """The events of a commit that was given: its bytes must be what its hash says, stored or not."""
    try:
        return open_commit(commit)
    except CorruptLogError as exc:
        refuse(commit, exc.message, exc)


def _refuse_if_held(checker: CommitChecker, session: SessionId) -> None:
    head = head_or_none(checker.engine, session)
    if head is not None and head.status != "deleted":  # which nothing held could become
        refuse_if_held(checker.engine, session)


def _vouched(checker: CommitChecker, commits: list[Commit]) -> dict[tuple[SessionId, Seq], bytes]:
    """What the erase events in these commits put in place of bodies, wherever those are shared."""
    out: dict[tuple[SessionId, Seq], bytes] = {}
    for commit in commits:
        log = Log(checker.engine, commit.session)
        for entry in _entries_of(commit):
            event = entry.event
            if isinstance(event, ev.RangePruned):
                _check_prune(log, commit, event)
            elif isinstance(event, ev.PayloadErased):
                for replacement in event.erased:
                    holder = next((s.session for s in reversed(log.segments) if s.first <= replacement.seq), log.id)
                    out[holder, replacement.seq] = _encode(replacement.body)
    return out


def _check_prune(log: Log, commit: Commit, event: ev.RangePruned) -> None:
    """The base must be the state at that point: every later state depends on it."""
    refuse_if_shared(log, event.upto)
    ref = as_ref(event.base)
    base = dict(commit.payloads).get(bytes.fromhex(ref.hash), b"{}") if ref else _encode(event.base)
    if event.last_hash != log.entry(event.upto).hash.hex() or not equal(
        decode_payload(base, "json"), log.state(event.upto)
    ):
        refuse(commit, f"its base is not the state at event {event.upto}")
    if event.rewinds and event.rewinds != rewinds_of(log, event.upto):
        refuse(commit, f"its rewinds are not those up to event {event.upto}")
    if (event.turn_totals or event.call_totals) and (event.turn_totals, event.call_totals) != totals_upto(
        log, event.upto
    ):
        refuse(commit, f"its totals are not what the events up to {event.upto} come to")


def _rewritten(checker: CommitChecker, commit: Commit, vouched: dict[tuple[SessionId, Seq], bytes]) -> Commit:
    """The stored commit without what the given one removes."""
    stored = next(
        (c for c in checker.engine.read(commit.session, after=commit.last - 1, upto=commit.last, payloads=True)), None
    )
    if stored is None:
        raise NotFoundError(f"session {commit.session} has no event {commit.last}", kind="event-not-found")
    changed = [name for name in _KEPT if getattr(stored, name) != getattr(commit, name)]
    if changed or len(stored.records) != len(commit.records):
        refuse(commit, f"surgery may not change its {', '.join(changed) or 'number of records'}")
    kept = dict(stored.payloads)
    if any(kept.get(digest) != content for digest, content in commit.payloads):
        refuse(commit, "surgery may not add payloads")
    records = tuple(
        _record(commit, entry, record, vouched)
        for entry, record in zip(open_commit(stored), commit.records, strict=True)
    )
    return msgspec.structs.replace(
        stored,
        records=records,
        payloads=commit.payloads,
        paths=commit.paths if commit.paths == stored.paths else (),
        fingerprint=commit.fingerprint if commit.fingerprint == stored.fingerprint else b"",
    )


def _record(commit: Commit, entry: Entry, record: Record, vouched: dict[tuple[SessionId, Seq], bytes]) -> Record:
    stored = entry.record
    if record == stored:
        return stored
    is_removed = record.header == stored.header and not record.salt
    if not is_removed or (record.body and record.body != vouched.get((commit.session, entry.seq))):
        refuse(commit, f"what is to stand for event {entry.seq} is not what an erase event says")
    return record
