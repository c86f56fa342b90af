"""Threads that run functions for event loops.

`asyncio.to_thread` costs as much as a small append: for each call it makes two futures with locks and callbacks, and
meanwhile the thread and the loop wait for each other. Here a call is one object. A thread that is idle has an inbox of
its own, and the one that became idle last is used first. A loop has as many calls at work as asyncio would allow it;
more of them wait. The threads are shared by all loops, end when they are idle for a while, and finish what they are
doing before the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio

R = TypeVar("R")

AT_ONCE = min(32, (os.cpu_count() or 1) + 4)
"""Calls of one loop that run at the same time. The default executor of asyncio has the same limit."""
IDLE_S = 10.0


class ThreadCall(Generic[R]):
    """A function that runs in a thread, and the loop in which its caller waits."""

    __slots__ = ("_context", "_error", "_function", "_is_done", "_result", "_waiter", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[[], R]) -> None:
        self.loop = loop
        self._function = function
        self._context = contextvars.copy_context()
        self._waiter: asyncio.Future[None] | None = None
        self._is_done = False
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Runs it, in the thread."""
        try:
            self._result = self._context.run(self._function)
        except BaseException as exc:
            self._error = exc
        with contextlib.suppress(RuntimeError):  # the loop was closed, so no task waits
            self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_done = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_done(self) -> bool:
        return self._is_done

    async def wait(self) -> None:
        """Returns when it is done. A cancelled wait leaves it running, and may be repeated."""
        if not self._is_done:
            self._waiter = self.loop.create_future()
            await self._waiter

    @property
    def error(self) -> BaseException | None:
        return self._error

    def result(self) -> R:
        if self._error is None:
            return self._result  # type: ignore[no-any-return]
        try:
            raise self._error
        finally:
            self._error = None  # it holds the frames, and they hold this


class _Lane:
    """The calls of one loop."""

    __slots__ = ("at_work", "waiting")

    def __init__(self) -> None:
        self.at_work = 0
        self.waiting: deque[ThreadCall[Any]] = deque()


_Inbox = SimpleQueue[tuple[ThreadCall[Any], _Lane] | None]


class WorkerThreads:
    """The threads of a process."""

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._idle: list[_Inbox] = []
        self._lanes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane] = weakref.WeakKeyDictionary()
        self._threads: set[threading.Thread] = set()
        self._is_over = False

    def start(self, call: ThreadCall[Any]) -> None:
        """Runs a call as soon as its loop has fewer than AT_ONCE at work."""
        with self._lock:
            lane = self._lanes.get(call.loop)
            if lane is None:
                lane = self._lanes[call.loop] = _Lane()
            if lane.at_work >= AT_ONCE:
                lane.waiting.append(call)
                return
            lane.at_work += 1
            inbox = self._idle.pop() if self._idle else None
        if inbox is not None:
            inbox.put((call, lane))
            return
        # A daemon, and joined below: others would keep the process from ending while they are idle.
        thread = threading.Thread(target=self._work, args=(call, lane), name="wakelog worker", daemon=True)
        with self._lock:
            self._threads.add(thread)
        try:
            thread.start()
        except BaseException:
            with self._lock:
                self._threads.discard(thread)
                lane.at_work -= 1
            raise

    def stop(self) -> None:
        """Waits until the threads have finished what they are doing, and ends them."""
        with self._lock:
            self._is_over = True
            idle, self._idle = self._idle, []
            threads = list(self._threads)
        for inbox in idle:
            inbox.put(None)
        for thread in threads:
            thread.join()

    def _work(self, call: ThreadCall[Any] | None, lane: _Lane | None) -> None:
        inbox: _Inbox = SimpleQueue()
        while call is not None and lane is not None:
            call.run()
            call = None  # nothing of it is kept while this is idle
            with self._lock:
                if lane.waiting:
                    call = lane.waiting.popleft()
                    continue
                lane.at_work -= 1
                if self._is_over:
                    break
                self._idle.append(inbox)
            lane = None
            call, lane = self._next(inbox) or (None, None)
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _next(self, inbox: _Inbox) -> tuple[ThreadCall[Any], _Lane] | None:
        """The next call; None after a long wait without one, or when the process ends."""
        try:
            return inbox.get(timeout=self._idle_s)
        except Empty:
            with self._lock:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    return None
            return inbox.get()  # another thread has just taken it, and puts something in


_threads = WorkerThreads()


def start_in_thread(function: Callable[[], R]) -> ThreadCall[R]:
    """Starts a function for the loop that is running."""
    import asyncio

    call = ThreadCall(asyncio.get_running_loop(), function)
    _threads.start(call)
    return call


def _start_over() -> None:
    global _threads
    _threads = WorkerThreads()  # a thread does not survive a fork, and a lock may be held then


atexit.register(lambda: _threads.stop())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)
