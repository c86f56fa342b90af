"""Undo: the newest rewind not yet undone is taken back, by a rewind to the point just before it.

Repeated, it walks further back, as in jj. The rewind that begins a retry is the agent's own and is left alone. Effects
and erasures cannot be undone.
"""

from __future__ import annotations

import msgspec

from wakelog.errors import NotFoundError
from wakelog.history.points import walk_back
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.records import Head


class Undone(msgspec.Struct, frozen=True):
    """What an undo did: the rewind it took back, and where the session is now."""

    operation: Seq
    head: Head


def undo(log: Log) -> Undone:
    """Takes back the newest rewind that was not yet undone; NotFoundError when there is none."""
    undone: set[Seq] = set()
    for entry in walk_back(log):
        if entry.kind != "history.rewound":
            continue
        if entry.body.get("mode") == "undo":
            undone.add(entry.body["to"] + 1)
        elif entry.body.get("mode", "rewind") == "rewind" and entry.seq not in undone:
            head = log.rewind(entry.seq - 1, mode="undo", why=f"undo of event {entry.seq}")
            return Undone(entry.seq, head)
    raise NotFoundError(f"there is nothing to undo in {log.id}", kind="nothing-to-undo")
