"""The format of messages: MessagePack arrays, packed as in every engine (codec/pack.py).

The message of a commit is `[version, [commit, …]]`. Usually it holds one commit. Commits of one session that were
submitted together share a message if they fit, because a message is stored completely or not at all. A commit that is
too big has its payloads, and its records if necessary, in separate parts (subject `p`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from wakelog.codec.pack import pack, unpack
from wakelog.engine import Known
from wakelog.errors import CorruptLogError, UnsupportedError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, ForkPoint, Head

VERSION = 1
_encode = msgspec.msgpack.Encoder().encode


class StoredCommit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A commit as stored. New fields are added at the end, with a default."""

    first: int
    last: int
    prev: bytes
    hash: bytes
    at: int
    epoch: int
    status: str
    turn: int
    turns: tuple[int, int]
    kinds: tuple[str, ...]
    paths: tuple[str, ...]
    commit_id: str
    fingerprint: bytes
    fork: tuple[str, int, bytes] | None
    """The session's fork point, in every commit, so that the newest one is enough for a head."""
    has_lists: bool
    """Whether some of the session's chosen ids are in lists (subject `j`), which an append must check."""
    records: bytes
    payloads: bytes
    apart: int = 0
    """How many parts hold the rest."""


class ChosenId(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A commit id that its caller chose, and the answer that was given."""

    commit_id: str
    fingerprint: bytes
    seq: int
    hash: bytes
    at: int
    epoch: int
    status: str
    turn: int

    def known(self, session: SessionId, fork: ForkPoint | None, name: str) -> Known:
        head = Head(
            session, self.seq, self.hash, self.at, self.epoch, self.status, self.turn, self.commit_id, fork, name
        )
        return Known(head, self.fingerprint)


class MessagePart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of something too big for one message."""

    number: int
    count: int
    content: bytes


class DueWork(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What to do after a removal was stored: messages to erase, and whether the session was deleted."""

    erase: tuple[int, ...] = ()
    is_deletion: bool = False


_SAME = StoredCommit.__struct_fields__[:13]
"""The fields up to `fingerprint`, which are the same in a Commit."""
_same: Any = attrgetter(*_SAME)
_message = msgspec.msgpack.Decoder(tuple[int, tuple[StoredCommit, ...]]).decode
_id = msgspec.msgpack.Decoder(ChosenId).decode
_ids = msgspec.msgpack.Decoder(tuple[ChosenId, ...]).decode
_part = msgspec.msgpack.Decoder(MessagePart).decode
_due = msgspec.msgpack.Decoder(DueWork).decode
_pair = msgspec.msgpack.Decoder(tuple[bytes, bytes]).decode
_version = msgspec.msgpack.Decoder(tuple[int, Any]).decode


def to_stored(commit: Commit, fork: ForkPoint | None, *, has_lists: bool = False) -> StoredCommit:
    records, payloads = pack(commit.records, commit.payloads)
    point = (fork.parent, fork.at, fork.hash) if fork is not None else None
    return StoredCommit(*_same(commit), point, has_lists, records, payloads)  # type: ignore[call-arg] # it counts one


def size_of(stored: StoredCommit) -> int:
    """The approximate size in a message."""
    return len(stored.records) + len(stored.payloads) + 400 + sum(map(len, (*stored.kinds, *stored.paths)))


def split_commit(stored: StoredCommit, limit: int) -> tuple[StoredCommit, list[bytes]]:
    """Splits a commit into one that fits into a message, and the parts that hold the rest."""
    if size_of(stored) <= limit:
        return stored, []
    slim = msgspec.structs.replace(stored, payloads=b"")
    left: tuple[bytes, bytes] = (b"", stored.payloads)
    if size_of(slim) > limit:
        slim = msgspec.structs.replace(slim, records=b"")
        left = (stored.records, stored.payloads)
    parts = split_parts(_encode(left), limit)
    return msgspec.structs.replace(slim, apart=len(parts)), parts


def join_commit(slim: StoredCommit, parts: Sequence[bytes]) -> StoredCommit:
    records, payloads = _pair(join_parts(parts))
    return msgspec.structs.replace(slim, records=records or slim.records, payloads=payloads, apart=0)


def split_parts(content: bytes, limit: int) -> list[bytes]:
    pieces = [content[i : i + limit] for i in range(0, len(content), limit)] or [b""]
    return [_encode(MessagePart(i, len(pieces), piece)) for i, piece in enumerate(pieces)]


def join_parts(parts: Sequence[bytes]) -> bytes:
    pieces = sorted((_read(_part, part) for part in parts), key=lambda p: p.number)
    if not pieces or [p.number for p in pieces] != list(range(pieces[0].count)):
        raise CorruptLogError(f"only {len(pieces)} of {pieces[0].count if pieces else 'its'} parts were found")
    return b"".join(p.content for p in pieces)


def encode_commits(commits: Sequence[StoredCommit]) -> bytes:
    return _encode((VERSION, commits))


def decode_commits(data: bytes) -> tuple[StoredCommit, ...]:
    try:
        return _message(data)[1]
    except msgspec.DecodeError as exc:
        version, _ = _read(_version, data)
        if version > VERSION:
            raise UnsupportedError(
                f"this message is of version {version}, and this wakelog knows {VERSION}",
                kind="store-newer",
                hint="upgrade wakelog",
            ) from exc
        raise CorruptLogError(f"a stored message cannot be read: {exc}") from exc


def to_commit(session: SessionId, stored: StoredCommit, *, payloads: bool) -> Commit:
    try:
        records, content = unpack(stored.records, stored.payloads if payloads else b"")
    except CorruptLogError as exc:
        what = f"the stored commit of events {stored.first} to {stored.last} of session {session} is damaged"
        hint = f"wakelog verify {session}"
        raise CorruptLogError(
            f"{what}: {exc.message}", hint=hint, seq=stored.first, upto=stored.last, session=session
        ) from exc
    same = dict(zip(_SAME, _same(stored), strict=True))
    return Commit(session=session, records=records, payloads=content, **same)


def head_of(session: SessionId, stored: StoredCommit, name: str = "") -> Head:
    fork = ForkPoint(SessionId(stored.fork[0]), *stored.fork[1:]) if stored.fork is not None else None
    seq, at, epoch, status = stored.last, stored.at, stored.epoch, stored.status
    return Head(session, seq, stored.hash, at, epoch, status, stored.turn, stored.commit_id, fork, name)


def chosen_id(commit: Commit) -> ChosenId:
    seq, at, epoch, status = commit.last, commit.at, commit.epoch, commit.status
    return ChosenId(commit.commit_id, commit.fingerprint, seq, commit.hash, at, epoch, status, commit.turn)


def encode(value: ChosenId | Iterable[ChosenId] | DueWork | Sequence[str | int]) -> bytes:
    return _encode(value)


def decode_id(data: bytes) -> ChosenId:
    return _read(_id, data)  # type: ignore[no-any-return]


def decode_ids(data: bytes) -> tuple[ChosenId, ...]:
    return _read(_ids, data)  # type: ignore[no-any-return]


def decode_due(data: bytes) -> DueWork:
    return _read(_due, data)  # type: ignore[no-any-return]


def _read(decode: Any, data: bytes) -> Any:
    try:
        return decode(data)
    except msgspec.DecodeError as exc:
        raise CorruptLogError(f"a stored message cannot be read: {exc}") from exc
