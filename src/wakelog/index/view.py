"""Which part of a history is in view.

A rewind at seq R back to T, made under the rewind U that was in effect at T, leaves two things in view: what was in
view at T, and everything from R on. So the view is a list of ranges. The log computes it from the newest range
backwards (Log.view). The index keeps it as ranges and changes them at each rewind:

- If T is in view now, then what was in view at T is the present view up to T. There is no rewind between the start of
  T's range and T, or the range would have started there.
- If T is not in view (an undo goes back to a point that was rewound), the rewinds are followed from U, as in the log.
  The session's own rewinds are in the index. Those of its ancestors, which may be deleted, are read from the log.
"""

from __future__ import annotations

from typing import Any

from wakelog.engine import Engine
from wakelog.index.rows import OPEN_END, Batch, Range
from wakelog.log.reader import Segment, rewind_at
from wakelog.model.ids import Seq
from wakelog.model.values import as_int

_REWIND = "select w.back_to, w.under from wl_rewind w where w.session = ? and w.seq = ?"
_REWOUND = "insert into wl_rewind values (?, ?, ?, ?)"


def rewind(
    batch: Batch, engine: Engine, segments: list[Segment], session: int, *, seq: Seq, to: Seq, under: Seq
) -> None:
    """Moves the view as a rewind at `seq` back to `to` does."""
    batch.db.execute(_REWOUND, (session, seq, to, under))
    ranges = view_at(batch, engine, segments, session, batch.view(session), to, under)
    batch.show(session, [*ranges, (seq, OPEN_END)])


def resume(
    batch: Batch, engine: Engine, segments: list[Segment], session: int, first: Seq, view: dict[str, Seq]
) -> None:
    """Puts in view what the state says where a pruned range ends."""
    seq, to = as_int(view.get("rewound")), as_int(view.get("to"))
    if seq < first:
        return
    under = rewind_at(engine, segments, seq)[1]
    batch.db.execute(_REWOUND, (session, seq, to, under))
    batch.show(session, [*view_at(batch, engine, segments, session, [], to, under), (seq, OPEN_END)])


def view_at(
    batch: Batch,
    engine: Engine,
    segments: list[Segment],
    session: int,
    now: list[Range],
    at: Seq,
    under: Seq,
) -> list[Range]:
    """What was in view at `at`, where the rewind `under` was in effect; `now` is what is in view now, if known."""
    if any(first <= at <= last for first, last in now):
        return [(first, min(last, at)) for first, last in now if first <= at]
    ranges: list[Range] = []
    while under:
        ranges.append((under, at))
        at, under = _rewind(batch, engine, segments, session, under)
    ranges.append((1, at))
    return ranges[::-1]


def _rewind(batch: Batch, engine: Engine, segments: list[Segment], session: int, seq: Seq) -> tuple[Seq, Seq]:
    """Where a rewind went back to, and the one it was made under."""
    row: Any = batch.db.execute(_REWIND, (session, seq)).fetchone()
    if row is not None:
        return row[0], row[1]
    return rewind_at(engine, segments, seq)
