"""The opening of a turn. What a dead process left open is settled, and a cut turn is continued as its next attempt.

All of it is one commit on the head that was looked at. A crash leaves the turn as it was or opened; of two processes
that open at once, one comes second, looks again, and finds the turn of the first.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.errors import ConflictError, InvalidInputError, UnavailableError
from wakelog.log import Log
from wakelog.log.holder import Hold, end_of_holder, hold_turn, refuse_if_held
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.call import Runtime
from wakelog.runtime.recovery import OpenTurn, remember, settling
from wakelog.runtime.turn_record import TurnRecord, find_turn
from wakelog.runtime.values import plain
from wakelog.state.diff import diff
from wakelog.state.patch import equal
from wakelog.timeline.points import Span, attempts_of

Resume = Literal["auto", "always", "never"]
_TRIES = 1000


def open_turn(runtime: Runtime, started: ev.TurnStarted, said: list[EventDraft], resume: Resume) -> OpenTurn:
    """Opens a turn, with what was said to begin it."""
    if started.id:
        record = find_turn(runtime.log, started.id)
        if record.is_done:
            return OpenTurn(record.turn, record.attempt, past=record.calls, record=record)
    hold = hold_turn(runtime.log)
    started = msgspec.structs.replace(started, holder=hold.text if hold is not None else "")
    try:
        for _ in range(_TRIES):
            try:
                turn = _open(runtime, started, said, resume, hold)
            except ConflictError as exc:
                if exc.kind != "head-moved":
                    raise
            except InvalidInputError as exc:
                if exc.kind != "commit-id-reused":
                    raise
            else:
                runtime.flow.new_turn()
                return turn
    except BaseException:
        if hold is not None:
            hold.let_go()
        raise
    if hold is not None:
        hold.let_go()
    raise UnavailableError(f"session {runtime.log.id} is too busy to open a turn", kind="too-busy")


def _open(
    runtime: Runtime, started: ev.TurnStarted, said: list[EventDraft], resume: Resume, hold: Hold | None
) -> OpenTurn:
    log, guard = runtime.log, runtime.guard
    seen, now = log.head().seq, log.part("turn")
    refuse_if_leased(runtime)
    if started.id:
        return _open_named(runtime, started, said, hold)
    spans = attempts_of(log, now["number"]) if now["number"] and (started.retry or _is_cut(now)) else []
    base = _continued(log, spans, started, resume) if _is_cut(now) and resume != "never" else None
    record = None
    if started.retry and spans and (id := str(log.entry(spans[-1].first).body.get("id", ""))):
        started = msgspec.structs.replace(started, id=id)
        record = TurnRecord(id, (last := find_turn(log, id)).generation, last.retries + 1)
    left = settling(log, end_of_holder(log), resumes=base is not None, at_work=runtime.at_work)
    if base is None and not started.retry:
        log.append(*left, started, *said, expect=seen, guard=guard)
        return OpenTurn(now["number"] + 1, 1, hold=hold)
    resumes, past = (base.attempt, remember(log, base.first)) if base is not None else (0, {})
    started = msgspec.structs.replace(started, retry=True, resumes=resumes)
    to = spans[-1].first - 1 if spans else seen
    kept = _kept(log, spans[-1], to, seen) if base is not None else []
    log.rewind(to, mode="retry", restored=left, then=[*kept, started, *said], expect=seen, guard=guard)
    return OpenTurn(now["number"], now["attempt"] + 1, resumes, past, hold, record)


def _open_named(runtime: Runtime, started: ev.TurnStarted, said: list[EventDraft], hold: Hold | None) -> OpenTurn:
    """A turn with an id that is not completed: begun, or, however it ended, gone on with. What succeeded is answered
    from the record; in a turn that failed, what failed is tried again."""
    log, guard = runtime.log, runtime.guard
    seen, now, record = log.head().seq, log.part("turn"), find_turn(log, started.id)
    if record.is_done:  # by another process, a moment ago
        if hold is not None:
            hold.let_go()
        return OpenTurn(record.turn, record.attempt, past=record.calls, record=record)
    past = {a: p for a, p in record.calls.items() if record.outcome != "failed" or not p.is_failure}
    if record.turn and record.turn == now["number"]:
        spans = attempts_of(log, record.turn)
        left = settling(log, end_of_holder(log), resumes=True, at_work=runtime.at_work)
        resumes = log.entry(record.started).body.get("resumes") or record.attempt
        started = msgspec.structs.replace(started, retry=True, resumes=resumes)
        to = spans[-1].first - 1
        kept = _kept(log, spans[-1], to, seen)
        log.rewind(to, mode="retry", restored=left, then=[*kept, started, *said], expect=seen, guard=guard)
        return OpenTurn(now["number"], now["attempt"] + 1, past=past, hold=hold, record=record)
    left = settling(log, end_of_holder(log), at_work=runtime.at_work)
    commit_id = "" if record.turn else record.commit_id
    log.append(*left, started, *said, expect=seen, commit_id=commit_id, guard=guard)
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
            f"{log.head().name or log.id} is being written by {holder}",
            kind="leased",
            hint="wait for it, or take it over: session.take_lease(…, force=True)",
        )
    refuse_if_held(log)
