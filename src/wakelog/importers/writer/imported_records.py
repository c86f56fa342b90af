"""Which records of a transcript a session already has, read from its `records.imported` events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from wakelog.importers.source.files import storable
from wakelog.importers.steps import SourceRecord, Step
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.values import Value

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
LOG_OWN = frozenset(
    ("payload.redacted", "records.imported", "session.opened", "session.closed", "session.reopened", "history.rewound")
)
"""Events that do not come from a record: those of the log and of the import itself."""
SAID = ("turn.started", "message.added", "history.compacted", "history.rewound", "action.recorded", "action.requested")
"""Events that continue a conversation."""
COMMON = "common"
"""Fields that a program repeats in every record are stored under this key,"""
SAME = "same"
"""with this value if they are the same as in the last record that has the key."""


class ImportedRecords:
    """The records that a session was made from, and the events that they led to."""

    def __init__(self) -> None:
        self.seqs: dict[str, Seq] = {}
        """By id, the last event of a record. For a record without events, the last event before it."""
        self.steps: set[str] = set()
        """Names of steps that earlier imports wrote, of records that the tool rewrites."""
        self._taken: set[str] = set()
        self.turn_ids: set[str] = {""}
        self.compacted: Seq = 0
        """The last event that a summary replaces."""
        self.stat: tuple[str, int, int] = ("", 0, 0)
        """File, size and modification time at the last import."""
        self.last_at = 0
        """When the newest record of the last import happened. 0 if the tool does not say."""
        self._last: Seq = 0
        self.given_up: set[str] = set()
        """Calls that the log records as interrupted, because their turn ended without a result."""
        self.pruned_at = 0
        """When the newest event whose content was pruned or erased was written. Its records are unknown now, so nothing
        that happened before it is imported again."""

    def __contains__(self, id: str) -> bool:
        return id in self.seqs

    def has(self, id: str, at: int) -> bool:
        """Whether the session has a record, or may have had it. `at` is when it happened."""
        return id in self.seqs or (self.pruned_at > 0 and at <= self.pruned_at)

    def turn_id(self, id: str) -> str:
        """The id for a new turn. Each id is used once: a prompt that is sent again after a rewind is another turn."""
        if id in self.turn_ids:
            return ""
        self.turn_ids.add(id)
        return id

    def add(self, records: Iterable[tuple[str, int]], seqs: Sequence[Seq]) -> None:
        """Adds the records of one commit, each with its number of events, and the seqs of all those events."""
        place = 0
        for id, count in records:
            place += count
            self.seqs[id] = seqs[place - 1] if 0 < place <= len(seqs) else self._last
        self._last = seqs[-1] if seqs else self._last

    def place(self, log: Log, to: str) -> Seq | None:
        """Where a rewind to the record `to` leads: its last event, or the end of its turn if nothing was said in
        between. Without a record, before the first turn. None if unknown."""
        if not to:
            return next((e.seq - 1 for e in log.entries() if e.kind == "turn.started"), None)
        seq = self.seqs.get(to)
        for entry in log.entries(after=seq) if seq else ():
            if entry.kind == "turn.ended":
                return entry.seq
            if entry.kind in SAID:
                break
        return seq or None

    def split(self, record: SourceRecord) -> tuple[list[Step], list[Step], list[str]]:
        """Splits the steps of a record: those that an earlier import wrote, the new ones, and the names of the new
        ones. Steps that this import already wrote are in neither list."""
        if not record.step_ids:
            return [], list(record.steps), []
        named = list(zip(record.step_ids, record.steps, strict=True))
        new = [(name, step) for name, step in named if name not in self.steps and name not in self._taken]
        old = [step for name, step in named if name in self.steps]
        self._taken.update(name for name, _ in new)
        return old, [step for _, step in new], [name for name, _ in new]


def read_imported(log: Log) -> ImportedRecords:
    """Reads what was imported into a session so far."""
    records = ImportedRecords()
    seqs: list[Seq] = []
    commit = ""
    kept: Entry | None = None
    for entry in log.entries():
        kind = entry.kind
        if kept is not None and entry.commit_id != commit:
            _add_kept(records, kept, seqs)
            kept = None
        if entry.commit_id != commit:
            # Hooks and people write to these sessions too, in commits of their own.
            commit, seqs = entry.commit_id, []
        if kind == "turn.started":
            records.turn_ids.add(str(entry.body.get("id", "")))
        elif kind == "history.compacted":
            records.compacted = max(records.compacted, int(entry.body.get("last") or 0))
        elif kind == "action.abandoned" or (kind == "action.recorded" and _is_interrupted(entry)):
            records.given_up.add(str(entry.body.get("action", "")))
        if kind == "items.kept":
            kept = entry  # it comes before its events
        elif kind == "records.imported":
            body = entry.body
            if "ids" not in body and not entry.is_intact:
                records.pruned_at = max(records.pruned_at, entry.header.at)
            records.add(zip(body.get("ids") or (), body.get("counts") or (), strict=True), seqs)
            records.steps.update(body.get("steps") or ())
            records.stat = (str(body.get("source", "")), int(body.get("size") or 0), int(body.get("changed") or 0))
            records.last_at = int(body.get("occurred_at") or 0)
            seqs = []
        elif kind not in LOG_OWN:
            seqs.append(entry.seq)
    if kept is not None:
        _add_kept(records, kept, seqs)
    return records


def _is_interrupted(entry: Entry) -> bool:
    # The byte search avoids decoding most bodies.
    return b'"interrupted"' in entry.record.body and entry.body.get("outcome") == "interrupted"


def _add_kept(records: ImportedRecords, mark: Entry, seqs: list[Seq]) -> None:
    """Adds records that are stored as items of an adapter. Items that the adapter added itself have no ids."""
    ids = mark.body.get("ids") or ()
    records.add(zip(ids, mark.body.get("counts") or (), strict=False), seqs)


def rest_text(rests: Sequence[Value | msgspec.Raw]) -> str:
    """Encodes what records hold beyond their events, one line of JSON each."""
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
    """Decodes what `rest_text` encoded."""
    results: list[Value] = []
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
        results.append(rest)
    return results
