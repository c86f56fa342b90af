"""Appends on their way to the server: in one line, as many as wait in one request.

`submit` only puts commits in line, which fixes their order. Whoever first asks for an answer while nobody is sending
sends everything in line, and all of them have their answer. A lone caller sends by itself, without a thread to hop to;
under load, what comes in while one request is on its way shares the next, and shares its sync on the server.
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
"""Who is in line looks again after this long, should the one before have died without a word."""

Group = tuple[Commit, ...]
Send = Callable[[Sequence[Group]], Sequence[SubmitAnswer]]


class QueuedAppend:
    """An append in line, and the caller's way to its answer."""

    __slots__ = ("_lane", "commits", "done", "error", "head", "woken")

    def __init__(self, lane: SendQueue, commits: Group) -> None:
        self._lane = lane
        self.commits = commits
        self.done = False
        self.head: Head | None = None
        self.error: WakelogError | None = None
        self.woken = threading.Event()

    def result(self) -> Head:
        while not self.done:
            self._lane.attend(self)
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
    """The line of appends to one server, and the right to send, held by one thread at a time."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._line: deque[QueuedAppend] = deque()
        self._is_busy = False

    def submit(self, commits: Group) -> QueuedAppend:
        pending = QueuedAppend(self, commits)
        with self._lock:
            self._line.append(pending)
        return pending

    def attend(self, pending: QueuedAppend) -> None:
        """Sends what is in line if nobody else does; else waits until `pending` is done or may send."""
        if self._pid != os.getpid():
            raise UnavailableError("the append started before this process was forked", kind="answer-unknown")
        with self._lock:
            if pending.done:
                return
            waits = self._is_busy
            if waits:
                pending.woken.clear()
            else:
                self._is_busy = True
        if waits:
            pending.woken.wait(WAIT_S)
        else:
            self._send_line()

    def _send_line(self) -> None:
        batch: list[QueuedAppend] = []
        try:
            batch = self._next()
            answers = self._send([each.commits for each in batch])
            for each, answer in zip(batch, answers, strict=True):
                each.settle(answer)
        except BaseException as exc:
            for each in batch:
                each.head, each.error = None, _own_error(exc)
            if not isinstance(exc, Exception):
                raise
        finally:
            with self._lock:
                self._is_busy = False
                for each in batch:
                    each.done = True
                    each.woken.set()
                if self._line:
                    self._line[0].woken.set()

    def _next(self) -> list[QueuedAppend]:
        """As many as fit into one request, at least one."""
        batch: list[QueuedAppend] = []
        size = 0
        with self._lock:
            while self._line and len(batch) < GROUPS_MAX and (not batch or size < BYTES_MAX):
                batch.append(self._line.popleft())
                size += sum(map(_size, batch[-1].commits))
        return batch


def _size(commit: Commit) -> int:
    return sum(len(r.header) + len(r.body) for r in commit.records) + sum(len(p) for _, p in commit.payloads)


def _own_error(exc: BaseException) -> WakelogError:
    """Each of a batch gets an error of its own: they are raised in different threads."""
    if isinstance(exc, UnavailableError):
        return UnavailableError(exc.message, kind=exc.kind, hint=exc.hint)
    if isinstance(exc, WakelogError):
        return exc
    error = UnavailableError(f"the append was interrupted: {exc!r}", kind="answer-unknown")
    error.__cause__ = exc
    return error
