"""Rows to commits and heads, and back."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.codec.pack import pack, unpack
from wakelog.errors import CorruptLogError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, ForkPoint, Head

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[str, ...]).decode
_SAME_IN_HEAD = ("hash", "at", "epoch", "status", "turn", "commit_id")
_SAME_IN_COMMIT = (*_SAME_IN_HEAD, "first", "last", "prev", "fingerprint")


def to_row(commit: Commit) -> tuple[Any, ...]:
    """The columns of `statements.COLUMNS`, then records and payloads."""
    return (
        commit.first,
        commit.last,
        commit.at,
        commit.epoch,
        commit.status,
        commit.turn,
        *commit.turns,
        _encode(commit.kinds).decode(),
        _encode(commit.paths).decode(),
        commit.commit_id,
        commit.fingerprint,
        commit.prev,
        commit.hash,
        *pack(commit.records, commit.payloads),
    )


def from_row(session: SessionId, row: Any) -> Commit:
    try:
        records, payloads = unpack(row["records"], row["payloads"])
    except CorruptLogError as exc:
        first, last = row["first"], row["last"]
        what = f"the stored commit of events {first} to {last} of session {session} is damaged: {exc.message}"
        hint = f"wakelog verify {session}"
        raise CorruptLogError(what, hint=hint, seq=first, upto=last, session=session) from exc
    return Commit(
        session=session,
        turns=(row["turn_first"], row["turn_last"]),
        kinds=_decode(row["kinds"]),
        paths=_decode(row["paths"]),
        records=records,
        payloads=payloads,
        **{name: row[name] for name in _SAME_IN_COMMIT},
    )


def head_from(session: SessionId, row: Any, fork: ForkPoint | None = None, name: str = "") -> Head:
    same = {name: row[name] for name in _SAME_IN_HEAD}
    return Head(session=session, seq=row["last"], fork=fork, name=name, **same)


def head_from_row(row: Any) -> Head:
    """From a row of `statements.HEAD` and its like."""
    return head_from(SessionId(row["session"]), row, fork_from(row), row["name"])


def fork_from(row: Any) -> ForkPoint | None:
    """Where a session left its parent, if it has one."""
    return ForkPoint(SessionId(row["parent"]), row["fork_at"], row["fork_hash"]) if row["parent"] else None
