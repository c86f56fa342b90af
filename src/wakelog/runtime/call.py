"""A call, step by step: intent, run, outcome.

The intent is durable before a call with effects starts, the outcome before its caller goes on. What was recorded under
the same key, or by an interrupted attempt of this turn, is answered without running (beginning.py). The steps are a
generator, walked through by a blocking or an awaiting driver (tools.py), so that there is one text of what happens.
"""

from __future__ import annotations

import functools
import sys
import time

from wakelog.errors import ConflictError, NotAllowedError, WakelogError
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.runtime.ambient import Mark
from wakelog.runtime.call_end import ending, failure_of, retrying
from wakelog.runtime.call_start import Approver, Beginning
from wakelog.runtime.call_values import End, Given, Running
from wakelog.runtime.outcome import Outcome, is_stop
from wakelog.runtime.streams import StreamRecord, is_stream, live
from wakelog.runtime.tools import Do, Run, Sleep, Steps, TimedOut
from wakelog.runtime.unknown_outcome import NotSentError, leaves_open, mark_unsure
from wakelog.runtime.values import plain

__all__ = ["Approver", "Runtime"]

_LATE_KINDS = frozenset({"action-machine", "fenced", "session-closed", "session-archived"})
"""Refusals of an outcome that came too late to count: it is kept as evidence."""


class Runtime(Beginning):
    """Calls through one session's log."""

    def conduct(self, given: Given) -> Steps[Outcome]:
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
            outcome: Outcome = yield Do(functools.partial(self._finish, running, end))
            if end.how == "interrupted" and end.exception is not None:
                raise end.exception
            return outcome
        finally:
            if not is_live:
                self.at_work.remove(running.call.action)

    def _streamed(self, running: Running, opened: End) -> Outcome:
        """A call whose answer is only now coming: it is over, and recorded, when its stream is."""
        call, turn = running.call, self.turn

        def record(end: End) -> None:
            try:
                self._finish(running, end)
            finally:
                self.at_work.remove(call.action)

        taken = StreamRecord(
            record, lambda exc: self._ended_by(exc, running.given), lambda: self.turn is turn, opened.took_us
        )
        return Outcome(call.action, call.tool, "succeeded", live(opened.result, taken), attempts=call.attempt)

    def _tried(self, running: Running) -> Steps[End]:
        """One try, and how it ended."""
        given = running.given
        run = Run(given.run, running.call, given.tool.policy.timeout_s)
        started, outer = time.monotonic_ns(), sys.exc_info()[1]
        try:
            end = End("succeeded", (yield run))
        except BaseException as exc:
            end = self._ended_by(exc, given, outer)
        end.took_us, end.late = (time.monotonic_ns() - started) // 1000, run.late
        return end

    def _retried(self, running: Running, end: End) -> Steps[None]:
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
    def _ended_by(exc: BaseException, given: Given, outer: BaseException | None = None) -> End:
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
    def _tries_again(running: Running, end: End) -> bool:
        policy = running.given.tool.policy
        if running.call.attempt > policy.retry or not running.is_open:
            return False
        if not end.is_known and not policy.repeats:
            return False
        if end.how == "timed_out":
            return issubclass(TimeoutError, policy.retry_on)
        return end.how == "failed" and isinstance(end.exception, (NotSentError, *policy.retry_on))

    def _note_retry(self, running: Running, end: End) -> None:
        self.log.append(
            EventDraft(retrying(running, end), actor="tool"), *self._changed_files(running), guard=self.guard
        )

    def _finish(self, running: Running, end: End) -> Outcome:
        """Records what came of a call. What the log no longer accepts is kept as evidence."""
        event, status = ending(running, end)
        call, policy = running.call, running.given.tool.policy
        mark = policy.mark(call.tool)
        if policy.effect in ("pure", "model"):
            mark = mark.lowered(running.mark)
        draft = self.flow.draft(event, actor="agent" if not running.is_open else "tool", mark=mark)
        try:
            seq = self.log.record(
                draft if running.is_open else self.placed(draft), *self._changed_files(running), guard=self.guard
            )
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
        if status == "uncertain" and end.exception is not None:
            mark_unsure(end.exception, call.action)
        error = None if status == "succeeded" else end.error
        result = end.result if error is None else None
        return Outcome(
            call.action, call.tool, status, result, error, seq, attempts=call.attempt, exception=end.exception
        )

    def _changed_files(self, running: Running) -> list[EventDraft]:
        if running.picture is None or self.capture is None:
            return []
        return [EventDraft(c, actor="tool") for c in self.capture.changes(running.picture, action=running.call.action)]

    def _give_evidence(self, action: str, status: str, end: End) -> Seq:
        output = end.output if end.error is None else plain(end.error)
        event = ev.ActionEvidence(action=action, outcome=status, output=output, epoch=self.guard or 0)
        return self.log.record(EventDraft(event, actor="tool"))

    def _came_late(self, running: Running, result: object, error: BaseException | None) -> None:
        """The end of a call that was given up: now it is known what happened."""
        end = End("succeeded", result) if error is None else self._ended_by(error, running.given)
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
