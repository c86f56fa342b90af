"""The sessions that an adapter works on, kept open by name.

Opening a session folds its state. A framework names its session in every call, so the logs used last are kept. A log
stays in step with other processes by itself; only a session that was deleted has to be looked up again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from wakelog.adapters.ownership import is_foreign, refuse_foreign
from wakelog.adapters.stores import Place, StoreUser
from wakelog.errors import ConflictError, NotFoundError
from wakelog.log import Log
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.records import Head
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.state.diff import diff

KEPT = 512


class HeldLog:
    """One log, a lock for what must not be between two calls of it, and what the adapter remembers of it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.lock = threading.RLock()
        self.memory: Any = None


class HeldLogs(StoreUser):
    """Opens logs of one framework by name, and keeps them. A session of that name that is not the framework's is
    refused (ownership.py)."""

    def __init__(self, place: Place, framework: str) -> None:
        super().__init__(place)
        self._framework = framework
        self._kept: OrderedDict[str, HeldLog] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, name: str, *, is_written: bool = False, is_listed: bool = False) -> HeldLog | None:
        """The log of that name; None where there is none. With `is_written` the caller appends to it at once, which
        fails where it was deleted: then it is not looked up for that alone. With `is_listed` the name was not given by
        anybody, and one of somebody else is none."""
        if (held := self._at_hand(name, is_sure=is_written)) is not None:
            return held
        if not self.store.is_open(name):
            return None
        try:
            log = self.store.resume(name).log
            if is_listed and is_foreign(log, self._framework):
                return None
            refuse_foreign(log, self._framework, is_written=is_written)
            return self._keep(name, log)
        except NotFoundError:  # deleted in between
            return None

    def _at_hand(self, name: str, *, is_sure: bool) -> HeldLog | None:
        with self._lock:
            held = self._kept.get(name)
            if held is not None:
                self._kept.move_to_end(name)
        if held is None or is_sure or self._is_there(held):
            return held
        self.drop(name)
        return None

    def create(self, name: str, opened: ev.SessionOpened) -> HeldLog:
        """A new log. ConflictError where there is one of that name."""
        store = self.store
        log = Log.create(store.engine, store.reserve(name), opened, clock=store.clock, redact=store.redact)
        return self._keep(name, log)

    def open(self, name: str, labels: Mapping[str, str], **fields: Any) -> HeldLog:
        """The log of that name, which is created where there is none: with these labels, and fields of the event that
        opens it."""
        while True:
            if (held := self._at_hand(name, is_sure=False) or self.find(name, is_written=True)) is not None:
                return held
            told = {"framework": self._framework, **labels}
            try:
                return self.create(name, ev.SessionOpened(name=name, labels=told, **fields))
            except ConflictError:
                continue  # another process created it meanwhile

    def drop(self, name: str) -> None:
        """Forgets a log, such as one that was deleted."""
        with self._lock:
            self._kept.pop(name, None)

    def delete(self, name: str, *, why: str = "") -> bool:
        """Deletes a session; False where there is none."""
        held = self.find(name)
        if held is None:
            return False
        self.drop(name)
        self.store.delete(Session(held.log, name=name), why=why)
        return True

    def _is_there(self, held: HeldLog) -> bool:
        try:
            return held.log.head().status != "deleted"
        except NotFoundError:
            return False

    def _keep(self, name: str, log: Log) -> HeldLog:
        with self._lock:
            # Two threads may have opened it at once: all use the first, because its lock is what keeps them apart.
            held = self._kept.setdefault(name, HeldLog(log))
            if held.log.id != log.id:
                held = self._kept[name] = HeldLog(log)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return held


def merge_data(log: Log, change: Mapping[str, Value], *, commit_id: str = "") -> Head:
    """Sets keys of a session's data, whoever else writes. With a commit id that was used before, nothing is done."""

    def attempt() -> Head:
        seq, _, before = log.look(data=change)
        if commit_id and log.engine.known(log.id, commit_id) is not None:
            return log.head()
        patch = diff(before, {**before, **change}, "/data")
        return log.append(ev.StatePatched(patch=patch), expect=seq, commit_id=commit_id)

    return retry_on_moved_head(log.id, "to change its data", attempt)
