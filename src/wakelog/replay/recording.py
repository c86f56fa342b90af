"""The recording: the calls of some turns in the order they began, and the inputs of the turns.

It contains what is in view at the end of the range: the accepted attempt of a turn, and nothing that was rewound. An
agent always runs a turn from its start, so a range that starts or ends inside a turn is widened to the whole turn.

A step is one call. Its outcome is what the agent got at the time: a call that timed out has timed out, whatever became
known about it later.
"""

from __future__ import annotations

from typing import IO

import msgspec

from wakelog.compare.trajectory import select_extent
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.calls import BEGIN_KINDS, Call, Calls, outcome_of
from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.payloads import as_ref
from wakelog.model.records import Head
from wakelog.model.values import Value
from wakelog.replay.call_text import call_text, value_text
from wakelog.timeline.points import attempts_of, read_view

_INTERRUPTS = ("CancelledError", "Cancelled", "KeyboardInterrupt", "SystemExit", "GeneratorExit")

Where = Seq | str | None


class RecordedCall(msgspec.Struct, frozen=True):
    """One recorded call."""

    number: int
    """From 1, in the order they began."""
    place: int
    """Which of the recording's turns it was made in; 0 between turns."""
    turn: int
    seq: Seq
    action: str
    tool: str
    effect: str
    input: Value
    input_hash: str
    params: dict[str, Value]
    context_hash: str
    status: str
    """The outcome the agent got: succeeded, failed, timed_out, denied, uncertain; empty if it got none."""
    outcome: Seq
    """The event with the outcome; 0 if there is none."""
    seqs: tuple[Seq, ...]
    """All its events up to the outcome, in order."""
    inside: str
    """The action whose tool made it; empty for a call of the agent's own code."""
    gone: str
    """`erased` or `pruned` if a part of it is gone."""
    redacted: bool
    """Whether a secret was masked in it, so that input or output are not quite the original."""
    cut: str
    """Why the agent got no outcome."""

    @property
    def is_model(self) -> bool:
        return self.effect == "model"


class RecordedTurn(msgspec.Struct, frozen=True):
    """A recorded turn: its input and its outcome."""

    turn: int
    attempt: int
    seq: Seq
    input: Value
    retry: bool
    outcome: str
    """completed, failed, interrupted, or open."""
    error: str
    """The type of the error it failed with."""

    @property
    def words(self) -> str:
        """Its input on one line."""
        return value_text(self.input)


class Recording(msgspec.Struct, frozen=True):
    """What was recorded, from event `first` to event `last`."""

    log: Log
    name: str
    """For example fix-auth@4..@7."""
    first: Seq
    last: Seq
    turns: tuple[RecordedTurn, ...]
    steps: tuple[RecordedCall, ...]
    parallel: frozenset[int]
    """The places of turns with parallel calls."""

    @property
    def start(self) -> Seq:
        """The last event before it: the point from which a replay starts."""
        return self.first - 1

    @property
    def selector(self) -> str:
        """Its position in turns, which is the same in every copy of the session."""
        if not self.turns:
            return f"e{self.first}..e{self.last}"
        first, last = self.turns[0], self.turns[-1]
        if first is not last:
            return f"@{first.turn}..@{last.turn}"
        several = len(attempts_of(self.log, first.turn)) > 1
        return f"@{first.turn}.{first.attempt}" if several else f"@{first.turn}"

    def as_test(self, *, agent: str = "", written_by: str = "") -> str:
        """The source of a pytest file that replays it strictly. It needs the file that `export_bundle` writes."""
        from wakelog.replay.pytest_export import fixture_source

        return fixture_source(self, agent=agent, written_by=written_by)

    def export_bundle(self, out: IO[bytes]) -> Head:
        """Writes the session up to the end of this recording as a bundle, for `wakelog.recorded`."""
        from wakelog.log.bundle import export_bundle
        from wakelog.replay.pytest_export import cut_log

        return export_bundle(cut_log(self), out)

    def words_of(self, step: RecordedCall) -> str:
        """A step on one line: search(q='login timeout')."""
        return call_text(step.tool or "a call", None if step.gone else self.input_of(step))

    def input_of(self, step: RecordedCall) -> Value:
        """A step's input; fetches it if it is a payload."""
        return step.input if as_ref(step.input) is None else self.log.value(self.log.entry(step.seqs[0]), step.input)


