"""Converts times in transcripts to microseconds since the epoch. Invalid times become 0."""

from __future__ import annotations

import datetime
import re

YEAR_2100_S = 4_102_444_800
"""The year 2100, in seconds. A larger number must be in milliseconds or microseconds."""

_NUMBER = re.compile(r"[0-9]{9,19}(\.[0-9]{1,9})?")
"""A number of seconds or more as text. Fewer digits may be a date, such as 20260101."""


def microseconds(given: object) -> int:
    """Reads ISO 8601, with or without a zone (then UTC), or a number of seconds, milliseconds or microseconds, also as
    text. A time before 1970 or after 2100 is invalid: programs write the year 1 or 9999 for "never"."""
    if isinstance(given, str):
        if _NUMBER.fullmatch(given):
            return microseconds(float(given) if "." in given else int(given))
        try:
            parsed = datetime.datetime.fromisoformat(given)
        except ValueError:
            return 0
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=datetime.UTC)
        at = int(parsed.timestamp() * 1_000_000)
        return at if 0 < at < YEAR_2100_S * 1_000_000 else 0
    if isinstance(given, int | float) and not isinstance(given, bool) and given > 0 and given == given:
        for unit in (1_000_000, 1_000, 1):
            if given * unit < YEAR_2100_S * 1_000_000:
                return int(given * unit)
    return 0


def local_microseconds(given: str) -> int:
    """Reads ISO 8601 without a zone, in the zone of this machine."""
    try:
        return int(datetime.datetime.fromisoformat(given).astimezone().timestamp() * 1_000_000)
    except (ValueError, OverflowError, OSError):
        return 0
