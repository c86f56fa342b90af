"""Tokens in a rollout of Codex, counted once.

`token_count` tells the sum so far, again and again, and begins anew when a session is resumed; newer versions also
write a `token_usage_record` for each answer. What counts is how much more either of them knows than was told before.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, sub
from typing import Any

from wakelog.importers.common.amounts import tokens
from wakelog.model.usage import Usage

_FIELDS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
Counts = tuple[int, ...]
"""One for each of the fields."""
_NONE: Counts = (0, 0, 0, 0)


class TokenCount:
    """What one transcript has used so far."""

    def __init__(self) -> None:
        self._last = _NONE
        """The sum that was told last, by `token_count`."""
        self._counted = self._recorded = self._told = _NONE

    def count(self, info: Any, *, is_replayed: bool = False) -> Usage:
        """What is new in a `token_count`; of a replayed one nothing is."""
        if not isinstance(info, dict):
            return Usage()
        total, last = _counts(info.get("total_token_usage")), _counts(info.get("last_token_usage"))
        if total is None:
            total = _each(add, self._last, last or _NONE)
        more = _each(sub, total, self._last)
        if any(n < 0 for n in more):
            # The sum began anew: this answer is the first of it.
            more = last or total
        self._last = total
        if is_replayed:
            return Usage()
        self._counted = _each(add, self._counted, more)
        return self._tell()

    def record(self, usage: Any) -> Usage:
        """What is new in a `token_usage_record`."""
        self._recorded = _each(add, self._recorded, _counts(usage) or _NONE)
        return self._tell()

    def _tell(self) -> Usage:
        known = _each(max, self._counted, self._recorded)
        new = _each(sub, known, self._told)
        self._told = _each(max, known, self._told)
        return usage_of_counts(new)


def usage_of_counts(counts: Counts) -> Usage:
    """Codex counts as its provider does: cached tokens are in the input, reasoning is in the output."""
    heard, cached, said, thought = (max(0, n) for n in counts)
    return Usage(
        input=max(0, heard - cached),
        cache_read=min(cached, heard),
        output=max(0, said - thought),
        reasoning=min(thought, said),
    )


def usage_of(told: Any) -> Usage:
    return usage_of_counts(_counts(told) or _NONE)


def _counts(told: Any) -> Counts | None:
    return tuple(tokens(told.get(name)) for name in _FIELDS) if isinstance(told, dict) else None


def _each(join: Callable[[int, int], int], a: Counts, b: Counts) -> Counts:
    return tuple(map(join, a, b))
