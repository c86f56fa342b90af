"""Imports one file: writes its sessions and returns a report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Set
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers.formats import detect_format, get_format
from wakelog.importers.source.files import stat_of
from wakelog.importers.steps import Transcript, TranscriptHead
from wakelog.importers.writer.kept_records import ItemWriter, KeptCommit
from wakelog.importers.writer.observed_calls import FileChanges, ObservedCalls
from wakelog.importers.writer.origins import is_deleted, session_name
from wakelog.importers.writer.session_writer import SessionWriter
from wakelog.log.retry import retry_on_moved_head
from wakelog.model.ids import SessionId
from wakelog.model.values import INT_MAX
from wakelog.store import Store

COLD_US = 24 * 3600 * 1_000_000
"""A session without activity for this long counts as abandoned."""
QUIET_US = 300 * 1_000_000
"""A file that was not written for this long counts as complete for now."""
BROKEN_MAX = 20
"""How many broken records a report names. The rest are counted."""

OnProgress = Callable[[int], None]
"""Called after each record, with its size in bytes."""


class ImportedSession(msgspec.Struct, frozen=True):
    """What an import added to one session."""

    name: str
    session: str = ""
    records: int = 0
    events: int = 0
    turns: int = 0


class ImportReport(msgspec.Struct, frozen=True):
    """The result of importing one file."""

    file: str
    format: str
    sessions: tuple[ImportedSession, ...] = ()
    broken: tuple[str, ...] = ()
    """Records that could not be read, each with its place and reason. They are kept unchanged."""
    broken_count: int = 0
    deleted: tuple[str, ...] = ()
    """Sessions that were skipped because a user had deleted them."""
    gone_on: tuple[str, ...] = ()
    """Sessions that were skipped because their program continues them here."""

    @property
    def new_records(self) -> int:
        return sum(s.records for s in self.sessions)


def import_transcript(
    store: Store,
    path: Path,
    *,
    format: str = "",
    on_progress: OnProgress | None = None,
    dry_run: bool = False,
    changes: FileChanges | None = None,
    ran: Set[str] = frozenset(),
    again: bool = False,
) -> ImportReport:
    """Imports a transcript into the store. A file that has not changed since the last import is not read again. A dry
    run reads and compares, and writes nothing.

    `changes` are file changes that somebody else observed, by call. Those of new calls are written after their call and
    removed from `changes`. `ran` are calls that somebody else saw run. Deleted sessions are imported only with `again`.
    """
    found = get_format(format) if format else detect_format(path)
    of_file = stat_of(path)
    sessions: list[ImportedSession] = []
    broken: list[str] = []
    deleted: list[str] = []
    now, idle_us = store.clock(), store.idle_us
    for transcript in found.transcripts(path):
        size, changed = transcript.stat or of_file
        # A file may be dated centuries ahead, further than the log can store.
        stat = size, min(changed, INT_MAX)
        if not again and is_deleted(store, transcript.head):
            deleted.append(session_name(store, transcript.head.agent, transcript.head.origin, transcript.head.name))
            continue

        def attempt(transcript: Transcript = transcript, stat: tuple[int, int] = stat) -> SessionWriter:
            """Starts over each time: another writer may have imported the same records in between."""
            writer = _writer(store, transcript, format=found.NAME, source=str(path), stat=stat, dry_run=dry_run)
            writer.observed, writer.again = ObservedCalls(changes or {}, ran), again
            # An adapter's session is continued by its program, so it is never closed as idle.
            idle_after = sys.maxsize if transcript.keeps else idle_us
            if not writer.is_unchanged(is_idle=now - (writer.known.last_at or stat[1]) > idle_after):
                for record, weight in transcript.read():
                    writer.take(record, weight)
                    if on_progress is not None:
                        on_progress(weight)
                age = now - (writer.last_at or stat[1])
                is_idle = age > idle_after
                writer.close(is_cold=is_idle or age > COLD_US, is_quiet=is_idle or age > QUIET_US, is_idle=is_idle)
            return writer

        writer = retry_on_moved_head(SessionId(transcript.head.origin), "to import into", attempt)
        if changes is not None:
            for call in changes.keys() - writer.observed.left.keys():
                del changes[call]
        broken += [why for w in (writer, *writer.lanes) for why in w.broken]
        sessions += [_session(w) for w in (writer, *writer.lanes) if w.session is not None or dry_run]
        deleted += writer.deleted
    return ImportReport(str(path), found.NAME, tuple(sessions), tuple(broken[:BROKEN_MAX]), len(broken), tuple(deleted))


def _writer(store: Store, transcript: Transcript, **how: Any) -> SessionWriter:
    head = transcript.head
    if not transcript.keeps:
        return SessionWriter(store, head, **how)
    commits = partial(KeptCommit, transcript.keeps)
    return ItemWriter(store, head, named=lambda _: _kept_name(store, head), commits=commits, **how)


def _kept_name(store: Store, head: TranscriptHead) -> str:
    """The name that the adapter looks for, unless another session has it."""
    if not store.is_open(head.name):
        return head.name
    labels = store.resume(head.name).log.part("labels")
    return head.name if labels.get("origin") == head.origin else session_name(store, head.agent, head.origin)


def _session(writer: SessionWriter) -> ImportedSession:
    session = writer.session
    return ImportedSession(
        writer.name, session.id if session is not None else "", writer.new_records, writer.new_events, writer.turns
    )
