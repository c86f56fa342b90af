"""Forks of an encrypted session by a caller without the key.

A fork's first commit names its fork point and ends the parent's turn and lease; headers are enough for that. They do
not name the calls that are open at the fork point. So those are abandoned later, by the first append of a process that
has the key (append.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from wakelog.codec.chain import SALT_SIZE, SealItem, seal_records
from wakelog.codec.envelope import no_key
from wakelog.codec.records import PayloadCollector, encode_delta, encode_event
from wakelog.encryption.plain_fork import fork_delta
from wakelog.engine import Encryption
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, ForkPoint

if TYPE_CHECKING:
    from wakelog.log.log import Log

_TURNS = ("turn.started", "turn.ended", "session.forked")


def fork_without_key(log: Log, encryption: Encryption, at: Entry, child: SessionId, *, name: str, why: str) -> None:
    """Stores the first commit of a fork, below the encryption. A reason is content, and is refused."""
    if why:
        raise no_key("a reason for a fork is encrypted, too, so none can be given")
    number, is_open, attempt = _turn_at(log, at.seq)
    turn, attempt = (number, attempt) if is_open else (0, 1)
    point = ForkPoint(log.id, at.seq, at.hash)
    forked = ev.SessionForked(parent=log.id, at=at.seq, hash=at.hash.hex(), name=name)
    body, _ = encode_event(forked, PayloadCollector({}))
    delta = encode_delta(fork_delta(turn, attempt, is_open=is_open))
    now = max(log.clock(), at.header.at)
    item: SealItem = (forked.kind, turn, attempt, "user", 0, (), "", "trusted", body, delta)
    records, chain, _ = seal_records(at.hash, at.seq + 1, now, os.urandom(SALT_SIZE), [item])
    commit = Commit(
        session=child,
        commit_id=chain.hex()[:16],
        first=at.seq + 1,
        last=at.seq + 1,
        prev=at.hash,
        hash=chain,
        at=now,
        epoch=0,
        status="open",
        turn=number,
        turns=(turn, turn),
        kinds=(forked.kind,),
        paths=(),
        records=records,
        fork=point,
    )
    encryption.below.submit(commit).result()


def _turn_at(log: Log, seq: Seq) -> tuple[int, bool, int]:
    """The number of the last turn at a point, whether it is open there, and its attempt."""
    number, is_open, attempt = 0, False, 1
    for entry in log.entries(upto=seq):
        if entry.kind in _TURNS:
            is_open = entry.kind == "turn.started"
            if is_open:
                number, attempt = entry.header.turn, entry.header.attempt
    return number, is_open, attempt
