"""Totals: what turns came to in numbers, which may stay where the content must go.

Calls are counted by turn, by phase and by how long they took. A *phase* is a run of calls that do the same sort of
thing: `explore` looks, `change` writes files, `check` runs tests and other checks, `run` does something else. A user's
message and a new turn begin a new phase. Calls of models are counted as `model`, and are no phases. Durations are
counted in powers of two: bucket n has those from 2^(n-1) up to 2^n microseconds, and bucket 0 those that nobody told.

Everything is a sum, so rows are added up in any order, and a prune keeps them in the log (log/pruned_totals.py).
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
"""What a row of a turn's totals holds. Turn 0 is what was between turns; `last` is its last event, `at` when it
began."""
CALL_FIELDS: Final = ("turn", "attempt", "phase", "bucket", "phases", "calls", "errors", "duration_us")
"""What a row of its calls holds. `phase` is a place in PHASES; `phases` says how many began with these calls."""


class SessionTotals(msgspec.Struct, frozen=True):
    """What a deleted session came to: `totals` and `call_totals` of its tombstone."""

    numbers: tuple[int, ...] = ()
    calls: tuple[tuple[int, ...], ...] = ()


CallKey = tuple[int, int, int, int]
"""Turn, attempt, phase and bucket."""
LastPhase = tuple[int, int, int]
"""Turn, attempt and phase of the last call; (0, 0, -1) when the next one begins a phase."""
NO_PHASE: Final[LastPhase] = (0, 0, -1)


def rows_of(value: Value, width: int) -> list[list[Any]]:
    """Rows of so many numbers, as the log has them; what is anything else is passed over."""
    rows = value if type(value) is list else []
    return [row for row in rows if type(row) is list and len(row) == width and all(type(n) is int for n in row)]


def phase_of(act: Act | str) -> int:
    return _OF_ACT.get(act, 3)


def bucket_of(duration_us: int) -> int:
    return max(0, duration_us).bit_length()


def count_call(
    sums: dict[CallKey, list[int]], last: LastPhase, here: LastPhase, has_failed: bool, duration_us: int
) -> LastPhase:
    """Adds a call that ended, in turn, attempt and phase `here`, to its row; returns the phase it is in, to be given as
    `last` with the next one."""
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


def added_up(rows: Sequence[Sequence[int]], key: int, kept: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """Rows with the same first `key` numbers as one: the others are summed, but the smallest or largest that is not 0
    is kept in the columns `kept` (negative: the smallest)."""
    out: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        found = out.get(tuple(row[:key]))
        if found is None:
            out[tuple(row[:key])] = list(row)
            continue
        for place in range(key, len(row)):
            if place in kept:
                found[place] = max(found[place], row[place])
            elif -place in kept:
                found[place] = min(filter(None, (found[place], row[place])), default=0)
            else:
                found[place] += row[place]
    return [tuple(row) for _, row in sorted(out.items())]
