"""A commit as a row of the `log` table, and back.

The checksum covers the columns that neither the chain nor the blobs' own checksums do. It is looked at on every read:
whatever flips, either the answer is the same or the reader is told.
"""

from __future__ import annotations

import zlib
from typing import Any

from wakelog.codec.pack import pack_payloads, pack_records, unpack_payloads, unpack_records
from wakelog.errors import CorruptLogError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, ForkPoint, Head

COLUMNS = (
    "first, last, at, epoch, status, turn, turn_first, turn_last, kinds, paths, commit_id, fingerprint, prev, hash,"
    " checksum"
)
HEAD_COLUMNS = f"{COLUMNS}, s.id, s.parent, s.fork_at, s.fork_hash, (select name from name where session = s.id)"
_PLAIN = 15


def to_row(commit: Commit) -> tuple[Any, ...]:
    plain = (
        commit.first,
        commit.last,
        commit.at,
        commit.epoch,
        commit.status,
        commit.turn,
        *commit.turns,
        " ".join(commit.kinds),
        "\n".join(commit.paths),
        commit.commit_id,
        commit.fingerprint,
        commit.prev,
        commit.hash,
    )
    return (*plain, _checksum(plain), pack_records(commit.records), pack_payloads(commit.payloads))


def from_row(session: SessionId, row: tuple[Any, ...], *, payloads: bool) -> Commit:
    plain = row[: _PLAIN - 1]
    check(session, row)
    (
        first,
        last,
        at,
        epoch,
        status,
        turn,
        turn_first,
        turn_last,
        kinds,
        paths,
        commit_id,
        fingerprint,
        prev,
        end,
    ) = plain
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
        turns=(turn_first, turn_last),
        kinds=tuple(kinds.split(" ")),
        paths=tuple(paths.split("\n")) if paths else (),
        fingerprint=fingerprint,
        records=unpack_records(row[_PLAIN]),
        payloads=unpack_payloads(row[_PLAIN + 1]) if payloads else (),
    )


def head_from_row(row: tuple[Any, ...]) -> Head:
    """From the columns of HEAD_COLUMNS."""
    session, parent, fork_at, fork_hash, name = row[_PLAIN:]
    check(session, row)
    fork = ForkPoint(SessionId(parent), fork_at, fork_hash) if parent else None
    return Head(
        session=SessionId(session),
        seq=row[1],
        hash=row[13],
        at=row[2],
        epoch=row[3],
        status=row[4],
        turn=row[5],
        commit_id=row[10],
        fork=fork,
        name=name or "",
    )


def check(session: str, row: tuple[Any, ...]) -> None:
    if _checksum(row[: _PLAIN - 1]) != row[_PLAIN - 1]:
        raise CorruptLogError(f"the stored commit at event {row[0]} of {session} is damaged", seq=row[0])


def _checksum(plain: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(plain).encode("utf-8", "surrogatepass"))
