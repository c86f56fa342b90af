"""Moves the spool into the log: what hooks wrote becomes sessions.

A record says that something happened in a session. If the agent writes a transcript, its new part is imported, and then
hooks add what only they know. All spooled records of a session are one commit, with an id made from them. So after a
crash before the spool is emptied, the log knows that it already has them.

Nothing here fails the command that runs it: what cannot be recorded stays in the spool, and is reported.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError, UnsupportedError, WakelogError
from wakelog.hooks import spool
from wakelog.hooks.agents import AGENTS
from wakelog.hooks.hook_events import HELD_US, KNOWN_EVENTS, SETTLE_US, HookedSession, calls_that_ran, is_restart
from wakelog.hooks.installation import receipts, store_for
from wakelog.hooks.shell_changes import changes_by_call
from wakelog.hooks.spool_files import SpooledRecord, keep_only, spool_lock, take_file
from wakelog.hooks.subagents import (
    Subagent,
    SubagentEvents,
    is_written,
    spawner_of,
    subagent_origin,
    subagent_transcripts,
)
from wakelog.importers.source.files import read_sample
from wakelog.importers.transcript_import import import_transcript
from wakelog.importers.writer.hook_capture import CAPTURE
from wakelog.importers.writer.observed_calls import FileChanges
from wakelog.importers.writer.origins import session_name
from wakelog.importers.writer.recorded_subagents import RecordedSubagents
from wakelog.log import Log
from wakelog.log.deleted_origins import was_deleted
from wakelog.model import events as ev
from wakelog.model.json_fields import text_in
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store
from wakelog.timeline.points import walk_back

PATIENCE_US = 600 * 1_000_000
"""How long to wait for a transcript that a record names."""
KEEP_US = 30 * 24 * 3600 * 1_000_000
"""How long records that cannot be recorded are kept."""
COMMIT_ID = "hooks-"
COMMIT_MAX = 300
"""How many records become one commit."""

OpenStore = Callable[[str], Store]


class IntakeReport(msgspec.Struct):
    """The result of an intake."""

    records: int = 0
    sessions: list[str] = []
    waiting: int = 0
    """Records that stay in the spool: running calls, or a transcript that does not exist yet."""
    broken: int = 0
    deleted: int = 0
    """Records of deleted sessions, which are dropped."""
    troubles: list[str] = []


def take_in(open_store: OpenStore, *, into: str = "", now_us: int = 0) -> IntakeReport:
    """Records everything that hooks have written. With `into`, all of it goes to that store."""
    report = IntakeReport()
    with spool_lock() as has:
        if not has:
            return report
        file = take_file()
        if file is None:
            return report
        with contextlib.ExitStack() as stores:
            open_once = functools.cache(lambda url: stores.enter_context(open_store(url)))
            left = _record_all(file.records, open_once, into, now_us or time.time_ns() // 1000, report)
        keep_only(file, left)
        report.waiting, report.broken = len(left), file.broken
        for _ in range(file.broken):
            spool.note_gap("spool", ValueError())
    return report


def _record_all(
    records: Iterable[SpooledRecord], open_store: OpenStore, into: str, now_us: int, report: IntakeReport
) -> list[SpooledRecord]:
    """Records them, and returns those that must wait."""
    left: list[SpooledRecord] = []
    for (agent, _), given in _by_session(records).items():
        if all(each.is_held and now_us - each.at_us < HELD_US for each in given):
            left += given  # nothing new: the call is still running
            continue
        try:
            folder = next((text_in(r.data, "cwd") for r in given if text_in(r.data, "cwd")), "")
            store = open_store(into or store_for(agent, folder, receipts()))
            left += _SessionIntake(store, agent, given, now_us).run(report)
        except Exception as exc:  # a bug of ours must not lock anybody out of their store
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
        else:
            spool.note_gap(agent, ValueError())  # it names no session, so it cannot be recorded anywhere
    return out


class _SessionIntake:
    """Records one session."""

    def __init__(self, store: Store, agent: str, records: list[SpooledRecord], now_us: int) -> None:
        self._store, self._agent, self._now_us = store, AGENTS[agent], now_us
        self._records = records
        self._origin = records[0].origin
        self._written: set[str] = set()
        self._ran = calls_that_ran(records)
        self._is_unreadable = False
        self._subagents: list[Subagent] = []
        self._name = session_name(store, self._agent.label, self._origin)

    def run(self, report: IntakeReport) -> list[SpooledRecord]:
        session = self._session()
        if session is None and was_deleted(self._store.engine, self._agent.label, self._origin):
            report.deleted += len(self._records)
            return []
        labels: dict[str, str] = session.log.part("labels") if session is not None else {}
        ended_us = _ended_us(session.log) if session is not None and session.status == "closed" else 0
        is_by_hooks = CAPTURE in labels
        # Until the first prompt, a transcript may have nothing to import.
        is_hooks_only = is_by_hooks and session is not None and session.log.part("turn")["number"] > 0
        if session is not None and not is_hooks_only:
            self._record_cut_off(session)
        has_transcript = not is_hooks_only and self._import()
        if not has_transcript and not is_hooks_only:
            if session is not None and not is_by_hooks:
                has_transcript = True  # the file is gone by now; its content is in the session
            elif self._is_transcript_due():
                return self._records
            elif session is None and not any(record.event in KNOWN_EVENTS for record in self._records):
                return self._keep_for_later()
        session = self._session() or self._open(is_hooks_only=not has_transcript)
        report.records += len(self._records)
        if self._name not in report.sessions:
            report.sessions.append(self._name)
        left = self._append(session, has_transcript)
        if ended_us and session.status == "active" and not self._has_come_back(session.log, ended_us):
            why = "what came after its end is from before"
            session.log.append(EventDraft(ev.SessionClosed(why=why, occurred_at=ended_us), actor="runtime"))
        return left

    def _record_cut_off(self, session: Session[Any]) -> None:
        """Records calls that were running when the agent was killed, if it has started again since. First of all: what
        its transcript tells next is a later turn."""
        first = next((n for n, record in enumerate(self._records) if not record.is_held), 0)
        if not first or not is_restart(self._records[first]) or session.log.part("turn")["status"] != "open":
            return
        held, self._records = self._records[:first], self._records[first:]
        pending = session.log.part("pending_actions")
        hooked = HookedSession(self._agent.label, has_transcript=True, pending=pending)
        for record in held:
            hooked.take(record)
        hooked.take_restart()
        if hooked.drafts:
            self._append_once(session, held, hooked.drafts)

    def _append_once(self, session: Session[Any], records: list[SpooledRecord], drafts: list[EventDraft]) -> None:
        """Appends what records tell, unless the log has it from before a crash."""
        id = COMMIT_ID + hashlib.sha256("".join(each.key for each in records).encode()).hexdigest()[:24]
        log = session.log
        if log.engine.known(session.id, id) is None:
            log.append(*drafts, commit_id=id)

    def _has_come_back(self, log: Log, ended_us: int) -> bool:
        """Whether the agent continues a session that it had ended."""
        starts = [record.at_us for record in self._records if record.event == "SessionStart"]
        return max([_newest_turn_us(log), *starts]) > ended_us

    def _keep_for_later(self) -> list[SpooledRecord]:
        """Records of events that nobody knows, of a session that nobody knows: they wait until there is one."""
        kept = [record for record in self._records if self._now_us - record.at_us < KEEP_US]
        for _ in range(len(self._records) - len(kept)):
            spool.note_gap(self._agent.name, ValueError())
        return kept

    def _session(self) -> Session[Any] | None:
        return self._store.resume(self._name) if self._store.is_open(self._name) else None

    def _open(self, *, is_hooks_only: bool) -> Session[Any]:
        first = self._records[0].data
        labels = {"agent": self._agent.label, "origin": self._origin, "project": text_in(first, "cwd")}
        if is_hooks_only:
            labels[CAPTURE] = "notify" if all(r.agent.endswith("-notify") for r in self._records) else "hooks"
        return self._store.session(
            self._name, agent=self._agent.label, labels={k: v for k, v in labels.items() if v}, limits={}, folder=""
        )

    # The transcript

    def _import(self) -> bool:
        """Imports the new part of the session's transcript and those of its sub-agents. False if there is none."""
        found = False
        changes = changes_by_call(self._records)
        calls = {*changes}
        subagents = subagent_transcripts(self._agent, self._origin, self._records)
        for path in self._transcripts():
            if path not in subagents:
                found = self._import_file(path, changes) or found
        for path, id in subagents.items():
            self._import_subagent(path, id, changes)
        self._written = calls - {*changes}
        return found

    def _import_file(self, path: Path, changes: FileChanges) -> bool:
        """Imports a file. Returns whether it is of this session."""
        try:
            report = import_transcript(self._store, path, changes=changes, ran=self._ran)
        except UnsupportedError:
            self._is_unreadable = not self._has_just_begun(path)  # only hooks are left
            return False
        except InvalidInputError as exc:
            if exc.kind != "bad-transcript" or self._session() is not None:
                raise
            return False  # it may be half written; if it stays so, only hooks are left
        return any(each.name == self._name for each in report.sessions)

    def _has_just_begun(self, path: Path) -> bool:
        """Whether a transcript of this session has no conversation yet, as that of Claude Code at its first screen."""
        lines = read_sample(path).lines
        return bool(lines) and all(line.get("sessionId") == self._origin and "message" not in line for line in lines)

    def _import_subagent(self, path: Path, id: str, changes: FileChanges) -> None:
        """Imports the transcript of a sub-agent, unless it has ended and no record names it."""
        name = session_name(self._store, self._agent.label, subagent_origin(self._agent, self._origin, id))
        has_ended = self._store.is_open(name) and self._store.resume(name).status in ("closed", "archived")
        if not has_ended or any(text_in(record.data, "agent_id") == id for record in self._records):
            with contextlib.suppress(UnsupportedError, InvalidInputError):  # it may be half written
                import_transcript(self._store, path, changes=changes, ran=self._ran)
        if self._store.is_open(name):
            self._subagents.append(Subagent(id, self._store.resume(name)))

    def _transcripts(self) -> Iterator[Path]:
        named = [text_in(r.data, key) for r in self._records for key in ("transcript_path", "agent_transcript_path")]
        for path in dict.fromkeys(Path(each) for each in named if each):
            if is_written(path):
                yield path
        if self._agent.name == "codex" and not any(named):
            yield from self._agent.folder().glob(f"sessions/*/*/*/rollout-*{self._origin}.jsonl")

    def _is_transcript_due(self) -> bool:
        """Whether the agent may still write a transcript that a record names."""
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
        self._add_running_subagents(log)
        stops = {
            text_in(r.data, "agent_id"): text_in(r.data, "last_assistant_message")
            for r in self._records
            if r.event == "SubagentStop"
        }
        subagents = SubagentEvents(session.id, self._subagents, log.part("subagents"), stops)
        hooked = HookedSession(
            self._agent.label,
            has_transcript=has_transcript,
            subagents=subagents if has_transcript else None,
            turn=log.part("turn"),
            pending=log.part("pending_actions"),
            labels=log.part("labels"),
            status=session.status,
            newest_turn_us=_newest_turn_us(log) if has_transcript else 0,
        )
        hooked.written_files = self._written
        left: list[SpooledRecord] = []
        for start in range(0, len(self._records), COMMIT_MAX):
            chunk = self._records[start : start + COMMIT_MAX]
            for record in _without_duplicates(chunk):
                hooked.take(record)
            left = hooked.settle(self._now_us) if start + COMMIT_MAX >= len(self._records) else []
            drafts, hooked.drafts = hooked.drafts, []
            if drafts:
                self._append_once(session, chunk, drafts)
        return left + self._end_subagents(log, subagents, left)

    def _end_subagents(self, parent: Log, events: SubagentEvents, left: list[SpooledRecord]) -> list[SpooledRecord]:
        """Ends the sessions of sub-agents that have ended. Returns the records that say so and must wait: the last
        message may not be in the transcript yet."""
        waiting = []
        for each in self._subagents:
            outcome, log = events.outcome(each), each.session.log
            if not outcome or each.session.status in ("closed", "archived"):
                continue
            stop = next(
                (r for r in self._records if r.event == "SubagentStop" and r.data.get("agent_id") == each.id), None
            )
            works_again = _works_again(parent, each)
            if stop is None and works_again:
                if not any(r.event == "SessionEnd" for r in self._records):
                    continue
                outcome = "succeeded" if each.is_done else "interrupted"
            if stop is not None and not each.is_done and self._now_us - stop.at_us < SETTLE_US:
                waiting.append(stop)
                continue
            if stop is not None and works_again and parent.head().status == "active":
                said = ev.SubagentReturned(
                    session=each.session.id,
                    outcome=outcome,
                    output=events.last_words(each),
                    occurred_at=stop.at_us,
                )
                parent.append(EventDraft(said, actor="runtime"))
            ended = HookedSession(
                self._agent.label,
                has_transcript=True,
                turn=log.part("turn"),
                pending=log.part("pending_actions"),
                status=each.session.status,
            )
            is_done = outcome == "succeeded"
            why = "the sub-agent ended" if is_done else f"the sub-agent ended: {outcome}"
            left_us = (stop or self._records[-1]).at_us
            below = RecordedSubagents(log.part("subagents")).left()
            ended.end("completed" if is_done else "interrupted", why, left_us, below)
            log.append(*ended.drafts)
            self._tell_above(each, outcome, left_us, events)
        return [record for record in waiting if record not in left]

    def _add_running_subagents(self, log: Log) -> None:
        """Adds those that run as far as the log knows, and that no record names."""
        found = {each.session.id for each in self._subagents}
        for child, about in log.part("subagents").items():
            if about["status"] == "running" and child not in found:
                with contextlib.suppress(NotFoundError):  # its transcript never came
                    each = self._store.resume(child)
                    origin = str(each.log.part("labels").get("origin", ""))
                    self._subagents.append(Subagent(origin.rpartition("/agent-")[2], each))

    def _tell_above(self, ended: Subagent, outcome: str, at_us: int, events: SubagentEvents) -> None:
        """Tells the sub-agent that started this one, if one did."""
        above = next((each.session for each in self._subagents if each.session.id == spawner_of(ended)), None)
        if above is not None and above.status == "active":
            told = RecordedSubagents(above.log.part("subagents"))
            for event in told.returned(ended.session.id, outcome, events.last_words(ended)):
                event = msgspec.structs.replace(event, occurred_at=at_us)
                above.log.append(EventDraft(event, actor="runtime"))


