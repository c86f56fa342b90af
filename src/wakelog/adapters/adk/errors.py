"""ADK's errors. Releases differ in which of them exist."""

from __future__ import annotations

from google.adk.errors.already_exists_error import AlreadyExistsError

try:
    from google.adk.errors.session_not_found_error import SessionNotFoundError
except ImportError:  # an older release raises a plain ValueError
    SessionNotFoundError = ValueError
try:
    from google.adk.errors import StaleSessionError
except ImportError:
    StaleSessionError = ValueError

__all__ = ["AlreadyExistsError", "SessionNotFoundError", "StaleSessionError"]
