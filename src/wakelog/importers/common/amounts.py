"""Amounts in transcripts: tokens, dollars, seconds, lines. Other programs wrote them, so a value may be anything. One
that cannot be an amount counts as 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from wakelog.model.json_fields import whole_number
from wakelog.model.usage import Usage

TOKENS_MAX = 1 << 50
CAMEL_CASE = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cacheReadTokens",
    "cache_write": "cacheWriteTokens",
}
"""What several programs name the fields of their usage."""


def read_usage(counts: Mapping[str, Any], **names: str) -> Usage:
    """The usage in an object. `names` says how it names each field."""
    return Usage(**{field: tokens(counts.get(name)) for field, name in names.items()})


def read_whole_usage(counts: Mapping[str, Any], **names: str) -> Usage:
    """Like read_usage, where the input includes what came from the cache and what went there."""
    usage = read_usage(counts, **names)
    return msgspec.structs.replace(usage, input=max(0, usage.input - usage.cache_read - usage.cache_write))


def usage_sum(a: Usage, b: Usage) -> Usage:
    return Usage(**{field: getattr(a, field) + getattr(b, field) for field in Usage.__struct_fields__})


def usage_growth(now: Usage, before: Usage) -> Usage:
    """How much a running total has grown. A field that shrank counts as 0."""
    return Usage(**{f: max(0, getattr(now, f) - getattr(before, f)) for f in Usage.__struct_fields__})


def tokens(value: object) -> int:
    """A number of tokens."""
    count = whole_number(value)
    return count if count < TOKENS_MAX else 0


def micros(dollars: object) -> int:
    """Dollars, as millionths of a dollar."""
    return round(_amount(dollars) * 1_000_000)


def duration(seconds: object) -> int:
    """Seconds, as microseconds."""
    return int(_amount(seconds) * 1_000_000)


def edited_lines(edits: Iterable[tuple[str, str]]) -> tuple[int, int]:
    """Lines added and removed by edits, each given as old text and new text."""
    added = removed = 0
    for old, new in edits:
        added += len(new.splitlines())
        removed += len(old.splitlines())
    return added, removed


def _amount(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int | float) and 0 < value < 1e9 else 0
