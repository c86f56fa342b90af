"""Turns steps into events: writes one transcript into its session.

A transcript is read from its start each time. Records that the session already has are skipped, so a second import adds
only what is new, also if the file grew, was truncated or was rewritten. The log itself says which records it has: every
commit ends with a `records.imported` event that names them, and a commit is written as a whole or not at all.

A call and its result become one event if the result is known when they are written. A call without a result is written
as requested, and stays pending until the result comes or the turn ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.writer.call_events import (
    late_answer,
    recorded_call,
    recorded_reply,
    requested_call,
    settled_call,
    source_of,
    task_of,
    trust_of,
)
from wakelog.importers.writer.hook_capture import CAPTURE, HookedCalls, rewind_hook_events
from wakelog.importers.writer.image_artefacts import extract_images
from wakelog.importers.writer.import_commit import ImportCommit
from wakelog.importers.writer.imported_records import ImportedRecords, read_imported
from wakelog.importers.writer.observed_calls import ObservedCalls
from wakelog.importers.writer.open_calls import OpenCalls
from wakelog.importers.writer.origins import is_deleted, open_session, reopen_session, session_name
from wakelog.importers.writer.recorded_subagents import RecordedSubagents
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.importers.writer.turn_signs import TurnSigns
from wakelog.model import events as ev
from wakelog.model.events import Cost
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.usage import Usage
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.store import Store

ACTS = frozenset({st.PromptStep, st.ReplyStep, st.CallStep, st.ResultStep})
ACTORS = {"user": "user", "assistant": "agent"}


class SessionWriter:
    """Writes the records of one transcript, and of the sub-agents inside it, into their sessions."""

    def __init__(
        self,
        store: Store,
        head: st.TranscriptHead,
        *,
        format: str,
        source: str,
        stat: tuple[int, int],
        dry_run: bool = False,
        named: Callable[[str], str] | None = None,
        commits: Callable[[], ImportCommit] = ImportCommit,
    ) -> None:
        """`named` returns the session name for an origin; by default it is made from the tool's name. `commits` makes a
        commit."""
        self._store = store
        self._dry_run = dry_run
        self._named, self._new_commit = named or partial(session_name, store, head.agent), commits
        self._head = head
        self._format = format
        self._source = source
        self._stat = stat
        self.name = named(head.origin) if named else session_name(store, head.agent, head.origin, head.name)
        self.session: Session[Any] | None = None
        self.known = ImportedRecords()
        self._seen: Seq = 1
        """The session's last event when it was last read or written here. A new session has only its first event."""
        if store.is_open(self.name):
            self.session = store.resume(self.name)
            self._seen = self.session.head.seq
            self.known = read_imported(self.session.log)
        self.observed = ObservedCalls({})
        self.again = False
        self.deleted: list[str] = []
        """Sub-agents whose sessions were deleted. They are imported only with `again`."""
        self._hooked_calls: HookedCalls | None = None
        self.broken: list[str] = []
        """Why new records could not be read."""
        self.new_records = self.new_events = self.turns = 0
        self._commit = commits()
        self._partial: tuple[st.SourceRecord, int] | None = None
        self._reply: st.ReplyStep | None = None
        self._reply_at = self._reply_in = 0
        self._signs = TurnSigns()
        self._at = self._first_at = self._acted_at = 0
        self._closing: ev.SessionClosed | None = None
        self._opening_labels: dict[str, str] = {}
        self._all_lanes: dict[str, SessionWriter | None] = {}
        self._costs = ReplyCosts(store)
        self._images: set[str] = set()
        self._turn = self._state("turn", {}).get("status") == "open"
        self._calls = OpenCalls(self._state("pending_actions", {}), self.known.given_up)
        self._labels: dict[str, str] = dict(self._state("labels", {}))
        self._subagents = RecordedSubagents(self._state("subagents", {}))

    def _state(self, part: str, default: Any) -> Any:
        return self.session.log.part(part) if self.session is not None else default

    def is_unchanged(self, *, is_idle: bool = False) -> bool:
        """Whether the file is unchanged since the last import, and nothing is open that time alone may end."""
        is_over = not self._turn and not (is_idle and self._is_living())
        return self.known.stat == (self._source, *self._stat) and is_over

    def _is_living(self) -> bool:
        return self.session is None or self.session.status in ("open", "active")

    def take(self, record: st.SourceRecord, weight: int = 0) -> None:
        """Imports the next record in the file's order. `weight` is its size in the file."""
        if record.lane:
            if (lane := self._lane_writer(record.lane)) is not None:
                lane.take(msgspec.structs.replace(record, lane=""), weight)
            return
        if record.is_partial:
            self._partial = record, weight
            return
        if record.at:
            self._at = record.at
            self._first_at = self._first_at or record.at
        if self.known.has(record.id, self._at):
            self._skip_steps(steps := record.steps, is_named=bool(record.step_ids))
        else:
            steps = self._import_record(record, weight)
        if any(type(step) in ACTS for step in steps):
            self._acted_at = self._at

    def _import_record(self, record: st.SourceRecord, weight: int) -> tuple[st.Step, ...]:
        """Returns the steps that are new. A record may repeat those of others."""
        if CAPTURE in self._labels and not self._dry_run:
            self._replace_hook_events()
        old, steps, names = self.known.split(record)
        self._skip_steps(old, is_named=True)
        if steps and not self._continues_reply(steps[0]):
            self._put_reply()
        before = len(self._commit.drafts)
        for step, following in zip(steps, [*steps[1:], None], strict=False):
            if isinstance(step, st.LabelsStep) and isinstance(following, st.PromptStep):
                self._end_open_turn()  # a prompt and what changed with it come after the turn that is open
            self._write(step)
        if record.broken:
            self.broken.append(record.broken)
        self.new_records += 1
        self._commit.add(record, len(self._commit.drafts) - before, weight, names)
        if self._commit.is_full:
            self.flush()
        return tuple(steps)

    def _replace_hook_events(self) -> None:
        """Hooks recorded this session before its transcript was found."""
        assert self.session is not None
        self._hooked_calls = rewind_hook_events(self.session.log, self._seen, self._head.agent)
        self._seen = self.session.head.seq
        self._turn, self._calls = False, OpenCalls({}, self.known.given_up)
        self._labels = dict(self._state("labels", {}))
        self.known.turn_ids = {""}

    def close(self, *, is_cold: bool = False, is_quiet: bool = False, is_idle: bool = False) -> None:
        """Call after the last record. A turn is over if the agent said so. If it only looks finished, it ends when the
        file is quiet; if it was abandoned, when the file is cold: not written for a day. An idle session is closed, and
        a later record reopens it."""
        self._put_reply()
        if self._partial is not None:
            self._import_partial(is_quiet or is_cold)
        if self._hooked_calls is not None and (note := self._hooked_calls.note()):
            self._put(ev.NoteAdded(text=note), actor="runtime")
        is_over = self._signs.is_done or (is_quiet and self._signs.seems_done)
        # New records reopen a closed session.
        is_idle_here = is_idle and (self._is_living() or bool(self._commit.records))
        if self._turn and (is_over or is_cold):
            self._end_turn("completed" if is_over else "interrupted", at=self._acted_at)
        elif is_idle_here:
            self._give_up_calls()
        elif self._commit.records:
            self._wait_for_answers()
        if is_idle_here:
            self._put_all([*self._calls.unanswered(), *self._subagents.left()])
        if is_idle_here and self._closing is None and not self._calls.waiting():
            self._closing = ev.SessionClosed(outcome="", why="no new record for long", occurred_at=self._at)
        self.flush()
        for lane in self.lanes:
            lane.close(is_cold=is_cold, is_quiet=is_quiet, is_idle=is_idle)

    def _import_partial(self, is_over: bool) -> None:
        """The file ends in the middle of a record. It is left for the next import, and the file does not count as read,
        unless it has no writer any more."""
        assert self._partial is not None
        record, weight = self._partial
        if not is_over:
            self._stat = (0, 0)
        elif not self.known.has(record.id, self._at):
            self._import_record(record, weight)

    @property
    def last_at(self) -> int:
        """When the newest record happened. 0 if the tool does not say."""
        return self._at

    @property
    def lanes(self) -> tuple[SessionWriter, ...]:
        return tuple(lane for lane in self._all_lanes.values() if lane is not None)

    # Records that the session already has: only keep what later records need

    def _skip_steps(self, steps: Iterable[st.Step], *, is_named: bool) -> None:
        for step in steps:
            if is_named and isinstance(step, st.ReplyStep) and step.content:
                # Its usage may not have been known when this content was written. Another step reports it.
                step = msgspec.structs.replace(step, usage=Usage(), cost_micros=0)
            if not is_named or not isinstance(step, st.CallStep) or not self._calls.is_settled(step.id):
                self._skip_step(step)

    def _skip_step(self, step: st.Step) -> None:
        match step:
            case st.ReplyStep():
                self._costs.skip(step)
                self._signs.look(step)
            case st.CallStep():
                self._calls.skip_call(step)
            case st.ResultStep():
                self._calls.skip_result(step.id)
            case st.PromptStep() | st.TurnEndStep() | st.FinishStep():
                self._calls.asked.clear()
                self._signs.clear()

    # New records

    def _write(self, step: st.Step) -> None:
        if not isinstance(step, st.ReplyStep | st.CallStep):
            self._put_reply()
        match step:
            case st.PromptStep():
                self._begin_turn(step)
            case st.MessageStep():
                actor = ACTORS.get(step.role, "runtime")
                event = ev.MessageAdded(role=step.role, content=self._store_images(step.content), name=step.name)
                self._put(event, actor=actor, trust=step.trust, source=step.name if step.trust != "trusted" else "")
            case st.ReplyStep():
                self._take_reply(step)
            case st.CallStep():
                self._calls.add(step)
            case st.ResultStep():
                self._write_result(self.observed.corrected(step))
            case st.ReturnStep():
                self._put_all(self._subagents.returned(self._child(step.child), step.outcome, step.output))
            case st.TurnEndStep():
                if self._turn:
                    self._end_turn(step.outcome, step.error)
            case st.RewindStep():
                self._rewind(step.to)
            case st.CompactionStep():
                self._compact(step)
            case st.LabelsStep():
                self._label(step.labels)
            case st.GapStep():
                self._put(ev.GapNoted(missed=step.what, source=self._head.agent), actor="runtime")
            case st.CostStep():
                cost = self._costs.cost(step.model, step.usage, step.cost_micros, self._at)
                self._put(ev.BudgetSpent(cost=cost), actor="runtime")
            case st.StateDeltaStep():
                self._put(ev.StatePatched(patch=[op | {"path": f"/data{op['path']}"} for op in step.delta]))
            case st.NoteStep():
                self._put(ev.NoteAdded(text=step.text), actor="runtime")
            case st.FinishStep():
                self._finish(step)

    def _put(self, event: ev.Event, *, actor: str = "agent", trust: Any = "trusted", source: str = "") -> None:
        if self._at and not event.occurred_at:
            event = msgspec.structs.replace(event, occurred_at=self._at)
        self._commit.drafts.append(EventDraft(event, actor=actor, trust=trust, source=source))

    def _put_all(self, events: Iterable[ev.Event], actor: str = "runtime") -> None:
        for event in events:
            self._put(event, actor=actor)

    def _store_images(self, content: Value) -> Value:
        """Replaces images in the content by references. Each image is stored once, by hash."""
        content, images = extract_images(content)
        for image in images:
            if image.name not in self._images:
                self._images.add(image.name)
                self._put(image, actor="runtime")
        return content

    # Turns

    def _begin_turn(self, prompt: st.PromptStep) -> None:
        self._end_open_turn()
        self._calls.asked.clear()
        event = ev.TurnStarted(input=self._store_images(prompt.content), id=self.known.turn_id(prompt.id))
        self._put(event, actor="user" if prompt.content is not None else "runtime")
        self._turn = True
        self._signs.clear()
        self.turns += 1

    def _end_open_turn(self) -> None:
        if self._turn:
            self._end_turn("completed" if self._signs.are_of_an_end else "interrupted", at=self._acted_at)

    def _end_turn(self, outcome: Any, error: str = "", *, at: int = 0) -> None:
        """`at` is when the turn ended, if nothing says so: at its last act, not when the user came back."""
        self._put_reply()
        now, self._at = self._at, at or self._at
        self._give_up_calls()
        self._put(ev.TurnEnded(outcome=outcome, error=ev.Failure("failed", error) if error else None), actor="runtime")
        self._turn, self._at = False, now
        self._signs.clear()

    def _give_up_calls(self) -> None:
        """Nothing waits for a result any more. Calls outside of a turn are given up when the session is idle."""
        for call in self._calls.unrecorded():
            self._write_call(call, st.ResultStep(call.id, None, "interrupted"))
        for action in self._calls.waiting():
            self._put(ev.ActionAbandoned(action=action), actor="runtime")
        self._calls.cut_off()

    def _finish(self, step: st.FinishStep) -> None:
        if self._turn:
            self._end_turn("completed" if step.outcome in ("completed", "submitted") else "failed")
        self._closing = ev.SessionClosed(outcome=step.outcome, occurred_at=self._at)

    # Replies and calls

    def _continues_reply(self, step: st.Step) -> bool:
        """Whether a step continues the reply that is not written yet."""
        return isinstance(step, st.ReplyStep) and self._reply is not None and self._reply.id == step.id

    def _take_reply(self, step: st.ReplyStep) -> None:
        if self._continues_reply(step):
            assert self._reply is not None
            step = msgspec.structs.replace(step, content=[*self._reply.content, *step.content])
        else:
            self._put_reply()
            self._reply_at = self._at
        self._reply, self._reply_in = step, len(self._commit.records)

    def _put_reply(self) -> None:
        """Writes the reply that was collected. Its events count for the last record that it came from."""
        step, self._reply = self._reply, None
        if step is None:
            return
        before = len(self._commit.drafts)
        self._write_reply(step)
        if self._reply_in < len(self._commit.records):
            self._commit.records[self._reply_in].count += len(self._commit.drafts) - before

    def _write_reply(self, step: st.ReplyStep) -> None:
        cost = self._costs.take(step, self._at)
        if not step.content:
            # This record only reports the usage. The content is in other records.
            if cost != Cost():
                self._put(ev.BudgetSpent(cost=cost), actor="runtime")
            return
        content = self._store_images(step.content)
        part = self._costs.part(step.id)
        self._put(recorded_reply(step, content, cost, part, self._reply_at))
        self._signs.look(step)
        if step.model and step.model != self._labels.get("model"):
            self._label({"model": step.model})

    def _write_result(self, step: st.ResultStep) -> None:
        if self._hooked_calls is not None:
            self._hooked_calls.drop(step.id)
        late = self._calls.pop_cut_off(step.id)
        call = self._calls.asked.pop(step.id, None)
        if late is not None:
            self._put_call(late_answer(step, self._store_images(step.output)), late)
        elif step.id in self._calls.pending:
            self._calls.pending.discard(step.id)
            self._write_call(call or st.CallStep(step.id, self._head.agent, None), step, was_pending=True)
        elif call is not None:
            self._write_call(call, step)
        else:
            # Its call is in no record of this transcript.
            self._write_call(st.CallStep(step.id, "unknown", None), step)
        for file in (*step.files, *self.observed.pop(step.id, call)):
            self._put(file if file.action else msgspec.structs.replace(file, action=step.id))

    def _put_call(self, event: ev.Event, call: st.CallStep) -> None:
        self._put(event, actor="tool", trust=trust_of(call), source=source_of(call))

    def _write_call(self, call: st.CallStep, step: st.ResultStep, *, was_pending: bool = False) -> None:
        """Writes a call with its result, or the result alone if the call was pending in the log."""
        origin = step.child or call.child
        child = self._child(origin) if origin else ""
        if origin:
            self._put_all(self._subagents.started(child, task_of(call)), actor="agent")
        output = self._store_images(step.output)
        self._put_call(settled_call(step, output) if was_pending else recorded_call(call, step, output), call)
        if origin and not step.is_launch:
            self._put_all(self._subagents.returned(child, step.outcome))

    def _child(self, origin: str) -> str:
        """The session of a sub-agent, which may not exist yet."""
        return self._store.reserve(self._named(origin)) if not self._dry_run else ""

    def _wait_for_answers(self) -> None:
        """At the end of the file: a call without a result is pending, not lost."""
        for call in self._calls.unrecorded():
            if call.child:
                self._put_all(self._subagents.started(self._child(call.child), task_of(call)), actor="agent")
            self._put(requested_call(call))
            self._put(ev.ActionStarted(action=call.id), actor="runtime")
            self._calls.pending.add(call.id)
        self._calls.asked.clear()

    # Sub-agents

    def _lane_writer(self, lane: str) -> SessionWriter | None:
        """The writer of a sub-agent inside this transcript. None if its session was deleted."""
        if lane not in self._all_lanes:
            head = msgspec.structs.replace(self._head, origin=lane, parent=self._head.origin, goal="", name="")
            if not self.again and is_deleted(self._store, msgspec.structs.replace(head, parent="")):
                self.deleted.append(session_name(self._store, head.agent, lane))
                self._all_lanes[lane] = None
            else:
                self._all_lanes[lane] = SessionWriter(
                    self._store, head, format=self._format, source=self._source, stat=self._stat, dry_run=self._dry_run
                )
        return self._all_lanes[lane]

    # Rewinds, summaries, labels

    def _rewind(self, to: str) -> None:
        self._end_open_turn()
        self.flush()
        place = self.known.place(self.session.log, to) if self.session is not None else None
        if self.session is None or place is None or place >= self.session.head.seq:
            return
        if self._dry_run:
            self.new_events += 1
            return
        self._seen = reopen_session(self.session, self._seen, self._at)
        why = f"the user went back in {self._head.agent}"
        self._seen = self.session.log.rewind(place, why=why, expect=self._seen, occurred_at=self._at).seq
        self._labels = dict(self._state("labels", {}))
        self.new_events += 1

    def _compact(self, step: st.CompactionStep) -> None:
        self.flush()
        first, last = self.known.compacted + 1, 0 if self._dry_run else self._open().head.seq
        self._put(ev.HistoryCompacted(first=first, last=last, summary=step.summary), actor="runtime")
        self.known.compacted = last

    def _label(self, labels: dict[str, str]) -> None:
        new: dict[str, str | None] = {k: v for k, v in labels.items() if v and self._labels.get(k) != v}
        if not new:
            return
        self._labels.update(labels)
        if self.session is not None or self._commit.drafts:
            self._put(ev.LabelsSet(labels=new), actor="runtime")
        else:
            self._opening_labels.update(labels)

    # The store

    def _open(self) -> Session[Any]:
        if self.session is None:
            parent = self._named(self._head.parent) if self._head.parent else ""
            labels, at = self._opening_labels, self._first_at
            self.session = open_session(self._store, self._head, self.name, parent, labels, at)
            self._labels = dict(self._state("labels", {}))
        return self.session

    def flush(self) -> None:
        """Writes what was collected since the last time, as one commit."""
        self._put_reply()
        commit = self._commit
        if not commit.drafts and not commit.records and (self._closing is None or self.session is None):
            return
        self._commit = self._new_commit()
        if self._dry_run:
            self.new_events += len(commit.drafts) + 1
            return
        session = self._open()
        size, changed = self._stat
        about = ev.RecordsImported(
            format=self._format, source=self._source, size=size, changed=changed, occurred_at=self._at
        )
        commit.closing, self._closing = self._closing, None
        before, at = self._seen, commit.drafts[0].event.occurred_at if commit.drafts else self._at
        self._seen = reopen_session(session, before, at)
        if self._seen > before:
            commit.close_again(self._at)
        seqs = commit.append(session.log, self._seen, about)
        before, self._seen = self._seen, session.head.seq
        self.new_events += self._seen - before
        self.known.add([(record.id, record.count) for record in commit.records], seqs)
