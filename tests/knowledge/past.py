"""Past sessions for tests: calls, facts and words, written in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store
from wakelog.testing.builders import START_US

SHOP = {"repo": "/code/shop", "project": "/code/shop"}
MINUTE_US = 60_000_000


class Step:
    """A finished call; `error` is its message, empty if it succeeded."""

    def __init__(
        self,
        tool: str,
        given: Any = None,
        error: str = "",
        *,
        effect: ev.Effect = "external",
        trust: ev.Trust = "trusted",
        ms: int = 0,
    ) -> None:
        self.tool, self.given, self.error, self.effect, self.trust, self.ms = tool, given, error, effect, trust, ms

    def draft(self, action: str) -> EventDraft:
        event = ev.ActionRecorded(
            action=action,
            tool=self.tool,
            effect=self.effect,
            input=self.given,
            outcome="failed" if self.error else "succeeded",
            error=ev.Failure("error", self.error) if self.error else None,
            cost=ev.Cost(duration_us=self.ms * 1000),
        )
        return EventDraft(event, trust=self.trust, source="" if self.trust == "trusted" else "web")


def sh(line: str, error: str = "", **more: Any) -> Step:
    return Step("Bash", {"command": line}, error, **more)


def edit(path: str, error: str = "", **more: Any) -> Step:
    return Step("Edit", {"file_path": path}, error, effect="write", **more)


def look(path: str) -> Step:
    return Step("Read", {"file_path": path}, effect="read")


class Calendar:
    """A clock that advances by a minute with every reading, and can be set."""

    def __init__(self) -> None:
        self.now = START_US

    def __call__(self) -> int:
        self.now += 1000
        return self.now


def worked(
    store: Store,
    name: str,
    steps: Iterable[Step] = (),
    *,
    goal: str | None = None,
    labels: dict[str, str] | None = None,
    events: Sequence[ev.Event | EventDraft] = (),
    outcome: str = "",
) -> Session[dict[str, Any]]:
    """A session of one turn with these calls and events."""
    session = store.session(name, goal=goal, labels=SHOP if labels is None else labels, folder="")
    calls = [step.draft(f"c{place}") for place, step in enumerate(steps)]
    session.append(ev.TurnStarted(input=goal or name), *calls, *events, ev.TurnEnded())
    if outcome:
        session.life.end(outcome)
    return session
