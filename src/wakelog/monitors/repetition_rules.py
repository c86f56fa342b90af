"""Rules about repetition: a call that keeps failing, calls in a loop, a retry that takes another course."""

from __future__ import annotations

from collections import deque

from wakelog.log.reader import Entry
from wakelog.model.calls import ANSWERS
from wakelog.model.events import Severity
from wakelog.model.ids import Seq
from wakelog.monitors.rules import Found, RuleFinding, over
from wakelog.monitors.session_view import EFFECTS, SeenCall, SessionView, identity

KEPT_MAX = 256
"""How many different calls, or steps of an attempt, to remember."""

Name = tuple[str, str]

_ENDINGS = ANSWERS - {"action.reconciled"}  # a person recorded that one later


def _ended_call(entry: Entry, view: SessionView) -> SeenCall | None:
    """The call that ended with this event, if it really ran."""
    call = view.call
    return call if entry.kind in _ENDINGS and call is not None and call.ended and not call.is_repeat else None


class RepeatedFailure:
    """The same tool with the same input failed `times` times, with no success in between.

    If something was changed in between, as when tests run after each edit, that is normal work and only an info.
    """

    name = "repeated-failure"

    def __init__(self, times: int = 3, *, pause: bool = True) -> None:
        self.times = times
        self.pause = pause
        self._failed: dict[Name, list[Seq]] = {}
        self._flagged: set[str] = set()
        self._changed: Seq = 0
        """Where a call with effects last succeeded."""

    def look(self, entry: Entry, view: SessionView) -> Found:
        if entry.kind == "session.resumed":
            self._failed.clear()  # somebody decided to continue
        call = _ended_call(entry, view)
        if call is not None and call.outcome == "succeeded" and call.effect in EFFECTS:
            self._changed = entry.seq
        if call is None or (not call.input and not call.is_model):
            return None
        flag = f"{self.name}:{call.short_name}"
        if call.outcome == "succeeded":
            self._failed.pop(call.name, None)
            if flag in self._flagged:
                self._flagged.discard(flag)
                return over(flag, "it succeeded")
            return None
        failed = self._failed.pop(call.name, [])
        failed = self._failed[call.name] = [*failed[-self.times :], entry.seq]
        if len(self._failed) > KEPT_MAX:
            del self._failed[next(iter(self._failed))]
        if len(failed) != self.times:
            return None
        self._flagged.add(flag)
        message = f"{call.tool} failed {self.times} times with the same input"
        if self._changed > failed[0]:
            return RuleFinding(flag, f"{message}, with changes in between", "info", tuple(failed))
        return RuleFinding(flag, message, "error", tuple(failed), self.pause)


class Loop:
    """The same call over and over, or the same two or three calls in turn, without a person's message in between.

    `times` rounds are a loop. A single call that succeeds each time with different answers may be polling, so it is
    allowed twice as many. A person's message, a rewind and a resume reset the count.
    """

    name = "loop"

    def __init__(self, times: int = 5, *, pause: bool = True) -> None:
        self.times = times
        self.pause = pause
        self._recent: deque[Name] = deque(maxlen=3)
        self._runs = {1: 0, 2: 0, 3: 0}
        """For each period p: how many calls in a row equal the call p calls earlier."""
        self._successes = 0
        """For period 1: how many of them in a row succeeded."""
        self._same_results = 0
        """And how many of those had the same result."""
        self._result = ""
        self._flags: dict[frozenset[Name], str] = {}
        """The flags of current loops, by the calls in the loop."""
        self._reported: set[frozenset[Name]] = set()

    def look(self, entry: Entry, view: SessionView) -> Found:
        if self._resets(entry):
            self._recent.clear()
            self._reported.clear()
            self._runs, self._successes, self._same_results = dict.fromkeys(self._runs, 0), 0, 0
        call = _ended_call(entry, view)
        if call is None or call.is_model or not call.input or entry.body.get("retry"):
            return None
        left = [calls for calls in self._flags if call.name not in calls]
        findings = [over(self._flags.pop(calls), f"{call.tool} was called next") for calls in left]
        self._reported.difference_update(left)
        self._count(call)
        self._recent.append(call.name)
        period = next((p for p in self._runs if self._is_loop(p)), 0)
        calls = frozenset(list(self._recent)[-period:])
        if period and calls not in self._reported:
            self._reported.add(calls)
            findings.append(self._finding(call, period, calls, view))
        return findings

    def _resets(self, entry: Entry) -> bool:
        if entry.kind == "message.added":
            return entry.header.actor == "user"
        return entry.kind in ("history.rewound", "session.resumed")

    def _count(self, call: SeenCall) -> None:
        recent = self._recent
        for period in self._runs:
            is_same = len(recent) >= period and recent[-period] == call.name
            self._runs[period] = self._runs[period] + 1 if is_same else 0
        succeeded = call.outcome == "succeeded"  # RepeatedFailure is about the others
        self._successes = self._successes + 1 if succeeded and self._runs[1] else 0
        self._same_results = self._same_results + 1 if self._successes and call.output == self._result else 0
        self._result = call.output if succeeded else ""

    def _is_loop(self, period: int) -> bool:
        if period == 1:
            return self._same_results >= self.times - 1 or self._successes >= 2 * self.times - 1
        # A run of one call also repeats with every longer period; that is not a loop of several calls.
        return self._runs[period] >= period * (self.times - 1) and self._runs[1] < period - 1

    def _finding(self, call: SeenCall, period: int, calls: frozenset[Name], view: SessionView) -> RuleFinding:
        flag = self._flags.setdefault(calls, f"{self.name}:{call.short_name}")
        newest = [c for c in view.calls if c.name in calls][-period:]
        if period == 1:
            message = f"{call.tool} was called {self._runs[1] + 1} times in a row with the same input"
        else:
            tools = ", ".join(c.tool for c in newest)
            message = f"{tools}: the same {period} calls in turn, {self.times} times over"
        return RuleFinding(flag, message, "warning", tuple(c.request for c in newest), self.pause)


