"""Values about the shards of a distributed store."""

from __future__ import annotations

import msgspec

from wakelog.model.ids import Seq, SessionId


class ShardPlacement(msgspec.Struct, frozen=True):
    """Where one shard of a store is."""

    shard: int
    leader: str
    """The server that accepts writes; empty during an election."""
    replicas: tuple[str, ...]
    """All servers that store it."""
    lag: dict[str, int]
    """How many messages each of the other servers is behind."""
    away: tuple[str, ...]
    """Servers that do not follow."""
    messages: int
    bytes: int


class ShardChange(msgspec.Struct, frozen=True):
    """A session with something new, and its place in the shard's feed."""

    session: SessionId
    seq: Seq
    place: int


class IndexDatabase(msgspec.Struct, frozen=True):
    """A shared database that holds the index, apart from the engine."""

    url: str
    key: str
    """Identifies the rows of this engine."""
