"""Totals: the numbers of turns and calls, which may stay when content is removed.

Calls are counted by turn, phase and duration. A *phase* is a series of calls of the same kind: `explore` looks,
`change` writes files, `check` runs tests and other checks, `run` does something else. A user's message or a new turn
starts a new phase. Model calls are counted as `model` and do not form phases. Durations are counted in powers of two:
bucket n holds those from 2^(n-1) to 2^n microseconds, and bucket 0 unknown ones.

Everything is a sum, so rows can be added in any order. A prune keeps them in the log (log/pruned_totals.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from wakelog.model.values import Value

if TYPE_CHECKING:
    from wakelog.model.call_acts import Act

PHASES: Final = ("explore", "change", "check", "run", "model")
MODEL: Final = PHASES.index("model")
_OF_ACT: Final[dict[str, int]] = {"look": 0, "plan": 0, "write": 1, "check": 2, "record": 3, "run": 3}

TURN_FIELDS: Final = (
    *("turn", "attempt", "last", "at", "tool_calls", "tool_errors", "model_calls", "added", "removed"),
    *("tokens", "tokens_out", "usd_micros", "duration_us", "unpriced"),
)
"""The columns of a turn's totals. Turn 0 is the time between turns; `last` is its last event, `at` when it began."""
CALL_FIELDS: Final = ("turn", "attempt", "phase", "bucket", "phases", "calls", "errors", "duration_us")
"""The columns of its calls. `phase` is an index in PHASES; `phases` counts the phases that began with these calls."""


class SessionTotals(msgspec.Struct, frozen=True):
    """The totals of a deleted session: `totals` and `call_totals` of its tombstone."""

    numbers: tuple[int, ...] = ()
    calls: tuple[tuple[int, ...], ...] = ()


CallKey = tuple[int, int, int, int]
"""Turn, attempt, phase and bucket."""
LastPhase = tuple[int, int, int]
"""Turn, attempt and phase of the last call; (0, 0, -1) if the next call begins a phase."""
NO_PHASE: Final[LastPhase] = (0, 0, -1)


def rows_of(value: Value, width: int) -> list[list[Any]]:
    """Reads rows of `width` integers from the log. Anything else is skipped."""
    rows = value if type(value) is list else []
    return [row for row in rows if type(row) is list and len(row) == width and all(type(n) is int for n in row)]


def phase_of(act: Act | str) -> int:
    return _OF_ACT.get(act, 3)


def bucket_of(duration_us: int) -> int:
    return max(0, duration_us).bit_length()


def count_call(
    sums: dict[CallKey, list[int]], last: LastPhase, here: LastPhase, has_failed: bool, duration_us: int
) -> LastPhase:
    """Adds a call that ended, in turn, attempt and phase `here`, to its row. Returns the value for `last` of the next
    call."""
    key = (*here, bucket_of(duration_us))
    row = sums.get(key)
    if row is None:
        row = sums[key] = [0, 0, 0, 0]
    is_model = here[2] == MODEL
    row[0] += not is_model and here != last
    row[1] += 1
    row[2] += has_failed
    row[3] += duration_us
    return last if is_model else here


def merge_rows(rows: Sequence[Sequence[int]], key: int, kept: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """Merges rows with the same first `key` numbers. Other columns are summed, except those in `kept`: there the
    largest number stays, or for a negative column the smallest that is not 0."""
    out: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        results = out.get(tuple(row[:key]))
        if results is None:
            out[tuple(row[:key])] = list(row)
            continue
        for place in range(key, len(row)):
            if place in kept:
                results[place] = max(results[place], row[place])
            elif -place in kept:
                results[place] = min(filter(None, (results[place], row[place])), default=0)
            else:
                results[place] += row[place]
    return [tuple(row) for _, row in sorted(out.items())]
