"""A runtime that answers calls from the record.

In mode `strict` it runs nothing: each call gets its recorded outcome, or the replay has diverged and says where. In
mode `fill` it runs what the record does not have. In mode `live` it runs everything and compares. Calls with effects
are refused unless the caller allows them.

A diverged strict replay stays diverged: an agent that catches the error and continues gets it again at its next call.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import threading
from typing import Any, Literal, NoReturn

from wakelog.codec.canonical import hash_value
from wakelog.errors import DivergenceError, NotAllowedError, NotFoundError, WakelogError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.replay.call_match import Matcher, ReplayedCall
from wakelog.replay.call_text import value_text
from wakelog.replay.recorded_outcome import RecordedOutcome, recall, record_again
from wakelog.replay.recording import RecordedCall
from wakelog.replay.report import Mode, ReplayRow, sentence
from wakelog.runtime.ambient import current_action, current_call
from wakelog.runtime.call import Runtime
from wakelog.runtime.call_history import find_by_key
from wakelog.runtime.driver import Do, Steps
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.policy import SAFE
from wakelog.runtime.recorded_streams import revive_outcome
from wakelog.runtime.resume import reuse_outcome
from wakelog.runtime.streams import is_stream
from wakelog.runtime.tools import CallRequest
from wakelog.runtime.values import plain
from wakelog.state.patch import equal

Effects = Literal["refuse", "allow"]


def caller() -> object:
    """An identity of the caller: the current task, or else the thread."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return asyncio.current_task()
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return trio.lowlevel.current_task()
    return threading.get_ident()


