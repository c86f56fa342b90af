"""What people import: a session and its verbs."""

from wakelog.session.session import Session
from wakelog.session.turn import Turn

__all__ = ["Session", "Turn"]
