"""A call, step by step: intent, run, outcome.

The intent is durable before a call with effects starts, the outcome before its caller goes on. What was recorded under
the same key, or by an interrupted attempt of this turn, is answered without running. The steps are a generator, walked
through by a blocking or an awaiting driver (tools.py), so that there is one text of what happens.
"""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wakelog.codec.canonical import hash_value
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, WakelogError
from wakelog.log import Log
from wakelog.log.reading import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import Draft
from wakelog.monitors.budgets import check_budget
from wakelog.runtime.ambient import TRUSTED, Call, Mark
from wakelog.runtime.ending import ending, failure_of, retrying, status_of
from wakelog.runtime.flow import Flow
from wakelog.runtime.given import End, Given, Running, Waits
from wakelog.runtime.known import by_key, has_run, settled_by
from wakelog.runtime.outcome import Outcome, approval_error, running_error, uncertain_error
from wakelog.runtime.policy import SAFE, Found
from wakelog.runtime.recovery import Memory
from wakelog.runtime.settling import decide_approval, reconcile
from wakelog.runtime.tools import Do, Run, Sleep, Steps, TimedOut, Tool
from wakelog.runtime.values import plain, revive, without

if TYPE_CHECKING:
    from wakelog.files.capture import Capture

Approver = Callable[[Call, dict[str, Any]], bool | None]
"""Asked when a call needs approval: True, False, or None when it cannot say now."""

_LATE_KINDS = frozenset({"action-machine", "fenced", "session-closed", "session-archived"})
"""Refusals of an outcome that came too late to count: it is kept as evidence."""


