"""A call, step by step: intent, run, outcome.

The intent is durable before a call with effects starts, the outcome before its caller goes on. `Runtime.conduct` is all
of it, and reads from top to bottom:

- `_begin` finds out whether the call was made before. It was, if the caller's key or id says so, or if the attempt that
  this turn continues made it. Then its recorded outcome is given again. What was open then goes on by its policy: it is
  sent again, asked about, or left to a person. Else the intent is recorded, refused when another process has taken the
  turn over.
- `_tried` runs the function; `_retried` leads to the next try.
- `finish` records what came of it.

The steps are a generator, walked through by a blocking or an awaiting driver (tools.py), so that there is one text of
what happens.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotSentError, WakelogError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.monitors.budgets import check_budget
from wakelog.runtime.ambient import TRUSTED, CurrentCall, Flow, TrustMark, inside, mark_here
from wakelog.runtime.call_history import action_of_key, asked_at, by_key, check_same
from wakelog.runtime.model_labels import PROMPT, ModelLabels
from wakelog.runtime.operator import decide_approval, reconcile
from wakelog.runtime.outcome import (
    Outcome,
    approval_error,
    ending,
    failure_of,
    is_stop,
    leaves_open,
    mark_unsure,
    retrying,
    running_error,
    uncertain_error,
)
from wakelog.runtime.policy import SAFE, Found
from wakelog.runtime.resume import OpenTurn, give_again, give_from_record
from wakelog.runtime.streams import StreamRecord, is_stream, live
from wakelog.runtime.tools import CallRequest, Do, End, Next, Pause, Run, RunningCall, Sleep, Steps, TimedOut, Tool
from wakelog.runtime.values import plain, without

if TYPE_CHECKING:
    from wakelog.files.capture import Capture

Approver = Callable[[CurrentCall, dict[str, Any]], bool | None]
"""Asked when a call needs approval: True, False, or None when it cannot say now."""

_LATE_KINDS = frozenset({"action-machine", "fenced", "session-closed", "session-archived"})
"""Refusals of an outcome that came too late to count: it is kept as evidence."""


class Runtime:
    """Calls through one session's log."""

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
        """Asked before each call with effects, and after each outcome; one may raise, or pause the session."""
        self.approver: Approver | None = None
        self.asks_untrusted = False
        """Whether an effect that depends on untrusted input needs approval, whatever its policy says."""
        self.approval_wait_s = 0.0
        """How long a call waits for an approval that is given elsewhere, before it stops the turn."""
        self.capture: Capture | None = None
        self.guard: int | None = None
        """The epoch of the lease this process holds, if it took one."""

    def conduct(self, given: CallRequest) -> Steps[Outcome]:
        """All of one call."""
        running = self.prepare(given)
        self.at_work.append(running.call.action)
        is_live = False
        try:
            known = yield from self.begun(running)
            if known is not None:
                return known
            while True:
                end = yield from self._tried(running)
                if not self._tries_again(running, end):
                    break
                yield from self._retried(running, end)
            if end.how == "succeeded" and given.tool.policy.effect == "model" and is_stream(end.result):
                is_live = True
                return self._streamed(running, end)
            outcome: Outcome = yield Do(functools.partial(self.finish, running, end))
            if end.how == "interrupted" and end.exception is not None:
                raise end.exception
            return outcome
        finally:
            if not is_live:
                self.at_work.remove(running.call.action)

    # Intent

    def prepare(self, given: CallRequest) -> RunningCall:
        """What can be said of a call before the log is asked: its input, its hash, its id."""
        tool, policy = given.tool, given.tool.policy
        stored = without(given.arguments, policy.redact) if given.stored is None else given.stored
        digest = hash_value(stored)
        key = given.action or (str(policy.key(**given.arguments)) if policy.key is not None else "")
        if key:
            action = given.action or action_of_key(tool.name, key)
        elif self.turn is not None:
            action = self.turn.action_of(tool.name, digest, inside())
        else:
            action = f"{tool.name}-{os.urandom(6).hex()}"
        call = CurrentCall(action, tool.name, key or f"{self.log.id}/{action}")
        return RunningCall(call, given, stored, digest, given.exposure or TRUSTED, has_key=bool(key))

    def begun(self, running: RunningCall) -> Steps[Outcome | None]:
        """To the point where the function runs; or the outcome, when it need not."""
        try:
            begun = yield Do(functools.partial(self._begin, running))
            if begun is Next.WAIT:
                begun = yield from self._approved(running)
            if isinstance(begun, Outcome):
                return begun
            if self.capture is not None and self._captures(running.given):
                running.picture = yield Do(self.capture.before)
            return None
        except BaseException as exc:
            if running.is_started:
                yield Do(functools.partial(self.take_back, running, exc))
            raise

    def _begin(self, running: RunningCall) -> Outcome | Next:
        """Finds out whether this call was made before, and records its intent if not."""
        if self.turn is not None and self.turn.record is not None and self.turn.is_done:
            return give_from_record(self, running, self.turn.record)
        if running.has_key:
            while True:
                begun = self._begin_by_key(running)
                if begun is not Next.ASK:
                    return begun
        past = self.turn.past(running.call.action) if self.turn is not None else None
        if past is not None and past.is_answer:
            return give_again(self, running, self.log.entry(past.settled))
        begun = self._go_on(running, past.request) if past is not None and not past.settled else Next.ASK
        return self._request(running) if begun is Next.ASK else begun

    def _begin_by_key(self, running: RunningCall) -> Outcome | Next:
        """The same under a key. ASK: another process was quicker, and what it did is to be looked at."""
        call = running.call
        past, commit_id = by_key(self.log, call.action)
        if past is not None:
            if running.given.action:
                check_same(call.action, call.tool, running.input_hash, past)
            if past.is_answer:
                return give_again(self, running, self.log.entry(past.settled))
            return self._go_on(running, past.request)
        try:
            return self._request(running, commit_id)
        except (InvalidInputError, NotAllowedError) as exc:
            if exc.kind not in ("commit-id-reused", "action-machine"):
                raise
            return Next.ASK

    def _captures(self, given: CallRequest) -> dict[str, bool]:
        """Said in the request, so that a call without changes of files is known to have made none."""
        return {"captures": True} if self.capture is not None and has_effects(given) else {}

    def _request(self, running: RunningCall, commit_id: str = "") -> Next:
        """Records the intent of a new call."""
        given, policy, call = running.given, running.given.tool.policy, running.call
        self._ask_guards(given)
        approval = bool(policy.approval(**given.arguments)) if callable(policy.approval) else policy.approval
        approval = approval or (self.asks_untrusted and has_effects(given) and self._is_untrusted(running))
        if policy.effect == "pure" and not (policy.retry or approval or commit_id):
            running.is_open = False
            running.mark = running.mark.lowered(self.flow.mark)
            return Next.RUN
        if not policy.is_safe:
            self._refuse_if_uncertain(running)
        request = ev.ActionRequested(
            action=call.action,
            tool=call.tool,
            effect=policy.effect,
            input=running.input,
            input_hash=running.input_hash,
            key=call.key,
            approval=approval,
            # The runner makes the content this caller's own: two that ask under one commit id are told apart.
            policy={**policy.stored(), **self._captures(given), "runner": f"{os.getpid()}-{os.urandom(4).hex()}"},
            params=given.params,
            context_hash=given.context_hash,
            prompt_hash=given.labels.get(PROMPT, ""),
            inside=inside(),
            why=given.why,
        )
        draft = self.flow.draft(request, mark=running.mark, derived_from=given.derived_from)
        running.mark = TrustMark(draft.trust, draft.source)
        if approval:
            running.asked = self.log.append(self.placed(draft), commit_id=commit_id, guard=self.guard).seq
            return Next.WAIT
        self.start(running, *self.model_labels.changes(self.log, given.labels, self.turn), draft, commit_id=commit_id)
        return Next.RUN

    def _is_untrusted(self, running: RunningCall) -> bool:
        """Whether the call would be made on the word of something nobody trusts."""
        return running.mark.lowered(self.flow.mark).lowered(mark_here()).trust == "untrusted"

    def _refuse_if_uncertain(self, running: RunningCall) -> None:
        """The same effect is not tried again while nobody knows what became of it the last time."""
        call = running.call
        # The budget was asked for a moment ago, and the engine with it.
        for action, pending in self.log.look("pending_actions", refresh=False)[1]["pending_actions"].items():
            is_same = (pending["tool"], pending.get("input_hash")) == (call.tool, running.input_hash)
            if is_same and pending["status"] == "uncertain":
                raise uncertain_error(self.name, action, call.tool)

    def start(self, running: RunningCall, *before: EventDraft, commit_id: str = "") -> None:
        """Records that a call starts."""
        started = EventDraft(
            ev.ActionStarted(action=running.call.action, attempt=running.call.attempt), actor="runtime"
        )
        running.is_started = True
        try:
            self.log.append(*map(self.placed, (*before, started)), commit_id=commit_id, guard=self.guard)
        except (NotAllowedError, ConflictError, InvalidInputError):
            running.is_started = False  # nothing was written
            raise

    def placed(self, draft: EventDraft) -> EventDraft:
        """A draft that is refused once another process has taken over the turn that is open in this one."""
        return draft if self.turn is None else msgspec.structs.replace(draft, within=self.turn.within)

    def take_back(self, running: RunningCall, why: BaseException) -> None:
        """A call was stopped between its intent and its start: that it did not happen is known, and noted."""
        with contextlib.suppress(WakelogError):
            pending = self.log.part("pending_actions").get(running.call.action)
            if pending is not None and pending["status"] in ("requested", "running"):
                cut = ev.Failure("interrupted", f"{type(why).__name__} before it began", retryable=True)
                # In a turn it can still be continued, and an approval that was given for it holds.
                failed = ev.ActionFailed(action=running.call.action, error=cut, retry=self.turn is not None)
                self.log.append(EventDraft(failed, actor="runtime"), guard=self.guard)

    # What is open since before

    def _go_on(self, running: RunningCall, since: Seq) -> Outcome | Next:
        """A call that was asked for at `since` or later, and not settled when it was last looked at."""
        call, policy = running.call, running.given.tool.policy
        pending = self.log.part("pending_actions").get(call.action)
        if pending is None:
            return self._settled(running, since)
        call.attempt, call.key = pending.get("attempt", 0) + 1, pending.get("key") or call.key
        if pending["status"] == "waiting":
            running.asked = since
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
            self.log.append(self.placed(EventDraft(failed, actor="runtime")), guard=self.guard)
        self._ask_guards(running.given)
        self.start(running)
        return Next.RUN

    def _settled(self, running: RunningCall, since: Seq) -> Outcome | Next:
        """What became of a call that is no longer pending. The event may be on its way still."""
        action = running.call.action
        while True:
            past = asked_at(self.log, action, since)
            if past.settled:
                return give_again(self, running, self.log.entry(past.settled)) if past.is_answer else Next.ASK
            if action in self.log.part("pending_actions"):
                raise running_error(self.name, action, running.call.tool)  # what was on its way did not arrive
            time.sleep(0.001)

    def _probe(self, running: RunningCall) -> Outcome | Next:
        """Asks the other side what became of a call."""
        call, policy = running.call, running.given.tool.policy
        assert policy.probe is not None
        found = policy.probe(call.key, **running.given.arguments)
        if found is None:
            raise uncertain_error(self.name, call.action, call.tool)
        if not isinstance(found, Found):
            raise InvalidInputError(
                f"the probe of {call.tool} returned {type(found).__name__}",
                kind="bad-probe",
                hint="return wakelog.Found(outcome, output), or None when it cannot be told",
            )
        mark = policy.mark(call.tool)
        by = f"probe of {call.tool}"
        seq = reconcile(self.log, call.action, found.outcome, output=found.output, by=by, why=found.why, mark=mark)
        if found.outcome != "never_ran":
            return give_again(self, running, self.log.entry(seq))
        call.attempt = 1
        return Next.ASK

    # Approval

    def _approved(self, running: RunningCall) -> Steps[Outcome | Next]:
        """Waits for an approval as long as it may; then the call runs, is denied, or stops the turn."""
        call = running.call
        if self.approver is not None:
            yield Do(functools.partial(self._ask_approver, running, self.approver))
        deadline = time.monotonic() + self.approval_wait_s
        while True:
            decided = yield Do(functools.partial(self._decided, running))
            if decided is not Next.WAIT:
                return decided  # type: ignore[no-any-return]
            left = deadline - time.monotonic()
            if left <= 0:
                raise approval_error(self.name, call.action, call.tool)
            wait = functools.partial(self.log.engine.wait, self.log.id, after=running.seen, timeout_s=min(left, 1.0))
            yield Pause(wait)

    def _ask_approver(self, running: RunningCall, approver: Approver) -> None:
        answer = approver(running.call, running.given.arguments)
        if answer is not None:
            decide_approval(self.log, running.call.action, answer, by="approver")

    def _decided(self, running: RunningCall) -> Outcome | Next:
        """What was decided on a call that waits."""
        call, running.seen = running.call, self.log.head().seq
        pending = self.log.part("pending_actions").get(call.action)
        if pending is None:
            settled = self._settled(running, running.asked)
            if settled is Next.ASK:
                raise approval_error(self.name, call.action, call.tool)
            return settled
        if pending["status"] == "waiting":
            return Next.WAIT
        self._ask_guards(running.given)
        self.start(running)
        return Next.RUN

    def _ask_guards(self, given: CallRequest) -> None:
        """Lets the budget and the monitors object before something new begins."""
        check_budget(self.log)
        if given.check is not None:
            given.check()
        if has_effects(given):
            for guard in self.guards:
                guard()

    @property
    def name(self) -> str:
        return str(self.log)

    # Run, retry, outcome

    def _streamed(self, running: RunningCall, opened: End) -> Outcome:
        """A call whose answer is only now coming: it is over, and recorded, when its stream is."""
        call, turn = running.call, self.turn

        def record(end: End) -> None:
            try:
                self.finish(running, end)
            finally:
                self.at_work.remove(call.action)

        taken = StreamRecord(
            record, lambda exc: self.ended_by(exc, running.given), lambda: self.turn is turn, opened.took_us
        )
        return Outcome(call.action, call.tool, "succeeded", live(opened.result, taken), attempts=call.attempt)

    def _tried(self, running: RunningCall) -> Steps[End]:
        """One try, and how it ended."""
        given = running.given
        run = Run(given.run, running.call, given.tool.policy.timeout_s)
        started, outer = time.monotonic_ns(), sys.exc_info()[1]
        try:
            end = End("succeeded", (yield run))
        except BaseException as exc:
            end = self.ended_by(exc, given, outer)
        end.took_us, end.late = (time.monotonic_ns() - started) // 1000, run.late
        return end

    def _retried(self, running: RunningCall, end: End) -> Steps[None]:
        """From a try that failed to the start of the next."""
        try:
            yield Do(functools.partial(self._note_retry, running, end))
            yield Sleep(running.given.tool.policy.wait_s(running.call.attempt))
            running.call = running.call.again()
            yield Do(functools.partial(self.start, running))
            if self.capture is not None and running.picture is not None:
                running.picture = yield Do(self.capture.before)
        except BaseException as exc:
            yield Do(functools.partial(self.take_back, running, exc))
            raise

    @staticmethod
    def ended_by(exc: BaseException, given: CallRequest, outer: BaseException | None = None) -> End:
        policy = given.tool.policy
        if isinstance(exc, TimedOut):
            error = ev.Failure("timeout", f"no answer within {policy.timeout_s} s", retryable=policy.is_safe)
            return End("timed_out", error=error, exception=TimeoutError(f"{given.tool.name}: {error.message}"))
        if isinstance(exc, Exception) and not is_stop(exc):
            is_open = leaves_open(exc, outer)
            error = failure_of(exc, () if is_open and not policy.repeats else (NotSentError, *policy.retry_on))
            return End("failed", error=error, exception=exc, is_open=is_open)
        # Nobody knows how far it came. So too when a call inside this one stopped the turn.
        why = exc.message if isinstance(exc, WakelogError) else type(exc).__name__
        return End("interrupted", error=ev.Failure("interrupted", why, retryable=policy.is_safe), exception=exc)

    @staticmethod
    def _tries_again(running: RunningCall, end: End) -> bool:
        policy = running.given.tool.policy
        if running.call.attempt > policy.retry or not running.is_open:
            return False
        if not end.is_known and not policy.repeats:
            return False
        if end.how == "timed_out":
            return issubclass(TimeoutError, policy.retry_on)
        return end.how == "failed" and isinstance(end.exception, (NotSentError, *policy.retry_on))

    def _note_retry(self, running: RunningCall, end: End) -> None:
        self.log.append(
            EventDraft(retrying(running, end), actor="tool"), *self._changed_files(running), guard=self.guard
        )

    def finish(self, running: RunningCall, end: End, *also: EventDraft) -> Outcome:
        """Records what came of a call, and `also` with it. What the log no longer accepts is kept as evidence."""
        event, status = ending(running, end)
        call, policy = running.call, running.given.tool.policy
        mark = policy.mark(call.tool)
        if policy.effect in ("pure", "model"):
            mark = mark.lowered(running.mark)
        draft = self.flow.draft(event, actor="agent" if not running.is_open else "tool", mark=mark)
        try:
            seq = self.log.record(
                draft if running.is_open else self.placed(draft), *self._changed_files(running), *also, guard=self.guard
            )
        except (NotAllowedError, ConflictError) as exc:
            if exc.kind not in _LATE_KINDS:
                raise
            seq = self._give_evidence(call.action, status, end)
        if end.late is not None and status == "uncertain":
            end.late.inherit(functools.partial(self._came_late, running))
        self.flow.result(call.action, seq, TrustMark(draft.trust, draft.source))
        if policy.effect == "model" and status == "succeeded":
            self.flow.answered(seq, TrustMark(draft.trust, draft.source))
        for guard in self.guards:
            guard()
        if status == "uncertain" and end.exception is not None:
            mark_unsure(end.exception, call.action)
        error = None if status == "succeeded" else end.error
        result = end.result if error is None else None
        return Outcome(
            call.action, call.tool, status, result, error, seq, attempts=call.attempt, exception=end.exception
        )

    def _changed_files(self, running: RunningCall) -> list[EventDraft]:
        if running.picture is None or self.capture is None:
            return []
        return [EventDraft(c, actor="tool") for c in self.capture.changes(running.picture, action=running.call.action)]

    def _give_evidence(self, action: str, status: str, end: End) -> Seq:
        output = end.output if end.error is None else plain(end.error)
        event = ev.ActionEvidence(action=action, outcome=status, output=output, epoch=self.guard or 0)
        return self.log.record(EventDraft(event, actor="tool"))

    def _came_late(self, running: RunningCall, result: object, error: BaseException | None) -> None:
        """The end of a call that was given up: now it is known what happened."""
        end = End("succeeded", result) if error is None else self.ended_by(error, running.given)
        event, status = ending(running, end)
        policy = running.given.tool.policy
        if status == "uncertain":
            return
        try:
            mark = policy.mark(running.call.tool)
            self.log.append(EventDraft(event, actor="tool", source=mark.source, trust=mark.trust), guard=self.guard)
        except (NotAllowedError, ConflictError):
            self._give_evidence(running.call.action, status, end)
        except WakelogError:
            return  # the store is closed: the call stays uncertain, which is true as far as anybody will know


def has_effects(given: CallRequest) -> bool:
    return given.tool.policy.effect not in SAFE