def read_recording(log: Log, where: Where = None) -> Recording:
    """The recording of a turn, an attempt or a range; without a position, of the whole session."""
    extent = select_extent(log, f"e{where}" if isinstance(where, int) else where or "")
    first, last = _whole_turns(log, extent.first, extent.last)
    reader = _RecordingReader(log)
    for entry in read_view(log, last, first=first):
        reader.take(entry)
    reader.read_late_outcomes(last)
    if not reader.turns and not reader.steps:
        raise NotFoundError(
            f"there is no turn and no call in {extent.name} to run again",
            kind="nothing-to-replay",
            hint=f"wakelog log {log}",
        )
    return reader.recording(extent.name, last)


def _whole_turns(log: Log, first: Seq, last: Seq) -> tuple[Seq, Seq]:
    """The range, widened to whole turns."""
    return _turn_around(log, first)[0], _turn_around(log, last)[1]


def _turn_around(log: Log, seq: Seq) -> tuple[Seq, Seq]:
    """The first and last event of the attempt that contains an event; the event itself outside of turns."""
    entry = next(log.entries(after=seq - 1, upto=seq), None)
    spans = attempts_of(log, entry.header.turn) if entry is not None and entry.header.turn else ()
    return next(((s.first, s.last) for s in spans if s.first <= seq <= s.last), (seq, seq))


class _OpenStep(msgspec.Struct):
    """A step while its events are read."""

    call: Call
    first: Entry
    request: Entry
    place: int
    seqs: list[Seq]
    status: str = ""
    outcome: Seq = 0
    gone: str = ""
    redacted: bool = False
    cut: str = ""
    why: str = ""
    is_void: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it is known what the agent got, or why it got nothing."""
        return bool(self.outcome or self.cut)


class _RecordingReader:
    """One pass over the events of a range."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.turns: list[RecordedTurn] = []
        self.steps: list[_OpenStep] = []
        self._calls = Calls(Call)
        self._by_request: dict[Seq, _OpenStep] = {}
        self._places: dict[int, int] = {}

    def take(self, entry: Entry) -> None:
        kind, body = entry.kind, entry.body
        if kind == "turn.started":
            self._begin_turn(entry)
        elif kind == "turn.ended" and self.turns:
            error = body.get("error")
            named = str(error.get("type", "")) if type(error) is dict else ""
            outcome = str(body.get("outcome", "completed"))
            self.turns[-1] = msgspec.structs.replace(self.turns[-1], outcome=outcome, error=named)
            if outcome == "interrupted":
                self._cut(str(body.get("why", "")))
        elif kind == "payload.redacted":
            for step in self.steps:
                step.redacted = step.redacted or body.get("target") in step.seqs
        elif kind in BEGIN_KINDS:
            self._begin_step(entry, entry)
        else:
            self._join(entry)

    def _cut(self, why: str) -> None:
        """A turn was interrupted: the agent did not get the outcome of the call that was interrupted."""
        for step in reversed(self.steps):
            if step.place == len(self.turns) and step.status == "uncertain" and step.why == why:
                step.status, step.outcome, step.cut = "", 0, f"it was interrupted ({why})"

    def _begin_turn(self, entry: Entry) -> None:
        body, header = entry.body, entry.header
        value = self.log.value(entry, body.get("input"))
        turn = RecordedTurn(header.turn, header.attempt, entry.seq, value, bool(body.get("retry")), "open", "")
        self.turns.append(turn)
        self._places[header.turn] = len(self.turns)

    def _begin_step(self, entry: Entry, request: Entry) -> _OpenStep:
        call = self._calls.take(request.seq, request.kind, request.header, request.body)
        assert call is not None
        step = _OpenStep(call, entry, request, self._places.get(entry.header.turn, 0), [])
        self.steps.append(step)
        self._by_request[request.seq] = step
        self._add(step, request)
        if call.settled:
            _settle(step, entry)
        return step

    def _add(self, step: _OpenStep, entry: Entry) -> None:
        step.seqs.append(entry.seq)
        if not entry.is_intact:
            step.gone = "erased" if entry.record.body else "pruned"

    def _join(self, entry: Entry) -> None:
        step = self._step_of(entry)
        if step is None:
            step = self._continue_earlier(entry)
        elif not step.outcome or entry.kind == "file.changed":
            self._add(step, entry)
        if step is not None and not step.outcome:
            _settle(step, entry)

    def _step_of(self, entry: Entry) -> _OpenStep | None:
        """The step that an event belongs to. A late worker's evidence does not count: the agent did not get it."""
        if entry.kind == "action.evidence":
            return None
        call = self._calls.take(entry.seq, entry.kind, entry.header, entry.body)
        return self._by_request[call.request] if call is not None else None

    def _continue_earlier(self, entry: Entry) -> _OpenStep | None:
        """The step of a call that an attempt out of view requested, and that this attempt continued."""
        begins = entry.kind == "action.started" or (entry.kind == "action.reconciled" and _is_ours(entry))
        request = self.log.entry(entry.header.cause) if begins and entry.header.cause else None
        if request is None or request.kind not in BEGIN_KINDS:
            return None
        step = self._begin_step(entry, request)
        for earlier in self.log.entries(after=request.seq, upto=entry.seq):
            if earlier.body.get("action") == step.call.action and self._step_of(earlier) is step:
                self._add(step, earlier)
        return step

    def read_late_outcomes(self, last: Seq) -> None:
        """Reads the outcomes of calls that were still open at the end of the range."""
        waiting = sum(not step.is_over for step in self.steps)
        for entry in self.log.entries(after=last) if waiting else ():
            step = self._step_of(entry)
            if step is None or step.is_over:
                continue
            self._add(step, entry)
            _settle(step, entry)
            waiting -= step.is_over
            if not waiting:
                return

    def recording(self, name: str, last: Seq) -> Recording:
        """What was read, from the first turn or call on."""
        first = min([*(t.seq for t in self.turns[:1]), *(s.first.seq for s in self.steps[:1])])
        if self.turns and self.turns[0].seq == first and self.turns[0].retry:
            before = self.log.entry(first - 1)
            first -= before.kind == "history.rewound" and before.body.get("mode") == "retry"
        made = (step for step in self.steps if not step.is_void)
        steps = tuple(_finish_step(number, step) for number, step in enumerate(made, 1))
        return Recording(self.log, name, first, last, tuple(self.turns), steps, _turns_with_parallel_calls(steps))


