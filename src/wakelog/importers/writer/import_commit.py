"""The commit at hand: events, and the records that they were made from.

It is appended as a whole. Transcripts hold what the log refuses: numbers beyond 2^53, half a surrogate pair, calls that
end twice. Then the values are made storable and it is tried again; if that is refused too, its records are appended one
by one, and one whose events are refused is kept without them. So no record is lost, and none stops the others.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.errors import InvalidInputError, NotAllowedError, WakelogError
from wakelog.importers.source.files import storable
from wakelog.importers.steps import SourceRecord
from wakelog.importers.writer.imported_records import LOG_OWN, rest_text
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import INT_MAX, Value

EVENTS_MAX = 400
"""A commit has about so many events at most,"""
WEIGHT_MAX = 1 << 20
"""and so many bytes of source."""
_CURABLE = frozenset({"action-machine", "turn-machine", "input-machine", "not-settled"})


class ImportCommit:
    """What is gathered for the next append."""

    def __init__(self) -> None:
        self.drafts: list[EventDraft] = []
        self.ids: list[str] = []
        self.step_names: list[str] = []
        self.counts: list[int] = []
        self.rests: list[Value | msgspec.Raw] = []
        self.weight = 0
        self.closing: ev.SessionClosed | None = None
        """How the session ended, if it ends here."""

    def add(self, record: SourceRecord, count: int, weight: int, step_names: list[str]) -> None:
        """A record whose events, as many as `count`, are the last ones here."""
        self.ids.append(record.id)
        self.step_names += step_names
        self.counts.append(count)
        self.rests.append(record.rest)
        self.weight += weight

    @property
    def is_full(self) -> bool:
        return len(self.drafts) >= EVENTS_MAX or self.weight >= WEIGHT_MAX

    def append(self, log: Log, seen: Seq, about: ev.RecordsImported) -> list[Seq]:
        """Writes it; the seq of each event. `about` says where the records are from. ConflictError when the session has
        moved on from `seen`: somebody else may have imported the same records."""
        try:
            return self._store(log, self.drafts, seen, *self._own(about))
        except (InvalidInputError, NotAllowedError) as exc:
            if not _is_curable(exc):
                raise
        self.drafts = [_storable_draft(draft) for draft in self.drafts]
        try:
            return self._store(log, self.drafts, seen, *self._own(about))
        except (InvalidInputError, NotAllowedError) as exc:
            if not _is_curable(exc):
                raise
        return self._append_each(log, seen, about)

    def _own(self, about: ev.RecordsImported) -> list[ev.Event]:
        """What the import itself says, after the records."""
        mark = self._mark(about, self.ids, self.counts, self.rests, self.drafts, tuple(self.step_names))
        return [mark, self.closing] if self.closing is not None else [mark]

    def _mark(
        self,
        about: ev.RecordsImported,
        ids: list[str],
        counts: list[int],
        rests: list[Value | msgspec.Raw],
        drafts: list[EventDraft],
        steps: tuple[str, ...] = (),
    ) -> ev.Event:
        """What says which records these events were made from."""
        return msgspec.structs.replace(about, ids=tuple(ids), counts=tuple(counts), rest=rest_text(rests), steps=steps)

    def _store(self, log: Log, drafts: list[EventDraft], before: Seq, *own: ev.Event) -> list[Seq]:
        """Writes events right after `before`; ConflictError when somebody else did meanwhile."""
        last = log.append(*drafts, *(EventDraft(event, actor="runtime") for event in own), expect=before).seq
        if last - before == len(drafts) + len(own):
            return list(range(before + 1, before + 1 + len(drafts)))
        # The log has put events of its own between them, where it masked a secret.
        seqs = [e.seq for e in log.entries(after=before, upto=last) if e.kind not in LOG_OWN]
        return seqs[len(seqs) - len(drafts) :]

    def _append_each(self, log: Log, seen: Seq, about: ev.RecordsImported) -> list[Seq]:
        seqs: list[Seq] = []
        for id, count, rest in zip(self.ids, self.counts, self.rests, strict=True):
            drafts = self.drafts[len(seqs) : len(seqs) + count]
            try:
                seqs += self._store(log, drafts, seen, self._mark(about, [id], [count], [rest], drafts))
            except (InvalidInputError, NotAllowedError) as exc:
                if not _is_curable(exc):
                    raise
                kept = {"refused": str(exc), "record": rest, "events": [_as_value(d.event) for d in drafts]}
                self._store(log, [], seen, self._mark(about, [id], [0], [kept], []))
                seqs += [log.head().seq] * count
            seen = log.head().seq
        if self.step_names:
            self._store(log, [], seen, msgspec.structs.replace(about, steps=tuple(self.step_names)))
        for draft in self.drafts[len(seqs) :]:
            try:
                seqs.append(log.append(draft).seq)
            except WakelogError as exc:
                if not _is_curable(exc):
                    raise
                seqs.append(log.head().seq)
        if self.closing is not None:
            self._store(log, [], log.head().seq, self.closing)
        return seqs


def _is_curable(exc: WakelogError) -> bool:
    """Whether it is about what the events say, and not about the session."""
    return isinstance(exc, InvalidInputError) or exc.kind in _CURABLE


def _storable_draft(draft: EventDraft) -> EventDraft:
    return msgspec.structs.replace(draft, event=_storable_struct(draft.event), source=storable(draft.source))


def _storable_struct(given: Any) -> Any:
    changes: dict[str, Any] = {}
    for name in given.__struct_fields__:
        value = getattr(given, name)
        if isinstance(value, msgspec.Struct):
            changes[name] = _storable_struct(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            changes[name] = max(-INT_MAX, min(INT_MAX, value))
        elif not isinstance(value, bytes):
            changes[name] = storable(value)
    return msgspec.structs.replace(given, **changes)


def _as_value(event: ev.Event) -> Value:
    return {"kind": event.kind, **storable(msgspec.to_builtins(event, builtin_types=(bytes,)))}
