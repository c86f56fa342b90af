"""The embedded engine: SQLite through apsw."""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which takes longer to import than session_names.py
if TYPE_CHECKING:
    from wakelog.engines.sqlite.engine import SqliteEngine

__all__ = ["SqliteEngine"]


def __getattr__(name: str) -> type[SqliteEngine]:
    """The engine brings much with it; who only asks for names does without."""
    if name == "SqliteEngine":
        from wakelog.engines.sqlite.engine import SqliteEngine

        return SqliteEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
