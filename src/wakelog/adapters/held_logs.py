"""A cache of open logs, by session name.

Opening a session folds its state, and a framework names its session in every call, so the most recently used logs stay
open. A log follows other processes by itself; only a session that was deleted has to be looked up again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar

from wakelog.adapters.ownership import is_foreign, refuse_foreign
from wakelog.adapters.stores import Place, StoreUser
from wakelog.errors import ConflictError, NotFoundError
from wakelog.log import Log
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.records import Head
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread
from wakelog.session import Session
from wakelog.state.diff import diff

LOGS_MAX = 512


class HeldLog:
    """One log, a lock for several calls that belong together, and whatever the adapter caches about it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.lock = threading.RLock()
        self.cache: Any = None


class HeldLogs(StoreUser):
    """Opens the logs of one framework by name and keeps them open. A session of another owner is refused
    (ownership.py)."""

    def __init__(self, place: Place, framework: str) -> None:
        super().__init__(place)
        self._framework = framework
        self._logs_by_name: OrderedDict[str, HeldLog] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, name: str, *, is_written: bool = False, is_listed: bool = False) -> HeldLog | None:
        """The log of a session, or None. `is_written`: the caller appends to it at once, so a cached log is not checked
        first: the append fails if the session was deleted. `is_listed`: the name comes from a list, so a session of
        another owner gives None instead of an error."""
        if (held := self._cached(name, is_unchecked=is_written)) is not None:
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

    def _cached(self, name: str, *, is_unchecked: bool) -> HeldLog | None:
        with self._lock:
            held = self._logs_by_name.get(name)
            if held is not None:
                self._logs_by_name.move_to_end(name)
        if held is None or is_unchecked or self._exists(held):
            return held
        self.drop(name)
        return None

    def create(self, name: str, opened: ev.SessionOpened) -> HeldLog:
        """Creates a session. ConflictError if the name is taken."""
        store = self.store
        log = Log.create(store.engine, store.reserve(name), opened, clock=store.clock, redact=store.redact)
        return self._keep(name, log)

    def open(self, name: str, labels: Mapping[str, str], **fields: Any) -> HeldLog:
        """The log of a session, which is created if it does not exist: with these labels, and these fields in the event
        that opens it."""
        while True:
            if (held := self._cached(name, is_unchecked=False) or self.find(name, is_written=True)) is not None:
                return held
            all_labels = {"framework": self._framework, **labels}
            try:
                return self.create(name, ev.SessionOpened(name=name, labels=all_labels, **fields))
            except ConflictError:
                continue  # another process created it meanwhile

    def drop(self, name: str) -> None:
        """Removes a log from the cache."""
        with self._lock:
            self._logs_by_name.pop(name, None)

    def delete(self, name: str, *, why: str = "") -> bool:
        """Deletes a session; False if there is none."""
        held = self.find(name)
        if held is None:
            return False
        self.drop(name)
        self.store.delete(Session(held.log, name=name), why=why)
        return True

    def _exists(self, held: HeldLog) -> bool:
        try:
            return held.log.head().status != "deleted"
        except NotFoundError:
            return False

    def _keep(self, name: str, log: Log) -> HeldLog:
        with self._lock:
            # Two threads may have opened it at once. Both must use the first one, because they share its lock.
            held = self._logs_by_name.setdefault(name, HeldLog(log))
            if held.log.id != log.id:
                held = self._logs_by_name[name] = HeldLog(log)
            while len(self._logs_by_name) > LOGS_MAX:
                self._logs_by_name.popitem(last=False)
        return held


class LogsAdapter:
    """Base of asynchronous adapters that open logs by name."""

    framework: ClassVar[str]

    def __init__(self, store: Place = None) -> None:
        """`store` is an open store, or an argument of `wakelog.open`."""
        self._logs = HeldLogs(store, self.framework)
        self.store = self._logs.store

    async def close(self) -> None:
        """Closes the store if the adapter opened it."""
        await in_thread(self._logs.close)


def merge_data(log: Log, change: Mapping[str, Value], *, commit_id: str = "") -> Head:
    """Sets keys of a session's data, and retries if others write. Does nothing if the commit id was used before."""

    def attempt() -> Head:
        seq, _, before = log.look(data=change)
        if commit_id and log.engine.known(log.id, commit_id) is not None:
            return log.head()
        patch = diff(before, {**before, **change}, "/data")
        if not patch and not commit_id:
            return log.head()
        return log.append(ev.StatePatched(patch=patch), expect=seq, commit_id=commit_id)

    return retry_on_moved_head(log.id, "to change its data", attempt)


def replace_data(log: Log, data: Mapping[str, Value], *, why: str = "") -> None:
    """Replaces a session's data, and retries if others write. The last writer wins; the log keeps what was replaced."""

    def attempt() -> None:
        seq, state = log.now()
        if patch := diff(state["data"], data, "/data"):
            log.append(ev.StatePatched(patch=patch, why=why), expect=seq)

    retry_on_moved_head(log.id, "to change its data", attempt)
