"""Amounts as transcripts tell them: tokens, dollars, seconds, lines. Other programs wrote them, so what stands there
may be anything; what cannot be an amount counts as 0."""

from __future__ import annotations

from collections.abc import Iterable

TOKENS_MAX = 1 << 50


def tokens(told: object) -> int:
    """A number of tokens."""
    return told if type(told) is int and 0 < told < TOKENS_MAX else 0


def micros(dollars: object) -> int:
    """An amount in dollars, in millionths."""
    return round(_amount(dollars) * 1_000_000)


def duration(seconds: object) -> int:
    """A length of time in seconds, in microseconds."""
    return int(_amount(seconds) * 1_000_000)


def edited_lines(edits: Iterable[tuple[str, str]]) -> tuple[int, int]:
    """Lines that edits put in and took out, each an old text and the new one in its place."""
    added = removed = 0
    for old, new in edits:
        added += len(new.splitlines())
        removed += len(old.splitlines())
    return added, removed


def _amount(told: object) -> float:
    is_number = isinstance(told, int | float) and not isinstance(told, bool)
    return told if is_number and isinstance(told, int | float) and 0 < told < 1e9 else 0