class RetryDivergence:
    """A turn that is tried again on the same input takes another course: another call, or another answer to the same
    call.

    Also a late worker's evidence that contradicts the recorded outcome: then the call was made twice. Answers of models
    are expected to differ and are not compared.
    """

    name = "retry-divergence"

    def __init__(self) -> None:
        self._turn = 0
        self._input = ""
        self._former: list[SeenCall] = []
        self._steps: list[SeenCall] = []
        self._is_reported = False

    def look(self, entry: Entry, view: SessionView) -> Found:
        if entry.kind == "turn.started":
            self._begin_turn(entry)
        elif entry.kind == "action.evidence":
            return self._contradiction(entry, view.call)
        call = view.call
        if call is None or not entry.header.turn or call.turn != self._turn or call.is_model or self._is_reported:
            return None
        if entry.seq == call.request and len(self._steps) < KEPT_MAX:
            self._steps.append(call)
            if finding := self._compare_call(entry, call):
                return finding
        return self._compare_answer(entry, call) if call.ended == entry.seq else None

    def _begin_turn(self, entry: Entry) -> None:
        input = identity(entry.body.get("input"))
        is_retry = entry.header.turn == self._turn and input == self._input
        self._former = self._steps if is_retry else []
        self._turn, self._input, self._steps, self._is_reported = entry.header.turn, input, [], False

    def _former_of(self, call: SeenCall) -> SeenCall | None:
        """The call at the same place in the attempt before."""
        place = next((i for i, step in enumerate(self._steps) if step is call), len(self._former))
        return self._former[place] if place < len(self._former) else None

    def _compare_call(self, entry: Entry, call: SeenCall) -> RuleFinding | None:
        former = self._former_of(call)
        if former is None or former.name == call.name or not (former.input and call.input):
            return None
        what = "with another input" if former.tool == call.tool else f"instead of {former.tool}"
        return self._report(entry, call, former, f"called {call.tool} {what}", "info")

    def _compare_answer(self, entry: Entry, call: SeenCall) -> RuleFinding | None:
        former = self._former_of(call)
        if former is None or former.name != call.name or not former.outcome == call.outcome == "succeeded":
            return None
        if not (former.output and call.output) or former.output == call.output:
            return None
        return self._report(entry, call, former, f"got another answer from {call.tool}", "warning")

    def _report(self, entry: Entry, call: SeenCall, former: SeenCall, what: str, severity: Severity) -> RuleFinding:
        self._is_reported = True
        place = f"@{entry.header.turn}"
        message = f"attempt {entry.header.attempt} of {place} {what}: e{call.request} differs from e{former.request}"
        return RuleFinding(f"{self.name}:{place}", message, severity, (call.request, former.request))

    def _contradiction(self, entry: Entry, call: SeenCall | None) -> RuleFinding | None:
        body = entry.body
        if call is None or call.outcome not in ("succeeded", "failed") or not call.ended:
            return None
        outcome, output = body.get("outcome", ""), body.get("output")
        is_other = outcome and outcome != call.outcome
        if not is_other and (output is None or not call.output or identity(output) == call.output):
            return None
        twice = ", and its effect may have happened twice" if call.effect in EFFECTS else ""
        message = f"a late worker contradicts e{call.ended} about {call.tool}{twice}"
        severity: Severity = "error" if call.effect in EFFECTS else "warning"
        return RuleFinding(f"{self.name}:{call.tool}", message, severity, (entry.seq, call.ended))
