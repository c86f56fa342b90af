"""Finds the recorded call that a call of the replay repeats: by tool and input, the n-th of its kind, within its turn.

Order does not count, because parallel calls return in any order. But if the code that opened the turn makes one call
after another, and the recording has no parallel calls in that turn, a call that comes too early is a difference:
*moved*.

A secret is not in the record, so the agent of a replay does not have it either. If a secret was masked, inputs are
compared without it, and what a model was shown is not compared."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Literal

import msgspec

from wakelog.errors import NotFoundError
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.payloads import is_erased
from wakelog.model.values import Value
from wakelog.replay.call_text import call_text, differing_names, value_text
from wakelog.replay.recording import RecordedCall, RecordedTurn, Recording
from wakelog.replay.report import ReplayRow, Verdict
from wakelog.state.patch import equal

Order = Literal["recorded", "any"]


class ReplayedCall(msgspec.Struct):
    """A call that the replay makes."""

    tool: str
    effect: str
    input: dict[str, Value]
    input_hash: str
    in_line: bool
    """Whether the code that opened the turn made it, not a parallel task or another tool."""
    key: str = ""
    """The action's id, if the caller defined which calls are the same."""
    place: int = 0
    turn: int = 0
    step: RecordedCall | None = None
    instead: RecordedCall | None = None
    """For a call that the recording does not have: the recorded step that it replaces."""
    next: RecordedCall | None = None
    """The next step in the recording at the time of the call."""
    verdict: Verdict = "same"
    differs: tuple[str, ...] = ()
    how: Literal["", "recorded", "run", "refused"] = ""
    event: Seq = 0
    note: str = ""


