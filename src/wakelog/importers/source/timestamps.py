"""Converts times in transcripts to microseconds since the epoch. Invalid times become 0."""

from __future__ import annotations

import datetime

YEAR_2100_S = 4_102_444_800
"""The year 2100, in seconds. A larger number must be in milliseconds or microseconds."""


def microseconds(given: object) -> int:
    """Reads ISO 8601, with or without a zone (then UTC), or a number of seconds, milliseconds or microseconds."""
    if isinstance(given, str):
        try:
            parsed = datetime.datetime.fromisoformat(given)
        except ValueError:
            return 0
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=datetime.UTC)
        return int(parsed.timestamp() * 1_000_000)
    if isinstance(given, int | float) and not isinstance(given, bool) and given > 0 and given == given:
        for unit in (1_000_000, 1_000, 1):
            if given * unit < YEAR_2100_S * 1_000_000:
                return int(given * unit)
    return 0
