"""Removes secrets from events before they are stored: pure functions over text and values, no I/O.

    find_secrets(text)   -> [(start, end, name), …]
    redact_text(text)    -> (text, names)      the same object if nothing was found
    redact_event(event)  -> (event, names)     likewise
    are_clean(events)    -> bool               whether redact_event would change none of them

A secret becomes `[redacted:NAME]`. It is a safety net, not a guarantee: see docs/explanation/redaction.md.
"""

from wakelog.redaction.patterns import PATTERNS, Pattern
from wakelog.redaction.redactor import Redactor, are_clean, find_secrets, redact_event, redact_text

__all__ = ["PATTERNS", "Pattern", "Redactor", "are_clean", "find_secrets", "redact_event", "redact_text"]
