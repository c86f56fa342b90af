"""Watching a store: a monitor for each session that has news, whoever writes it.

The engine's feed names the sessions with something new, from any process. Of sessions that are not closed the watcher
also asks the clock. It holds the monitors of those that moved last; one that was put aside goes on where it was, having
read a little of what came before. Whatever cannot be read is told and does not hold up the others.
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

FEED_PAGE, HELD = 1000, 1024
ENDED = frozenset({"closed", "archived", "deleted"})


class WatchTrouble(msgspec.Struct, frozen=True):
    """A session that could not be looked at."""

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
        """With `ended`, sessions that are closed or archived are looked at too. `session` is the only one to watch."""
        self._engine = engine
        self._open = open_log
        self._rules = None if rules is None else list(rules)
        self._pause = pause
        self._only = session
        self._ended = ended
        self._writes = writes
        self._cursor: str | None = None
        self._held: OrderedDict[SessionId, Monitor] = OrderedDict()
        self._marks: dict[SessionId, Seq] = {}
        self._again: set[SessionId] = set()

    def look(self) -> Iterator[RaisedFinding | WatchTrouble]:
        """What was found since the last look; the first time, in everything."""
        todo = dict.fromkeys(sorted(self._again))
        self._again.clear()
        if self._cursor is None:
            # The end of the feed first: what comes in between is then seen twice, and not missed.
            self._cursor = end_of(self._engine)
            todo |= dict.fromkeys(self._all())
        else:
            while changes := self._engine.changes(self._cursor, FEED_PAGE):
                self._cursor = changes[-1].cursor
                todo |= dict.fromkeys(c.session for c in changes if self._only in (None, c.session))
        for session in todo:
            yield from self._look_at(session, Monitor.catch_up)

    def tick(self) -> Iterator[RaisedFinding | WatchTrouble]:
        """What the clock says about the sessions at work."""
        for session in list(self._held):
            yield from self._look_at(session, Monitor.tick)

    def wait(self, timeout_s: float) -> None:
        """Until there may be something new, or the time is over."""
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
            self._marks[session] = monitor.seq
            if self._engine.head(session).status in ENDED:
                self._held.pop(session, None)
        except NotFoundError:
            self._forget(session)  # deleted meanwhile
        except UnavailableError as exc:
            self._again.add(session)
            yield WatchTrouble(session, exc.message)
        except WakelogError as exc:
            self._held.pop(session, None)
            yield WatchTrouble(session, exc.message)

    def _monitor(self, session: SessionId) -> Monitor:
        monitor = self._held.pop(session, None)
        if monitor is None:
            log = self._open(session)
            after = self._marks.get(session)
            monitor = Monitor(log, self._rules, pause=self._pause, after=after, writes=self._writes)
        self._held[session] = monitor
        if len(self._held) > HELD:
            self._held.popitem(last=False)
        return monitor

    def _forget(self, session: SessionId) -> None:
        self._held.pop(session, None)
        self._marks.pop(session, None)
