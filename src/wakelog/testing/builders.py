"""Commits for tests that use an engine directly.

A `CommitWriter` is a session as its only writer sees it: it seals one commit after another and stores nothing. The test
decides what reaches the engine, in which order and how often. `raw_commit` writes the bytes with hashlib and json, for
commits that the sealer would refuse: unknown kinds, newer versions, wrong values.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import msgspec

from wakelog.log.seal import Sealed, SealStep, Tip, seal
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId, fork_id, root_id
from wakelog.model.records import GENESIS, Commit, EventDraft, ForkPoint, Record
from wakelog.state.fold import Fold
from wakelog.state.patch import copy

START_US = 1_700_000_000_000_000


def new_session() -> SessionId:
    """An id that no other session has."""
    return root_id(START_US, os.urandom(10))


def fact(key: str, value: Any = 1) -> ev.FactRecorded:
    return ev.FactRecorded(key=key, value=value)


def message(content: Any, role: str = "user") -> ev.MessageAdded:
    return ev.MessageAdded(role=role, content=content)


class CommitWriter:
    """Seals commits for one session, one after another."""

    def __init__(self, session: SessionId | None = None) -> None:
        self.session = session or new_session()
        self.commits: list[Commit] = []
        self._tip = Tip(Fold())
        self._fork: ForkPoint | None = None
        self._places: dict[Seq, tuple[bytes, dict[str, Any]]] = {}
        self._now = START_US

    @property
    def seq(self) -> Seq:
        return self._tip.seq

    @property
    def hash(self) -> bytes:
        return self._tip.hash

    def open(self, *events: ev.Event, **fields: Any) -> Commit:
        """The commit that opens the session."""
        return self.seal(ev.SessionOpened(**fields), *events)

    def seal(self, *events: ev.Event, commit_id: str = "", guard: int | None = None, snapshot: bool = False) -> Commit:
        """The next commit. The writer continues as if it had been stored."""
        fork, self._fork = self._fork, None
        sealed = self._seal(events, commit_id=commit_id, guard=guard, fork=fork, force_snapshot=snapshot)
        self.commits.append(sealed.commit)
        self._places[self.seq] = (self.hash, copy(self._tip.fold.doc))
        return sealed.commit

    def rival(self, *events: ev.Event, commit_id: str = "", guard: int | None = None) -> Commit:
        """A commit for the same position as the next one, as another writer at the same head would send it."""
        sealed = self._seal(events, commit_id=commit_id, guard=guard)
        sealed.undo()
        return sealed.commit

    def _seal(self, events: tuple[ev.Event, ...], **how: Any) -> Sealed:
        self._now += 1000
        return seal(self._tip, self.session, [SealStep(EventDraft(event)) for event in events], now=self._now, **how)

    def forked(self, at: Seq | None = None, session: SessionId | None = None) -> CommitWriter:
        """A writer for a fork at the end of a commit. Its first commit is not sealed yet."""
        at = self.seq if at is None else at
        hash_, doc = self._places[at]
        child = CommitWriter(session or fork_id(self.session, os.urandom(5)))
        child._tip = Tip(Fold(copy(doc)), at, hash_, self._now)
        child._now = self._now
        child._fork = ForkPoint(self.session, at, hash_)
        return child

    def seal_fork(self, *events: ev.Event) -> Commit:
        """The first commit of a fork."""
        assert self._fork is not None, "this writer is not at the beginning of a fork"
        point = self._fork
        forked = ev.SessionForked(parent=point.parent, at=point.at, hash=point.hash.hex())
        return self.seal(forked, *events)


def raw_record(
    seq: Seq,
    kind: str,
    body: dict[str, Any] | bytes,
    *,
    at: int = START_US + 1_000_000,
    salt: bytes = bytes(range(16)),
    **header: Any,
) -> Record:
    """One record, with bytes written here and not by the codec. Extra header fields are added unchanged."""
    data = body if isinstance(body, bytes) else _json(body)
    fields = {
        "seq": seq,
        "kind": kind,
        "at": at,
        "body_hash": hashlib.sha256(salt + data).hexdigest(),
        "v": 1,
        **header,
    }
    return Record(_json(fields), salt, data)


def raw_commit(
    session: SessionId, records: list[Record], *, prev: bytes = GENESIS, status: str = "open", **fields: Any
) -> Commit:
    """A commit around hand-made records, chained onto `prev`."""
    headers = [msgspec.json.decode(r.header) for r in records]
    chain = prev
    for record in records:
        chain = hashlib.sha256(chain + record.header).digest()
    turns = [h["turn"] for h in headers if h.get("turn")]
    commit = Commit(
        session=session,
        commit_id=chain.hex()[:16],
        first=headers[0]["seq"],
        last=headers[-1]["seq"],
        prev=prev,
        hash=chain,
        at=headers[-1]["at"],
        epoch=0,
        status=status,
        turn=max(turns, default=0),
        turns=(min(turns), max(turns)) if turns else (0, 0),
        kinds=tuple(dict.fromkeys(h["kind"] for h in headers)),
        paths=(),
        records=tuple(records),
    )
    return msgspec.structs.replace(commit, **fields) if fields else commit


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
