"""Opens a turn, and first settles what a dead process left open.

**Pending calls** are settled, each by its own policy. If a call was running when the process died: without effects, or
with `uncertain="retry"`, it may be sent again; with `uncertain="fail"` it fails; any other call becomes *uncertain* and
stays pending until a person says what happened. A call that never started, or waits for approval, stays as it is.

**An interrupted turn** is continued when the same script runs again, as the turn's next attempt. A call's id is made
from the turn, the tool, the input, and the number of equal calls before it. So a repeated call gets the same id and is
answered from the log.

**A turn with an id** given by the caller is done once. The id is part of the id of the commit that first starts it. So
the turn is found without a search, and if two processes start it at the same time, only one succeeds. Its calls are
named after the turn's id, not its number. If the turn is rewound, its id is free again: the next turn with that id is
another *generation*.

**Opening a turn** is one commit on the head that was read. A crash leaves the turn either untouched or opened. If two
processes open a turn at the same time, the second one reads again and finds the turn of the first.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

import msgspec

from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError
from wakelog.log import Log
from wakelog.log.holder import TurnHold, end_of_holder, hold_turn, refuse_if_held
from wakelog.log.reader import Entry
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.ambient import TrustMark, current_action
from wakelog.runtime.call_history import PastCall, add_event, find_by_key, find_commit, gone_error, read_call
from wakelog.runtime.outcome import Outcome, status_of
from wakelog.runtime.policy import SAFE
from wakelog.runtime.recorded_streams import revive_outcome
from wakelog.runtime.tools import RunningCall
from wakelog.runtime.values import plain
from wakelog.state.diff import diff
from wakelog.state.patch import equal
from wakelog.timeline.points import Span, attempts_of, commit_at

if TYPE_CHECKING:
    from wakelog.runtime.call import Runtime

Resume = Literal["auto", "always", "never"]
ID_MAX = 200


def settle_pending(
    log: Log, why: str, *, resumes: bool = False, closes: bool = False, at_work: Collection[str] = ()
) -> list[EventDraft]:
    """Returns the events that settle pending calls and end an open turn. With `resumes`, the turn is about to be
    continued, and calls that may be sent again stay pending. With `closes`, calls that wait are abandoned. Calls in
    `at_work` belong to this process and are left alone."""
    events: list[ev.Event] = []
    for action, pending in log.part("pending_actions").items():
        event: ev.Event | None
        if closes and pending["status"] in ("waiting", "requested"):
            event = ev.ActionAbandoned(action=action, why=why)
        else:
            event = None if action in at_work else _settling_event(log, action, pending, why, resumes)
        if event is not None:
            events.append(event)
    if log.part("turn")["status"] == "open":
        events.append(ev.TurnEnded(outcome="interrupted", why=why))
    return [EventDraft(event, actor="runtime") for event in events]


def settle_lost_calls(log: Log, turn: int, at_work: Collection[str], *, resumes: bool) -> list[EventDraft]:
    """Settles calls of a turn that ends in this process: those that ran, but whose outcome could not be recorded."""
    why = "its outcome could not be recorded"

    def is_lost(action: str, pending: dict[str, Value]) -> bool:
        return pending["status"] == "running" and pending["turn"] == turn and action not in at_work

    # They are this process's own calls, so the state it already has is enough. Mostly there is none.
    pending = log.look("pending_actions", refresh=False)[1]["pending_actions"]
    if any(is_lost(*each) for each in pending.items()):
        pending = log.part("pending_actions")
    events = [_settling_event(log, a, p, why, resumes) for a, p in pending.items() if is_lost(a, p)]
    return [EventDraft(event, actor="runtime") for event in events if event is not None]


def _settling_event(log: Log, action: str, pending: dict[str, Value], why: str, resumes: bool) -> ev.Event | None:
    status = pending["status"]
    if pending["tool"] == "input" or status in ("waiting", "uncertain"):
        return None
    if status == "requested":
        return None if resumes else ev.ActionAbandoned(action=action, why=why)
    cut = ev.Failure("interrupted", why, retryable=True)
    if pending["effect"] in SAFE:
        return ev.ActionFailed(action=action, error=cut, retry=resumes, why=why)
    rule = log.entry(pending["seq"]).body.get("policy", {}).get("uncertain", "ask")
    if rule == "retry" and resumes:
        return ev.ActionFailed(action=action, error=cut, retry=True, why=why)
    if rule == "fail":
        return ev.ActionFailed(action=action, error=ev.Failure("interrupted", why), why=why)
    return ev.ActionUncertain(action=action, why=why)


class OpenTurn:
    """The turn that is open in this process: the calls it made, and those of the attempts that it continues."""

    def __init__(
        self,
        number: int,
        attempt: int,
        resumes: int = 0,
        past: dict[str, PastCall] | None = None,
        hold: TurnHold | None = None,
        record: TurnRecord | None = None,
    ) -> None:
        self.within = (number, attempt)
        self.hold = hold
        self.record = record
        """What the log knew of the turn, if it has an id."""
        self._name = record.name if record is not None else f"{number}.{resumes or attempt}"
        self._past = past or {}
        self._made: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()

    def action_of(self, tool: str, input_hash: str, inside: str = "") -> str:
        """Returns the id of a new call, made by the agent or `inside` another call."""
        with self._lock:
            place = self._made[inside, tool, input_hash]
            self._made[inside, tool, input_hash] += 1
        text = f"{self._name} {place} {input_hash} {tool} {inside}"
        return f"{tool}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def is_done(self) -> bool:
        """Whether the turn was completed before. Then calls are answered from the record, and nothing is written."""
        return self.record is not None and self.record.is_done

    def past(self, action: str) -> PastCall | None:
        """Returns what an interrupted attempt knows of a call."""
        return self._past.get(action)


def pin_to_turn(draft: EventDraft, turn: OpenTurn | None) -> EventDraft:
    """Makes the log refuse the draft if the turn is over or another process has taken it over."""
    return draft if turn is None else msgspec.structs.replace(draft, within=turn.within)


def read_past_calls(log: Log, first: Seq) -> dict[str, PastCall]:
    """Reads the calls since an event, by action id. Their outcomes may come after the turn was interrupted."""
    calls: dict[str, PastCall] = {}
    for entry in log.entries(after=first - 1):
        _add_call_event(calls, entry)
    return calls


def _add_call_event(calls: dict[str, PastCall], entry: Entry) -> None:
    is_of_call = entry.kind.startswith("action.") or entry.kind == "file.changed"
    action = entry.body.get("action") if is_of_call else None
    if isinstance(action, str) and (past := add_event(calls.get(action), entry)) is not None:
        calls[action] = past


class TurnRecord(msgspec.Struct):
    """What the log knows of a turn with an id."""

    id: str
    generation: int = 1
    retries: int = 0
    """How often it was restarted on purpose (`retry`). Each restart makes all its calls again."""
    turn: int = 0
    """The newest turn with that id; 0 if none is in view."""
    attempt: int = 0
    started: Seq = 0
    ended: Seq = 0
    outcome: str = ""
    output: Value = None
    calls: dict[str, PastCall] = {}

    @property
    def name(self) -> str:
        """What the ids of its calls are made from."""
        return f"id {self.generation}.{self.retries} {self.id}"

    @property
    def commit_id(self) -> str:
        return f"turn:{self.generation}:{self.id}"

    @property
    def is_done(self) -> bool:
        return self.outcome == "completed"


def check_turn_id(id: object) -> None:
    if not isinstance(id, str) or not 0 < len(id) <= ID_MAX:
        raise InvalidInputError(
            f"a turn's id is a text of 1 to {ID_MAX} characters, not {id!r}"[:300], kind="bad-turn-id"
        )


def find_turn(log: Log, id: str) -> TurnRecord:
    """Finds the newest generation of a turn. Returns an empty one if there is none yet, or it was rewound."""
    generation = 1
    while True:
        record = TurnRecord(id, generation)
        at = find_commit(log, record.commit_id)
        if at is None:
            return record
        _read_turn(log, record, commit_at(log, at).first)
        if _is_in_view(log, record.started):
            return record
        generation += 1


def _read_turn(log: Log, record: TurnRecord, first: Seq) -> None:
    """Reads the turn from its first start. Outcomes of calls may come after it was interrupted."""
    for entry in log.entries(after=first - 1):
        if entry.kind == "turn.started" and entry.body.get("id") == record.id:
            _start(record, entry)
        elif entry.kind == "turn.ended" and (entry.header.turn, entry.header.attempt) == (record.turn, record.attempt):
            record.ended, record.outcome = entry.seq, str(entry.body.get("outcome", "completed"))
            if record.is_done and _is_in_view(log, entry.seq):
                record.output = log.value(entry, entry.body.get("output"))
                return
        else:
            _add_call_event(record.calls, entry)


def _start(record: TurnRecord, entry: Entry) -> None:
    if record.turn and entry.body.get("retry") and not entry.body.get("resumes"):
        record.retries, record.calls = record.retries + 1, {}
    record.turn, record.attempt, record.started = entry.header.turn, entry.header.attempt, entry.seq
    record.ended, record.outcome = 0, "open"


def _is_in_view(log: Log, seq: Seq) -> bool:
    return any(low <= seq <= high for low, high in log.view())


def done_error(id: str, tool: str) -> NotAllowedError:
    return NotAllowedError(
        f"turn {id!r} is completed, and this call of {tool} is not in its record: nothing was run",
        kind="turn-done",
        hint="leave the turn when `turn.is_done`, use session.run_turn(…), or give the new work a new id",
    )


def open_turn(runtime: Runtime, started: ev.TurnStarted, first_events: list[EventDraft], resume: Resume) -> OpenTurn:
    """Opens a turn, in one commit with its `first_events`, such as the input message."""
    records: list[TurnRecord] = []
    if started.id:
        runtime.log.look()  # so that what is read below is not older than the head that the turn is opened on
        records.append(find_turn(runtime.log, started.id))
        if records[0].is_done:
            return OpenTurn(records[0].turn, records[0].attempt, past=records[0].calls, record=records[0])
    hold = hold_turn(runtime.log)
    started = msgspec.structs.replace(started, holder=hold.text if hold is not None else "")

    def attempt() -> OpenTurn:
        opening = _Opening(runtime, started, first_events, hold)
        if not started.id:
            return opening.open(resume)
        try:
            # The first try uses what was found above. After a conflict it is looked up again.
            return opening.open_with_id(records.pop() if records else find_turn(runtime.log, started.id))
        except InvalidInputError as exc:
            if exc.kind != "commit-id-reused":
                raise
            raise ConflictError("another process opened this turn first", kind="head-moved") from exc

    try:
        turn = retry_on_moved_head(runtime.log.id, "to open a turn", attempt)
    except BaseException:
        if hold is not None:
            hold.release()
        raise
    runtime.flow.new_turn()
    return turn


class _Opening:
    """One try to open a turn: either a new turn, or the next attempt of the last one. It fails if the head moves."""

    def __init__(
        self, runtime: Runtime, started: ev.TurnStarted, first_events: list[EventDraft], hold: TurnHold | None
    ) -> None:
        self._log, self._guard, self._at_work = runtime.log, runtime.guard, runtime.at_work
        self._started, self._first_events, self._hold = started, first_events, hold
        self._head, parts = runtime.log.parts("turn")
        self._last = parts["turn"]
        refuse_if_leased(runtime)

    def open(self, resume: Resume) -> OpenTurn:
        """Opens a turn without an id: a retry of the last turn, its continuation if it was interrupted, or a new
        turn."""
        log, last, is_retry = self._log, self._last, self._started.retry
        is_interrupted = last["status"] in ("open", "interrupted")
        spans = attempts_of(log, last["number"]) if last["number"] and (is_retry or is_interrupted) else []
        base = _find_continued(log, spans, self._started, resume) if is_interrupted and resume != "never" else None
        if base is not None:
            past = read_past_calls(log, base.first)  # before this attempt adds to them
            self._start_attempt(spans, base.attempt, continues=True)
            return OpenTurn(last["number"], last["attempt"] + 1, base.attempt, past, self._hold)
        if not is_retry:
            self._start_turn()
            return OpenTurn(last["number"] + 1, 1, hold=self._hold)
        record = None
        if spans and (id := str(log.entry(spans[-1].first).body.get("id", ""))):
            before = find_turn(log, id)
            record = TurnRecord(id, before.generation, before.retries + 1)
            self._started = msgspec.structs.replace(self._started, id=id)
        self._start_attempt(spans, 0, continues=False)
        return OpenTurn(last["number"], last["attempt"] + 1, hold=self._hold, record=record)

    def open_with_id(self, record: TurnRecord) -> OpenTurn:
        """Starts a turn with an id, or continues it, however it ended. Calls that succeeded are answered from the
        record; if the turn failed, its failed calls are made again."""
        log, last = self._log, self._last
        if record.is_done:  # another process has just completed it
            if self._hold is not None:
                self._hold.release()
            return OpenTurn(record.turn, record.attempt, past=record.calls, record=record)
        past = {a: p for a, p in record.calls.items() if record.outcome != "failed" or not p.may_run_again}
        if record.turn and record.turn == last["number"]:
            resumes = log.entry(record.started).body.get("resumes") or record.attempt
            self._start_attempt(attempts_of(log, record.turn), resumes, continues=True)
            return OpenTurn(last["number"], last["attempt"] + 1, past=past, hold=self._hold, record=record)
        self._start_turn(commit_id="" if record.turn else record.commit_id, is_new=True)
        return OpenTurn(last["number"] + 1, 1, past=past, hold=self._hold, record=record)

    def _start_turn(self, commit_id: str = "", is_new: bool = False) -> None:
        self._log.append(
            *self._settle(continues=False),
            self._mark_input(self._started),
            *self._first_events,
            expect=self._head,
            commit_id=commit_id,
            is_new=is_new,
            guard=self._guard,
        )

    def _start_attempt(self, spans: list[Span], resumes: int, *, continues: bool) -> None:
        """Goes back to the start of the turn, and starts its next attempt."""
        to = spans[-1].first - 1 if spans else self._head
        kept = _keep_others_changes(self._log, spans[-1], to, self._head) if continues else []
        started = msgspec.structs.replace(self._started, retry=True, resumes=resumes)
        self._log.rewind(
            to,
            mode="retry",
            restored=self._settle(continues=continues),
            then=[*kept, self._mark_input(started), *self._first_events],
            expect=self._head,
            guard=self._guard,
        )

    def _mark_input(self, started: ev.TurnStarted) -> ev.Event | EventDraft:
        """Marks the start of the turn like the message with the same input: both hold the words, and neither may be
        shown as trusted if the other is not."""
        for draft in self._first_events:
            if isinstance(draft.event, ev.MessageAdded) and (draft.trust, draft.source) != ("trusted", ""):
                return EventDraft(started, source=draft.source, trust=draft.trust)
        return started

    def _settle(self, *, continues: bool) -> list[EventDraft]:
        return settle_pending(self._log, end_of_holder(self._log), resumes=continues, at_work=self._at_work)


def _keep_others_changes(log: Log, cut: Span, to: Seq, now: Seq) -> list[ev.Event]:
    """If another writer's change of the data made the last attempt's draft conflict, going back must not undo it."""
    ended = log.entry(cut.last)
    if (ended.body.get("error") or {}).get("type") != "draft-conflict":
        return []
    return [ev.StatePatched(patch=diff(log.state(to)["data"], log.state(now)["data"], "/data"), why="another writer's")]


def _find_continued(log: Log, spans: list[Span], started: ev.TurnStarted, resume: Resume) -> Span | None:
    """Finds the first of the attempts that this turn continues. None if the input differs, or the session was rewound
    since."""
    cut = log.entry(spans[-1].first)
    if log.part("view")["rewound"] > cut.seq or cut.body.get("id"):
        return None
    if resume != "always" and not equal(log.value(cut, cut.body.get("input")), _redacted_input(log, started)):
        return None
    base = cut.body.get("resumes") or spans[-1].attempt
    return next(span for span in spans if span.attempt == base)


def _redacted_input(log: Log, started: ev.TurnStarted) -> Value:
    """Returns a turn's input as the log stores it: without secrets."""
    event = msgspec.structs.replace(started, input=plain(started.input))
    kept = log.redact(event)[0] if log.redact is not None else event
    assert isinstance(kept, ev.TurnStarted)
    return kept.input


