"""Counts the tokens in a rollout of Codex, each once.

`token_count` repeats the total so far, and restarts when a session is resumed. Newer versions also write a
`token_usage_record` for each reply. Only what either of them adds to the count so far is reported.
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
        """The last total that `token_count` reported."""
        self._counted = self._recorded = self._reported = _NONE

    def count(self, info: Any, *, is_replayed: bool = False) -> Usage:
        """What a `token_count` adds. A replayed one adds nothing."""
        if not isinstance(info, dict):
            return Usage()
        total, last = _counts(info.get("total_token_usage")), _counts(info.get("last_token_usage"))
        if total is None:
            total = _each(add, self._last, last or _NONE)
        more = _each(sub, total, self._last)
        if any(n < 0 for n in more):
            # The total restarted: this reply is the first of it.
            more = last or total
        self._last = total
        if is_replayed:
            return Usage()
        self._counted = _each(add, self._counted, more)
        return self._take_new()

    def record(self, usage: Any) -> Usage:
        """What a `token_usage_record` adds."""
        self._recorded = _each(add, self._recorded, _counts(usage) or _NONE)
        return self._take_new()

    def _take_new(self) -> Usage:
        known = _each(max, self._counted, self._recorded)
        new = _each(sub, known, self._reported)
        self._reported = _each(max, known, self._reported)
        return usage_of_counts(new)


def usage_of_counts(counts: Counts) -> Usage:
    """Codex counts as its provider does: cached tokens are in the input, reasoning is in the output."""
    tokens_in, cached, tokens_out, thought = (max(0, n) for n in counts)
    return Usage(
        input=max(0, tokens_in - cached),
        cache_read=min(cached, tokens_in),
        output=max(0, tokens_out - thought),
        reasoning=min(thought, tokens_out),
    )


def usage_of(value: Any) -> Usage:
    return usage_of_counts(_counts(value) or _NONE)


def _counts(given: Any) -> Counts | None:
    return tuple(tokens(given.get(name)) for name in _FIELDS) if isinstance(given, dict) else None


def _each(join: Callable[[int, int], int], a: Counts, b: Counts) -> Counts:
    return tuple(map(join, a, b))
