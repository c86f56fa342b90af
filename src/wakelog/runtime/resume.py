"""What a dead process left, and the opening of the turn that goes on from there.

**Open calls** are settled, each by its own policy. A call that was running when the process died: one without effects,
or one that the other side knows by its key, goes back to be sent again; one counted as failed by its policy fails; any
other is *uncertain*, and stays pending until somebody says what happened. A call that never started, or waits for
approval, stays as it is.

**A cut turn** is continued by the same script run again, as its next attempt. A call's id follows from the turn, the
tool, the input, and how many such calls were made before it; so the call made again has the id it had, and is answered
from the log.

**A turn with an id** of its caller's is done once. The commit that first starts it has an id made from it, so the turn
is found without a search, and of two processes that start it at once one comes second. Its calls are named after the
turn's id, not its number. A turn that somebody rewound is out of view: its id is free again, and the next turn of that
id is another *generation*.

**Opening** is one commit on the head that was looked at. A crash leaves the turn as it was or opened; of two processes
that open at once, one comes second, looks again, and finds the turn of the first.
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
from wakelog.runtime.ambient import TrustMark, inside
from wakelog.runtime.call_history import PastCall, asked_at, by_key, follow, gone_error, known_at
from wakelog.runtime.outcome import Outcome, status_of
from wakelog.runtime.policy import SAFE
from wakelog.runtime.streams import answered_again
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
    """The events that leave nothing dangling. With `resumes`, the cut turn is about to be continued, and calls that may
    be sent again are left for that; with `closes`, nobody will answer what still waits. What this process is itself `at
    work` on is left alone."""
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


def unanswered(log: Log, turn: int, at_work: Collection[str], *, resumes: bool) -> list[EventDraft]:
    """The same for a turn that ends in this process: calls of it that ran, but whose outcome could not be recorded."""
    why = "its outcome could not be recorded"

    def is_lost(action: str, pending: dict[str, Value]) -> bool:
        return pending["status"] == "running" and pending["turn"] == turn and action not in at_work

    # Mostly none is, as this process knows without a question: they are its own.
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
    """The turn that is open in this process: which calls it has made, and what the attempts it continues made."""

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
        """What was recorded of it before, if it has an id."""
        self._name = record.name if record is not None else f"{number}.{resumes or attempt}"
        self._past = past or {}
        self._made: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()

    def action_of(self, tool: str, input_hash: str, inside: str = "") -> str:
        """The id of a call that is made now, by the agent or inside another call."""
        with self._lock:
            place = self._made[inside, tool, input_hash]
            self._made[inside, tool, input_hash] += 1
        text = f"{self._name} {place} {input_hash} {tool} {inside}"
        return f"{tool}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def is_done(self) -> bool:
        """Whether it was completed before: then it is only answered from the record, and nothing is written."""
        return self.record is not None and self.record.is_done

    def past(self, action: str) -> PastCall | None:
        """What a cut attempt knows of a call."""
        return self._past.get(action)


def remember(log: Log, first: Seq) -> dict[str, PastCall]:
    """What is known of the calls since an event, by their actions' ids. Outcomes may come after the turn was cut."""
    calls: dict[str, PastCall] = {}
    for entry in log.entries(after=first - 1):
        is_of_call = entry.kind.startswith("action.") or entry.kind == "file.changed"
        action = entry.body.get("action") if is_of_call else None
        if isinstance(action, str) and (past := follow(calls.get(action), entry)) is not None:
            calls[action] = past
    return calls


class TurnRecord(msgspec.Struct):
    """A turn by its id, as far as the log knows it."""

    id: str
    generation: int = 1
    retries: int = 0
    """How often it was begun anew on purpose: what it had called before is called again."""
    turn: int = 0
    """The newest turn of that id; 0 when there is none in view."""
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
    """The newest generation of a turn; a fresh one when there is none yet, or it was rewound."""
    generation = 1
    while True:
        record = TurnRecord(id, generation)
        at = known_at(log, record.commit_id)
        if at is None:
            return record
        _read(log, record, commit_at(log, at).first)
        if _is_in_view(log, record.started):
            return record
        generation += 1


def _read(log: Log, record: TurnRecord, first: Seq) -> None:
    """Reads on from where it was first started. Outcomes of calls may come after it was cut."""
    for entry in log.entries(after=first - 1):
        if entry.kind == "turn.started" and entry.body.get("id") == record.id:
            _start(record, entry)
        elif entry.kind == "turn.ended" and (entry.header.turn, entry.header.attempt) == (record.turn, record.attempt):
            record.ended, record.outcome = entry.seq, str(entry.body.get("outcome", "completed"))
            if record.is_done and _is_in_view(log, entry.seq):
                record.output = log.value(entry, entry.body.get("output"))
                return
        elif entry.kind.startswith("action.") or entry.kind == "file.changed":
            action = entry.body.get("action")
            if isinstance(action, str) and (past := follow(record.calls.get(action), entry)) is not None:
                record.calls[action] = past


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


