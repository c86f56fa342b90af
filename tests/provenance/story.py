"""Sessions for tests of provenance: one event a line, with the header it should have."""

from itertools import count
from typing import Any

from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.provenance.graph import Edge, Graph
from wakelog.testing.builders import new_session

WEB: dict[str, Any] = {"source": "web:blog.example", "trust": "untrusted"}


class Story:
    """A session in memory."""

    def __init__(self, log: Log | None = None, **opening: Any) -> None:
        self.log = log or Log.create(MemoryEngine(), new_session(), ev.SessionOpened(**opening))
        self._numbers = count(1)

    @property
    def head(self) -> Seq:
        return self.log.head().seq

    @property
    def graph(self) -> Graph:
        return Graph(self.log)

    def edges(self, seq: Seq) -> list[tuple[int, int, str, str]]:
        """What an event rests on, as (first, last, edge, known)."""
        return [_plain(edge) for edge in self.graph.edges(seq)]

    def add(self, event: ev.Event, **header: Any) -> Seq:
        return self.log.record(EventDraft(event, **header))

    def turn(self, text: str = "", *, retry: bool = False) -> Seq:
        """Begins a turn, ending an open one; returns the user's message, or the turn's start without one."""
        now = self.log.state()["turn"]
        if now["status"] == "open":
            self.add(ev.TurnEnded(), actor="runtime")
        seq = self.add(ev.TurnStarted(input=text or None, retry=retry))
        return self.add(ev.MessageAdded(role="user", content=text), actor="user") if text else seq

    def ask(self, tool: str, given: Any = None, effect: Any = "read", **header: Any) -> Seq:
        action = f"{tool}-{next(self._numbers)}"
        return self.add(ev.ActionRequested(action=action, tool=tool, effect=effect, input=given), **header)

    def answer(self, asked: Seq, output: Any = "ok", **header: Any) -> Seq:
        action = self.log.entry(asked).body["action"]
        return self.add(ev.ActionSucceeded(action=action, output=output), **{"actor": "tool", **header})

    def call(self, tool: str, given: Any = None, output: Any = "ok", effect: Any = "read", **header: Any) -> Seq:
        """A whole call; the header is the outcome's. Returns the outcome."""
        return self.answer(self.ask(tool, given, effect), output, **header)

    def model(self, says: str = "done", **header: Any) -> Seq:
        """A model call; the header is the request's, its trust also the outcome's. Returns the outcome."""
        mark = {name: header[name] for name in ("source", "trust") if name in header}
        return self.answer(self.ask("m-1", None, "model", **header), says, actor="runtime", **mark)

    def fact(self, key: str, value: Any = 1, **header: Any) -> Seq:
        return self.add(ev.FactRecorded(key=key, value=value), **header)

    def decide(self, choice: str, evidence: Any = (), **header: Any) -> Seq:
        return self.add(ev.DecisionMade(choice=choice, evidence=tuple(evidence)), **header)


def _plain(edge: Edge) -> tuple[int, int, str, str]:
    return edge.first, edge.last, edge.kind, edge.known
