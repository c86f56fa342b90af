"""However often a monitor runs or restarts, it raises the same flags, each once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.monitors.play import Play
from tests.seeds import examples
from wakelog.errors import WakelogError
from wakelog.model import events as ev
from wakelog.monitors.monitor import Monitor, built_in
from wakelog.monitors.rules import Rule
from wakelog.monitors.session_rules import Stall

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WEB: dict[str, Any] = {"trust": "untrusted", "source": "web:x"}


class Script(Play):
    """Remembers its own events, so that steps can refer to them, whatever flags are recorded in between."""

    def __init__(self) -> None:
        super().__init__(limits={"usd_micros": 40, "tokens": 20})
        self.own = [1]

    def add(self, event: ev.Event, **header: Any) -> int:
        seq = super().add(event, **header)
        known = self.own[-1]
        self.own += [e.seq for e in self.log.entries(after=known) if e.header.actor != "monitor"]
        return seq

    def place(self, number: int) -> int:
        return self.own[number % len(self.own)]

    def rewind(self, number: int) -> None:
        self.log.rewind(self.place(number))
        self.own.append(self.log.head().seq)

    def think(self, low: int, high: int) -> None:
        first, last = sorted((self.place(low), self.place(high)))
        self.call("model", None, f"{low} {high}", effect="model", derived_from=((first, last),))

    def try_twice(self, first: str, second: str) -> None:
        for answer, retry in ((first, False), (second, True)):
            self.turn("do it", retry=retry)
            self.call("x", "x", answer)
            self.end("failed")

    def outcome(self) -> list[tuple[str, str, int]]:
        """The flags with their causes, as numbers of own events."""
        return [(kind, flag, self.own.index(cause)) for kind, flag, cause in self.raised()]


Step = Callable[[Script], object]
_numbers = st.integers(0, 60)
_few: st.SearchStrategy[Any] = st.sampled_from(["x", "y"])

steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda tool, given, out: lambda s: s.call(tool, given, out), _few, _few, _few),
    st.builds(lambda tool, given: lambda s: s.call(tool, given, error="no"), _few, _few),
    st.builds(lambda tool, given: lambda s: s.call(tool, given, effect="external"), _few, _few),
    st.builds(lambda a, b: lambda s: s.think(a, b), _numbers, _numbers),
    st.builds(lambda out: lambda s: s.call("fetch", "url", out, **WEB), _few),
    st.builds(lambda given: lambda s: s.turn(given), _few),
    st.builds(lambda given: lambda s: s.turn(given, retry=True), _few),
    st.builds(lambda a, b: lambda s: s.try_twice(a, b), _few, _few),
    st.builds(lambda outcome: lambda s: s.end(outcome), st.sampled_from(["completed", "failed"])),
    st.builds(lambda n: lambda s: s.rewind(n), _numbers),
    st.builds(lambda n: lambda s: s.spend(usd_micros=n, tokens=n // 3), st.integers(0, 30)),
    st.builds(
        lambda n: lambda s: s.add(ev.BudgetSet(limits={"usd_micros": n}), actor="user"),
        st.sampled_from([None, 20, 50, 60, 100]),
    ),
    st.builds(lambda n: lambda s: s.add(ev.ContextEvicted(key="k", handle=s.place(n)), actor="runtime"), _numbers),
    st.builds(lambda n: lambda s: s.add(ev.TrustEndorsed(targets=(s.place(n),)), actor="user"), _numbers),
    st.builds(lambda tool: lambda s: s.request(tool, "open"), _few),
    st.just(lambda s: s.add(ev.ContextRestored(key="k"), actor="runtime")),
    st.just(lambda s: s.add(ev.FactRecorded(key="k", value=TOKEN))),
    st.just(lambda s: s.add(ev.SessionResumed(), actor="user")),
)

plans = st.lists(steps, min_size=10, max_size=50)


def rules() -> list[Rule]:
    """All rules except the one that needs a clock, with low limits, so that short scripts find something."""
    kept = [rule for rule in built_in() if not isinstance(rule, Stall)]
    for rule in kept:
        if hasattr(rule, "times"):
            rule.times = 2
    return kept


def play(script: Script, plan: list[Step], between: Callable[[int], object]) -> list[tuple[str, str, int]]:
    for number, step in enumerate(plan):
        with contextlib.suppress(WakelogError):
            step(script)
        between(number)
    Monitor(script.log, rules(), pause=False).catch_up()
    return script.outcome()


@settings(max_examples=examples(150))
@given(plans, st.sets(st.integers(0, 40), max_size=6))
def test_looking_after_every_event_or_at_the_end_or_with_restarts_gives_the_same_flags(
    plan: list[Step], restarts: set[int]
) -> None:
    at_the_end = play(Script(), plan, lambda _: None)

    live = Script()
    monitor = Monitor(live.log, rules(), pause=False)
    assert play(live, plan, lambda _: monitor.catch_up()) == at_the_end

    restarted = Script()
    running = [Monitor(restarted.log, rules(), pause=False)]

    def look(number: int) -> None:
        if number in restarts:
            running[0] = Monitor(restarted.log, rules(), pause=False)
        if number % 3 == 0:
            running[0].catch_up()

    assert play(restarted, plan, look) == at_the_end
    assert len(set(at_the_end)) == len(at_the_end)


@given(plans)
def test_what_was_flagged_and_did_not_end_is_what_stands(plan: list[Step]) -> None:
    script = Script()
    play(script, plan, lambda _: None)
    standing: set[str] = set()
    for kind, flag, _ in script.outcome():
        standing.add(flag) if kind == "flag.raised" else standing.discard(flag)
    assert set(script.log.state()["flags"]) == standing
