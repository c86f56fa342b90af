"""One call, step by step: record the intent, run the function, record the outcome.

The intent is durable before a call with effects starts, and the outcome before its caller continues. `Runtime.run_call`
is the whole path and reads from top to bottom:

- `begin_call` finds out whether the call was made before: under the caller's key or id, or in the attempt that this
  turn continues. If it has a recorded outcome, that is returned and nothing runs. If it is still pending, its policy
  decides: send it again, ask the other side, or leave it to a person. A new call's intent is recorded; that is refused
  if another process has taken over the turn.
- `_run_once` runs the function. `_prepare_retry` leads to the next try.
- `finish` records the outcome.

The steps are a generator. A blocking or an awaiting driver (driver.py) runs them, so the logic is written once.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wakelog.codec.canonical import hash_value
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotSentError, WakelogError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.monitors.budgets import check_budget
from wakelog.runtime.ambient import TRUSTED, CurrentCall, Flow, TrustMark, current_action, current_mark
from wakelog.runtime.call_history import action_of_key, check_same, find_by_key, read_call
from wakelog.runtime.driver import Do, Pause, Run, Sleep, Steps
from wakelog.runtime.model_labels import PROMPT, ModelLabels
from wakelog.runtime.operator import decide_approval, reconcile
from wakelog.runtime.outcome import (
    Outcome,
    approval_error,
    classify_error,
    mark_uncertain,
    outcome_event,
    retry_event,
    running_error,
    turn_ended_error,
    uncertain_error,
)
from wakelog.runtime.policy import Found
from wakelog.runtime.resume import OpenTurn, answer_from_done_turn, pin_to_turn, reuse_outcome
from wakelog.runtime.streams import StreamRecord, is_stream, pass_on
from wakelog.runtime.tools import CallRequest, End, Next, RunningCall, Tool
from wakelog.runtime.values import plain

if TYPE_CHECKING:
    from wakelog.files.capture import Capture

Approver = Callable[[CurrentCall, dict[str, Any]], bool | None]
"""Asked when a call needs approval: True, False, or None when it cannot say now."""

_LATE_KINDS = frozenset({"action-machine", "fenced", "session-closed", "session-archived"})
"""Refusals of an outcome that came too late to count: it is recorded as evidence."""


class Runtime:
    """Makes calls and records them in one session's log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.tools: dict[str, Tool] = {}
        self.flow = Flow(log)
        self.model_labels = ModelLabels()
        self.turn: OpenTurn | None = None
        """The turn that is open in this process."""
        self.at_work: list[str] = []
        """The actions that this process is working on now."""
        self.guards: list[Callable[[], None]] = []
        """Called before each call with effects, and after each outcome. A guard may raise, or pause the session."""
        self.approver: Approver | None = None
        self.asks_untrusted = False
        """Whether an effect that depends on untrusted input needs approval, whatever its policy says."""
        self.approval_wait_s = 0.0
        """How long a call waits for an approval from elsewhere before it stops the turn."""
        self.capture: Capture | None = None
        self.guard: int | None = None
        """The epoch of the lease this process holds, if it took one."""

    def run_call(self, request: CallRequest) -> Steps[Outcome]:
        """Makes one call, from its intent to its outcome."""
        running = self.prepare(request)
        is_streaming = False
        try:
            self.at_work.append(running.call.action)
            known = yield from self.begin_call(running)
            if known is not None:
                return known
            while True:
                end = yield from self._run_once(running)
                if not self._should_retry(running, end):
                    break
                yield from self._prepare_retry(running, end)
            if end.how == "succeeded" and request.tool.policy.effect == "model" and is_stream(end.result):
                is_streaming = True
                return self._pass_on_stream(running, end)
            outcome: Outcome = yield Do(functools.partial(self.finish, running, end))
            if end.how == "interrupted" and end.exception is not None:
                raise end.exception
            return outcome
        finally:
            if not is_streaming and running.call.action in self.at_work:
                self.at_work.remove(running.call.action)

    # Intent

    def prepare(self, request: CallRequest) -> RunningCall:
        """Works out the call's stored input, its hash and its action id, without asking the log."""
        tool = request.tool
        stored = request.stored_input()
        digest = hash_value(stored)
        key = request.action or (tool.key_of(request.arguments) if request.key is None else request.key)
        turn = self.turn
        if key:
            action = request.action or action_of_key(tool.name, key)
        elif turn is not None:
            action = turn.action_of(tool.name, digest, current_action())
        else:
            action = f"{tool.name}-{os.urandom(6).hex()}"
        call = CurrentCall(action, tool.name, key or f"{self.log.id}/{action}")
        return RunningCall(call, request, stored, digest, request.exposure or TRUSTED, turn, has_key=bool(key))

    def begin_call(self, running: RunningCall) -> Steps[Outcome | None]:
        """Returns the outcome of a call that need not run. Returns None when the function should run now."""
        try:
            found = yield Do(functools.partial(self._look_up, running))
            if found is Next.WAIT:
                found = yield from self._wait_for_approval(running)
            if isinstance(found, Outcome):
                return found
            if self.capture is not None and running.request.has_effects:
                running.files_before = yield Do(self.capture.before)
            return None
        except BaseException as exc:
            if running.is_started:
                yield Do(functools.partial(self._record_not_started, running, exc))
            raise

    def _look_up(self, running: RunningCall) -> Outcome | Next:
        """Finds out whether this call was made before, and records its intent if not."""
        turn = running.turn
        if turn is not None and turn is not self.turn:
            raise turn_ended_error(self.name, turn.within[0], running.call.tool)
        if turn is not None and turn.record is not None and turn.is_done:
            return answer_from_done_turn(self, running, turn.record)
        if running.has_key:
            while True:
                found = self._look_up_by_key(running)
                if found is not Next.REQUEST:
                    return found
        past = turn.past(running.call.action) if turn is not None else None
        if past is not None and past.is_answer:
            return reuse_outcome(self, running, self.log.entry(past.settled))
        if past is not None and not past.settled:
            found = self._continue_pending(running, past.request)
            if found is not Next.REQUEST:
                return found
        return self._record_intent(running)

    def _look_up_by_key(self, running: RunningCall) -> Outcome | Next:
        """The same for a call with a key. REQUEST: another process won the race; look at what it recorded."""
        call = running.call
        past, commit_id = find_by_key(self.log, call.action)
        if past is not None:
            if running.request.action:
                check_same(call.action, call.tool, running.input_hash, past)
            if past.is_answer:
                return reuse_outcome(self, running, self.log.entry(past.settled))
            return self._continue_pending(running, past.request)
        try:
            return self._record_intent(running, commit_id)
        except (InvalidInputError, NotAllowedError) as exc:
            if exc.kind not in ("commit-id-reused", "action-machine"):
                raise
            return Next.REQUEST

    def _record_intent(self, running: RunningCall, commit_id: str = "") -> Next:
        """Records that a new call is requested, and, unless it needs approval, that it starts."""
        request, policy, call = running.request, running.request.tool.policy, running.call
        self._check_guards(request)
        approval = bool(policy.approval(**request.arguments)) if callable(policy.approval) else policy.approval
        approval = approval or (self.asks_untrusted and request.has_effects and self._is_untrusted(running))
        if policy.effect == "pure" and not (policy.retry or approval or commit_id):
            running.has_intent = False
            running.mark = running.mark.lower_to(self.flow.mark)
            return Next.RUN
        if not policy.is_safe:
            self._refuse_if_uncertain(running)
        stored_policy = policy.stored()
        if self.capture is not None and request.has_effects:
            # Then a call without file events is known to have changed no file.
            stored_policy["captures"] = True
        # Makes the content unique: if two processes use the same commit id, the second one gets `commit-id-reused`.
        stored_policy["runner"] = f"{os.getpid()}-{os.urandom(4).hex()}"
        intent = ev.ActionRequested(
            action=call.action,
            tool=call.tool,
            effect=policy.effect,
            input=running.input,
            input_hash=running.input_hash,
            key=call.key,
            approval=approval,
            policy=stored_policy,
            params=request.params,
            context_hash=request.context_hash,
            prompt_hash=request.labels.get(PROMPT, ""),
            inside=current_action(),
            why=request.why,
        )
        draft = self.flow.draft(intent, mark=running.mark, derived_from=request.derived_from)
        running.mark = TrustMark(draft.trust, draft.source)
        if approval:
            draft = pin_to_turn(draft, running.turn)
            running.requested_at = self.log.append(draft, commit_id=commit_id, guard=self.guard).seq
            return Next.WAIT
        labels = self.model_labels.changes(self.log, request.labels, running.turn)
        self.record_start(running, *labels, draft, commit_id=commit_id)
        return Next.RUN

    def _is_untrusted(self, running: RunningCall) -> bool:
        """Whether the call depends on untrusted input."""
        return running.mark.lower_to(self.flow.mark).lower_to(current_mark()).trust == "untrusted"

    def _refuse_if_uncertain(self, running: RunningCall) -> None:
        """Raises if the same effect was tried before and its outcome is still unknown."""
        call = running.call
        # `check_budget` has just refreshed the state.
        for action, pending in self.log.look("pending_actions", refresh=False)[1]["pending_actions"].items():
            is_same = (pending["tool"], pending.get("input_hash")) == (call.tool, running.input_hash)
            if is_same and pending["status"] == "uncertain":
                raise uncertain_error(self.name, action, call.tool)

    def record_start(self, running: RunningCall, *before: EventDraft, commit_id: str = "") -> None:
        """Records that a call starts, in one commit with the events `before` it."""
        started = EventDraft(
            ev.ActionStarted(action=running.call.action, attempt=running.call.attempt), actor="runtime"
        )
        running.is_started = True
        try:
            drafts = [pin_to_turn(draft, running.turn) for draft in (*before, started)]
            self.log.append(*drafts, commit_id=commit_id, guard=self.guard)
        except (NotAllowedError, ConflictError, InvalidInputError):
            running.is_started = False  # nothing was written
            raise

    def pin_to_turn(self, draft: EventDraft) -> EventDraft:
        """Makes the log refuse the draft if another process has taken over the turn that is open here."""
        return pin_to_turn(draft, self.turn)

    def _record_not_started(self, running: RunningCall, why: BaseException) -> None:
        """Records that a call was stopped between its intent and its start, so it certainly did not happen."""
        with contextlib.suppress(WakelogError):
            pending = self.log.part("pending_actions").get(running.call.action)
            if pending is not None and pending["status"] in ("requested", "running"):
                cut = ev.Failure("interrupted", f"{type(why).__name__} before it began", retryable=True)
                # In a turn it can still be continued, and keeps an approval that it was given.
                failed = ev.ActionFailed(action=running.call.action, error=cut, retry=running.turn is not None)
                self.log.append(EventDraft(failed, actor="runtime"), guard=self.guard)

    # Calls that are still pending from before

    def _continue_pending(self, running: RunningCall, since: Seq) -> Outcome | Next:
        """Continues a call that was requested at `since` or later and had no outcome when it was last read."""
        call, policy = running.call, running.request.tool.policy
        pending = self.log.part("pending_actions").get(call.action)
        if pending is None:
            return self._read_outcome(running, since)
        call.attempt, call.key = pending.get("attempt", 0) + 1, pending.get("key") or call.key
        if pending["status"] == "waiting":
            running.requested_at = since
            return Next.WAIT
        if pending["status"] == "running":
            raise running_error(self.name, call.action, call.tool)
        if pending["status"] == "uncertain":
            if policy.probe is not None:
                return self._probe(running)
            if not policy.is_safe:
                raise uncertain_error(self.name, call.action, call.tool)
            cut = ev.Failure("interrupted", "its outcome is unknown; sent again under the same key", retryable=True)
            failed = ev.ActionFailed(action=call.action, error=cut, retry=True)
            self.log.append(pin_to_turn(EventDraft(failed, actor="runtime"), running.turn), guard=self.guard)
        return self._start_pending(running, since)

    def _start_pending(self, running: RunningCall, since: Seq) -> Outcome | Next:
        """Records that a call starts which was requested before. If somebody else was faster, looks at it again."""
        self._check_guards(running.request)
        try:
            self.record_start(running)
        except NotAllowedError as exc:
            if exc.kind != "action-machine":
                raise
            return self._continue_pending(running, since)
        return Next.RUN

    def _read_outcome(self, running: RunningCall, since: Seq) -> Outcome | Next:
        """Returns the outcome of a call that is no longer pending. Its event may not be readable yet, so this waits."""
        action = running.call.action
        while True:
            past = read_call(self.log, action, since)
            if past.settled:
                return reuse_outcome(self, running, self.log.entry(past.settled)) if past.is_answer else Next.REQUEST
            if action in self.log.part("pending_actions"):
                raise running_error(self.name, action, running.call.tool)  # the commit we waited for failed
            time.sleep(0.001)

    def _probe(self, running: RunningCall) -> Outcome | Next:
        """Asks the other side what happened to a call."""
        call, policy = running.call, running.request.tool.policy
        assert policy.probe is not None
        found = policy.probe(call.key, **running.request.arguments)
        if found is None:
            raise uncertain_error(self.name, call.action, call.tool)
        if not isinstance(found, Found):
            raise InvalidInputError(
                f"the probe of {call.tool} returned {type(found).__name__}",
                kind="bad-probe",
                hint="return wakelog.Found(outcome, output), or None if the outcome is not known",
            )
        mark = policy.mark(call.tool)
        by = f"probe of {call.tool}"
        seq = reconcile(self.log, call.action, found.outcome, output=found.output, by=by, why=found.why, mark=mark)
        if found.outcome != "never_ran":
            return reuse_outcome(self, running, self.log.entry(seq))
        call.attempt = 1
        return Next.REQUEST

    # Approval

    def _wait_for_approval(self, running: RunningCall) -> Steps[Outcome | Next]:
        """Waits up to `approval_wait_s`. Then the call runs, is denied, or stops the turn."""
        call = running.call
        if self.approver is not None:
            yield Do(functools.partial(self._ask_approver, running, self.approver))
        deadline = time.monotonic() + self.approval_wait_s
        while True:
            decision = yield Do(functools.partial(self._check_approval, running))
            if decision is not Next.WAIT:
                return decision  # type: ignore[no-any-return]
            left = deadline - time.monotonic()
            if left <= 0:
                raise approval_error(self.name, call.action, call.tool)
            wait = functools.partial(
                self.log.engine.wait, self.log.id, after=running.read_upto, timeout_s=min(left, 1.0)
            )
            yield Pause(wait)

    def _ask_approver(self, running: RunningCall, approver: Approver) -> None:
        answer = approver(running.call, running.request.arguments)
        if answer is not None:
            decide_approval(self.log, running.call.action, answer, by="approver")

    def _check_approval(self, running: RunningCall) -> Outcome | Next:
        """Reads what was decided about a call that waits for approval."""
        call, running.read_upto = running.call, self.log.head().seq
        pending = self.log.part("pending_actions").get(call.action)
        if pending is None:
            outcome = self._read_outcome(running, running.requested_at)
            if outcome is Next.REQUEST:
                raise approval_error(self.name, call.action, call.tool)
            return outcome
        if pending["status"] == "waiting":
            return Next.WAIT
        return self._start_pending(running, running.requested_at)

    def _check_guards(self, request: CallRequest) -> None:
        """Lets the budget and the monitors refuse a new call."""
        check_budget(self.log)
        if request.check is not None:
            request.check()
        if request.has_effects:
            for guard in self.guards:
                guard()

    @property
    def name(self) -> str:
        return str(self.log)

    # Run, retry, outcome

    def _run_once(self, running: RunningCall) -> Steps[End]:
        """Runs the function once and says how it ended."""
        request = running.request
        run = Run(request.run, running.call, request.tool.policy.timeout_s)
        started, outer = time.monotonic_ns(), sys.exc_info()[1]
        try:
            end = End("succeeded", (yield run))
        except BaseException as exc:
            end = classify_error(exc, request, outer)
        end.took_us, end.thread = (time.monotonic_ns() - started) // 1000, run.thread
        return end

    @staticmethod
    def _should_retry(running: RunningCall, end: End) -> bool:
        policy = running.request.tool.policy
        if running.call.attempt > policy.retry or not running.has_intent:
            return False
        if not end.is_known and not policy.repeats:
            return False
        if end.how == "timed_out":
            return issubclass(TimeoutError, policy.retry_on)
        return end.how == "failed" and isinstance(end.exception, (NotSentError, *policy.retry_on))

    def _prepare_retry(self, running: RunningCall, end: End) -> Steps[None]:
        """Records the failed try, waits, and records the start of the next one."""
        try:
            yield Do(functools.partial(self._record_retry, running, end))
            yield Sleep(running.request.tool.policy.wait_s(running.call.attempt))
            running.call = running.call.next_try()
            yield Do(functools.partial(self.record_start, running))
            if self.capture is not None and running.files_before is not None:
                running.files_before = yield Do(self.capture.before)
        except BaseException as exc:
            yield Do(functools.partial(self._record_not_started, running, exc))
            raise

    def _record_retry(self, running: RunningCall, end: End) -> None:
        event = EventDraft(retry_event(running, end), actor="tool")
        self.log.append(event, *self._changed_files(running), guard=self.guard)

    def _pass_on_stream(self, running: RunningCall, opened: End) -> Outcome:
        """Returns a live stream to the caller. The call ends, and is recorded, when the stream ends."""
        call, turn = running.call, self.turn

        def record(end: End) -> None:
            try:
                self.finish(running, end)
            finally:
                self.at_work.remove(call.action)

        stream = StreamRecord(
            record, lambda exc: classify_error(exc, running.request), lambda: self.turn is turn, opened.took_us
        )
        return Outcome(call.action, call.tool, "succeeded", pass_on(opened.result, stream), attempts=call.attempt)

    def finish(self, running: RunningCall, end: End, *also: EventDraft) -> Outcome:
        """Records a call's outcome, and `also` in the same commit. An outcome that comes too late is recorded as
        evidence."""
        event, status = outcome_event(running, end)
        call, policy = running.call, running.request.tool.policy
        mark = policy.mark(call.tool)
        if policy.effect in ("pure", "model"):
            mark = mark.lower_to(running.mark)
        draft = self.flow.draft(event, actor="tool" if running.has_intent else "agent", mark=mark)
        outcome = draft if running.has_intent else self.pin_to_turn(draft)
        try:
            seq = self.log.record(outcome, *self._changed_files(running), *also, guard=self.guard)
        except (NotAllowedError, ConflictError) as exc:
            if exc.kind not in _LATE_KINDS:
                raise
            seq = self._record_evidence(call.action, status, end)
        if end.thread is not None and status == "uncertain":
            end.thread.on_end(functools.partial(self._record_late_end, running))
        is_answer = policy.effect == "model" and status == "succeeded"
        self.flow.add_result(call.action, seq, TrustMark(draft.trust, draft.source), is_model_answer=is_answer)
        for guard in self.guards:
            guard()
        if status == "uncertain" and end.exception is not None:
            mark_uncertain(end.exception, call.action)
        error = None if status == "succeeded" else end.error
        result = end.result if error is None else None
        return Outcome(
            call.action, call.tool, status, result, error, seq, attempts=call.attempt, exception=end.exception
        )

    def _changed_files(self, running: RunningCall) -> list[EventDraft]:
        if running.files_before is None or self.capture is None:
            return []
        changes = self.capture.changes(running.files_before, action=running.call.action)
        return [EventDraft(change, actor="tool") for change in changes]

    def _record_evidence(self, action: str, status: str, end: End) -> Seq:
        output = end.output if end.error is None else plain(end.error)
        event = ev.ActionEvidence(action=action, outcome=status, output=output, epoch=self.guard or 0)
        return self.log.record(EventDraft(event, actor="tool"))

    def _record_late_end(self, running: RunningCall, result: object, error: BaseException | None) -> None:
        """Records what a function did that ended after its call had timed out."""
        end = End("succeeded", result) if error is None else classify_error(error, running.request)
        event, status = outcome_event(running, end)
        if status == "uncertain":
            return
        mark = running.request.tool.policy.mark(running.call.tool)
        try:
            self.log.append(EventDraft(event, actor="tool", source=mark.source, trust=mark.trust), guard=self.guard)
        except (NotAllowedError, ConflictError):
            self._record_evidence(running.call.action, status, end)
        except WakelogError:
            return  # the store is closed: the call stays uncertain
