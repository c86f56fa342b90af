"""One commit of an import: events, and the records that they were made from.

The log takes a commit as a whole. But transcripts contain what the log refuses: numbers beyond 2^53, half a surrogate
pair, calls that end twice. So a refused commit is made storable and tried again. If the log still refuses it, its
records are appended one by one, and a record whose events are refused is kept without them. No record is lost, and none
blocks the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError, NotAllowedError, WakelogError
from wakelog.importers.source.files import storable
from wakelog.importers.steps import SourceRecord
from wakelog.importers.writer.imported_records import LOG_OWN, SAID, rest_text
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import INT_MAX, Value

EVENTS_MAX = 400
"""About how many events a commit has at most,"""
WEIGHT_MAX = 1 << 20
"""and how many bytes of source."""
_REFUSALS = frozenset({"action-machine", "turn-machine", "input-machine", "not-settled"})


class CommitRecord(msgspec.Struct):
    """A record of a commit, and how many of the commit's events it produced."""

    id: str
    count: int
    rest: Value | msgspec.Raw


class ImportCommit:
    """Collects events and records for the next append."""

    def __init__(self) -> None:
        self.drafts: list[EventDraft] = []
        self.records: list[CommitRecord] = []
        self.step_names: list[str] = []
        self.closing: ev.SessionClosed | None = None
        """How the session ended, if it ends here."""
        self._weight = 0

    def add(self, record: SourceRecord, count: int, weight: int, step_names: list[str]) -> None:
        """Adds a record that produced the last `count` events."""
        self.records.append(CommitRecord(record.id, count, record.rest))
        self.step_names += step_names
        self._weight += weight

    @property
    def is_full(self) -> bool:
        return len(self.drafts) >= EVENTS_MAX or self._weight >= WEIGHT_MAX

    def close_again(self, at: int) -> None:
        """Call if the session was closed. A title, or what a program writes of itself, does not continue it."""
        if self.closing is None and not any(draft.event.kind in SAID for draft in self.drafts):
            self.closing = ev.SessionClosed(why="nothing more was said", occurred_at=at)

    def append(self, log: Log, seen: Seq, event: ev.RecordsImported) -> list[Seq]:
        """Appends the commit and returns the seq of each event. `event` says where the records come from. Raises
        ConflictError if the session has moved on from `seen`: another process may have imported the same records."""
        try:
            return self._append_all(log, seen, event)
        except (InvalidInputError, NotAllowedError) as exc:
            _raise_unless_refusal(exc)
        self.drafts = [_storable_draft(draft) for draft in self.drafts]
        try:
            return self._append_all(log, seen, event)
        except (InvalidInputError, NotAllowedError) as exc:
            _raise_unless_refusal(exc)
        return self._append_each(log, seen, event)

    def _append_all(self, log: Log, seen: Seq, about: ev.RecordsImported) -> list[Seq]:
        about = msgspec.structs.replace(about, steps=tuple(self.step_names))
        mark = self._mark(about, self.records, self.drafts)
        closing = [self.closing] if self.closing is not None else []
        return self._store(log, self.drafts, seen, mark, *closing)

    def _mark(self, event: ev.RecordsImported, records: list[CommitRecord], drafts: list[EventDraft]) -> ev.Event:
        """The event that names the records which these events were made from."""
        ids, counts = tuple(r.id for r in records), tuple(r.count for r in records)
        rest = rest_text([r.rest for r in records])
        return msgspec.structs.replace(event, ids=ids, counts=counts, rest=rest)

    def _store(self, log: Log, drafts: Sequence[EventDraft], before: Seq, *own: ev.Event) -> list[Seq]:
        """Appends events right after `before`, followed by the import's own events."""
        last = log.append(*drafts, *(EventDraft(event, actor="runtime") for event in own), expect=before).seq
        if last - before == len(drafts) + len(own):
            return list(range(before + 1, before + 1 + len(drafts)))
        # The log inserted its own events where it masked a secret.
        seqs = [e.seq for e in log.entries(after=before, upto=last) if e.kind not in LOG_OWN]
        return seqs[len(seqs) - len(drafts) :]

    def _append_each(self, log: Log, seen: Seq, event: ev.RecordsImported) -> list[Seq]:
        seqs: list[Seq] = []
        for record in self.records:
            drafts = self.drafts[len(seqs) : len(seqs) + record.count]
            try:
                seqs += self._store(log, drafts, seen, self._mark(event, [record], drafts))
            except (InvalidInputError, NotAllowedError) as exc:
                _raise_unless_refusal(exc)
                kept = {"refused": str(exc), "record": record.rest, "events": [_as_value(d.event) for d in drafts]}
                self._store(log, [], seen, self._mark(event, [CommitRecord(record.id, 0, kept)], []))
                seqs += [log.head().seq] * record.count
            seen = log.head().seq
        if self.step_names:
            self._store(log, [], seen, msgspec.structs.replace(event, steps=tuple(self.step_names)))
        for draft in self.drafts[len(seqs) :]:
            try:
                seqs.append(log.append(draft).seq)
            except WakelogError as exc:
                _raise_unless_refusal(exc)
                seqs.append(log.head().seq)
        if self.closing is not None:
            self._store(log, [], log.head().seq, self.closing)
        return seqs


def _raise_unless_refusal(exc: WakelogError) -> None:
    """A refusal is about what the events say, and not about the session."""
    if not isinstance(exc, InvalidInputError) and exc.kind not in _REFUSALS:
        raise exc


def _storable_draft(draft: EventDraft) -> EventDraft:
    return msgspec.structs.replace(draft, event=_storable_struct(draft.event), source=storable(draft.source))


def _storable_struct(struct: Any) -> Any:
    changes: dict[str, Any] = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct):
            changes[name] = _storable_struct(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            changes[name] = max(-INT_MAX, min(INT_MAX, value))
        elif not isinstance(value, bytes):
            changes[name] = storable(value)
    return msgspec.structs.replace(struct, **changes)


def _as_value(event: ev.Event) -> Value:
    return {"kind": event.kind, **storable(msgspec.to_builtins(event, builtin_types=(bytes,)))}
