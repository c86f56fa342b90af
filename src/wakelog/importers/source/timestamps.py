"""Times in transcripts, as microseconds since the epoch; 0 for what is none."""

from __future__ import annotations

import datetime

FAR = 4_102_444_800
"""The year 2100, in seconds: a number beyond it is in milliseconds or smaller."""


def microseconds(given: object) -> int:
    """A time as the tools write it: ISO 8601 with or without a zone (then UTC), or a number of seconds, milli- or
    microseconds."""
    if isinstance(given, str):
        try:
            found = datetime.datetime.fromisoformat(given)
        except ValueError:
            return 0
        if found.tzinfo is None:
            found = found.replace(tzinfo=datetime.UTC)
        return int(found.timestamp() * 1_000_000)
    if isinstance(given, int | float) and not isinstance(given, bool) and given > 0 and given == given:
        for unit in (1_000_000, 1_000, 1):
            if given * unit < FAR * 1_000_000:
                return int(given * unit)
    return 0