def _newest_turn_us(log: Log) -> int:
    """When the newest turn began."""
    started = next((entry for entry in walk_back(log) if entry.kind == "turn.started"), None)
    return int(started.body.get("occurred_at") or 0) if started is not None else 0


def _works_again(parent: Log, each: Subagent) -> bool:
    """Whether a sub-agent was given more to do after it had returned."""
    about = parent.part("subagents").get(each.session.id)
    return about is not None and _newest_turn_us(each.session.log) > parent.entry(about["seq"]).happened_at


def _ended_us(log: Log) -> int:
    """When the agent ended the session. 0 if it was only left."""
    closed = next((entry for entry in walk_back(log) if entry.kind == "session.closed"), None)
    is_told = closed is not None and closed.commit_id.startswith(COMMIT_ID)
    return int(closed.body.get("occurred_at") or 0) if closed is not None and is_told else 0


def _without_duplicates(records: list[SpooledRecord]) -> Iterator[SpooledRecord]:
    """Records without duplicates, which come if two settings files have the same hook."""
    seen: dict[str, int] = {}
    for record in records:
        mark = msgspec.json.encode({k: v for k, v in record.data.items() if k != "timestamp"}).hex()
        if record.at_us - seen.get(mark, -PATIENCE_US) > 2_000_000:
            yield record
        seen[mark] = record.at_us
