"""What the settings say about watching over sessions: what a new one may spend, what an untrusted effect leads to."""

from __future__ import annotations

import msgspec


class Guards(msgspec.Struct, frozen=True):
    """As the settings have it, or as it is without any."""

    limits: dict[str, str] = {}
    """By unit (`usd`, `tokens`, `seconds`), as people write them."""
    on_effect: str = "flag"
