"""Imports records for an adapter that continues the session and must get them back unchanged.

Other imports store what their events do not cover, so that nothing is lost. Here each record must be given back to its
framework, so it is stored as an item of `items.kept`, as the adapter itself does.
"""

from __future__ import annotations

from collections.abc import Sequence

from wakelog.importers.steps import CallStep, Step
from wakelog.importers.writer.call_events import requested_call
from wakelog.importers.writer.import_commit import CommitRecord, ImportCommit
from wakelog.importers.writer.kept_items import EventPlaces, hollow_out
from wakelog.importers.writer.session_writer import SessionWriter
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft


class KeptCommit(ImportCommit):
    """A commit that starts with `items.kept`, which holds what the events do not cover of the records."""

    def __init__(self, format: str) -> None:
        super().__init__()
        self._format = format

    def _mark(self, event: ev.RecordsImported, records: list[CommitRecord], drafts: list[EventDraft]) -> ev.Event:
        events = [draft.event for draft in drafts]
        lines, place, everywhere = [], 0, EventPlaces(enumerate(events))
        for record in records:
            # The content of a reply may be in an event of a later record.
            own = enumerate(events[place : place + record.count])
            lines.append(hollow_out(record.rest, own, everywhere, place))
            place += record.count
        return ev.ItemsKept(
            format=self._format,
            ids=tuple(r.id for r in records),
            counts=tuple(r.count for r in records),
            rest=b"\n".join(lines).decode(),
            occurred_at=event.occurred_at,
        )

    def _store(self, log: Log, drafts: Sequence[EventDraft], before: Seq, *own: ev.Event) -> list[Seq]:
        first, *others = (EventDraft(event, actor="runtime") for event in own)
        last = log.append(first, *drafts, *others, expect=before).seq
        if last - before == len(drafts) + len(own):
            return list(range(before + 2, before + 2 + len(drafts)))
        kinds = ("items.kept", "payload.redacted")
        seqs = [e.seq for e in log.entries(after=before, upto=last) if e.kind not in kinds]
        return seqs[: len(drafts)]


class ItemWriter(SessionWriter):
    """Writes at least one event for each record, so that the last record can be taken back alone. So a call is written
    with its own record, and not together with its result."""

    def _write(self, step: Step) -> None:
        if not isinstance(step, CallStep):
            super()._write(step)
            return
        self._put_reply()
        self._calls.add(step)
        if step.id not in self._calls.pending:
            self._put(requested_call(step))
            self._calls.pending.add(step.id)
