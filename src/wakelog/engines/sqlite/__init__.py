"""The embedded engine: SQLite through apsw."""

from wakelog.engines.sqlite.engine import SqliteEngine

__all__ = ["SqliteEngine"]
