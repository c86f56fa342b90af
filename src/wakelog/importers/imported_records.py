"""Which records of a transcript a session has: read back from its `records.imported` events."""

from __future__ import annotations

from collections.abc import Sequence

from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.values import Value

LOG_OWN = frozenset(
    ("payload.redacted", "records.imported", "session.opened", "session.closed", "session.reopened", "history.rewound")
)
"""Events that no record gave: the log's own and the import's, between those of records."""


class ImportedRecords:
    """The records that a session was made from, and where they led."""

    def __init__(self) -> None:
        self.seqs: dict[str, Seq] = {}
        """By id, the last event that a record gave; for one that gave none, the last one before it."""
        self.turn_ends: list[Seq] = []
        self.turn_ids: set[str] = {""}
        self.compacted: Seq = 0
        """The last event that a summary stands for."""
        self.stat: tuple[str, int, int] = ("", 0, 0)
        """File, size and time of change when it was last read."""

    def __contains__(self, id: str) -> bool:
        return id in self.seqs

    def add(self, records: Sequence[Sequence[Value]], seqs: Sequence[Seq]) -> None:
        """Records of one commit, in order, and the seqs of the events that they gave."""
        place = 0
        for id, count, *_ in records:
            place += count
            self.seqs[id] = seqs[place - 1] if place else 0


def read_imported(log: Log) -> ImportedRecords:
    """What was imported into a session so far."""
    known = ImportedRecords()
    seqs: list[Seq] = []
    for entry in log.entries():
        kind = entry.kind
        if kind == "turn.ended":
            known.turn_ends.append(entry.seq)
        elif kind == "turn.started":
            known.turn_ids.add(str(entry.body.get("id", "")))
        elif kind == "history.compacted":
            known.compacted = max(known.compacted, int(entry.body.get("last") or 0))
        if kind == "records.imported":
            records = log.value(entry, entry.body.get("records"))
            known.add(records if isinstance(records, list) else (), seqs)
            body = entry.body
            known.stat = (str(body.get("source", "")), int(body.get("size") or 0), int(body.get("changed") or 0))
            seqs = []
        elif kind not in LOG_OWN:
            seqs.append(entry.seq)
    return known
