"""A session for tests: a clock that moves on request, calls in one line, and what a rule finds."""

from __future__ import annotations

from typing import Any

from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.events import Effect, Trust
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.monitors.monitor import Monitor
from wakelog.monitors.rules import Given, RuleFinding
from wakelog.testing.builders import START_US, new_session

SECOND = 1_000_000


class Play:
    """One session, written by hand."""

    def __init__(self, engine: Engine | None = None, **opening: Any) -> None:
        self.now = START_US
        self.log = Log.create(engine or MemoryEngine(), new_session(), ev.SessionOpened(**opening), clock=self.clock)
        self._calls = 0

    def clock(self) -> int:
        self.now += 1000
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)

    def add(self, event: ev.Event, **header: Any) -> Seq:
        return self.log.record(EventDraft(event, **header))

    def turn(self, given: Any = "go", *, retry: bool = False) -> Seq:
        """Begins a turn, as the runtime does."""
        if retry:
            turn = self.log.state()["turn"]["number"]
            starts = [e.seq for e in self.log.entries() if e.kind == "turn.started" and e.header.turn == turn]
            if starts and self.log.state()["turn"]["status"] != "open":
                self.log.rewind(starts[0] - 1, mode="retry")
        seq = self.add(ev.TurnStarted(input=given, retry=retry))
        if not retry:
            self.add(ev.MessageAdded(role="user", content=given), actor="user")
        return seq

    def end(self, outcome: Any = "completed") -> None:
        self.add(ev.TurnEnded(outcome=outcome), actor="runtime")

    def request(self, tool: str, given: Any = None, *, effect: Effect = "read", **header: Any) -> str:
        self._calls += 1
        action = f"{tool}-{self._calls}"
        self.add(ev.ActionRequested(action=action, tool=tool, effect=effect, input=given), **header)
        self.add(ev.ActionStarted(action=action), actor="runtime")
        return action

    def call(
        self,
        tool: str = "search",
        given: Any = "same",
        output: Any = "same",
        *,
        error: str = "",
        effect: Effect = "read",
        took_s: float = 0.1,
        trust: Trust = "trusted",
        source: str = "",
        cost: ev.Cost | None = None,
        **header: Any,
    ) -> Seq:
        """Records a whole call; returns the seq of its outcome."""
        action = self.request(tool, given, effect=effect, **header)
        self.wait(took_s)
        outcome: ev.Event = ev.ActionSucceeded(action=action, output=output, cost=cost or ev.Cost())
        if error:
            outcome = ev.ActionFailed(action=action, error=ev.Failure("error", error), cost=cost or ev.Cost())
        return self.add(outcome, actor="tool", trust=trust, source=source)

    def spend(self, *, usd_micros: int = 0, tokens: int = 0, seconds: float = 0) -> Seq:
        cost = ev.Cost(tokens_in=tokens, usd_micros=usd_micros, duration_us=int(seconds * SECOND))
        return self.add(ev.BudgetSpent(cost=cost), actor="runtime")

    # Looking

    def found(self, *rules: Given) -> list[RuleFinding]:
        """What rules find in the whole session, in one pass; nothing is recorded."""
        return [raised.finding for raised in Monitor(self.log, rules, writes=False).catch_up()]

    def flags(self, *rules: Given) -> list[str]:
        """The same as names of flags; a cleared flag has a minus in front."""
        return [("-" if f.is_over else "") + f.flag for f in self.found(*rules)]

    def raised(self) -> list[tuple[str, str, Seq]]:
        """The flags in the log: kind, flag and cause, in order."""
        return [
            (e.kind, e.body["flag"], e.header.cause)
            for e in self.log.entries()
            if e.kind in ("flag.raised", "flag.cleared")
        ]
