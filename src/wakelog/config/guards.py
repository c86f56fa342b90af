"""The settings for sessions: limits of new ones, what happens on an effect with untrusted content, git labels, and when
an imported one counts as left."""

from __future__ import annotations

import msgspec

IDLE_US = 7 * 24 * 3600 * 1_000_000
NEVER_US = 1 << 62


class Guards(msgspec.Struct, frozen=True):
    """As the settings have it, or as it is without any."""

    limits: dict[str, str] = {}
    """By unit (`usd`, `tokens`, `seconds`), as people write them."""
    on_effect: str = "flag"
    idle_us: int = IDLE_US
    """An imported session that has no new record for so long is closed."""
    git_labels: bool = True
    """Whether a session that works in a git folder says so."""