def open_turn(runtime: Runtime, started: ev.TurnStarted, said: list[EventDraft], resume: Resume) -> OpenTurn:
    """Opens a turn, with what was said to begin it."""
    found: list[TurnRecord] = []
    if started.id:
        runtime.log.look()  # first: what is read below is not older than what the turn is opened on
        found.append(find_turn(runtime.log, started.id))
        if found[0].is_done:
            return OpenTurn(found[0].turn, found[0].attempt, past=found[0].calls, record=found[0])
    hold = hold_turn(runtime.log)
    started = msgspec.structs.replace(started, holder=hold.text if hold is not None else "")

    def attempt() -> OpenTurn:
        try:
            # At the first try, what was found holds; after a conflict it is looked up again.
            return _open(runtime, started, said, resume, hold, found.pop() if found else None)
        except InvalidInputError as exc:
            if exc.kind != "commit-id-reused":
                raise
            raise ConflictError("another process opened this turn first", kind="head-moved") from exc

    try:
        turn = retry_on_moved_head(runtime.log.id, "to open a turn", attempt)
    except BaseException:
        if hold is not None:
            hold.let_go()
        raise
    runtime.flow.new_turn()
    return turn


def _open(
    runtime: Runtime,
    started: ev.TurnStarted,
    said: list[EventDraft],
    resume: Resume,
    hold: TurnHold | None,
    found: TurnRecord | None,
) -> OpenTurn:
    log, guard = runtime.log, runtime.guard
    seen, parts = log.parts("turn")
    now = parts["turn"]
    refuse_if_leased(runtime)
    if started.id:
        return _open_named(runtime, started, said, hold, seen, now, found or find_turn(log, started.id))
    spans = attempts_of(log, now["number"]) if now["number"] and (started.retry or _is_cut(now)) else []
    base = _continued(log, spans, started, resume) if _is_cut(now) and resume != "never" else None
    record = None
    if started.retry and spans and (id := str(log.entry(spans[-1].first).body.get("id", ""))):
        started = msgspec.structs.replace(started, id=id)
        record = TurnRecord(id, (last := find_turn(log, id)).generation, last.retries + 1)
    left = settle_pending(log, end_of_holder(log), resumes=base is not None, at_work=runtime.at_work)
    if base is None and not started.retry:
        log.append(*left, started, *said, expect=seen, guard=guard)
        return OpenTurn(now["number"] + 1, 1, hold=hold)
    resumes, past = (base.attempt, remember(log, base.first)) if base is not None else (0, {})
    started = msgspec.structs.replace(started, retry=True, resumes=resumes)
    to = spans[-1].first - 1 if spans else seen
    kept = _kept(log, spans[-1], to, seen) if base is not None else []
    log.rewind(to, mode="retry", restored=left, then=[*kept, started, *said], expect=seen, guard=guard)
    return OpenTurn(now["number"], now["attempt"] + 1, resumes, past, hold, record)


def _open_named(
    runtime: Runtime,
    started: ev.TurnStarted,
    said: list[EventDraft],
    hold: TurnHold | None,
    seen: Seq,
    now: dict[str, Value],
    record: TurnRecord,
) -> OpenTurn:
    """A turn with an id that is not completed: begun, or, however it ended, gone on with. What succeeded is answered
    from the record; in a turn that failed, what failed is tried again."""
    log, guard = runtime.log, runtime.guard
    if record.is_done:  # by another process, a moment ago
        if hold is not None:
            hold.let_go()
        return OpenTurn(record.turn, record.attempt, past=record.calls, record=record)
    past = {a: p for a, p in record.calls.items() if record.outcome != "failed" or not p.is_failure}
    if record.turn and record.turn == now["number"]:
        spans = attempts_of(log, record.turn)
        left = settle_pending(log, end_of_holder(log), resumes=True, at_work=runtime.at_work)
        resumes = log.entry(record.started).body.get("resumes") or record.attempt
        started = msgspec.structs.replace(started, retry=True, resumes=resumes)
        to = spans[-1].first - 1
        kept = _kept(log, spans[-1], to, seen)
        log.rewind(to, mode="retry", restored=left, then=[*kept, started, *said], expect=seen, guard=guard)
        return OpenTurn(now["number"], now["attempt"] + 1, past=past, hold=hold, record=record)
    left = settle_pending(log, end_of_holder(log), at_work=runtime.at_work)
    commit_id = "" if record.turn else record.commit_id
    log.append(*left, started, *said, expect=seen, commit_id=commit_id, is_new=True, guard=guard)
    return OpenTurn(now["number"] + 1, 1, past=past, hold=hold, record=record)


