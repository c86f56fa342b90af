"""What people import: a session and its verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakelog.session.session import Session

if TYPE_CHECKING:
    from wakelog.session.turn import Turn

__all__ = ["Session", "Turn"]


def __getattr__(name: str) -> Any:
    """A turn brings the runtime with it; who only looks at a session has none."""
    if name == "Turn":
        from wakelog.session.turn import Turn

        return Turn
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