class Runtime:
    """Calls through one session's log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.tools: dict[str, Tool] = {}
        self.flow = Flow(log)
        self.memory: Memory | None = None
        """What the cut attempts of the open turn did; None unless the turn continues them."""
        self.guards: list[Callable[[], None]] = []
        """Asked before each call with effects, and after each outcome; one may raise, or pause the session."""
        self.approver: Approver | None = None
        self.approval_wait_s = 0.0
        """How long a call waits for an approval that is given elsewhere, before it stops the turn."""
        self.capture: Capture | None = None
        self.guard: int | None = None
        """The epoch of the lease this process holds, if it took one."""

    def conduct(self, given: Given) -> Steps:
        """All of one call."""
        begun = yield Do(functools.partial(self._begin, given))
        if isinstance(begun, Waits):
            begun = yield Do(functools.partial(self._decided, begun.running))
        if isinstance(begun, Outcome):
            return begun
        running: Running = begun
        while True:
            picture = (yield Do(self.capture.before)) if self.capture and self._has_effects(given) else None
            started = time.monotonic_ns()
            try:
                result = yield Run(given.run, running.call, given.tool.policy.timeout_s)
            except BaseException as exc:
                end = self._ended_by(exc, given)
            else:
                end = End("succeeded", result)
            end.took_us, end.picture = (time.monotonic_ns() - started) // 1000, picture
            if self._tries_again(running, end):
                yield Do(functools.partial(self._note_retry, running, end))
                yield Sleep(given.tool.policy.wait_s(running.call.attempt))
                running.call = running.call.again()
                yield Do(functools.partial(self._start, running.call))
                continue
            outcome: Outcome = yield Do(functools.partial(self._finish, running, end))
            if end.how == "interrupted" and end.exception is not None:
                raise end.exception
            return outcome

    @staticmethod
    def _has_effects(given: Given) -> bool:
        return given.tool.policy.effect not in SAFE

    # Beginning

    def _begin(self, given: Given) -> Running | Waits | Outcome:
        """Finds out whether this call was made before, and records its intent if not."""
        tool, policy = given.tool, given.tool.policy
        stored = without(given.arguments, policy.redact) if given.stored is None else given.stored
        digest = hash_value(stored)
        key = given.action or (str(policy.key(**given.arguments)) if policy.key is not None else "")
        if not key:
            step = self.memory.take(tool.name, digest) if self.memory is not None else None
            fresh = step.action if step is not None else f"{tool.name}-{secrets.token_hex(4)}"
            running = Running(
                Call(fresh, tool.name, f"{self.log.id}/{fresh}"), given, stored, digest, given.exposure or TRUSTED
            )
            if step is not None and step.outcome:
                return self._repeat(running, self.log.entry(step.outcome))
            return (self._go_on(running) if step is not None else None) or self._request(running, "")
        action = given.action or f"{tool.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
        running = Running(Call(action, tool.name, key), given, stored, digest, given.exposure or TRUSTED)
        while True:
            found, commit_id = by_key(self.log, action)
            if isinstance(found, Entry):
                return self._repeat(running, found)
            begun = self._go_on(running) if found else self._request_first(running, commit_id)
            if begun is not None:
                return begun

    def _request_first(self, running: Running, commit_id: str) -> Running | Waits | None:
        """Asks under a key; None when another process came first, and what it did is to be looked at."""
        try:
            return self._request(running, commit_id)
        except (InvalidInputError, NotAllowedError) as exc:
            if exc.kind not in ("commit-id-reused", "action-machine"):
                raise
            return None

    def _request(self, running: Running, commit_id: str) -> Running | Waits:
        """Records the intent of a new call."""
        given, policy, call = running.given, running.given.tool.policy, running.call
        self._ask_guards(given)
        approval = bool(policy.approval(**given.arguments)) if callable(policy.approval) else policy.approval
        if policy.effect == "pure" and not (policy.retry or approval or commit_id):
            running.is_open = False
            running.mark = self.flow.mark_of_agent(running.mark)
            return running
        request = ev.ActionRequested(
            action=call.action,
            tool=call.tool,
            effect=policy.effect,
            input=running.input,
            input_hash=running.input_hash,
            key=call.key,
            approval=approval,
            # The runner makes the content this caller's own: two that ask under one commit id are told apart.
            policy={**policy.stored(), "runner": f"{os.getpid()}-{secrets.token_hex(4)}"},
            params=given.params,
            context_hash=given.context_hash,
            why=given.why,
        )
        drafts = [self.flow.draft(request, mark=running.mark, derived_from=given.derived_from)]
        running.mark = Mark(drafts[0].trust, drafts[0].source)
        if not approval:
            drafts.append(Draft(ev.ActionStarted(action=call.action), actor="runtime"))
        self.log.append(*drafts, commit_id=commit_id, guard=self.guard)
        return Waits(running) if approval else running

    def _go_on(self, running: Running) -> Running | Waits | Outcome | None:
        """A call that is pending since before; None when it turns out that it never ran."""
        call, policy = running.call, running.given.tool.policy
        pending = self.log.part("pending_actions").get(call.action)
        if pending is None:
            return self._settled(running)
        call.attempt, call.key = pending.get("attempt", 0) + 1, pending.get("key") or call.key
        if pending["status"] == "waiting":
            return Waits(running)
        if pending["status"] == "running":
            raise running_error(self._name, call.action, call.tool)
        if pending["status"] == "uncertain":
            if policy.probe is not None:
                return self._probe(running)
            if not policy.is_safe:
                raise uncertain_error(self._name, call.action, call.tool)
            cut = ev.Failure("interrupted", "its outcome is unknown; sent again under the same key", retryable=True)
            self.log.append(Draft(ev.ActionFailed(action=call.action, error=cut, retry=True), actor="runtime"))
        self._ask_guards(running.given)
        self._start(call)
        return running

    def _start(self, call: Call) -> None:
        started = ev.ActionStarted(action=call.action, attempt=call.attempt)
        self.log.append(Draft(started, actor="runtime"), guard=self.guard)

    def _probe(self, running: Running) -> Outcome | None:
        """Asks the other side what became of a call."""
        call, policy = running.call, running.given.tool.policy
        assert policy.probe is not None
        found = policy.probe(call.key, **running.given.arguments)
        if found is None:
            raise uncertain_error(self._name, call.action, call.tool)
        if not isinstance(found, Found):
            raise InvalidInputError(
                f"the probe of {call.tool} returned {type(found).__name__}",
                kind="bad-probe",
                hint="return wakelog.Found(outcome, output), or None when it cannot be told",
            )
        mark = Mark(policy.trust, policy.source)
        by = f"probe of {call.tool}"
        seq = reconcile(self.log, call.action, found.outcome, output=found.output, by=by, why=found.why, mark=mark)
        return None if found.outcome == "never_ran" else self._repeat(running, self.log.entry(seq))

    def _decided(self, running: Running) -> Running | Outcome:
        """Waits for the approval as long as it may; then the call runs, is denied, or stops the turn."""
        call = running.call
        answer = self.approver(call, running.given.arguments) if self.approver is not None else None
        if answer is not None:
            decide_approval(self.log, call.action, answer, by="approver")
        deadline = time.monotonic() + self.approval_wait_s
        while True:
            head = self.log.head().seq
            pending = self.log.part("pending_actions").get(call.action)
            if pending is None:
                settled = self._settled(running)
                if settled is None:
                    raise approval_error(self._name, call.action, call.tool)
                return settled
            if pending["status"] == "requested":
                self._ask_guards(running.given)
                self._start(call)
                return running
            left = deadline - time.monotonic()
            if left <= 0:
                raise approval_error(self._name, call.action, call.tool)
            self.log.engine.wait(self.log.id, after=head, timeout_s=min(left, 5.0))

    def _settled(self, running: Running) -> Outcome | None:
        """The outcome of a call that is no longer pending; None when it never ran. The event may be on its way still."""
        while (settled := settled_by(self.log, running.call.action)) is None:
            time.sleep(0.001)
        return self._repeat(running, settled) if has_run(settled) else None

    def _ask_guards(self, given: Given) -> None:
        """Lets the budget and the monitors object before something new begins."""
        check_budget(self.log)
        if self._has_effects(given):
            for guard in self.guards:
                guard()

    def _repeat(self, running: Running, entry: Entry) -> Outcome:
        """A recorded outcome, given again. One that a cut attempt made is noted in this one, so that its view is
        whole."""
        call, given, body = running.call, running.given, entry.body
        status, error = status_of(entry)
        output = self.log.value(entry, body.get("output"))
        mark, seq = Mark(entry.header.trust, entry.header.source), entry.seq
        if self.memory is not None and self.memory.covers(entry.seq):
            event = ev.ActionRecorded(
                action=f"{call.tool}-{secrets.token_hex(4)}",
                tool=call.tool,
                effect=given.tool.policy.effect,
                outcome="succeeded" if error is None else "failed",
                input=running.input,
                input_hash=running.input_hash,
                output=output,
                output_summary=str(body.get("output_summary", "")),
                error=error,
                params=given.params,
                reused=entry.seq,
            )
            seq = self.log.record(
                self.flow.draft(event, mark=mark, derived_from=((entry.seq, entry.seq),)), guard=self.guard
            )
        self.flow.result(str(body.get("action", call.action)), seq, mark)
        if given.tool.policy.effect == "model":
            self.flow.answered(seq, mark)
        result = revive(given.tool.function, output) if error is None else None
        return Outcome(str(body.get("action", call.action)), call.tool, status, result, error, entry.seq, reused=True)

    @property
    def _name(self) -> str:
        return self.log.head().name or self.log.id

    # Ending

    @staticmethod
    def _ended_by(exc: BaseException, given: Given) -> End:
        policy = given.tool.policy
        if isinstance(exc, TimedOut):
            error = ev.Failure("timeout", f"no answer within {policy.timeout_s} s", retryable=policy.is_safe)
            return End(
                "timed_out", error=error, exception=TimeoutError(f"{given.tool.name}: {error.message}"), late=exc.late
            )
        if isinstance(exc, Exception):
            return End("failed", error=failure_of(exc, policy.retry_on), exception=exc)
        return End("interrupted", error=ev.Failure("interrupted", type(exc).__name__), exception=exc)

    @staticmethod
    def _tries_again(running: Running, end: End) -> bool:
        policy = running.given.tool.policy
        if running.call.attempt > policy.retry or not running.is_open:
            return False
        if end.how == "timed_out":
            return policy.is_safe and issubclass(TimeoutError, policy.retry_on)
        return end.how == "failed" and isinstance(end.exception, policy.retry_on)

    def _note_retry(self, running: Running, end: End) -> None:
        self.log.append(
            Draft(retrying(running, end), actor="tool"), *self._changed_files(running, end), guard=self.guard
        )

    def _finish(self, running: Running, end: End) -> Outcome:
        """Records what came of a call. What the log no longer accepts is kept as evidence."""
        event, status = ending(running, end)
        call, policy = running.call, running.given.tool.policy
        mark = Mark(policy.trust, policy.source)
        if policy.effect in ("pure", "model"):
            mark = mark.lowered(running.mark)
        draft = self.flow.draft(event, actor="agent" if not running.is_open else "tool", mark=mark)
        try:
            seq = self.log.record(draft, *self._changed_files(running, end), guard=self.guard)
        except (NotAllowedError, ConflictError) as exc:
            if exc.kind not in _LATE_KINDS:
                raise
            seq = self._give_evidence(call.action, status, end)
        if end.late is not None and status == "uncertain":
            end.late.inherit(functools.partial(self._came_late, running))
        self.flow.result(call.action, seq, Mark(draft.trust, draft.source))
        if policy.effect == "model" and status == "succeeded":
            self.flow.answered(seq, Mark(draft.trust, draft.source))
        for guard in self.guards:
            guard()
        error = None if status == "succeeded" else end.error
        result = end.result if error is None else None
        return Outcome(
            call.action, call.tool, status, result, error, seq, attempts=call.attempt, exception=end.exception
        )

    def _changed_files(self, running: Running, end: End) -> list[Draft]:
        if end.picture is None or self.capture is None:
            return []
        return [Draft(c, actor="tool") for c in self.capture.changes(end.picture, action=running.call.action)]

    def _give_evidence(self, action: str, status: str, end: End) -> Seq:
        output = plain(end.result) if end.error is None else plain(end.error)
        event = ev.ActionEvidence(action=action, outcome=status, output=output, epoch=self.guard or 0)
        return self.log.record(Draft(event, actor="tool"))

    def _came_late(self, running: Running, result: object, error: BaseException | None) -> None:
        """The end of a call that was given up: now it is known what happened."""
        end = End("succeeded", result) if error is None else self._ended_by(error, running.given)
        event, status = ending(running, end)
        policy = running.given.tool.policy
        if status == "uncertain":
            return
        try:
            self.log.append(Draft(event, actor="tool", source=policy.source, trust=policy.trust), guard=self.guard)
        except (NotAllowedError, ConflictError):
            self._give_evidence(running.call.action, status, end)
        except WakelogError:
            return  # the store is closed: the call stays uncertain, which is true as far as anybody will know
