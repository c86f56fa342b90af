"""Taking the spool into the log: what hooks wrote becomes sessions.

A record says that something happened in a session. Where the agent writes a transcript, that is imported, which adds
what is new in it; then hooks add what only they know. All records that the spool has of a session are one commit, with
an id made from them: after a crash before the spool is emptied, the log knows that it has them.

Nothing here fails the command that happens to come by: what cannot be taken in stays in the spool, and is told.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.errors import UnsupportedError, WakelogError
from wakelog.hooks import spool
from wakelog.hooks.agents import AGENTS
from wakelog.hooks.hook_events import HELD_US, HookedSession
from wakelog.hooks.installation import receipts, store_for
from wakelog.hooks.shell_changes import changes_by_call
from wakelog.hooks.spool_files import SpooledRecord, keep_only, spool_lock, take_file
from wakelog.importers.transcript_import import import_transcript
from wakelog.importers.writer.hook_capture import CAPTURE
from wakelog.importers.writer.origins import session_name
from wakelog.log.deleted_origins import was_deleted
from wakelog.model.json_fields import text_in
from wakelog.session import Session
from wakelog.store import Store

PATIENCE_US = 600 * 1_000_000
"""How long a transcript that was named may take to appear."""
KEEP_US = 30 * 24 * 3600 * 1_000_000
"""How long records are kept that cannot be taken in."""
COMMIT_MAX = 300
"""So many records become one commit."""

OpenStore = Callable[[str], Store]


class IntakeReport(msgspec.Struct):
    """What became of the spool."""

    records: int = 0
    sessions: list[str] = []
    waiting: int = 0
    """Records that stay in the spool: calls that run, or a transcript that is not there yet."""
    broken: int = 0
    deleted: int = 0
    """Records of sessions that were deleted: they are not taken in."""
    troubles: list[str] = []


def take_in(open_store: OpenStore, *, into: str = "", now_us: int = 0) -> IntakeReport:
    """Takes in all that hooks have written. With `into`, everything goes to that store."""
    report = IntakeReport()
    with spool_lock() as has:
        if not has:
            return report
        file = take_file()
        if file is None:
            return report
        opened = _Stores(open_store)
        try:
            left = _take_records(file.records, opened, into, now_us or time.time_ns() // 1000, report)
        finally:
            opened.close()
        keep_only(file, left)
        report.waiting, report.broken = len(left), file.broken
        for _ in range(file.broken):
            spool.note_gap("spool", ValueError())
    return report


def _take_records(
    records: Iterable[SpooledRecord], opened: _Stores, into: str, now_us: int, report: IntakeReport
) -> list[SpooledRecord]:
    """Takes in records; those that must wait."""
    left: list[SpooledRecord] = []
    for (agent, _), given in _by_session(records).items():
        if all(each.is_held and now_us - each.at_us < HELD_US for each in given):
            left += given  # nothing new: the call still runs
            continue
        try:
            enabled = receipts()
            folder = next((text_in(r.data, "cwd") for r in given if text_in(r.data, "cwd")), "")
            store = opened.get(into or store_for(agent, folder, enabled))
            left += _SessionIntake(store, agent, given, now_us).run(report)
        except Exception as exc:  # a fault of ours must not stand between somebody and their store either
            said = exc.message if isinstance(exc, WakelogError) else f"{type(exc).__name__}: {exc}"
            if said not in report.troubles:
                report.troubles.append(said)
            left += [each for each in given if now_us - each.at_us < KEEP_US]
            for _ in range(sum(now_us - each.at_us >= KEEP_US for each in given)):
                spool.note_gap(agent, exc)
    return left


def _by_session(records: Iterable[SpooledRecord]) -> dict[tuple[str, str], list[SpooledRecord]]:
    out: dict[tuple[str, str], list[SpooledRecord]] = {}
    for record in records:
        agent = record.agent.removesuffix("-notify")
        if agent in AGENTS and record.origin:
            out.setdefault((agent, record.origin), []).append(record)
    return out


class _Stores:
    """Stores that are opened when something goes there, each once."""

    def __init__(self, open_store: OpenStore) -> None:
        self._open = open_store
        self._stores: dict[str, Store] = {}

    def get(self, url: str) -> Store:
        if url not in self._stores:
            self._stores[url] = self._open(url)
        return self._stores[url]

    def close(self) -> None:
        for store in self._stores.values():
            store.close()


class _SessionIntake:
    """The records of one session."""

    def __init__(self, store: Store, agent: str, records: list[SpooledRecord], now_us: int) -> None:
        self._store, self._agent, self._now_us = store, AGENTS[agent], now_us
        self._records = records
        self._origin = records[0].origin
        self._written: set[str] = set()
        self._is_unreadable = False
        self._name = session_name(store, self._agent.label, self._origin)

    def run(self, report: IntakeReport) -> list[SpooledRecord]:
        session = self._session()
        if session is None and was_deleted(self._store.engine, self._agent.label, self._origin):
            report.deleted += len(self._records)
            return []
        labels: dict[str, str] = session.log.part("labels") if session is not None else {}
        is_bare = CAPTURE in labels
        has_transcript = not is_bare and self._import()
        if not has_transcript and not is_bare:
            if session is not None:
                has_transcript = True  # the file is gone since; what it had is here
            elif self._may_come():
                return self._records
        session = self._session() or self._open(is_bare=not has_transcript)
        report.records += len(self._records)
        if self._name not in report.sessions:
            report.sessions.append(self._name)
        return self._append(session, has_transcript)

    def _session(self) -> Session[Any] | None:
        return self._store.resume(self._name) if self._store.is_open(self._name) else None

    def _open(self, *, is_bare: bool) -> Session[Any]:
        first = self._records[0].data
        labels = {"agent": self._agent.label, "origin": self._origin, "project": text_in(first, "cwd")}
        if is_bare:
            labels[CAPTURE] = "notify" if all(r.agent.endswith("-notify") for r in self._records) else "hooks"
        return self._store.session(
            self._name, agent=self._agent.label, labels={k: v for k, v in labels.items() if v}, limits={}, folder=""
        )

    # The transcript

    def _import(self) -> bool:
        """Imports what is new in the session's transcript and those of its sub-agents. False when there is none."""
        found = False
        changes = changes_by_call(self._records)
        calls = {*changes}
        for path in self._transcripts():
            try:
                report = import_transcript(self._store, path, changes=changes)
            except UnsupportedError:
                self._is_unreadable = True  # the hooks are all there is
                continue
            found = found or any(each.name == self._name for each in report.sessions)
        self._written = calls - {*changes}
        return found

    def _transcripts(self) -> Iterator[Path]:
        named = [text_in(r.data, key) for r in self._records for key in ("transcript_path", "agent_transcript_path")]
        for path in dict.fromkeys(Path(each) for each in named if each):
            if path.is_file() and path.stat().st_size:
                yield path
        if self._agent.name == "codex" and not any(named):
            yield from self._agent.folder().glob(f"sessions/*/*/*/rollout-*{self._origin}.jsonl")

    def _may_come(self) -> bool:
        """Whether a transcript was named that the agent may still be about to write."""
        is_named = any(text_in(r.data, "transcript_path") for r in self._records)
        has_ended = any(r.event == "SessionEnd" for r in self._records)
        return (
            is_named
            and not has_ended
            and not self._is_unreadable
            and self._now_us - self._records[-1].at_us < PATIENCE_US
        )

    # The hooks

    def _append(self, session: Session[Any], has_transcript: bool) -> list[SpooledRecord]:
        log = session.log
        hooked = HookedSession(
            self._agent.label,
            has_transcript=has_transcript,
            turn=log.part("turn"),
            pending=log.part("pending_actions"),
            labels=log.part("labels"),
            status=session.status,
        )
        hooked.written_files = self._written
        left: list[SpooledRecord] = []
        for start in range(0, len(self._records), COMMIT_MAX):
            chunk = self._records[start : start + COMMIT_MAX]
            id = "hooks-" + hashlib.sha256("".join(each.key for each in chunk).encode()).hexdigest()[:24]
            for record in _once(chunk):
                hooked.take(record)
            left = hooked.settle(self._now_us) if start + COMMIT_MAX >= len(self._records) else []
            drafts, hooked.drafts = hooked.drafts, []
            if drafts and log.engine.known(session.id, id) is None:
                log.append(*drafts, commit_id=id)
        return left


def _once(records: list[SpooledRecord]) -> Iterator[SpooledRecord]:
    """Records without those that came twice, because two settings files name the same hook."""
    seen: dict[str, int] = {}
    for record in records:
        mark = msgspec.json.encode({k: v for k, v in record.data.items() if k != "timestamp"}).hex()
        if record.at_us - seen.get(mark, -PATIENCE_US) > 2_000_000:
            yield record
        seen[mark] = record.at_us
