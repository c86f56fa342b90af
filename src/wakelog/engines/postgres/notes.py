"""Small notes that all servers on one database share, by kind and name, outside any namespace.

A note is added only if there is none, and changed or dropped only if it still has the expected content. So there are no
locks and no lost updates.
"""

from __future__ import annotations

from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.engine import PostgresEngine


class Notes:
    """The notes of the database that an engine is connected to."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine

    def of(self, kind: str) -> dict[str, bytes]:
        """The notes of a kind, by name."""
        return {row["name"]: row["content"] for row in self._engine._fetch(sql.NOTES, kind)}

    def add(self, kind: str, name: str, content: bytes) -> bool:
        """False if there is one of that name."""
        if self._engine._fetchrow(sql.ADD_NOTE, kind, name, content) is not None:
            return True
        # If an answer was lost, it is ours: two notes never have the same content, except empty ones.
        return bool(content) and self.of(kind).get(name) == content

    def change(self, kind: str, name: str, content: bytes, was: bytes) -> bool:
        """False if its content is no longer `was`."""
        return self._engine._fetchrow(sql.CHANGE_NOTE, kind, name, content, was) is not None

    def drop(self, kind: str, name: str, was: bytes) -> bool:
        return self._engine._fetchrow(sql.DROP_NOTE, kind, name, was) is not None

    def namespaces(self) -> list[str]:
        """The namespaces with sessions, each found by one index lookup."""
        found: list[str] = []
        while True:
            row = self._engine._fetchrow(sql.NEXT_SPACE, found[-1] if found else "")
            if row["min"] is None:
                return found
            found.append(row["min"])

    def close(self) -> None:
        self._engine.close()
