"""A thread that writes, so that a slow or broken store cannot harm the program.

Jobs run one at a time, in order. Whoever submits one waits until it is done, so that the record has the order in which
things happened; but only for a moment, because a store that hangs must not hang the program. While the thread is
behind, nobody waits.

A fork waits for the current job. Otherwise the child would inherit locks that the thread holds and half-imported
modules, and no thread that finishes the work.
"""

from __future__ import annotations

import contextvars
import functools
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError

from wakelog.engines.sqlite.fork_safety import FORK_WAIT_S
from wakelog.runtime.bridge import on_asyncio

WAIT_S = 1.0
"""How long a caller waits for a job."""
HOLD_S = 30.0
"""How long a caller waits if the job reads files before a tool changes them: late is as bad as never."""
QUEUE_MAX = 10_000
"""How many jobs may wait. More are refused."""

Job = Callable[[], None]


class RecordWriter:
    """Runs jobs. After a fork the child gets its own thread, and drops the parent's waiting jobs."""

    def __init__(self, wait_s: float | None = None) -> None:
        self._wait_s = WAIT_S if wait_s is None else wait_s
        self._start()
        _writers.add(self)

    def _start(self) -> None:
        self.pid = os.getpid()
        # Unlike Queue, it can be used from anywhere, also inside the garbage collector.
        self._jobs: queue.SimpleQueue[tuple[contextvars.Context, Job, Future[None]] | None] = queue.SimpleQueue()
        self._is_behind = False
        self._is_stuck = False
        self._running = threading.RLock()  # reentrant: a signal handler may fork inside another fork's hooks
        work = (self._jobs, self._running)
        self._thread = threading.Thread(target=self._work, args=work, name="wakelog writer", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> Future[None] | None:
        """Submits a job with the current context. None if it is refused."""
        if self.pid != os.getpid():
            self._start()
        if self._jobs.qsize() >= QUEUE_MAX:
            return None
        done: Future[None] = Future()
        self._jobs.put((contextvars.copy_context(), job, done))
        return done

    def wait(self, done: Future[None] | None) -> None:
        """Waits until a job is done, within a limit."""
        if done is None or self._is_behind or threading.current_thread() is self._thread:
            return
        try:
            done.result(self._wait_s)
        except TimeoutError:
            self._is_behind = True
        except CancelledError:
            return  # another waiter was cancelled

    async def wait_async(self, done: Future[None] | None) -> None:
        """Like `wait`, for async callers."""
        if done is None or done.done() or self._is_behind:
            return
        if on_asyncio():
            import asyncio

            # Not in a worker thread: the program may be using all of them.
            waiter = asyncio.wrap_future(done)
            try:
                await asyncio.wait({waiter}, timeout=self._wait_s)
                self._is_behind = not done.done()
            finally:
                waiter.cancel()  # the loop may close before the job is done
            return
        import anyio.to_thread

        await anyio.to_thread.run_sync(functools.partial(self.wait, done), abandon_on_cancel=True)

    def close(self, last: Job, timeout_s: float = 30.0) -> None:
        """Runs what is left, and a last job. Waits for a slow store; gives up on one that makes no progress."""
        if self.pid != os.getpid():
            return
        self.put(last)
        self._jobs.put(None)
        left, until = self._jobs.qsize(), time.monotonic() + timeout_s
        while self._thread.is_alive() and time.monotonic() < until:
            self._thread.join(0.2)
            if (now := self._jobs.qsize()) < left:
                left, until = now, time.monotonic() + timeout_s

    def pause(self) -> bool:
        """Waits for the current job and lets none start. False if that is not possible: a job that hung once is not
        waited for again until it is done."""
        if self.pid != os.getpid() or self._is_stuck or threading.current_thread() is self._thread:
            return False
        self._is_stuck = not self._running.acquire(timeout=FORK_WAIT_S)
        return not self._is_stuck

    def resume(self) -> None:
        self._running.release()

    def _work(
        self,
        jobs: queue.SimpleQueue[tuple[contextvars.Context, Job, Future[None]] | None],
        running: threading.RLock,
    ) -> None:
        while (taken := jobs.get()) is not None:
            context, job, done = taken
            with running:
                context.run(job)
            self._is_stuck = False
            if jobs.empty():
                self._is_behind = False
            try:
                done.set_result(None)
            except InvalidStateError:
                continue  # the waiter was cancelled


_writers: weakref.WeakSet[RecordWriter] = weakref.WeakSet()
_paused: list[list[RecordWriter]] = []


def _before_fork() -> None:
    _paused.append([writer for writer in list(_writers) if writer.pause()])


def _after_fork_in_parent() -> None:
    for writer in _paused.pop():
        writer.resume()


# Before a fork these run in reverse order: this one first, while the current job may still use the connections. Their
# own fork gate was registered when it was imported above.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=lambda: _paused.clear()
    )
