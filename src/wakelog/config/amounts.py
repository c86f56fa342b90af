"""Parses and shows ages and sizes: `90d`, `20GB`, `forever`, `unlimited`."""

from __future__ import annotations

import re

from wakelog.errors import InvalidInputError

FOREVER, UNLIMITED = "forever", "unlimited"

_AGE = r"(\d+)\s*(m|h|d|w|y)"
_INTERVAL = r"(\d+)\s*(s|m|h|d)"
_SIZE = r"(?i)(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB)?"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_age(text: str) -> int | None:
    """Returns microseconds, or None for `forever`."""
    if text.strip().lower() == FOREVER:
        return None
    match = re.fullmatch(_AGE, text.strip().lower())
    if match is None:
        raise InvalidInputError(f"{text!r} is not an age", kind="bad-age", hint=f"use 90d, 12w, 1y or {FOREVER}")
    return int(match[1]) * _SECONDS[match[2]] * 1_000_000


def parse_interval(text: str) -> float:
    """Returns seconds."""
    match = re.fullmatch(_INTERVAL, text.strip().lower())
    if match is None or not int(match[1]):
        raise InvalidInputError(f"{text!r} is not a length of time", kind="bad-interval", hint="use 30s, 10m, 1h or 1d")
    return float(int(match[1]) * _SECONDS[match[2]])


def parse_size(text: str) -> int | None:
    """Returns bytes (1 KB is 1,000), or None for `unlimited`."""
    if text.strip().lower() == UNLIMITED:
        return None
    match = re.fullmatch(_SIZE, text.strip())
    if match is None:
        raise InvalidInputError(f"{text!r} is not a size", kind="bad-size", hint=f"use 500MB, 20GB or {UNLIMITED}")
    return int(float(match[1]) * _BYTES[(match[2] or "").upper()])


def show_age(microseconds: int) -> str:
    """Shows an age in days, hours or minutes, rounded down."""
    seconds = microseconds // 1_000_000
    for unit in ("d", "h"):
        if seconds >= _SECONDS[unit]:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds // 60}m"


def show_size(count: int) -> str:
    """Shows bytes in the largest unit, with one decimal."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
