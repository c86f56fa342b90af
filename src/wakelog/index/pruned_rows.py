"""Rows with the totals of pruned turns and deleted sessions, which a removal leaves in the log."""

from __future__ import annotations

import msgspec

from wakelog.index.rows import Batch, SessionRow
from wakelog.model.ids import Seq, SessionId
from wakelog.model.totals import CALL_FIELDS, TURN_FIELDS, rows_of
from wakelog.model.values import Value

_COUNTED = ("tool_calls", "tool_errors", "model_calls", "added", "removed", "tokens", "tokens_out", "usd_micros")
_PAID = ("tokens", "tokens_out", "usd_micros", "duration_us", "unpriced")
_encode = msgspec.json.Encoder().encode


def keep_totals(
    batch: Batch, row: SessionRow, prune: dict[str, Value], upto: Seq, at: int, spent: tuple[int, int, int]
) -> None:
    """Adds the totals of a prune to the rows of its turns. `spent` is the cost of the pruned events by the state. Older
    prunes have no totals: the rest of `spent` becomes one amount at the last pruned event."""
    paid: dict[Seq, list[int]] = {}
    left = list(spent)
    for numbers in rows_of(prune.get("turn_totals"), len(TURN_FIELDS)):
        total = dict(zip(TURN_FIELDS, numbers, strict=True))
        left = [n - total[name] for n, name in zip(left, ("tokens", "usd_micros", "duration_us"), strict=True)]
        if any(total[name] for name in _PAID):
            place = [total["turn"], total["at"]]
            paid[total["last"]] = [*place, *(total[name] for name in _PAID)]
        row.first_at = min(row.first_at or total["at"], total["at"])
        if total["turn"]:
            turn = batch.turn(row.no, total["turn"], total["attempt"], seq=total["last"], at=total["at"], is_new=False)
            turn.started_at = total["at"]
            for name in _COUNTED:
                setattr(turn, name, getattr(turn, name) + total[name])
    tokens, usd_micros, duration_us = (max(0, n) for n in left)
    if tokens or usd_micros or duration_us:
        rest = paid.setdefault(upto, [0, at, 0, 0, 0, 0, 0])
        paid[upto] = [n + m for n, m in zip(rest, (0, 0, tokens, 0, usd_micros, duration_us, 0), strict=True)]
    for seq, (turn_no, when, *amounts) in paid.items():
        batch.added["wl_cost"].append((row.no, seq, turn_no, when, "", "", "", "", *amounts))
    sums = batch.calls(row.no)
    for turn_no, attempt, phase, bucket, *numbers in rows_of(prune.get("call_totals"), len(CALL_FIELDS)):
        kept = sums.setdefault((turn_no, attempt, phase, bucket), [0, 0, 0, 0])
        sums[turn_no, attempt, phase, bucket] = [a + b for a, b in zip(kept, numbers, strict=True)]


def keep_deleted(batch: Batch, session: SessionId, tombstone: dict[str, Value]) -> None:
    """Keeps the totals in a tombstone, if it has any."""
    totals = tombstone.get("totals")
    if type(totals) is list and totals and all(type(n) is int for n in totals):
        calls = rows_of(tombstone.get("call_totals"), len(CALL_FIELDS))
        batch.keep(session, _encode(totals).decode(), _encode(calls).decode())
