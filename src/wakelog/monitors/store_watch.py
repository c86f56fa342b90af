"""Watches a store: runs a monitor for each session that has new events, from any process.

The engine's feed names the sessions with new events. For sessions that are not closed, the watcher also runs the rules
that need the clock. It keeps the monitors of the most recently changed sessions. A monitor that was dropped is created
again later: it continues where it stopped, after reading some events before that point. A session that cannot be read
is reported and does not stop the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from wakelog.engine import Engine, all_heads, end_of
from wakelog.errors import NotFoundError, UnavailableError, WakelogError
from wakelog.log import Log
from wakelog.model.ids import Seq, SessionId
from wakelog.monitors.monitor import PAUSING, Monitor, RaisedFinding
from wakelog.monitors.rules import Given

FEED_PAGE, MONITORS_MAX = 1000, 1024
ENDED = frozenset({"closed", "archived", "deleted"})


class WatchTrouble(msgspec.Struct, frozen=True):
    """A session that could not be read."""

    session: SessionId
    message: str


class Watcher:
    """Rules over all sessions of an engine, or over one."""

    def __init__(
        self,
        engine: Engine,
        open_log: Callable[[SessionId], Log],
        rules: Iterable[Given] | None = None,
        *,
        pause: bool | Collection[str] = PAUSING,
        session: SessionId | None = None,
        ended: bool = False,
        writes: bool = True,
    ) -> None:
        """With `ended`, closed and archived sessions are included. With `session`, only that one is watched."""
        self._engine = engine
        self._open = open_log
        self._rules = None if rules is None else list(rules)
        self._pause = pause
        self._only = session
        self._ended = ended
        self._writes = writes
        self._cursor: str | None = None
        self._monitors: OrderedDict[SessionId, Monitor] = OrderedDict()
        self._read_to: dict[SessionId, Seq] = {}
        self._retry: set[SessionId] = set()

    def look(self) -> Iterator[RaisedFinding | WatchTrouble]:
        """What was found since the last call; the first time, in all sessions."""
        todo = dict.fromkeys(sorted(self._retry))
        self._retry.clear()
        if self._cursor is None:
            # Take the end of the feed first: events that arrive meanwhile are then read twice rather than missed.
            self._cursor = end_of(self._engine)
            todo |= dict.fromkeys(self._all())
        else:
            while changes := self._engine.changes(self._cursor, FEED_PAGE):
                self._cursor = changes[-1].cursor
                todo |= dict.fromkeys(c.session for c in changes if self._only in (None, c.session))
        for session in todo:
            yield from self._look_at(session, Monitor.catch_up)

    def tick(self) -> Iterator[RaisedFinding | WatchTrouble]:
        """What the rules that need the clock find in the open sessions."""
        for session in list(self._monitors):
            yield from self._look_at(session, Monitor.tick)

    def wait(self, timeout_s: float) -> None:
        """Waits until there may be new events, or the timeout."""
        self._engine.wait(None, after=0, timeout_s=timeout_s)

    def _all(self) -> Iterator[SessionId]:
        if self._only is not None:
            return iter((self._only,))
        heads = all_heads(self._engine)
        return (head.session for head in heads if self._ended or head.status not in ENDED)

    def _look_at(
        self, session: SessionId, look: Callable[[Monitor], list[RaisedFinding]]
    ) -> Iterator[RaisedFinding | WatchTrouble]:
        try:
            monitor = self._monitor(session)
            yield from look(monitor)
            self._read_to[session] = monitor.seq
            if self._engine.head(session).status in ENDED:
                self._monitors.pop(session, None)
        except NotFoundError:
            self._monitors.pop(session, None)  # deleted meanwhile
            self._read_to.pop(session, None)
        except UnavailableError as exc:
            self._retry.add(session)
            yield WatchTrouble(session, exc.message)
        except WakelogError as exc:
            self._monitors.pop(session, None)
            yield WatchTrouble(session, exc.message)

    def _monitor(self, session: SessionId) -> Monitor:
        monitor = self._monitors.pop(session, None)
        if monitor is None:
            log = self._open(session)
            after = self._read_to.get(session)
            monitor = Monitor(log, self._rules, pause=self._pause, after=after, writes=self._writes)
        self._monitors[session] = monitor
        if len(self._monitors) > MONITORS_MAX:
            self._monitors.popitem(last=False)
        return monitor