def refuse_if_leased(runtime: Runtime) -> None:
    """Raises if another living process holds the session's lease or its open turn."""
    log = runtime.log
    holder = log.lease_holder()
    if runtime.guard is not None and runtime.guard == log.part("lease")["epoch"]:
        return  # this process holds the lease
    if holder:
        raise ConflictError(
            f"{log} is being written by {holder}",
            kind="leased",
            hint="wait for it, or take it over: session.life.take_lease(…, force=True)",
        )
    refuse_if_held(log)


def reuse_outcome(runtime: Runtime, running: RunningCall, entry: Entry) -> Outcome:
    """Answers a call with its recorded outcome. An outcome of an interrupted attempt is recorded again in this one, so
    that the attempt is complete."""
    call, request, body = running.call, running.request, entry.body
    if not entry.is_intact:
        raise gone_error(call.action, entry.seq)
    status, error = status_of(entry)
    output = runtime.log.value(entry, body.get("output"))
    mark, seq = TrustMark(entry.header.trust, entry.header.source), entry.seq
    turn = running.turn
    past = turn.past(call.action) if turn is not None else None
    if past is not None and turn is not None and not turn.is_done:
        event = ev.ActionRecorded(
            action=call.action,
            tool=call.tool,
            effect=request.tool.policy.effect,
            outcome=status if status in ("succeeded", "timed_out") else "failed",
            input=running.input,
            input_hash=running.input_hash,
            output=output,
            output_summary=str(body.get("output_summary", "")),
            error=error,
            params=request.params,
            stream=body.get("stream") or {},
            reused=body.get("reused") or entry.seq,
            inside=current_action(),
        )
        draft = runtime.flow.draft(event, mark=mark, derived_from=((entry.seq, entry.seq),))
        seq = runtime.log.record(
            pin_to_turn(draft, turn),
            *(_repeat_file_change(runtime.log, seq) for seq in past.files),
            guard=runtime.guard,
        )
    runtime.flow.add_result(call.action, seq, mark, is_model_answer=request.tool.policy.effect == "model")
    return revive_outcome(
        request.tool, Outcome(call.action, call.tool, status, None, error, entry.seq, reused=True), output, body
    )


def answer_from_done_turn(runtime: Runtime, running: RunningCall, record: TurnRecord) -> Outcome:
    """Answers a call of a turn that is completed. A call that is not in the record is refused."""
    call = running.call
    past = record.calls.get(call.action) or (find_by_key(runtime.log, call.action)[0] if running.has_key else None)
    if past is None:
        raise done_error(record.id, call.tool)
    if not past.settled and call.action not in runtime.log.part("pending_actions"):
        past = read_call(runtime.log, call.action, past.request)
    if past.settled:
        return reuse_outcome(runtime, running, runtime.log.entry(past.settled))
    unknown = ev.Failure("uncertain", "its outcome is unknown")
    return Outcome(call.action, call.tool, "uncertain", error=unknown, seq=past.request, reused=True)


def _repeat_file_change(log: Log, seq: Seq) -> EventDraft:
    """Repeats a file change of an interrupted attempt. The change is still on disk, so it must be in view."""
    entry = log.entry(seq)
    assert isinstance(entry.event, ev.FileChanged)
    sides = {side: log.value(entry, entry.body.get(side)) for side in ("before", "after")}
    return EventDraft(msgspec.structs.replace(entry.event, **sides), actor="tool")
