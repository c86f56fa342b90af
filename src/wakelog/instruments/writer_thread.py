"""A thread that writes, so that nobody else can be hurt by it.

Jobs are done one at a time, in the order they were handed over. Whoever hands one over waits until it is done, so that
what is recorded stands in the order in which it happened; but no longer than a moment: a store that hangs must not make
the program hang. While the thread is behind, nobody waits.

A fork waits for the job in hand. The child would inherit the locks that the thread holds and modules that it has half
imported, and nobody who finishes what it was doing.
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
"""How long somebody waits for a job."""
HOLD_S = 30.0
"""How long, when it looks at files before a tool changes them: too late is as bad as not at all."""
QUEUE_MAX = 10_000
"""Jobs that may wait; more than that are not taken."""

Job = Callable[[], None]


class RecordWriter:
    """Does jobs. After a fork the child gets a thread of its own, and forgets what the parent had still to do."""

    def __init__(self, wait_s: float | None = None) -> None:
        self._wait_s = WAIT_S if wait_s is None else wait_s
        self._start()
        _writers.add(self)

    def _start(self) -> None:
        self.pid = os.getpid()
        # Unlike Queue it can be put to from anywhere, also where the garbage collector happens to run.
        self._jobs: queue.SimpleQueue[tuple[contextvars.Context, Job, Future[None]] | None] = queue.SimpleQueue()
        self._is_behind = False
        self._is_stuck = False
        self._in_hand = threading.Lock()
        work = (self._jobs, self._in_hand)
        self._thread = threading.Thread(target=self._work, args=work, name="wakelog writer", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> Future[None] | None:
        """Hands a job over, with what is around this line; None when it is not taken."""
        if self.pid != os.getpid():
            self._start()
        if self._jobs.qsize() >= QUEUE_MAX:
            return None
        done: Future[None] = Future()
        self._jobs.put((contextvars.copy_context(), job, done))
        return done

    def wait(self, done: Future[None] | None) -> None:
        """Until a job is done, or long enough."""
        if done is None or self._is_behind or threading.current_thread() is self._thread:
            return
        try:
            done.result(self._wait_s)
        except TimeoutError:
            self._is_behind = True
        except CancelledError:
            return  # somebody who was cancelled waited for it too

    async def wait_async(self, done: Future[None] | None) -> None:
        """The same, awaited."""
        if done is None or done.done() or self._is_behind:
            return
        if on_asyncio():
            import asyncio

            # Not in a worker thread: they may all be taken by the program's own work.
            told = asyncio.wrap_future(done)
            try:
                await asyncio.wait({told}, timeout=self._wait_s)
                self._is_behind = not done.done()
            finally:
                told.cancel()  # the loop may be closed before the job is done
            return
        import anyio.to_thread

        await anyio.to_thread.run_sync(functools.partial(self.wait, done), abandon_on_cancel=True)

    def close(self, last: Job, timeout_s: float = 30.0) -> None:
        """Does what is left, and a last job. A slow store is waited for; one that takes nothing is given up."""
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
        """Waits until no job is in hand and lets none begin. False where that is not to be had: a job that hung once is
        not waited for again before it is done."""
        if self.pid != os.getpid() or self._is_stuck or threading.current_thread() is self._thread:
            return False
        self._is_stuck = not self._in_hand.acquire(timeout=FORK_WAIT_S)
        return not self._is_stuck

    def resume(self) -> None:
        self._in_hand.release()

    def _work(
        self,
        jobs: queue.SimpleQueue[tuple[contextvars.Context, Job, Future[None]] | None],
        in_hand: threading.Lock,
    ) -> None:
        while (taken := jobs.get()) is not None:
            context, job, done = taken
            with in_hand:
                context.run(job)
            self._is_stuck = False
            if jobs.empty():
                self._is_behind = False
            try:
                done.set_result(None)
            except InvalidStateError:
                continue  # who waited was cancelled


_writers: weakref.WeakSet[RecordWriter] = weakref.WeakSet()
_paused: list[list[RecordWriter]] = []


def _before_fork() -> None:
    _paused.append([writer for writer in list(_writers) if writer.pause()])


def _after_fork_in_parent() -> None:
    for writer in _paused.pop():
        writer.resume()


# These run in reverse order before a fork: first this, while the gate of the connections, which was registered when it
# was imported above, is still open to the job in hand.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=lambda: _paused.clear()
    )
