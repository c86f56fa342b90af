"""The queue of appends to a server. Everything that waits goes into one request.

`submit` only adds commits to the queue, which fixes their order. The first caller who waits for an answer while nobody
is sending sends the whole queue, and gets the answers for all. So a single caller sends in its own thread. Under load,
appends that arrive while a request is running share the next request, and its sync on the server.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence

from wakelog.engines.remote.wire import SubmitAnswer, error_of
from wakelog.errors import UnavailableError, WakelogError
from wakelog.model.records import Commit, Head

GROUPS_MAX = 256
BYTES_MAX = 8 << 20
WAIT_S = 1.0
"""A waiting caller checks again after this long, in case the sender died."""

Group = tuple[Commit, ...]
Send = Callable[[Sequence[Group]], Sequence[SubmitAnswer]]


class QueuedAppend:
    """A queued append and its answer."""

    __slots__ = ("_queue", "commits", "done", "error", "head", "woken")

    def __init__(self, queue: SendQueue, commits: Group) -> None:
        self._queue = queue
        self.commits = commits
        self.done = False
        self.head: Head | None = None
        self.error: WakelogError | None = None
        self.woken = threading.Event()

    def result(self) -> Head:
        while not self.done:
            self._queue.send_or_wait(self)
        if self.error is not None:
            raise self.error
        assert self.head is not None
        return self.head

    def settle(self, answer: SubmitAnswer) -> None:
        self.head = answer.head
        self.error = error_of(answer.problem) if answer.problem is not None else None
        if self.head is None and self.error is None:
            self.error = UnavailableError("the server's answer cannot be read", kind="answer-unknown")


class SendQueue:
    """The queue of appends to one server. One thread at a time sends."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiting: deque[QueuedAppend] = deque()
        self._is_busy = False

    def submit(self, commits: Group) -> QueuedAppend:
        pending = QueuedAppend(self, commits)
        with self._lock:
            self._waiting.append(pending)
        return pending

    def send_or_wait(self, pending: QueuedAppend) -> None:
        """Sends the queue if nobody else is sending; otherwise waits until `pending` is done or may send."""
        if self._pid != os.getpid():
            raise UnavailableError("the append started before this process was forked", kind="answer-unknown")
        with self._lock:
            if pending.done:
                return
            must_wait = self._is_busy
            if must_wait:
                pending.woken.clear()
            else:
                self._is_busy = True
        if must_wait:
            pending.woken.wait(WAIT_S)
        else:
            self._send_batch()

    def _send_batch(self) -> None:
        batch: list[QueuedAppend] = []
        try:
            batch = self._take_batch()
            answers = self._send([each.commits for each in batch])
            for each, answer in zip(batch, answers, strict=True):
                each.settle(answer)
        except BaseException as exc:
            for each in batch:
                each.head, each.error = None, _error_for_caller(exc)
            if not isinstance(exc, Exception):
                raise
        finally:
            with self._lock:
                self._is_busy = False
                for each in batch:
                    each.done = True
                    each.woken.set()
                if self._waiting:
                    self._waiting[0].woken.set()

    def _take_batch(self) -> list[QueuedAppend]:
        """Takes as many appends as fit into one request, at least one."""
        batch: list[QueuedAppend] = []
        size = 0
        with self._lock:
            while self._waiting and len(batch) < GROUPS_MAX and (not batch or size < BYTES_MAX):
                batch.append(self._waiting.popleft())
                size += sum(map(_size, batch[-1].commits))
        return batch


def _size(commit: Commit) -> int:
    return sum(len(r.header) + len(r.body) for r in commit.records) + sum(len(p) for _, p in commit.payloads)


def _error_for_caller(exc: BaseException) -> WakelogError:
    """A separate error for each append of a batch, because they are raised in different threads."""
    if isinstance(exc, UnavailableError):
        return UnavailableError(exc.message, kind=exc.kind, hint=exc.hint)
    if isinstance(exc, WakelogError):
        return exc
    error = UnavailableError(f"the append was interrupted: {exc!r}", kind="answer-unknown")
    error.__cause__ = exc
    return error
