"""A session and its verbs: the public Python API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakelog.session.session import Session

if TYPE_CHECKING:
    from wakelog.session.turn import Turn

__all__ = ["Session", "Turn"]


def __getattr__(name: str) -> Any:
    """Imports `Turn` on first use: it loads the runtime, which programs that only read do not need."""
    if name == "Turn":
        from wakelog.session.turn import Turn

        return Turn
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