class Matcher:
    """The recorded steps; each is matched once. Shared by the threads of a replay."""

    def __init__(self, recording: Recording, order: Order = "recorded") -> None:
        self.recording = recording
        self.place = 0
        """Which turn the replay is in; 0 before the first."""
        self._order = order
        self._lock = threading.Lock()
        self._made: list[ReplayedCall] = []
        self._matched: dict[int, ReplayedCall] = {}
        self._replaced: dict[int, ReplayedCall] = {}
        self._turn_rows: list[ReplayRow] = []
        self._by_input: dict[tuple[int, str, str], list[RecordedCall]] = defaultdict(list)
        self._by_turn: dict[int, list[RecordedCall]] = defaultdict(list)
        self._matched_prefix: dict[int, int] = defaultdict(int)
        """Per turn, how many steps at its start are matched, so that they are not searched again."""
        for step in recording.steps:
            self._by_input[step.place, step.tool, step.input_hash].append(step)
            self._by_turn[step.place].append(step)
        self._first_redacted = min((s.number for s in recording.steps if s.redacted), default=len(recording.steps) + 1)

    # Turns

    def open_turn(self, input: Value, *, again: bool = False) -> tuple[RecordedTurn | None, ReplayRow | None]:
        """The recorded turn that begins again now, and how it differs."""
        if not again:
            self.place += 1
        turn = self.recording.turns[self.place - 1] if self.place <= len(self.recording.turns) else None
        if turn is None:
            row = ReplayRow("turn", 0, self._turn_number(), 0, "new", "", "", value_text(input))
        elif again or equal(input, turn.input) or is_erased(turn.input) or equal(self._redact(input), turn.input):
            return turn, None
        else:
            was, now = value_text(turn.input, input), value_text(input, turn.input)
            row = ReplayRow("turn", 0, turn.turn, turn.seq, "different", "", was, now, ("input",))
        self._turn_rows.append(row)
        return turn, row

    def _redact(self, value: Value) -> Value:
        redact = self.recording.log.redact
        if redact is None:
            return value
        event = redact(ev.ActionRequested(action="", tool="", input=value))[0]
        return event.input if isinstance(event, ev.ActionRequested) else value

    # Calls

    def find(self, call: ReplayedCall) -> RecordedCall | None:
        """Matches a call with a recorded step; None if the recording has no such step left."""
        with self._lock:
            call.place = self.place
            call.turn = self._turn_number()
            call.next = next(self._pending(call.place), None)
            self._made.append(call)
            step = self._find_exact(call) or self._find_without_secrets(call)
            if step is None:
                call.instead = self._find_replaced(call)
                if call.instead is not None:
                    self._replaced[call.instead.number] = call
                return None
            if self._is_early(call, step):
                call.verdict, call.differs = "moved", ("order",)
            call.step = step
            self._matched[step.number] = call
            other = self._replaced.pop(step.number, None)
            if other is not None:
                other.instead = None
            return step

    def forget(self, call: ReplayedCall) -> None:
        """Removes a call that was answered by its key. The recording does not count such calls either."""
        with self._lock:
            self._made.remove(call)
            if call.instead is not None:
                del self._replaced[call.instead.number]

    def _turn_number(self) -> int:
        turns = self.recording.turns
        if not turns or not self.place:
            return 0
        beyond = max(0, self.place - len(turns))
        return turns[min(self.place, len(turns)) - 1].turn + beyond

    def _unmatched(self, place: int) -> Iterator[RecordedCall]:
        for turn in dict.fromkeys((place, 0)):
            steps, begin = self._by_turn[turn], self._matched_prefix[turn]
            while begin < len(steps) and steps[begin].number in self._matched:
                begin += 1
            self._matched_prefix[turn] = begin
            yield from (s for s in steps[begin:] if s.number not in self._matched)

    def _pending(self, place: int) -> Iterator[RecordedCall]:
        """The steps that the agent's own code still has to make."""
        return (s for s in self._unmatched(place) if not s.inside and s.number not in self._replaced)

    def _find_exact(self, call: ReplayedCall) -> RecordedCall | None:
        for place in dict.fromkeys((call.place, 0)):
            same = self._by_input.get((place, call.tool, call.input_hash), ())
            if steps := [s for s in same if s.number not in self._matched]:
                return next((s for s in steps if s.action == call.key), steps[0])
        return None

    def _find_without_secrets(self, call: ReplayedCall) -> RecordedCall | None:
        """The step that equals the call apart from secrets, which the record does not have."""
        for step in self._unmatched(call.place):
            if step.tool != call.tool or step.number < self._first_redacted or step.gone:
                continue
            recorded = self.recording.input_of(step)
            if differing_names(recorded, self._redact(call.input)) in ((), ("shown",) if step.is_model else ()):
                call.note = "apart from secrets, which are masked in the record"
                return step
        return None

    def _find_replaced(self, call: ReplayedCall) -> RecordedCall | None:
        """The step that an unknown call replaces: one with the same tool; if order counts, only the next one."""
        if self._is_ordered(call):
            return call.next if call.next is not None and _is_alike(call.next, call) else None
        return next((s for s in self._pending(call.place) if _is_alike(s, call)), None)

    def _is_ordered(self, call: ReplayedCall) -> bool:
        return self._order == "recorded" and call.in_line and call.place not in self.recording.parallel

    def _is_early(self, call: ReplayedCall, step: RecordedCall) -> bool:
        if call.next is None or not self._is_ordered(call):
            return False
        return call.next.place == step.place and call.next.number < step.number

    # Differences

    def row(self, call: ReplayedCall) -> ReplayRow:
        """How a call compares, as known so far."""
        with self._lock:
            return self._row(call)

    def _row(self, call: ReplayedCall) -> ReplayRow:
        step, verdict, differs, note = call.step or call.instead, call.verdict, call.differs, call.note
        text = call_text(call.tool, call.input)
        if verdict == "moved" and call.next is not None:
            if call.step is not None:
                note = f"recorded as step {call.step.number} (e{call.step.seq})"
            step, was = call.next, self.text(call.next)
        elif step is None:
            step, verdict, differs = call.next, "new", ()
            was = self.text(step) if step else ""
        else:
            recorded = self._input(step)
            if call.step is None:
                verdict, differs = "different", self._differs(call, step, recorded)
            text = call_text(call.tool, call.input, recorded)
            was = call_text(step.tool, recorded, call.input)
        kind: Literal["tool", "model"] = "model" if call.effect == "model" else "tool"
        end = max((s.number for s in self.recording.steps if s.place <= call.place), default=0)
        number, seq = (step.number, step.seq) if step else (end + 1, 0)
        return ReplayRow(
            kind, number, call.turn, seq, verdict, call.tool, was, text, differs, call.how, call.event, note
        )

    def _differs(self, call: ReplayedCall, step: RecordedCall, recorded: Value) -> tuple[str, ...]:
        names = differing_names(recorded, call.input)
        if step.is_model and step.tool != call.tool:
            return ("model", *(n for n in names if n != "model"))
        return names

    def _input(self, step: RecordedCall) -> Value:
        try:
            value = self.recording.input_of(step)
        except NotFoundError:
            return None
        return None if is_erased(value) else value

    def text(self, step: RecordedCall) -> str:
        """A recorded call in words."""
        return call_text(step.tool or "a call", self._input(step)) + (f" ({step.gone})" if step.gone else "")

    def missing(self) -> ReplayRow | None:
        """The first recorded call of the turns so far that was not made."""
        with self._lock:
            steps = self.recording.steps
            return next(
                (r for r in self._missing() if r.verdict == "missing" and 0 < steps[r.number - 1].place <= self.place),
                None,
            )

    def _missing(self, reached: int | None = None) -> Iterator[ReplayRow]:
        for step in self.recording.steps:
            if step.number in self._matched or step.number in self._replaced:
                continue
            kind: Literal["tool", "model"] = "model" if step.is_model else "tool"
            verdict: Verdict = "missing" if reached is None or step.place <= reached else "unreached"
            if step.inside and self._was_answered(step) and verdict == "missing":
                verdict = "inside"
            yield ReplayRow(kind, step.number, step.turn, step.seq, verdict, step.tool, self.text(step), "")

    def _was_answered(self, step: RecordedCall) -> bool:
        """Whether the tool that made this call was answered from the record, so that it could not make it again."""
        outer = next((s for s in self.recording.steps if s.action == step.inside), None)
        call = self._matched.get(outer.number) if outer is not None else None
        return call is None or call.how != "run"

    def rows(self, *, reached: int | None = None) -> tuple[ReplayRow, ...]:
        """All rows, in the order of the recording. Calls that it does not have are placed where they were made. With
        `reached`, the replay ended early: steps after that turn are unreached, not missing."""
        with self._lock:
            placed: list[tuple[float, ReplayRow]] = []
            last = 0.0
            for call in self._made:
                step = call.step or call.instead
                last = float(step.number) if step is not None else last + 0.001
                placed.append(
                    (last if call.verdict != "moved" or call.next is None else call.next.number - 0.5, self._row(call))
                )
            placed += [(float(row.number), row) for row in self._missing(reached)]
            turn_rows = list(self._turn_rows)
            if reached is None:
                turn_rows += [
                    ReplayRow("turn", 0, turn.turn, turn.seq, "missing", "", value_text(turn.input), "")
                    for turn in self.recording.turns[self.place :]
                ]
            placed += [(self._before_turn(row.turn), row) for row in turn_rows]
            return tuple(row for _, row in sorted(placed, key=lambda pair: pair[0]))

    def _before_turn(self, turn: int) -> float:
        """A position right before the first step of a turn."""
        steps = (s.number for s in self.recording.steps if s.turn == turn)
        return next(steps, len(self.recording.steps) + 1) - 0.9


def _is_alike(step: RecordedCall, call: ReplayedCall) -> bool:
    return step.tool == call.tool or (step.is_model and call.effect == "model")
