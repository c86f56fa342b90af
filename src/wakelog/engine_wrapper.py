"""The base of an engine around another one: it passes on the calls that wrappers do not change."""

from __future__ import annotations

from collections.abc import Sequence

from wakelog.engine import Engine, FeedChange
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Head, Heartbeat


class EngineWrapper:
    """The methods that neither blobs nor encryption change. A wrapper adds the others."""

    engine: Engine

    def head(self, session: SessionId) -> Head:
        return self.engine.head(session)

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        return self.engine.sessions(after=after, limit=limit)

    def children(self, session: SessionId, *, deleted: bool = False) -> Sequence[Head]:
        return self.engine.children(session, deleted=deleted)

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        return self.engine.changes(cursor, limit)

    def drop_snapshots(self, session: SessionId) -> None:
        self.engine.drop_snapshots(session)

    def claim(self, name: str, session: SessionId) -> SessionId:
        return self.engine.claim(name, session)

    def find(self, name: str) -> SessionId | None:
        return self.engine.find(name)

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        self.engine.beat(session, beat)

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        return self.engine.last_beat(session)

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        return self.engine.wait(session, after=after, timeout_s=timeout_s)

    def close(self) -> None:
        self.engine.close()
