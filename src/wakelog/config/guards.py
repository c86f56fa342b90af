"""The settings that guard sessions: limits for new ones, and what happens on an effect with untrusted content."""

from __future__ import annotations

import msgspec


class Guards(msgspec.Struct, frozen=True):
    """As the settings have it, or as it is without any."""

    limits: dict[str, str] = {}
    """By unit (`usd`, `tokens`, `seconds`), as people write them."""
    on_effect: str = "flag"
