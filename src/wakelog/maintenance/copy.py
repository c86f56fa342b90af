"""Copies sessions from one engine to another and keeps every byte and hash, for example from a laptop to a server.

Commits are copied as they are stored, so they verify in the same way. A copy can be repeated: existing sessions are
updated, also after an erasure. A session with a different history is left alone and reported.

Between encrypted stores with the same key ring, the encrypted bytes are copied without the key. Otherwise content is
decrypted from one store and encrypted for the other. Hashes are over the plain content, so they stay the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from wakelog.engine import Engine, Surgery, all_heads, head_or_none
from wakelog.errors import ConflictError, NotAllowedError
from wakelog.model.events import REMOVAL_KINDS
from wakelog.model.ids import Seq, SessionId
from wakelog.model.names import is_name
from wakelog.model.records import Commit, Head
from wakelog.store import Store
from wakelog.store.encryption import hold_encrypted

CHUNK_EVENTS = 500

Progress = Callable[[int], None]
"""Called with the number of events copied since the last call."""


class Copied(msgspec.Struct, frozen=True):
    """What a copy did."""

    sessions: int
    events: int
    unchanged: int
    """How many sessions were already up to date."""
    diverged: tuple[SessionId, ...]
    """Sessions with a different history in the target; they were left alone."""


def copy_store(
    source: Store,
    target: Store,
    sessions: Sequence[SessionId] | None = None,
    *,
    progress: Progress | None = None,
    decrypt: bool = False,
) -> Copied:
    """Copies sessions from store to store. The copy of an encrypted store is encrypted too, unless `decrypt`: a target
    without sessions becomes encrypted."""
    theirs, ours = source.engine.abilities.encryption, target.engine.abilities.encryption
    if theirs is not None and ours is None and not decrypt:
        if target.engine.abilities.take_bundle is not None or target.engine.sessions(limit=1):
            raise NotAllowedError(
                "this store is encrypted and the other one is not: readers of the other store could read the copy",
                kind="copy-not-encrypted",
                hint="copy it into a new store, or add --decrypt",
            )
        target.engine = hold_encrypted(target.engine, theirs.ring)
    return copy_sessions(source.engine, target.engine, sessions, progress=progress)


def copy_sessions(
    source: Engine,
    target: Engine,
    sessions: Sequence[SessionId] | None = None,
    *,
    progress: Progress | None = None,
) -> Copied:
    """Copies all sessions, or some of them with their fork ancestors."""
    theirs, ours = source.abilities.encryption, target.abilities.encryption
    if theirs is not None and ours is not None and theirs.ring == ours.ring:
        source, target = theirs.below, ours.below
    copied = events = unchanged = 0
    diverged: list[SessionId] = []
    skipped: set[SessionId] = set()
    for head in _in_order(source, sessions):
        if head.fork is not None and head.fork.parent in skipped:
            skipped.add(head.session)
            continue
        try:
            count = _copy(source, target, head, progress)
        except ConflictError:
            diverged.append(head.session)
            skipped.add(head.session)
            continue
        _copy_name(source, target, head)
        copied, events, unchanged = copied + bool(count), events + count, unchanged + (not count)
    _delete_parents(source, target, sessions)
    return Copied(copied, events, unchanged, tuple(diverged))


def _in_order(source: Engine, sessions: Sequence[SessionId] | None) -> Iterator[Head]:
    """Yields parents before their forks; a deleted parent only if a fork still reads through it."""
    session_ids: set[SessionId] = set()
    for head in all_heads(source) if sessions is None else (source.head(s) for s in sessions):
        line = [head]
        while (fork := line[-1].fork) is not None:
            line.append(source.head(fork.parent))
        for ancestor in reversed(line):
            if ancestor.session not in session_ids:
                session_ids.add(ancestor.session)
                yield ancestor


def _copy(source: Engine, target: Engine, head: Head, progress: Progress | None) -> int:
    """Copies what the target lacks of one session, and returns the number of events."""
    have = head_or_none(target, head.session)
    after = have.seq if have is not None else head.fork.at if head.fork is not None else 0
    if have is not None:
        _check_same(source, have)
    count, chunk, size = 0, list[Commit](), 0
    # A deleted parent that forks still need is copied without its deletion; that follows when the forks are copied.
    for commit in source.read(head.session, after=after, payloads=True):
        if "session.deleted" in commit.kinds:
            break
        fork = head.fork if head.fork is not None and commit.first == head.fork.at + 1 else None
        chunk.append(msgspec.structs.replace(commit, guard=None, late=True, fork=fork))
        size += commit.last - commit.first + 1
        if size >= CHUNK_EVENTS or not REMOVAL_KINDS.isdisjoint(commit.kinds):
            count += _store(source, target, chunk, progress)
            chunk, size = [], 0
    return count + (_store(source, target, chunk, progress) if chunk else 0)


def _store(source: Engine, target: Engine, chunk: list[Commit], progress: Progress | None) -> int:
    if any(not REMOVAL_KINDS.isdisjoint(commit.kinds) for commit in chunk):
        _operate(source, target, chunk)
    else:
        target.submit(*chunk).result()
    count = sum(commit.last - commit.first + 1 for commit in chunk)
    if progress is not None:
        progress(count)
    return count


def _operate(source: Engine, target: Engine, chunk: list[Commit]) -> None:
    """Appends commits that record a removal, and removes the bytes in the same step."""
    session = chunk[0].session
    have = head_or_none(target, session)
    rewritten: list[Commit] = []
    if have is not None:
        first = have.fork.at if have.fork is not None else 0
        here = {c.last: c for c in target.read(session, after=first, payloads=True)}
        for commit in source.read(session, after=first, upto=have.seq, payloads=True):
            old = here.get(commit.last)
            if old is not None and (old.records != commit.records or old.payloads != commit.payloads):
                rewritten.append(msgspec.structs.replace(commit, guard=None, late=True))
    stale: dict[SessionId, Seq] = {session: min(c.first for c in rewritten)} if rewritten else {}
    target.operate(Surgery(commits=tuple(chunk), rewritten=tuple(rewritten), stale_from=stale))


def _check_same(source: Engine, have: Head) -> None:
    """Raises ConflictError unless the target's history is a prefix of the source's."""
    here = next(iter(source.read(have.session, after=have.seq - 1, upto=have.seq)), None)
    if here is None or here.last != have.seq or here.hash != have.hash:
        raise ConflictError(
            f"session {have.session} has a different history in the other store, from event {have.seq} or earlier",
            kind="diverged",
            head_seq=have.seq,
        )


def _copy_name(source: Engine, target: Engine, head: Head) -> None:
    if is_name(head.name):
        target.claim(head.name, head.session)
    beat = source.last_beat(head.session)
    if beat is not None:
        with contextlib.suppress(ConflictError):  # the lease is over
            target.beat(head.session, beat)


def _delete_parents(source: Engine, target: Engine, sessions: Sequence[SessionId] | None) -> None:
    """Deletes in the target the parents that are deleted in the source, after their forks were copied."""
    for head in _in_order(source, sessions):
        have = head_or_none(target, head.session)
        if head.status == "deleted" and have is not None and have.status != "deleted":
            for commit in source.read(head.session, after=have.seq, payloads=True):
                if "session.deleted" in commit.kinds:
                    target.delete(msgspec.structs.replace(commit, guard=None, late=True))
