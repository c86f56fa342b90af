"""Which recorded call is this one? Found by tool and input, the n-th of its kind, within its turn.

Not by order, since calls made side by side come back in any. But where the agent's own line of code makes one call
after another, and the record shows no two side by side, a call that comes before its turn is a difference: *moved*.

A secret is not in the record, so the agent of a replay does not have it either. Where one was taken out, inputs are the
same if they are without it, and what a model was shown is not compared."""

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
from wakelog.replay.call_text import call_text, differing, value_text
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
    """Made by the code that opened the turn, not beside it and not by another tool."""
    key: str = ""
    """The action's id, where the caller says what makes it the same call."""
    place: int = 0
    turn: int = 0
    step: RecordedCall | None = None
    instead: RecordedCall | None = None
    """Of a call that the recording does not have: the step it stands in for."""
    next: RecordedCall | None = None
    """The step that the recording has next, when the call is made."""
    verdict: Verdict = "same"
    differs: tuple[str, ...] = ()
    how: Literal["", "recorded", "run", "refused"] = ""
    event: Seq = 0
    note: str = ""


class Matcher:
    """The recorded steps, each given once. Shared by the threads of a replay."""

    def __init__(self, recording: Recording, order: Order = "recorded") -> None:
        self.recording = recording
        self.place = 0
        """Which turn the replay is in; 0 before the first."""
        self._order = order
        self._lock = threading.Lock()
        self._made: list[ReplayedCall] = []
        self._taken: dict[int, ReplayedCall] = {}
        self._instead: dict[int, ReplayedCall] = {}
        self._turns: list[ReplayRow] = []
        self._same: dict[tuple[int, str, str], list[RecordedCall]] = defaultdict(list)
        self._of_turn: dict[int, list[RecordedCall]] = defaultdict(list)
        self._begins: dict[int, int] = defaultdict(int)
        """Per turn, how many steps at its beginning are taken, so that nobody looks at them again."""
        for step in recording.steps:
            self._same[step.place, step.tool, step.input_hash].append(step)
            self._of_turn[step.place].append(step)
        self._first_redacted = min((s.number for s in recording.steps if s.redacted), default=len(recording.steps) + 1)

    # Turns

    def open_turn(self, given: Value, *, again: bool = False) -> tuple[RecordedTurn | None, ReplayRow | None]:
        """The recorded turn that now begins once more, and what is different about it."""
        if not again:
            self.place += 1
        begun = self.recording.turns[self.place - 1] if self.place <= len(self.recording.turns) else None
        if begun is None:
            row = ReplayRow("turn", 0, self._turn_number(), 0, "new", "", "", value_text(given))
        elif again or equal(given, begun.input) or self._without_secrets(given, begun.input):
            return begun, None
        else:
            was = value_text(begun.input, given)
            row = ReplayRow(
                "turn", 0, begun.turn, begun.seq, "different", "", was, value_text(given, begun.input), ("input",)
            )
        self._turns.append(row)
        return begun, row

    def _without_secrets(self, given: Value, recorded: Value) -> bool:
        return is_erased(recorded) or equal(self._redacted(given), recorded)

    def _redacted(self, value: Value) -> Value:
        redact = self.recording.log.redact
        if redact is None:
            return value
        event = redact(ev.ActionRequested(action="", tool="", input=value))[0]
        return event.input if isinstance(event, ev.ActionRequested) else value

    # Calls

    def find(self, made: ReplayedCall) -> RecordedCall | None:
        """Takes the step that a call is; None when the recording has none left."""
        with self._lock:
            made.place = self.place
            made.turn = self._turn_number()
            made.next = next((s for s in self._open(made.place)), None)
            self._made.append(made)
            step = self._exact(made) or self._near(made)
            if step is None:
                made.instead = self._beside(made)
                if made.instead is not None:
                    self._instead[made.instead.number] = made
                return None
            if self._is_early(made, step):
                made.verdict, made.differs = "moved", ("order",)
            made.step = step
            self._taken[step.number] = made
            other = self._instead.pop(step.number, None)
            if other is not None:
                other.instead = None
            return step

    def forget(self, made: ReplayedCall) -> None:
        """The call was none of its own: it was answered by its key, which the recording does not count either."""
        with self._lock:
            self._made.remove(made)
            if made.instead is not None:
                del self._instead[made.instead.number]

    def _turn_number(self) -> int:
        if 0 < self.place <= len(self.recording.turns):
            return self.recording.turns[self.place - 1].turn
        return (
            self.recording.turns[-1].turn + self.place - len(self.recording.turns)
            if self.recording.turns and self.place
            else 0
        )

    def _free(self, place: int) -> Iterator[RecordedCall]:
        for each in dict.fromkeys((place, 0)):
            steps, begin = self._of_turn[each], self._begins[each]
            while begin < len(steps) and steps[begin].number in self._taken:
                begin += 1
            self._begins[each] = begin
            yield from (s for s in steps[begin:] if s.number not in self._taken)

    def _open(self, place: int) -> Iterator[RecordedCall]:
        """The steps that the agent's own code has still to make, as far as can be told."""
        return (s for s in self._free(place) if not s.inside and s.number not in self._instead)

    def _exact(self, made: ReplayedCall) -> RecordedCall | None:
        for place in dict.fromkeys((made.place, 0)):
            steps = [s for s in self._same.get((place, made.tool, made.input_hash), ()) if s.number not in self._taken]
            if steps:
                return next((s for s in steps if s.action == made.key), steps[0])
        return None

    def _near(self, made: ReplayedCall) -> RecordedCall | None:
        """The step that a call is but for secrets, which the record does not hold."""
        for step in self._free(made.place):
            if step.tool != made.tool or step.number < self._first_redacted or step.gone:
                continue
            recorded = self.recording.input_of(step)
            if differing(recorded, self._redacted(made.input)) in ((), ("shown",) if step.is_model else ()):
                made.note = "as far as can be told: secrets were taken out of the record"
                return step
        return None

    def _beside(self, made: ReplayedCall) -> RecordedCall | None:
        """The step that an unknown call stands in for: one of the same tool, and the next one where order counts."""
        if self._is_ordered(made):
            return made.next if made.next is not None and _is_alike(made.next, made) else None
        return next((s for s in self._open(made.place) if _is_alike(s, made)), None)

    def _is_ordered(self, made: ReplayedCall) -> bool:
        return self._order == "recorded" and made.in_line and made.place not in self.recording.parallel

    def _is_early(self, made: ReplayedCall, step: RecordedCall) -> bool:
        if made.next is None or not self._is_ordered(made):
            return False
        return made.next.place == step.place and made.next.number < step.number

    # What is different

    def row(self, made: ReplayedCall) -> ReplayRow:
        """How a call compares, as far as is known now."""
        with self._lock:
            return self._row(made)

    def _row(self, made: ReplayedCall) -> ReplayRow:
        step, verdict, differs, note = made.step or made.instead, made.verdict, made.differs, made.note
        text = call_text(made.tool, made.input)
        if verdict == "moved" and made.next is not None:
            if made.step is not None:
                note = f"recorded as step {made.step.number} (e{made.step.seq})"
            step, was = made.next, self.text(made.next)
        elif step is None:
            step, verdict, differs = made.next, "new", ()
            was = self.text(step) if step else ""
        else:
            recorded = self._input(step)
            if made.step is None:
                verdict, differs = "different", self._differs(made, step, recorded)
            text = call_text(made.tool, made.input, recorded)
            was = call_text(step.tool, recorded, made.input)
        kind: Literal["tool", "model"] = "model" if made.effect == "model" else "tool"
        number, seq = (step.number, step.seq) if step else (self._end_of(made.place) + 1, 0)
        return ReplayRow(
            kind, number, made.turn, seq, verdict, made.tool, was, text, differs, made.how, made.event, note
        )

    def _end_of(self, place: int) -> int:
        return max((s.number for s in self.recording.steps if s.place <= place), default=0)

    def _differs(self, made: ReplayedCall, step: RecordedCall, recorded: Value) -> tuple[str, ...]:
        names = differing(recorded, made.input)
        if step.is_model and step.tool != made.tool:
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
            return next((r for r in self._missing() if r.verdict == "missing" and self._is_due(r.number)), None)

    def _is_due(self, number: int) -> bool:
        return 0 < self.recording.steps[number - 1].place <= self.place

    def _missing(self, reached: int | None = None) -> Iterator[ReplayRow]:
        for step in self.recording.steps:
            if step.number in self._taken or step.number in self._instead:
                continue
            kind: Literal["tool", "model"] = "model" if step.is_model else "tool"
            verdict: Verdict = "missing" if reached is None or step.place <= reached else "unreached"
            if step.inside and self._covers(step) and verdict == "missing":
                verdict = "inside"
            yield ReplayRow(kind, step.number, step.turn, step.seq, verdict, step.tool, self.text(step), "")

    def _covers(self, step: RecordedCall) -> bool:
        """Whether the tool that made this call was not run, and so could not make it again."""
        outer = next((s for s in self.recording.steps if s.action == step.inside), None)
        made = self._taken.get(outer.number) if outer is not None else None
        return made is None or made.how != "run"

    def rows(self, *, reached: int | None = None) -> tuple[ReplayRow, ...]:
        """Everything, in the order of the recording; calls it does not have stand where they were made. With `reached`,
        the replay ended early: what is missing after that turn was only not come to."""
        with self._lock:
            placed: list[tuple[float, ReplayRow]] = []
            last = 0.0
            for made in self._made:
                step = made.step or made.instead
                last = float(step.number) if step is not None else last + 0.001
                placed.append(
                    (last if made.verdict != "moved" or made.next is None else made.next.number - 0.5, self._row(made))
                )
            placed += [(float(row.number), row) for row in self._missing(reached)]
            placed += [(self._before(row), row) for row in self._turns]
            if reached is None:
                placed += [(self._before(row), row) for row in self._turns_missing()]
            return tuple(row for _, row in sorted(placed, key=lambda pair: pair[0]))

    def _before(self, row: ReplayRow) -> float:
        steps = (s.number for s in self.recording.steps if s.turn == row.turn)
        return next(steps, len(self.recording.steps) + 1) - 0.9

    def _turns_missing(self) -> Iterator[ReplayRow]:
        for begun in self.recording.turns[self.place :]:
            yield ReplayRow("turn", 0, begun.turn, begun.seq, "missing", "", value_text(begun.input), "")


def _is_alike(step: RecordedCall, made: ReplayedCall) -> bool:
    return step.tool == made.tool or (step.is_model and made.effect == "model")