def _is_ours(entry: Entry) -> bool:
    return entry.header.actor == "runtime"


def _settle(step: _OpenStep, entry: Entry) -> None:
    """Takes from an event how the call ended, as the agent got it."""
    kind, body = entry.kind, entry.body
    outcome, error = outcome_of(kind, body), body.get("error")
    if kind == "action.started":
        step.cut = ""
    elif not outcome or outcome == "abandoned" or (body.get("retry") and not _is_ours(entry)):
        return
    elif kind in ("action.failed", "action.timed_out", "action.uncertain") and _is_ours(entry):
        step.cut = str(body.get("why") or "its process is gone")
    elif kind == "action.reconciled" and not _is_ours(entry):
        pass  # a person recorded it, too late for the agent
    elif outcome == "never_ran":
        step.is_void = True  # it was requested again, and that is another step
    elif type(error) is dict and error.get("type") == "interrupted":
        step.cut = f"it was interrupted ({error.get('message', '')})"
    elif kind == "action.uncertain" and body.get("why") in _INTERRUPTS:
        step.cut = f"it was interrupted ({body['why']})"
    else:
        step.status, step.outcome, step.cut, step.why = outcome, entry.seq, "", str(body.get("why", ""))


def _finish_step(number: int, step: _OpenStep) -> RecordedCall:
    body, call = step.request.body, step.call
    return RecordedCall(
        number=number,
        place=step.place,
        turn=step.first.header.turn,
        seq=step.first.seq,
        action=call.action,
        tool=call.tool,
        effect=call.effect,
        input=body.get("input"),
        input_hash=call.input_hash,
        params=body["params"] if type(body.get("params")) is dict else {},
        context_hash=text_in(body, "context_hash"),
        status=step.status,
        outcome=step.outcome,
        seqs=tuple(step.seqs),
        inside=text_in(body, "inside"),
        gone=step.gone,
        redacted=step.redacted,
        cut=step.cut if not step.outcome else "",
    )


def _turns_with_parallel_calls(steps: tuple[RecordedCall, ...]) -> frozenset[int]:
    """Turns in which a call began before another had ended. Calls made inside a tool do not count."""
    ends: dict[int, Seq] = {}
    results: set[int] = set()
    for step in steps:
        if step.inside:
            continue
        if step.seq < ends.get(step.place, 0):
            results.add(step.place)
        ends[step.place] = max(ends.get(step.place, 0), step.outcome)
    return frozenset(results)
