"""Where the parts of a store that is spread over machines are."""

from __future__ import annotations

import msgspec

from wakelog.model.ids import Seq, SessionId


class ShardPlacement(msgspec.Struct, frozen=True):
    """Where one shard of a store is kept."""

    shard: int
    leader: str
    """The server that takes its writes; empty while one is being elected."""
    replicas: tuple[str, ...]
    """All servers that keep it."""
    lag: dict[str, int]
    """How many messages each of the others is behind."""
    away: tuple[str, ...]
    """Those that do not follow."""
    messages: int
    bytes: int


class ShardChange(msgspec.Struct, frozen=True):
    """A session that has something new, and where its shard tells so."""

    session: SessionId
    seq: Seq
    place: int


class IndexDatabase(msgspec.Struct, frozen=True):
    """A database beside the engine that keeps the index, for everybody."""

    url: str
    key: str
    """Which rows in it are those of this engine."""
