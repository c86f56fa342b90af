"""Settings for sessions: limits, the rule for effects with untrusted content, git labels, and the idle time of
imports."""

from __future__ import annotations

import msgspec

IDLE_US = 7 * 24 * 3600 * 1_000_000
NEVER_US = 1 << 62


class Guards(msgspec.Struct, frozen=True):
    """The values of the settings, or the defaults."""

    limits: dict[str, str] = {}
    """By unit (`usd`, `tokens`, `seconds`), as text."""
    on_effect: str = "flag"
    idle_us: int = IDLE_US
    """An imported session without a new record for this long is closed."""
    git_labels: bool = True
    """Whether a session that works in a git folder gets labels for it."""
