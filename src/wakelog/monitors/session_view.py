"""What a rule can see besides the event itself: the state, the calls before it, and distrusted events.

It is updated with each event, at a cost proportional to the change. Its memory is bounded: the newest calls, the newest
distrusted events, the state. A monitor's own events are folded into the state and otherwise ignored, so recorded flags
make no difference to what a rule sees.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.log.reader import Entry
from wakelog.model.calls import BEGIN_KINDS, END_KINDS, Call
from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.trust import distrust
from wakelog.model.values import Value
from wakelog.state.fold import Fold

ACTOR = "monitor"
"""The actor of a monitor's own events."""

CALLS_KEPT, GAPS_KEPT, TOOLS_KEPT, DISTRUSTED_KEPT = 64, 64, 256, 20_000
EFFECTS = frozenset({"write", "external"})

# What people do beside the agent's work. These events do not show that the agent is alive.
_ASIDE = frozenset({"checkpoint.named", "flag.cleared", "flag.raised", "labels.set", "note.added"})

_CONTINUES = frozenset({"session.reopened", "session.resumed"})

Ranges = Iterable[tuple[Seq, Seq]]


class SeenCall(Call):
    """One call, with what rules compare. `input` and `output` are hashes, empty if the value is unknown. `seqs`
    includes the messages about it."""

    input: str = ""
    context: tuple[tuple[Seq, Seq], ...] = ()
    """For a model call: the events in its window, as recorded with the request."""
    is_repeat: bool = False
    """Whether a recorded result was used again and nothing ran."""
    began_at: int = 0
    output: str = ""
    ended: Seq = 0
    """The event that ended its last try."""

    @property
    def name(self) -> tuple[str, str]:
        """Tool and input: two calls with the same name ask for the same."""
        return self.tool, self.input

    @property
    def short_name(self) -> str:
        """The same, short enough for the name of a flag."""
        return f"{self.tool}:{self.input[:8]}" if self.input else self.tool


class DistrustedEvent(msgspec.Struct, frozen=True):
    """An event whose content is not trusted."""

    seq: Seq
    trust: str
    source: str


class StateBefore(msgspec.Struct, frozen=True):
    """Small parts of the state as they were before the event."""

    status: str = ""
    turn: dict[str, Value] = {}
    lease: dict[str, Value] = {}
    budget: dict[str, Value] = msgspec.field(default_factory=lambda: {"limits": {}, "spent": {}})


