"""The settings for new sessions: their limits, what happens on an effect with untrusted content, and git labels."""

from __future__ import annotations

import msgspec


class Guards(msgspec.Struct, frozen=True):
    """As the settings have it, or as it is without any."""

    limits: dict[str, str] = {}
    """By unit (`usd`, `tokens`, `seconds`), as people write them."""
    on_effect: str = "flag"
    git_labels: bool = True
    """Whether a session that works in a git folder says so."""