def _kept(log: Log, cut: Span, to: Seq, now: Seq) -> list[ev.Event]:
    """What another writer did to the data, and made the cut attempt's draft a conflict: going back does not undo it."""
    ended = log.entry(cut.last)
    if (ended.body.get("error") or {}).get("type") != "draft-conflict":
        return []
    return [ev.StatePatched(patch=diff(log.state(to)["data"], log.state(now)["data"], "/data"), why="another writer's")]


def _is_cut(now: dict[str, Value]) -> bool:
    return now["status"] in ("open", "interrupted")


def _continued(log: Log, spans: list[Span], started: ev.TurnStarted, resume: Resume) -> Span | None:
    """The first of the attempts that this turn continues; None when it is another turn, or somebody has rewound the
    session since."""
    cut = log.entry(spans[-1].first)
    if log.part("view")["rewound"] > cut.seq or cut.body.get("id"):
        return None
    if resume != "always" and not equal(log.value(cut, cut.body.get("input")), _stored(log, started)):
        return None
    base = cut.body.get("resumes") or spans[-1].attempt
    return next(span for span in spans if span.attempt == base)


def _stored(log: Log, started: ev.TurnStarted) -> Value:
    """A turn's input as the log keeps it: without secrets."""
    event = msgspec.structs.replace(started, input=plain(started.input))
    kept = log.redact(event)[0] if log.redact is not None else event
    assert isinstance(kept, ev.TurnStarted)
    return kept.input


def refuse_if_leased(runtime: Runtime) -> None:
    """A turn is not opened while another process holds the session's lease, or has a turn open, and lives."""
    log = runtime.log
    holder = log.lease_holder()
    if runtime.guard is not None and runtime.guard == log.part("lease")["epoch"]:
        return  # it was found free, or taken by force
    if holder:
        raise ConflictError(
            f"{log} is being written by {holder}",
            kind="leased",
            hint="wait for it, or take it over: session.life.take_lease(…, force=True)",
        )
    refuse_if_held(log)


def give_again(runtime: Runtime, running: RunningCall, entry: Entry) -> Outcome:
    """A recorded outcome, given again. One that a cut attempt made is noted in this one, so that its view is
    whole."""
    call, given, body = running.call, running.given, entry.body
    if not entry.is_intact:
        raise gone_error(call.action, entry.seq)
    status, error = status_of(entry)
    output = runtime.log.value(entry, body.get("output"))
    mark, seq = TrustMark(entry.header.trust, entry.header.source), entry.seq
    past = runtime.turn.past(call.action) if runtime.turn is not None else None
    if past is not None and runtime.turn is not None and not runtime.turn.is_done:
        event = ev.ActionRecorded(
            action=call.action,
            tool=call.tool,
            effect=given.tool.policy.effect,
            outcome=status if status in ("succeeded", "timed_out") else "failed",
            input=running.input,
            input_hash=running.input_hash,
            output=output,
            output_summary=str(body.get("output_summary", "")),
            error=error,
            params=given.params,
            stream=body.get("stream") or {},
            reused=body.get("reused") or entry.seq,
            inside=inside(),
        )
        draft = runtime.flow.draft(event, mark=mark, derived_from=((entry.seq, entry.seq),))
        seq = runtime.log.record(
            runtime.placed(draft), *(_changed_again(runtime.log, seq) for seq in past.files), guard=runtime.guard
        )
    runtime.flow.result(call.action, seq, mark)
    if given.tool.policy.effect == "model":
        runtime.flow.answered(seq, mark)
    return answered_again(
        given.tool, Outcome(call.action, call.tool, status, None, error, entry.seq, reused=True), output, body
    )


def give_from_record(runtime: Runtime, running: RunningCall, record: TurnRecord) -> Outcome:
    """The outcome of a call of a turn that is completed. What is not on record is not run."""
    call = running.call
    past = record.calls.get(call.action) or (by_key(runtime.log, call.action)[0] if running.has_key else None)
    if past is None:
        raise done_error(record.id, call.tool)
    if not past.settled and call.action not in runtime.log.part("pending_actions"):
        past = asked_at(runtime.log, call.action, past.request)
    if past.settled:
        return give_again(runtime, running, runtime.log.entry(past.settled))
    unknown = ev.Failure("uncertain", "nobody has said what became of it")
    return Outcome(call.action, call.tool, "uncertain", error=unknown, seq=past.request, reused=True)


def _changed_again(log: Log, seq: Seq) -> EventDraft:
    """A change of a file that a cut attempt made: it still stands on disk, and so in view."""
    entry = log.entry(seq)
    assert isinstance(entry.event, ev.FileChanged)
    sides = {side: log.value(entry, entry.body.get(side)) for side in ("before", "after")}
    return EventDraft(msgspec.structs.replace(entry.event, **sides), actor="tool")