class SessionView:
    """A session as far as it was read. Rules may read it, but not change it or keep parts of it."""

    def __init__(self, fold: Fold | None = None, seq: Seq = 0, at: int = 0) -> None:
        self._fold = fold or Fold()
        self.seq = seq
        """The newest event."""
        self.last = seq
        """The newest event that shows the agent at work."""
        self.at = at
        """The time of that event."""
        self.told_to_go_on: Seq = 0
        """The event with which a person last sent a message or resumed the session."""
        self.before = StateBefore()
        self.call: SeenCall | None = None
        """The call that the newest event is about."""
        self.open: dict[str, SeenCall] = {}
        """Calls without an outcome, by action."""
        self.calls: deque[SeenCall] = deque(maxlen=CALLS_KEPT)
        """Calls with an outcome, newest last."""
        self.model: SeenCall | None = None
        """The newest model call of the turn."""
        self.longest: dict[str, int] = {}
        """The longest successful call of each tool, in microseconds."""
        self.read: Callable[[Entry, str], Value] = lambda entry, field: entry.body.get(field)
        """Reads a field of an event's body, and fetches its payload."""
        self.holder: Callable[[], str] = str
        """Who holds the lease and sends heartbeats. Only for `tick`, because it queries the store."""
        self._answers: dict[Seq, SeenCall] = {}
        self._gaps: deque[int] = deque(maxlen=GAPS_KEPT)
        self._distrusted: list[DistrustedEvent] = []
        self._endorsed: set[Seq] = set()
        self._rewinds: dict[Seq, tuple[Seq, Seq]] = {}
        self._load_from_state()

    @property
    def state(self) -> dict[str, Value]:
        """The state after the newest event."""
        return self._fold.doc

    @property
    def is_busy(self) -> bool:
        """Whether the agent is at work: a turn or a call is open, and nothing waits for a person."""
        doc = self.state
        if not doc or doc["status"] not in ("open", "active"):
            return False
        states = {pending["status"] for pending in doc["pending_actions"].values()}
        return "waiting" not in states and (doc["turn"]["status"] == "open" or bool(states & {"requested", "running"}))

    def usual_gap(self) -> int:
        """The 90th percentile of the time between two events at work, in microseconds."""
        gaps = sorted(self._gaps)
        return gaps[len(gaps) * 9 // 10] if gaps else 0

    # Trust

    def least(self, ranges: Ranges) -> DistrustedEvent | None:
        """The least trusted event in these ranges, the newest if there are several; None if all are trusted."""
        events: list[DistrustedEvent] = []
        for first, last in ranges:
            low = bisect_left(self._distrusted, first, key=lambda d: d.seq)
            high = bisect_right(self._distrusted, last, key=lambda d: d.seq)
            events += (event for event in self._distrusted[low:high] if event.seq not in self._endorsed)
        return max(events, key=lambda d: (distrust(d.trust), d.seq), default=None)

    def is_endorsed(self, seq: Seq) -> bool:
        return seq in self._endorsed

    def context_of(self, entry: Entry) -> SeenCall | None:
        """The model call that an event depends on: the one it names as its cause, else the newest of the turn."""
        return self._answers.get(entry.header.cause) or self.model

    def view(self) -> list[tuple[Seq, Seq]]:
        """The ranges of events in view, as in `Log.view`."""
        where = self.state["view"]
        rewound, to = where["rewound"], where["to"]
        last, ranges = self.seq, []
        while rewound:
            ranges.append((rewound, last))
            last, rewound = to, self._rewinds.get(rewound, (0, 0))[1]
            to = self._rewinds.get(rewound, (0, 0))[0]
        return [(1, last), *reversed(ranges)]

    # Updates

    def take(self, entry: Entry) -> None:
        """Adds the next event."""
        doc, header = self.state, entry.header
        if doc:
            self.before = StateBefore(doc["status"], doc["turn"], doc["lease"], dict(doc["budget"]))
        was_busy = self.is_busy
        self.seq, self.call = entry.seq, None
        self._fold.apply(entry.delta)
        if header.actor == ACTOR:
            return
        if entry.kind not in _ASIDE:
            if was_busy and header.at > self.at:
                self._gaps.append(header.at - self.at)
            self.last, self.at = entry.seq, header.at
        if entry.kind in _CONTINUES or (entry.kind == "message.added" and header.actor == "user"):
            self.told_to_go_on = entry.seq
        if header.trust != "trusted":
            self._distrusted.append(DistrustedEvent(entry.seq, header.trust, header.source))
            if len(self._distrusted) > DISTRUSTED_KEPT:
                del self._distrusted[: DISTRUSTED_KEPT // 2]
        if entry.kind.startswith("action."):
            self._take_action(entry)
        elif entry.kind in _HANDLERS:
            _HANDLERS[entry.kind](self, entry)

    def restart_from(self, fold: Fold, seq: Seq, at: int) -> None:
        """Continues with a state that was folded again, because earlier events were pruned or erased."""
        self._fold, self.seq = fold, seq
        self.last, self.at = max(self.last, seq), max(self.at, at)
        if not self.open:
            self._load_from_state()

    def _load_from_state(self) -> None:
        """Takes open calls and distrusted events from the state, for events that were not read."""
        if not self.state:
            return
        for action, pending in self.state["pending_actions"].items():
            seq = pending["seq"]
            call = SeenCall(action, str(pending["tool"]), str(pending["effect"]), seq, pending["turn"], seqs=[seq])
            call.status, call.input = str(pending["status"]), text_in(pending, "input_hash")
            self.open[action] = call
        known = [DistrustedEvent(t["seq"], t["trust"], source) for source, t in self.state["trust"].items()]
        self._distrusted = sorted(known, key=lambda d: d.seq)

    def _take_action(self, entry: Entry) -> None:
        kind, action = entry.kind, text_in(entry.body, "action")
        call = self._begin(entry) if kind in BEGIN_KINDS else self.open.get(action)
        if call is None or kind == "action.evidence":
            self.call = call or next((c for c in reversed(self.calls) if c.action == action), None)
            return
        self.call = call
        if kind not in BEGIN_KINDS:
            call.take(entry.seq, kind, entry.header, entry.body)
        if kind in END_KINDS:
            self._end(call, entry)

    def _begin(self, entry: Entry) -> SeenCall:
        body, header = entry.body, entry.header
        call = SeenCall.asked(entry.seq, entry.kind, header, body)
        call.input = call.input_hash or text_in(body, "context_hash") or identity(body.get("input"))
        call.context, call.is_repeat, call.began_at = header.derived_from, bool(body.get("reused")), header.at
        if not call.settled:
            self.open[call.action] = call
        if call.is_model:
            self.model = call
        return call

    def _end(self, call: SeenCall, entry: Entry) -> None:
        body = entry.body
        output = body.get("output")
        call.output = identity(body.get("output_summary", "") if output is None else output)
        call.ended = entry.seq
        if not call.settled:
            return  # it will be retried
        self.open.pop(call.action, None)
        self.calls.append(call)
        if call.is_model:
            self._answers[entry.seq] = call
            if len(self._answers) > CALLS_KEPT:
                del self._answers[next(iter(self._answers))]
        if call.began_at and call.outcome == "succeeded" and entry.kind != "action.reconciled":
            took = entry.header.at - call.began_at
            self.longest[call.tool] = max(took, self.longest.pop(call.tool, 0))
            if len(self.longest) > TOOLS_KEPT:
                del self.longest[next(iter(self.longest))]

    def _take_turn(self, entry: Entry) -> None:
        self.model = None
        self._answers.clear()

    def _take_message(self, entry: Entry) -> None:
        call = self.open.get(text_in(entry.body, "action"))
        if call is not None:
            call.seqs.append(entry.seq)

    def _take_question(self, entry: Entry) -> None:
        request, header = text_in(entry.body, "request"), entry.header
        self.open[request] = SeenCall(
            request, "input", "read", entry.seq, header.turn, header.attempt, seqs=[entry.seq]
        )

    def _take_answer(self, entry: Entry) -> None:
        self.open.pop(text_in(entry.body, "request"), None)

    def _take_rewind(self, entry: Entry) -> None:
        self._rewinds[entry.seq] = (entry.body.get("to", 0), entry.body.get("under", 0))

    def _take_endorsement(self, entry: Entry) -> None:
        self._endorsed.update(entry.body.get("targets", ()))

    def _take_invalidation(self, entry: Entry) -> None:
        """Makes the targets untrusted, whatever their trust was before."""
        for seq in entry.body.get("targets", ()):
            self._endorsed.discard(seq)
            place = bisect_left(self._distrusted, seq, key=lambda d: d.seq)
            end = bisect_right(self._distrusted, seq, key=lambda d: d.seq)
            sources = [former.source for former in self._distrusted[place:end] if former.source]
            source = sources[0] if sources else f"e{seq}, which was invalidated"
            self._distrusted[place:end] = [DistrustedEvent(seq, "untrusted", source)]

    def _take_fork(self, entry: Entry) -> None:
        self.open.clear()  # open calls belong to the parent


_HANDLERS: dict[str, Callable[[SessionView, Entry], None]] = {
    "history.rewound": SessionView._take_rewind,
    "input.answered": SessionView._take_answer,
    "input.requested": SessionView._take_question,
    "message.added": SessionView._take_message,
    "session.forked": SessionView._take_fork,
    "step.invalidated": SessionView._take_invalidation,
    "trust.endorsed": SessionView._take_endorsement,
    "turn.started": SessionView._take_turn,
}


def identity(value: Value) -> str:
    """A hash that is equal for equal values; empty if the value was erased."""
    if type(value) is dict:
        if "$erased" in value:
            return ""
        if "$payload" in value:
            return str(value["$payload"])
    return hash_value(value)
