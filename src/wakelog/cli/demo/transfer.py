"""From memory to the store, in one piece."""

from __future__ import annotations

import contextlib

import msgspec

from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import ConflictError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, Head


def transfer(memory: MemoryEngine, engine: Engine) -> list[Head]:
    """Stores every session of `memory` together or not at all, with snapshots, names and leases."""
    heads = _all_heads(memory)
    commits = [commit for head in heads for commit in _commits(memory, head)]
    engine.submit(*commits).result()
    for head in heads:
        if head.name:
            engine.claim(head.name, head.session)
        beat = memory.last_beat(head.session)
        if beat is not None:
            with contextlib.suppress(ConflictError):  # of a lease that is over, and that a server has no use for
                engine.beat(head.session, beat)
    return heads


def _all_heads(memory: MemoryEngine) -> list[Head]:
    """Sorted by id, which puts a root before its forks."""
    heads: list[Head] = []
    while page := memory.sessions(after=heads[-1].session if heads else ""):
        heads += page
    return heads


def _commits(memory: MemoryEngine, head: Head) -> list[Commit]:
    snapshots = _snapshots(memory, head.session)
    out = []
    for commit in memory.read(head.session, payloads=True):
        # It happened, whatever the session's status was: the chain decides where it goes.
        out.append(msgspec.structs.replace(commit, snapshot=snapshots.get(commit.last), guard=None, late=True))
    return out


def _snapshots(memory: MemoryEngine, session: SessionId) -> dict[int, bytes]:
    out: dict[int, bytes] = {}
    upto = 1 << 62
    while (found := memory.snapshot(session, upto=upto)) is not None:
        out[found.seq] = found.data
        upto = found.seq - 1
    return out
