"""The helpers that write a story: a clock under control, fixed ids, and calls in one line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from wakelog.model import events as ev
from wakelog.model.events import Effect, Trust
from wakelog.model.ids import Seq, SessionId, fork_id, root_id
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.store import Store

LABEL = "demo"
"""Every demo session has this label, which tells a scratch store from a real one."""

MODEL = "demo-model-1"
SECOND = 1_000_000


class Scene:
    """One demo being written."""

    def __init__(self, store: Store, name: str, at_us: int, progress: Callable[[int], None] | None = None) -> None:
        self.store = store
        self.name = name
        self.start = at_us
        self.now = at_us
        self.progress = progress or (lambda _: None)
        store.clock = self.clock
        self._calls = 0

    def clock(self) -> int:
        """The time. Each reading takes a tenth of a second."""
        self.now += SECOND // 10
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)

    def id_of(self, name: str) -> SessionId:
        return root_id(self.start, hashlib.sha256(f"demo {name}".encode()).digest())

    def session(self, name: str, *, labels: Mapping[str, str] | None = None, **opening: Any) -> Session[Any]:
        """Opens a session with a fixed id, by binding the name to the id before the store chooses one."""
        self.store.engine.claim(name, self.id_of(name))
        return self.store.session(name, labels={**(labels or {}), LABEL: self.name}, **{"folder": "", **opening})

    def fork(self, session: Session[Any], at: Seq | str, name: str, why: str = "") -> Session[Any]:
        child = fork_id(session.id, hashlib.sha256(f"demo {name}".encode()).digest())
        self.store.engine.claim(name, child)
        return Session(session.log.fork(session.seq(at), name=name, why=why, session=child), name=name)

    def ask(self, session: Session[Any], text: str) -> None:
        """Starts a turn without ending it, for turns whose process dies."""
        session.append(ev.TurnStarted(input=text), EventDraft(ev.MessageAdded(role="user", content=text), actor="user"))

    def add(self, session: Session[Any], event: ev.Event, **header: Any) -> Seq:
        return session.append(EventDraft(event, **header)).seq

    # Calls

    def request(self, session: Session[Any], tool: str, input: Value = None, **fields: Any) -> str:
        """Records the request and the start of a call; returns the action."""
        self._calls += 1
        action = f"{tool}-{self._calls}"
        header = {name: fields.pop(name) for name in ("derived_from", "trust", "source") if name in fields}
        session.append(EventDraft(ev.ActionRequested(action=action, tool=tool, input=input, **fields), **header))
        if not fields.get("approval"):
            session.append(EventDraft(ev.ActionStarted(action=action), actor="runtime"))
        return action

    def call(
        self,
        session: Session[Any],
        tool: str,
        input: Value = None,
        output: Value = None,
        *,
        effect: Effect = "read",
        summary: str = "",
        took_s: float = 0.4,
        error: str = "",
        source: str = "",
        trust: Trust = "trusted",
        **fields: Any,
    ) -> Seq:
        """Records a whole call, from request to outcome; returns the outcome's seq."""
        action = self.request(session, tool, input, effect=effect, **fields)
        self.wait(took_s)
        cost = ev.Cost(duration_us=int(took_s * SECOND))
        outcome: ev.Event
        if error:
            outcome = ev.ActionFailed(action=action, error=ev.Failure("error", error), output=output, cost=cost)
        else:
            outcome = ev.ActionSucceeded(action=action, output=output, output_summary=summary, cost=cost)
        return session.append(EventDraft(outcome, actor="tool", source=source, trust=trust)).seq

    def write(self, session: Session[Any], path: str, change: Any = "modified", **fields: Any) -> None:
        """Records a call that writes a file, and the change of the file."""
        action = self.request(session, "write_file", {"path": path}, effect="write")
        self.wait(0.1)
        cost = ev.Cost(duration_us=SECOND // 10)
        session.append(
            EventDraft(ev.ActionSucceeded(action=action, output_summary="written", cost=cost), actor="tool"),
            EventDraft(ev.FileChanged(path=path, change=change, action=action, **fields), actor="tool"),
        )

    def think(self, session: Session[Any], says: str, *, tokens: tuple[int, int] = (3000, 200), **header: Any) -> Seq:
        """Records a model call and its message."""
        self._calls += 1
        action = f"model-{self._calls}"
        session.append(
            ev.ActionRequested(action=action, tool=MODEL, effect="model", params={"model": MODEL, "temperature": 0})
        )
        self.wait(1 + tokens[1] / 80)
        cost = ev.Cost(
            tokens_in=tokens[0],
            tokens_out=tokens[1],
            usd_micros=tokens[0] * 3 + tokens[1] * 15,
            duration_us=int((1 + tokens[1] / 80) * SECOND),
        )
        succeeded = ev.ActionSucceeded(action=action, output_summary=says[:80], cost=cost, stop_reason="end_turn")
        message = ev.MessageAdded(role="assistant", content=says, action=action)
        return session.append(EventDraft(succeeded, actor="runtime"), EventDraft(message, **header)).seq
