"""Records that come back as they were: an import into what an adapter goes on with.

Other imports keep what their events do not hold, so that nothing is lost. Here each record must be given back to its
framework, so it is kept as an item of `items.kept`, as the adapter itself keeps it.
"""

from __future__ import annotations

import msgspec

from wakelog.importers.steps import CallStep, Step
from wakelog.importers.writer.call_events import requested_call
from wakelog.importers.writer.import_commit import ImportCommit
from wakelog.importers.writer.kept_items import EventPlaces, hollow
from wakelog.importers.writer.session_writer import SessionWriter
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value


class KeptCommit(ImportCommit):
    """A commit whose mark comes first, and holds what the events do not hold of the records."""

    def __init__(self, format: str) -> None:
        super().__init__()
        self._format = format

    def _mark(
        self,
        about: ev.RecordsImported,
        ids: list[str],
        counts: list[int],
        rests: list[Value | msgspec.Raw],
        drafts: list[EventDraft],
        steps: tuple[str, ...] = (),
    ) -> ev.Event:
        events = [draft.event for draft in drafts]
        lines, place, everywhere = [], 0, EventPlaces(enumerate(events))
        for count, rest in zip(counts, rests, strict=True):
            # What an answer said may stand in an event of a later entry.
            own = enumerate(events[place : place + count])
            lines.append(hollow(rest, own, everywhere, place))
            place += count
        return ev.ItemsKept(
            format=self._format,
            ids=tuple(ids),
            counts=tuple(counts),
            rest=b"\n".join(lines).decode(),
            occurred_at=about.occurred_at,
        )

    def _store(self, log: Log, drafts: list[EventDraft], before: Seq, *own: ev.Event) -> list[Seq]:
        first, *others = (EventDraft(event, actor="runtime") for event in own)
        last = log.append(first, *drafts, *others, expect=before).seq
        if last - before == len(drafts) + len(own):
            return list(range(before + 2, before + 2 + len(drafts)))
        kinds = ("items.kept", "payload.redacted")
        seqs = [e.seq for e in log.entries(after=before, upto=last) if e.kind not in kinds]
        return seqs[: len(drafts)]


class ItemWriter(SessionWriter):
    """Writes records of which each gives at least one event, so that the last one can be taken back alone: a call is
    asked for by its own record, and not told with its result."""

    def _write(self, step: Step) -> None:
        if isinstance(step, CallStep):
            self._put_reply()
            self._calls.ask(step)
            if step.id not in self._calls.pending:
                self._put(requested_call(step))
                self._calls.pending.add(step.id)
            return
        super()._write(step)
