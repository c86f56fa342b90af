"""Which records of a transcript a session has: read back from its `records.imported` events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from wakelog.importers.files import storable
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.values import Value

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
LOG_OWN = ("payload.redacted", "records.imported")
"""Events that no record gave: the log's own, between those of records."""
COMMON = "common"
"""Fields that a program repeats in every record stand under this key,"""
SAME = "same"
"""or this, when they are as in the last record that has the key."""


class ImportedRecords:
    """The records that a session was made from, and where they led."""

    def __init__(self) -> None:
        self.seqs: dict[str, Seq] = {}
        """By id, the last event that a record gave; for one that gave none, the last one before it."""
        self.turn_ids: set[str] = {""}
        self.compacted: Seq = 0
        """The last event that a summary stands for."""
        self.stat: tuple[str, int, int] = ("", 0, 0)
        """File, size and time of change when it was last read."""
        self.pruned_at = 0
        """When the newest event whose content was pruned or erased was written. Which records it was made from is no
        longer known, so nothing that happened until then is taken in again."""

    def __contains__(self, id: str) -> bool:
        return id in self.seqs

    def has(self, id: str, at: int) -> bool:
        """Whether a record is here, or may have been. `at` is when it happened."""
        return id in self.seqs or (self.pruned_at > 0 and at <= self.pruned_at)

    def add(self, ids: Sequence[str], counts: Sequence[int], seqs: Sequence[Seq]) -> None:
        """Records of one commit, in order, how many events each gave, and the seqs of those events."""
        place = 0
        for id, count in zip(ids, counts, strict=True):
            place += count
            self.seqs[id] = seqs[place - 1] if 0 < place <= len(seqs) else 0


def read_imported(log: Log) -> ImportedRecords:
    """What was imported into a session so far."""
    known = ImportedRecords()
    seqs: list[Seq] = []
    for entry in log.entries():
        kind = entry.kind
        if kind == "turn.started":
            known.turn_ids.add(str(entry.body.get("id", "")))
        elif kind == "history.compacted":
            known.compacted = max(known.compacted, int(entry.body.get("last") or 0))
        if kind == "records.imported":
            body = entry.body
            if "ids" not in body and not entry.is_intact:
                known.pruned_at = max(known.pruned_at, entry.header.at)
            known.add(body.get("ids") or (), body.get("counts") or (), seqs)
            known.stat = (str(body.get("source", "")), int(body.get("size") or 0), int(body.get("changed") or 0))
            seqs = []
        elif kind not in LOG_OWN:
            seqs.append(entry.seq)
    return known


def rest_text(rests: Sequence[Value | msgspec.Raw]) -> str:
    """What records hold beyond their events, as the text that is stored: a line of JSON each."""
    lines: list[bytes] = []
    before: Any = None
    for rest in rests:
        if type(rest) is dict and COMMON in rest:
            if rest[COMMON] == before:
                rest = {**rest, COMMON: SAME}
            else:
                before = rest[COMMON]
        try:
            lines.append(_encode(rest))
        except (ValueError, OverflowError, RecursionError):
            lines.append(_encode(storable(rest)))
    return b"\n".join(lines).decode()


def rests_of(text: Value) -> list[Value]:
    """The same, read back."""
    found: list[Value] = []
    before: Any = None
    for line in text.split("\n") if isinstance(text, str) and text else ():
        try:
            rest = _decode(line)
        except msgspec.DecodeError:
            rest = json.loads(line)
        if isinstance(rest, dict) and COMMON in rest:
            if rest[COMMON] == SAME:
                rest[COMMON] = before
            before = rest[COMMON]
        found.append(rest)
    return found
