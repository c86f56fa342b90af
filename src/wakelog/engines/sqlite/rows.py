"""From rows to commits, heads and names, and back.

Every row has a checksum over its plain columns; a commit's blobs have checksums of their own, and the chain covers all
of it. Every read checks them: a flipped bit either changes no answer or raises CorruptLogError.
"""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from wakelog.codec import pack as blobs
from wakelog.errors import CorruptLogError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, ForkPoint, Head

COLUMNS = (
    "first, last, at, epoch, status, turn, turn_first, turn_last, kinds, paths, commit_id, fingerprint, prev, hash,"
    " log.checksum"
)
HEAD_COLUMNS = (
    f"{COLUMNS}, s.id, s.parent, s.fork_at, s.fork_hash, s.checksum, log.session = s.no,"
    " (select checksum || ' ' || name from name where session = s.id)"
)
_PLAIN = 15
_MEND = "wakelog store scrub --repair writes it as it was, where that is certain"

_encode_texts = msgspec.json.Encoder().encode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode
_encode_row = msgspec.msgpack.Encoder().encode


def checksum(*values: Any) -> int:
    """A checksum of the values and their types. Not of their repr, which differs between versions of Python."""
    return zlib.crc32(_encode_row(values))


class PackedCommit(msgspec.Struct, frozen=True, gc=False):
    """A commit and its row. Each caller packs in its own thread, before the write lock is taken: while one compresses,
    the others run."""

    commit: Commit
    row: tuple[Any, ...]


def pack(commit: Commit) -> PackedCommit:
    return PackedCommit(commit, to_row(commit))


def to_row(commit: Commit) -> tuple[Any, ...]:
    plain = (
        commit.first,
        commit.last,
        commit.at,
        commit.epoch,
        commit.status,
        commit.turn,
        *commit.turns,
        _encode_texts(commit.kinds).decode(),
        _encode_texts(commit.paths).decode(),
        commit.commit_id,
        commit.fingerprint,
        commit.prev,
        commit.hash,
    )
    return (*plain, checksum(commit.session, *plain), *blobs.pack(commit.records, commit.payloads))


def from_row(session: SessionId, row: tuple[Any, ...], *, payloads: bool) -> Commit:
    plain = _checked(session, row)
    first, last, at, epoch, status, turn, *turns, kinds, paths, commit_id, fingerprint, prev, end = plain
    if type(row[_PLAIN]) is not bytes or type(row[_PLAIN + 1]) is not bytes:
        raise _damaged(session, first, last)
    try:
        records, brought = blobs.unpack(row[_PLAIN], row[_PLAIN + 1] if payloads else b"")
    except CorruptLogError as exc:
        raise _damaged(session, first, last, exc.message) from exc
    return Commit(
        session=session,
        commit_id=commit_id,
        first=first,
        last=last,
        prev=prev,
        hash=end,
        at=at,
        epoch=epoch,
        status=status,
        turn=turn,
        turns=(turns[0], turns[1]),
        kinds=_decode_texts(kinds),
        paths=_decode_texts(paths),
        fingerprint=fingerprint,
        records=records,
        payloads=brought,
    )


def head_from_row(row: tuple[Any, ...], is_newest: Any = True, other_name: str | None = None) -> Head:
    """The head in the columns of HEAD_COLUMNS. `is_newest` and `other_name` come from the twin indexes."""
    session, parent, fork_at, fork_hash, stored, is_its_own, named = row[_PLAIN : _PLAIN + 7]
    if checksum(session, parent, fork_at, fork_hash) != stored:
        raise CorruptLogError(f"what is stored of session {session} is damaged", hint=_MEND, session=session)
    if not is_its_own:
        raise CorruptLogError(
            f"the newest commit of session {session} is missing, or belongs to another session", session=session
        )
    _checked(session, row)
    if not is_newest:
        raise CorruptLogError(
            f"the newest commit of session {session} is missing, or cannot be found",
            hint=f"wakelog verify {session}",
            session=session,
        )
    name, is_sound = other_name or "", not other_name
    if named is not None:
        stored, _, name = named.partition(" ")
        is_sound = checksum(name, session) == int(stored)
    if not is_sound:
        raise _damaged_name(name)
    return Head(
        session=SessionId(session),
        seq=row[1],
        hash=row[13],
        at=row[2],
        epoch=row[3],
        status=row[4],
        turn=row[5],
        commit_id=row[10],
        fork=ForkPoint(SessionId(parent), fork_at, fork_hash) if parent else None,
        name=name,
    )


def check_name(name: str, session: str, stored: int) -> None:
    if checksum(name, session) != stored:
        raise _damaged_name(name)


def _damaged_name(name: str) -> CorruptLogError:
    return CorruptLogError(f"the stored name {name!r} is damaged", hint=_MEND)


def _damaged(session: str, first: int, last: int, why: str = "") -> CorruptLogError:
    """The error for a damaged commit. It names the events, as far as they are known."""
    place = f"events {first} to {last}" if last > first else f"event {first}" if first else "an event"
    what = f"the stored commit of {place} of session {session} is damaged{f': {why}' if why else ''}"
    hint = f"wakelog verify {session}"
    return CorruptLogError(what, hint=hint, seq=first, upto=last, session=session)


def _checked(session: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    plain = row[: _PLAIN - 1]
    if zlib.crc32(_encode_row((session, *plain))) != row[_PLAIN - 1]:  # `checksum` inlined: this runs for each row
        raise _damaged(session, row[0] if type(row[0]) is int else 0, 0)
    return plain
