"""What all groups of verbs share: the log, the name, the data's type, and how points are given.

The verbs of a session are in groups, one file each: recording, reading, moving, … `Session` (session.py) is all of
them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from wakelog.history.selectors import resolve_point
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Draft, Head
from wakelog.monitors.prices import Prices, built_in
from wakelog.runtime.ambient import Mark
from wakelog.runtime.calling import Runtime
from wakelog.session.data import DataType

if TYPE_CHECKING:
    from wakelog.index.index import Index

S = TypeVar("S")
Where = Seq | str | None
"""A point: an event's seq, a selector such as "@5" or "t:2h ago", or None for now."""


class Keeper(Protocol):
    """What a session asks the store it is in."""

    @property
    def index(self) -> Index: ...

    @property
    def prices(self) -> Prices: ...

    @property
    def on_effect(self) -> str:
        """What an effect with untrusted content in the window leads to: `flag`, or `ask`."""
        ...


class Base(Generic[S]):
    """A log with a name and a type for its data."""

    store: Keeper | None = None
    """The store it came from; None when it was made from a bare log."""

    def __init__(self, log: Log, *, name: str = "", data_type: DataType[S] | None = None) -> None:
        self.log = log
        self.name = name
        self.data_type: DataType[S] = data_type or DataType()
        self.runtime = Runtime(log)

    @property
    def id(self) -> SessionId:
        return self.log.id

    @property
    def head(self) -> Head:
        return self.log.head()

    @property
    def status(self) -> str:
        return self.head.status

    def prices(self) -> Prices:
        """The prices by which model calls are paid for: the store's."""
        return self.store.prices if self.store is not None else built_in()

    def seq(self, where: Where = None) -> Seq:
        """The event a point stands for."""
        if where is None:
            return self.head.seq
        return where if isinstance(where, int) else resolve_point(self.log, where)

    def append(
        self, *events: ev.Event | Draft, expect: Seq | None = None, commit_id: str = "", guard: int | None = None
    ) -> Head:
        """Appends typed events as one durable commit. See `Log.append`."""
        return self.log.append(*events, expect=expect, commit_id=commit_id, guard=guard)

    def _record(self, event: ev.Event, *, actor: str = "agent", source: str = "", trust: Trust = "trusted") -> Seq:
        return self._write(self.runtime.flow.draft(event, actor=actor, mark=Mark(trust, source)))

    def _write(self, draft: Draft) -> Seq:
        """Records an event, unless another process has taken over the turn or the lease."""
        return self.log.record(self.runtime.placed(draft), guard=self.runtime.guard)