class ReplayRuntime(Runtime):
    """Calls of a replay's session, answered from the recording."""

    def __init__(self, log: Log, matcher: Matcher, mode: Mode, effects: Effects, *, is_scratch: bool) -> None:
        super().__init__(log)
        self.matcher = matcher
        self.mode = mode
        self.effects = effects
        self.main: object = caller()
        """The task or thread that opened the turn."""
        self.failed: WakelogError | None = None
        """The error with which a strict replay ended."""
        self._is_scratch = is_scratch
        self._by_key: dict[str, Outcome] = {}
        if is_scratch:
            self._now = log.head().at
            log.clock = lambda: self._now

    # Turns

    def opens(self, started: ev.TurnStarted) -> ev.TurnStarted:
        """Called before a turn begins. Compares it with the recorded one."""
        again = started.retry and self.matcher.place > 0
        if self.mode == "strict":
            self._raise_if_failed()
            missing = None if again else self.matcher.missing()
            if missing is not None:
                self._diverge(missing)
        turn, row = self.matcher.open_turn(plain(started.input), again=again)
        if row is not None and self.mode == "strict":
            self._diverge(row)
        if turn is not None and self._is_scratch:
            self._now = max(self._now, self.matcher.recording.log.entry(turn.seq).header.at)
        is_retry = again or (self.matcher.place == 1 and turn is not None and turn.retry)
        return ev.TurnStarted(input=started.input, retry=is_retry)

    def meets(self, session: Any) -> None:
        """Called when another session opens a turn while this replay is open."""
        if self.mode == "strict":
            raise NotAllowedError(
                f"the agent opened a turn of {session}, which is not the session of this replay",
                kind="not-the-replay",
                hint="pass replay.session to the agent; replay a sub-agent's session on its own",
            )

    # Calls

    def run_call(self, request: CallRequest) -> Steps[Outcome]:
        """Runs one call: answers it from the record, or really runs it."""
        tool, stored = request.tool, request.stored_input()
        in_line = caller() == self.main and current_call() is None
        call = ReplayedCall(tool.name, tool.policy.effect, stored, hash_value(stored), in_line, _key(request))
        found = yield Do(functools.partial(self._find, request, call))
        if isinstance(found, Outcome):
            return found
        call.how = "run"
        try:
            outcome = yield from super().run_call(request)
        except WakelogError as exc:
            call.note = exc.message
            raise
        call.event = outcome.seq
        if call.step is not None:
            yield Do(functools.partial(self._compare, call, call.step, outcome))
        return outcome

    def _find(self, request: CallRequest, call: ReplayedCall) -> Outcome | None:
        """The recorded outcome of a call; None if it should be run."""
        self._raise_if_failed()
        if call.key in self._by_key:
            return self._by_key[call.key]  # a repeated call with the same key is not recorded again
        step = self.matcher.find(call)
        if step is None and self.mode != "live":
            outcome = self._outcome_by_key(request, call)
            if outcome is not None:
                self.matcher.forget(call)
                return outcome
        if self.mode == "strict":
            if step is None or call.verdict != "same":
                self._diverge(self.matcher.row(call))
            return self._answer(request, call, step)
        if self.mode == "fill" and step is not None and step.outcome and not step.gone:
            return self._answer(request, call, step)
        if call.effect not in SAFE and self.effects != "allow":
            call.how = "refused"
            raise self._refusal(call)
        return None

    def _answer(self, request: CallRequest, call: ReplayedCall, step: RecordedCall) -> Outcome:
        tool, matcher = request.tool, self.matcher
        if step.gone or not step.outcome:
            self._fail(self._gone_error(step) if step.gone else self._open_error(step))
        try:
            recalled = recall(matcher.recording.log, step, tool)
        except NotFoundError:
            self._fail(self._gone_error(step))
        call.how = "recorded"
        if self._is_scratch:
            self._now = max(self._now, recalled.at)
        if self.turn is not None:
            self.turn.action_of(call.tool, call.input_hash, current_action())  # counts it, to number later calls
        call.event = record_again(
            self.log, self.flow, request, step, recalled, matcher.recording.log, whole=self._is_scratch
        )
        is_answer = call.effect == "model" and recalled.status == "succeeded"
        self.flow.add_result(step.action, call.event, recalled.mark, is_model_answer=is_answer)
        outcome = self._outcome(request, step, recalled, call.event)
        if call.key:
            self._by_key[call.key] = outcome
        return outcome

    @staticmethod
    def _outcome(request: CallRequest, step: RecordedCall, recalled: RecordedOutcome, seq: Seq) -> Outcome:
        outcome = Outcome(
            step.action,
            request.tool.name,
            recalled.status,
            None,
            recalled.error,
            seq,
            reused=True,
            attempts=recalled.attempts,
            exception=recalled.exception,
        )
        return revive_outcome(request.tool, outcome, recalled.output, {"stream": recalled.stream})

    def _outcome_by_key(self, request: CallRequest, call: ReplayedCall) -> Outcome | None:
        """The outcome of a call with the same key that was made before the replayed part."""
        past = find_by_key(self.log, call.key)[0] if call.key else None
        if past is None or not past.is_answer:
            return None
        return reuse_outcome(self, self.prepare(request), self.log.entry(past.settled))

    # Differences

    def _compare(self, call: ReplayedCall, step: RecordedCall, outcome: Outcome) -> None:
        """Compares the outcome of a call that was run with the recorded one."""
        if not step.outcome:
            call.note = "the recording has no outcome of it"
            return
        if is_stream(outcome.result):
            call.note = "it came as a stream, and is not compared"
            return
        try:
            recalled = recall(self.matcher.recording.log, step, None)
        except NotFoundError:
            call.note = "its recorded result is gone, and cannot be compared"
            return
        now = plain(outcome.result)
        if outcome.status != recalled.status or (outcome.ok and not equal(now, recalled.output)):
            was, is_now = value_text(recalled.output, now), value_text(now, recalled.output)
            if outcome.status != recalled.status:
                was, is_now = recalled.status, outcome.status
            call.verdict, call.differs = "different", ("result",)
            call.note = f"{was} was recorded, now {is_now}"

    def _raise_if_failed(self) -> None:
        if self.failed is not None and self.mode == "strict":
            raise self.failed

    def _diverge(self, row: ReplayRow) -> NoReturn:
        raise self.diverged(row)

    def diverged(self, row: ReplayRow) -> DivergenceError:
        """The error for a difference. The replay stays diverged."""
        error = _divergence_error(row, self.matcher)
        self.failed = self.failed or error
        return error

    def _fail(self, error: WakelogError) -> NoReturn:
        self.failed = self.failed or error
        raise error

    def _name_of(self, step: RecordedCall) -> str:
        total = len(self.matcher.recording.steps)
        return f"{self.matcher.text(step)}, step {step.number} of {total} (e{step.seq})"

    def _gone_error(self, step: RecordedCall) -> NotFoundError:
        return NotFoundError(
            f"{self._name_of(step)} cannot be answered: its record was {step.gone or 'erased'}",
            kind="result-gone",
            hint='replay(mode="fill") runs such a call live',
        )

    def _open_error(self, step: RecordedCall) -> DivergenceError:
        why = step.cut or "it was still open"
        return DivergenceError(
            f"{self._name_of(step)} has no recorded outcome: {why}. The recording ends here.",
            kind="no-recorded-outcome",
            hint='replay(mode="fill") runs such a call live',
            step=step.number,
            seq=step.seq,
        )

    def _refusal(self, call: ReplayedCall) -> NotAllowedError:
        row = self.matcher.row(call)
        why = "a live replay runs everything" if self.mode == "live" else "the recording does not have it"
        other = '; mode="fill" answers recorded calls from the record' if self.mode == "live" else ""
        return NotAllowedError(
            f"{row.made} was not run: {why}, and it has effects ({call.effect})",
            kind="replay-effects",
            hint=f'replay(…, effects="allow"), or wakelog replay … --effects allow, runs it{other}',
        )


def _key(request: CallRequest) -> str:
    """The key by which a repeated call is recognised; empty if it has none."""
    tool = request.tool
    if request.action or tool.policy.key is None:
        return request.action
    key = str(tool.policy.key(**request.arguments))
    return f"{tool.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _divergence_error(row: ReplayRow, matcher: Matcher) -> DivergenceError:
    recording = matcher.recording
    show = f"; wakelog show -s {recording.log} e{row.seq}" if row.seq else ""
    hint = f'replay(mode="fill") runs new calls live and reuses the rest{show}'
    text, step, seq = sentence(row, len(recording.steps)), row.number, row.seq
    # Each kind is a literal, because docs/generate.py lists the kinds of all errors.
    if row.kind == "turn":
        return DivergenceError(text, kind="turn-differs", hint=hint, step=step, seq=seq)
    if row.verdict == "missing":
        return DivergenceError(text, kind="call-missing", hint=hint, step=step, seq=seq)
    if row.verdict == "moved":
        return DivergenceError(text, kind="call-out-of-order", hint=hint, step=step, seq=seq)
    if row.verdict == "new":
        return DivergenceError(text, kind="call-not-recorded", hint=hint, step=step, seq=seq)
    return DivergenceError(text, kind="call-differs", hint=hint, step=step, seq=seq)
